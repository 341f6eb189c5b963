//! A file of sixty items: what an author is told stays small.

use serde_json::{Value, json};

use crate::case::{Case, report, write};

const ITEMS: usize = 60;
/// What is sent with an item: the whole first message, learnings included.
const MOST_PROMPT: usize = 12 * 1024;

/// Sixty items without checks of their own, whose authors learn something each time.
fn sixty() -> Case {
    let items: Vec<Value> = (1..=ITEMS)
        .map(|number| {
            json!({
                "id": format!("US-{number:03}"),
                "title": format!("Story {number}"),
                "description": "As a reader I want the file to have the word, so that I find it where I look for it.",
                "acceptanceCriteria": [format!("f{number}.txt has the word"), "It is the only word in the file"],
                "priority": number,
                "passes": false,
                "notes": "",
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({"project": "large", "userStories": items})).unwrap();
    let mut case = Case::prd(&[])
        .file("prd.json", &text)
        .declare("budget", json!({"max_iterations": 80, "max_total_tool_calls": 2000}));
    for number in 1..=ITEMS {
        let (id, file) = (format!("US-{number:03}"), format!("f{number}.txt"));
        let mut told = report(None);
        told["input"]["learnings"] = json!([
            format!("File {number} is read by the reader number {number}, which wants one word on one line."),
            format!("The checks of story {number} look at the first line alone, so further lines do no harm."),
        ]);
        told["input"]["actions"] = json!([format!("Wrote {file} with the word that story {number} asks for.")]);
        case = case.author(&id, None, &[write(&file, "word\n"), told]);
        let judged = json!([
            {"criterion": "1", "met": true, "artifact": file, "why": "It is there."},
            {"criterion": "2", "met": true, "artifact": file, "why": "It is alone."},
        ]);
        let mut critique = crate::case::critique("VERIFIED", false, json!([]));
        critique["input"]["judged"] = judged;
        case = case.critic(Some(&id), None, &[critique]);
    }
    case
}

#[test]
fn the_sixtieth_author_is_told_no_more_than_a_few_pages() {
    let ran = sixty().run().converged();
    assert_eq!(ran.passing().len(), ITEMS);
    let sizes: Vec<usize> = (1..=ITEMS).map(|nth| ran.prompt_of("author", nth).len()).collect();
    let most = sizes.iter().max().unwrap();
    assert!(*most <= MOST_PROMPT, "{sizes:?}");
    let last = ran.prompt_of("author", ITEMS);
    assert!(last.contains("item `US-059` passes") && last.contains("Older iterations"), "{last}");
    let (lines, bytes) = (ran.text("AGENTS.md").lines().count(), ran.text("AGENTS.md").len());
    assert!(lines <= 150 && bytes <= 6_000, "{lines} lines, {bytes} bytes");
}
