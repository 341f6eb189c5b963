//! Honest agents: what each kind does, drawn from a seed. An agent knows every fix; kinds differ in how they get there.

use crate::projects::Project;
use crate::stage::Script;

/// SplitMix64: small, and the same everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        usize::try_from(self.next() % sides.max(1) as u64).unwrap()
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    pub fn shuffled<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let mut items = items.to_vec();
        for last in (1..items.len()).rev() {
            items.swap(last, self.roll(last + 1));
        }
        items
    }
}

pub const HONEST: [&str; 15] = [
    "diligent",
    "clumsy",
    "lazy",
    "forgetful",
    "slow",
    "chatty",
    "crashing",
    "optimist",
    "literal",
    "tester",
    "noter",
    "formatter",
    "helper",
    "cacher",
    "committer",
];

/// A turn is written as it is drawn; whether all is right afterwards is known, so the agent can say so.
struct Draft<'a> {
    project: &'a Project,
    right: Vec<&'a str>,
    turns: Vec<String>,
}

impl<'a> Draft<'a> {
    fn missing(&self) -> Vec<&'a str> {
        let paths = self.project.functions.iter().map(|function| function.path);
        paths.filter(|path| !self.right.contains(path)).collect()
    }

    fn fix(&mut self, path: &'a str) -> String {
        self.right.push(path);
        format!("fix {path}\n")
    }

    fn spoil(&mut self, path: &'a str) -> String {
        self.right.retain(|known| *known != path);
        format!("spoil {path}\n")
    }

    fn end_turn(&mut self, mut script: String) {
        if self.missing().is_empty() {
            script.push_str("echo DONE\n");
        }
        self.turns.push(script);
    }
}

/// How many functions a turn of this kind repairs at most.
fn stride(kind: &str) -> usize {
    match kind {
        "lazy" | "slow" | "optimist" => 1,
        "clumsy" | "forgetful" | "chatty" | "crashing" => 2,
        _ => 3,
    }
}

pub fn draw(kind: &str, project: &Project, seed: u64) -> Script {
    let mut dice = Dice::new(seed);
    let mut draft = Draft { project, right: Vec::new(), turns: Vec::new() };
    // A letter-true one never looks beyond the tests, and none of them needs more turns than this.
    let untested = project.functions[project.functions.len() - 1].path;
    let wanted = if kind == "literal" { project.covered() } else { project.functions };
    for turn in 0..12 {
        let open: Vec<&str> = wanted.iter().map(|f| f.path).filter(|path| !draft.right.contains(path)).collect();
        if open.is_empty() {
            break;
        }
        let mut script = habit(kind, project, turn, &mut dice);
        if kind == "crashing" && dice.chance(35) && !last_crashed(&draft) {
            script.push_str(&draft.fix(untested));
            script.push_str("echo 'panic: out of luck' >&2\nexit 3\n");
            draft.turns.push(script);
            continue;
        }
        // Does once more what it did before, and remembers nothing of it.
        if kind == "forgetful" && turn > 0 && dice.chance(40) {
            let again: String = draft.right.iter().map(|path| format!("fix {path}\n")).collect();
            draft.end_turn(format!("{script}{again}echo 'once more' >> NOTES.md\n"));
            continue;
        }
        let undone: Vec<&str> = draft.right.iter().copied().filter(|path| *path != untested).collect();
        if !undone.is_empty() && kind == "clumsy" && dice.chance(35) {
            script.push_str(&draft.spoil(undone[dice.roll(undone.len())]));
        }
        // What no test asks for comes first: a green check is then the end of all the work.
        if turn == 0 && kind != "literal" {
            script.push_str(&draft.fix(untested));
        }
        let step = 1 + dice.roll(stride(kind));
        for path in dice.shuffled(&open).into_iter().filter(|path| *path != untested).take(step) {
            script.push_str(&draft.fix(path));
        }
        if kind == "optimist" && dice.chance(40) {
            script.push_str("echo DONE\n");
        }
        if kind == "literal" && wanted.iter().all(|f| draft.right.contains(&f.path)) {
            script.push_str("echo DONE\n");
        }
        draft.end_turn(script);
    }
    Script { turns: draft.turns, rest: "echo DONE\n".into() }
}

fn last_crashed(draft: &Draft) -> bool {
    draft.turns.last().is_some_and(|turn| turn.contains("exit 3"))
}

/// What a kind does in a turn beside the repairs.
fn habit(kind: &str, project: &Project, turn: usize, dice: &mut Dice) -> String {
    let check = project.check.join(" ");
    match kind {
        "slow" => "sleep 0.2\n".into(),
        "chatty" => {
            "i=0; while [ $i -lt 1500 ]; do echo \"thinking about line $i of the matter\"; i=$((i+1)); done\n".into()
        }
        "tester" if turn == 0 => tested(project),
        "noter" => format!(
            "echo 'turn {turn}: {} looked at' >> NOTES.md\nmkdir -p reports; echo 'all well' > reports/{turn}.txt\n",
            project.name
        ),
        "formatter" => {
            let comment = project.comment;
            format!(
                "for f in {}/*; do [ -f \"$f\" ] && grep -q formatted \"$f\" || printf '{comment} formatted\\n' >> \"$f\"; done\n",
                project.code
            )
        }
        "helper" if turn == 0 => {
            let end = project.functions[0].path.rsplit('.').next().unwrap_or("txt");
            format!("printf '{} shared by the functions\\n' > {}/shared.{end}\n", project.comment, project.code)
        }
        "cacher" => format!("{check} > last-check.log 2>&1 || :\nmkdir -p .cache/agent; date > .cache/agent/seen\n"),
        "committer" if dice.chance(60) => {
            "git add -A; git -c user.name=a -c user.email=a@example.org commit -qm work || :\n".into()
        }
        _ => String::new(),
    }
}

/// The test of the function that nobody tested.
fn tested(project: &Project) -> String {
    let (path, text) = project.new_test;
    let listed = if project.name == "awk" { "echo count >> checks/cases.txt\n" } else { "" };
    format!("cat > {path} <<'END'\n{text}END\n{listed}")
}
