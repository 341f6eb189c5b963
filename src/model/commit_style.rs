//! How commits of a project speak of an item of work.
//!
//! Role: from the first lines of its latest commits, or from what is declared, the words for the next one. Not its
//! role: reading the log, committing. Invariants: a style is taken only from commits that have it, and the engine's own
//! have none; what a template does not name is left out.

const ID: &str = "{id}";
const TITLE: &str = "{title}";
/// Of so many commits that are looked at, half have to be conventional before ours is.
const LEAST: usize = 3;
const TYPES: &[&str] =
    &["feat", "fix", "chore", "docs", "refactor", "test", "tests", "build", "ci", "perf", "style", "revert"];

/// The style of these first lines, the latest first: `feat: [US-1] - Title` where one of them is so, `feat: US-1 - Title`
/// where most are conventional.
pub fn of(subjects: &[String]) -> Option<String> {
    let theirs = subjects.iter().filter(|subject| !subject.starts_with("nightloop("));
    let parts: Vec<Option<(&str, &str)>> = theirs.map(|subject| conventional(subject)).collect();
    if let Some(style) = parts.iter().flatten().find_map(|(_, rest)| of_item(rest)) {
        return Some(style.to_owned());
    }
    let many = parts.len() >= LEAST && parts.iter().flatten().count() * 2 >= parts.len();
    many.then(|| format!("feat: {ID} - {TITLE}"))
}

/// The words for an item.
pub fn message(style: &str, id: &str, title: &str) -> String {
    // In one go: what stands in an id or a title is no placeholder.
    let mut text = String::new();
    let mut rest = style;
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (word, length) = match rest {
            _ if rest.starts_with(ID) => (id, ID.len()),
            _ if rest.starts_with(TITLE) => (title, TITLE.len()),
            _ => ("{", 1),
        };
        text.push_str(word);
        rest = &rest[length..];
    }
    text + rest
}

/// Does it say which item a commit is about?
pub fn names_the_item(style: &str) -> bool {
    style.contains(ID) || style.contains(TITLE)
}

/// `type(scope)!: rest`: the type and the rest.
fn conventional(subject: &str) -> Option<(&str, &str)> {
    let (head, rest) = subject.split_once(": ")?;
    let head = head.strip_suffix('!').unwrap_or(head);
    let word = match head.split_once('(') {
        Some((word, scope)) if scope.ends_with(')') => word,
        Some(_) => return None,
        None => head,
    };
    TYPES.contains(&word).then_some((word, rest))
}

/// The style of a first line that begins with the id of an item.
fn of_item(rest: &str) -> Option<&'static str> {
    let is_id = |word: &str| {
        let (letters, number) = word.rsplit_once('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| c.is_ascii_uppercase() || c == '-') && is_number(number)
    };
    let (word, _) = rest.split_once(" - ")?;
    match word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
        Some(inner) => is_id(inner).then_some("feat: [{id}] - {title}"),
        None => is_id(word).then_some("feat: {id} - {title}"),
    }
}

fn is_number(word: &str) -> bool {
    word.chars().next().is_some_and(|c| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(subjects: &[&str]) -> Option<String> {
        of(&subjects.iter().map(|subject| (*subject).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_style_is_the_projects_own() {
        for (subjects, expected) in [
            (&["start", "feat: [US-001] - Have a check"][..], Some("feat: [{id}] - {title}")),
            (&["fix: x", "feat: US-001 - Have a check", "feat: [US-1] - y"], Some("feat: {id} - {title}")),
            (&["feat(api)!: a", "fix: b", "wip"], Some("feat: {id} - {title}")),
            (&["feat: a", "b", "c"], None),
            (&["feat: a", "fix: b"], None),
            (&["Merge things: x", "Fix: x", "foo(bar: x"], None),
            (&["nightloop(feat): a", "nightloop(x): US-1 - b", "nightloop(x): c"], None),
            (&[], None),
        ] {
            assert_eq!(style(subjects).as_deref(), expected, "{subjects:?}");
        }
    }

    #[test]
    fn a_title_is_no_template() {
        assert_eq!(message("feat: [{id}] - {title} {x}", "A-{title}", "{id}"), "feat: [A-{title}] - {id} {x}");
        assert!(names_the_item("x {id}") && !names_the_item("x"));
    }
}
