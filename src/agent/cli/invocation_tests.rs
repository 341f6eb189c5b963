//! Command lines: what each program is started with, and what is refused.

use super::*;
use crate::agent::program::Offer;
use crate::model::loop_file::ProgramProfile as P;

fn task() -> Task {
    Task {
        system: "You are the Solver.".into(),
        prompt: "do it".into(),
        session: None,
        model: None,
        workspace: "/w".into(),
        read_only: false,
        caged: false,
        offer: None,
    }
}

fn rich() -> Task {
    Task {
        session: Some("s-1".into()),
        model: Some("big".into()),
        offer: Some(Offer {
            name: "nightloop".into(),
            argv: vec!["/opt/night loop".into(), "mcp".into(), "a\"b\\".into()],
            env: vec![("SOCKET".into(), "/run/x y".into())],
        }),
        ..task()
    }
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|word| (*word).to_owned()).collect()
}

fn made(profile: P, declared: &[&str], task: &Task) -> Invocation {
    invocation(profile, &words(declared), None, task).unwrap()
}

fn stdin(invocation: &Invocation) -> &str {
    std::str::from_utf8(invocation.stdin.as_deref().unwrap()).unwrap()
}

/// The words after `flag`.
fn after<'a>(invocation: &'a Invocation, flag: &str) -> Option<&'a str> {
    let at = invocation.argv.iter().position(|word| word == flag)?;
    invocation.argv.get(at + 1).map(String::as_str)
}

#[test]
fn the_shortest_declaration_is_completed() {
    let cases: [(P, &[&str], &str); 7] = [
        (
            P::Claude,
            &[
                "claude",
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--permission-mode",
                "bypassPermissions",
                "--append-system-prompt",
                "You are the Solver.",
            ],
            "do it",
        ),
        (
            P::Codex,
            &["codex", "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"],
            "You are the Solver.\n\ndo it",
        ),
        (
            P::Gemini,
            &["gemini", "--output-format", "stream-json", "--approval-mode", "yolo"],
            "You are the Solver.\n\ndo it",
        ),
        (P::Opencode, &["opencode", "run", "--format", "json"], "You are the Solver.\n\ndo it"),
        (
            P::Goose,
            &[
                "goose",
                "run",
                "--output-format",
                "stream-json",
                "--quiet",
                "--system",
                "You are the Solver.",
                "--instructions",
                "-",
            ],
            "do it",
        ),
        (
            P::Aider,
            &[
                "aider",
                "--yes-always",
                "--no-auto-commits",
                "--no-dirty-commits",
                "--no-pretty",
                "--no-stream",
                "--no-check-update",
                "--no-show-release-notes",
                "--no-analytics",
                "--no-gitignore",
                "--no-detect-urls",
                "--chat-history-file",
                "/dev/null",
                "--input-history-file",
                "/dev/null",
                "--message-file",
                "/dev/stdin",
            ],
            "You are the Solver.\n\ndo it",
        ),
        (P::Plain, &["plain"], "You are the Solver.\n\ndo it"),
    ];
    for (profile, argv, input) in cases {
        let made = made(profile, &[profile.name()], &task());
        assert_eq!(made.argv, argv, "{}", profile.name());
        assert_eq!(stdin(&made), input, "{}", profile.name());
    }
}

#[test]
fn read_only_uses_the_mode_that_the_program_has() {
    let task = Task { read_only: true, ..task() };
    assert_eq!(after(&made(P::Claude, &["claude"], &task), "--permission-mode"), Some("plan"));
    let codex = made(P::Codex, &["codex"], &task);
    assert_eq!(after(&codex, "--sandbox"), Some("read-only"));
    assert!(!codex.argv.iter().any(|word| word.contains("dangerously")));
    assert_eq!(after(&made(P::Gemini, &["gemini"], &task), "--approval-mode"), Some("plan"));
    let opencode = made(P::Opencode, &["opencode"], &task);
    assert_eq!(after(&opencode, "--agent"), Some("plan"));
    assert!(
        opencode
            .env
            .iter()
            .any(|(name, value)| name == "OPENCODE_CONFIG_CONTENT" && value.contains("\"edit\":\"deny\""))
    );
    assert_eq!(after(&made(P::Aider, &["aider"], &task), "--chat-mode"), Some("ask"));
}

/// Inside our sandbox a mode or sandbox of its own would keep it from reading and reporting.
#[test]
fn a_reader_that_our_sandbox_holds_is_not_held_twice() {
    let task = Task { read_only: true, caged: true, ..rich() };
    let claude = made(P::Claude, &["claude"], &task);
    assert_eq!(after(&claude, "--permission-mode"), Some("bypassPermissions"));
    assert!(claude.env.contains(&("ENABLE_TOOL_SEARCH".to_owned(), "false".to_owned())), "{:?}", claude.env);
    let codex = made(P::Codex, &["codex"], &task);
    assert!(codex.argv.contains(&"--dangerously-bypass-approvals-and-sandbox".to_owned()), "{:?}", codex.argv);
    assert!(!codex.argv.contains(&"--sandbox".to_owned()), "{:?}", codex.argv);
    assert_eq!(after(&made(P::Gemini, &["gemini"], &task), "--approval-mode"), Some("yolo"));
    assert_eq!(after(&made(P::Opencode, &["opencode"], &task), "--agent"), None);
}

#[test]
fn session_model_and_tools_go_where_the_program_takes_them() {
    let task = rich();
    let claude = made(P::Claude, &["claude"], &task);
    assert_eq!(after(&claude, "--resume"), Some("s-1"));
    assert_eq!(after(&claude, "--model"), Some("big"));
    let config = claude.argv.iter().find_map(|word| word.strip_prefix("--mcp-config=")).unwrap();
    let config: serde_json::Value = serde_json::from_str(config).unwrap();
    assert_eq!(config["mcpServers"]["nightloop"]["args"][1], "a\"b\\");
    assert_eq!(config["mcpServers"]["nightloop"]["env"]["SOCKET"], "/run/x y");
    assert!(claude.argv.contains(&"--allowedTools=mcp__nightloop".to_owned()));

    let codex = made(P::Codex, &["codex"], &task);
    assert_eq!(codex.argv[codex.argv.len() - 3..], ["resume", "s-1", "-"]);
    assert_eq!(after(&codex, "--model"), Some("big"));
    for expected in [
        "mcp_servers.nightloop.command=\"/opt/night loop\"",
        "mcp_servers.nightloop.args=[\"mcp\",\"a\\\"b\\\\\"]",
        "mcp_servers.nightloop.env={\"SOCKET\"=\"/run/x y\"}",
        "mcp_servers.nightloop.default_tools_approval_mode=\"approve\"",
    ] {
        let at = codex.argv.iter().position(|word| word == expected);
        assert!(at.is_some_and(|at| codex.argv[at - 1] == "-c"), "{expected} in {:?}", codex.argv);
    }
    assert_eq!(stdin(&codex), "do it", "a conversation that goes on has heard its role");

    let gemini = made(P::Gemini, &["gemini"], &task);
    assert_eq!((after(&gemini, "--resume"), after(&gemini, "--model")), (Some("s-1"), Some("big")));

    let opencode = made(P::Opencode, &["opencode"], &task);
    assert_eq!((after(&opencode, "--session"), after(&opencode, "--model")), (Some("s-1"), Some("big")));
    let (_, settings) = opencode.env.iter().find(|(name, _)| name == "OPENCODE_CONFIG_CONTENT").unwrap();
    let settings: serde_json::Value = serde_json::from_str(settings).unwrap();
    assert_eq!(settings["mcp"]["nightloop"]["command"][0], "/opt/night loop");
    assert_eq!(settings["mcp"]["nightloop"]["environment"]["SOCKET"], "/run/x y");
    assert_eq!(settings["permission"]["edit"], "allow");

    let plain_words = Offer { argv: words(&["/opt/night loop", "mcp"]), ..rich().offer.unwrap() };
    let goose = made(P::Goose, &["goose"], &Task { offer: Some(plain_words), ..rich() });
    assert_eq!(after(&goose, "--with-extension"), Some("\"SOCKET=/run/x y\" \"/opt/night loop\" mcp"));
    assert_eq!((after(&goose, "--session-id"), after(&goose, "--model")), (Some("s-1"), Some("big")));
    // A quotation mark cannot be told to goose: better no turn than another command.
    let error = invocation(P::Goose, &words(&["goose"]), None, &task).unwrap_err();
    assert!(error.contains("goose cannot be given"), "{error}");
}

#[test]
fn what_the_operator_gave_is_kept_and_not_repeated() {
    let cases: [(P, &[&str], &str); 9] = [
        (
            P::Claude,
            &["claude", "--print", "--model=mine", "--permission-mode", "acceptEdits", "-r", "old"],
            "--resume",
        ),
        (P::Claude, &["claude", "--dangerously-skip-permissions"], "--permission-mode"),
        (
            P::Claude,
            &["claude", "-p", "--output-format", "stream-json", "--verbose", "--append-system-prompt", "x"],
            "-",
        ),
        (P::Codex, &["codex", "--profile", "night", "exec", "-m", "mine", "-s", "workspace-write"], "--model"),
        (P::Codex, &["codex", "exec", "--json", "--yolo", "resume", "old"], "--sandbox"),
        (P::Gemini, &["gemini", "-y", "-mmine", "-o", "stream-json", "-r", "old"], "--approval-mode"),
        (P::Opencode, &["opencode", "run", "-m", "mine", "--agent", "own", "-c"], "--session"),
        (P::Goose, &["goose", "run", "-q", "--model", "mine", "--name", "own"], "--resume"),
        (P::Aider, &["aider", "--yes", "--pretty", "--model", "mine"], "--no-pretty"),
    ];
    for (profile, declared, not_added) in cases {
        let made = made(profile, declared, &Task { offer: None, ..rich() });
        let mut rest = made.argv.iter();
        for word in declared {
            assert!(rest.any(|kept| kept == word), "{word} of {declared:?} is not kept in order: {:?}", made.argv);
        }
        for name in ["-p", "--print", "--model", "-m", "--verbose", "exec", "run", "--output-format", "resume"] {
            let times = |words: &[String]| words.iter().filter(|word| *word == name).count();
            assert!(times(&made.argv) <= times(&words(declared)).max(1), "{name} is repeated: {:?}", made.argv);
        }
        assert!(!made.argv.iter().any(|word| word == not_added && !declared.contains(&not_added)), "{:?}", made.argv);
        let own_model = declared.iter().any(|word| word.ends_with("mine"));
        assert!(!(own_model && made.argv.contains(&"big".to_owned())), "the operator's model stays: {:?}", made.argv);
    }
    // A system prompt of the operator's own leaves ours no flag: it goes before the prompt.
    let made = made(P::Claude, &["claude", "--append-system-prompt", "x"], &task());
    assert_eq!(stdin(&made), "You are the Solver.\n\ndo it");
}

#[test]
fn a_prompt_goes_by_argument_when_asked() {
    let cases: [(P, &[&str]); 7] = [
        (P::Claude, &["--", "-do it"]),
        (P::Codex, &["--", "-do it"]),
        (P::Gemini, &["--prompt=-do it"]),
        (P::Opencode, &["--", "-do it"]),
        (P::Goose, &["--text=-do it"]),
        (P::Aider, &["--message=-do it"]),
        (P::Plain, &["-do it"]),
    ];
    for (profile, end) in cases {
        let task = Task { system: String::new(), prompt: "-do it".into(), ..task() };
        let made = invocation(profile, &words(&[profile.name()]), Some(PromptBy::Argument), &task).unwrap();
        assert_eq!(made.argv[made.argv.len() - end.len()..], *end, "{}", profile.name());
        assert_eq!(made.stdin, None);
        let long = Task { prompt: "x".repeat(200_000), ..task };
        let error = invocation(profile, &words(&[profile.name()]), Some(PromptBy::Argument), &long).unwrap_err();
        assert!(error.contains("prompt: stdin"), "{error}");
        assert!(invocation(profile, &words(&[profile.name()]), None, &long).is_ok(), "standard input takes it");
    }
}

#[test]
fn the_place_of_the_prompt_is_the_operators() {
    let task = Task { system: String::new(), ..rich() };
    let made = made(P::Codex, &["codex", "exec", "--color", "never", "{prompt}"], &task);
    assert_eq!(made.argv[made.argv.len() - 5..], ["--color", "never", "resume", "s-1", "do it"]);
    assert_eq!(made.stdin, None);
    let made = invocation(P::Plain, &words(&["agent", "--task={prompt}", "--fast"]), None, &task).unwrap();
    assert_eq!(made.argv, ["agent", "--task=do it", "--fast"]);
    let made = invocation(P::Plain, &words(&["sh", "-c", "agent \"$1\"", "sh", "{prompt}"]), None, &task).unwrap();
    assert_eq!(made.argv, ["sh", "-c", "agent \"$1\"", "sh", "do it"]);
}

#[test]
fn no_prompt_reaches_a_shell() {
    for declared in [
        &["sh", "-c", "agent {prompt}"] as &[&str],
        &["sh", "-c", "{prompt}"],
        &["/bin/bash", "-lc", "{prompt}"],
        &["env", "X=1", "dash", "-c", "{prompt}"],
        &["ssh", "host", "agent", "{prompt}"],
        &["su", "me", "-c", "{prompt}"],
        &["agent", "say {prompt} twice"],
        &["{prompt}"],
        &["agent", "{prompt}", "{prompt}"],
    ] {
        let error = invocation(P::Plain, &words(declared), None, &task()).unwrap_err();
        assert!(error.contains("{prompt}"), "{declared:?}: {error}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_advice() {
    let refused =
        |profile, declared: &[&str], by, task: &Task| invocation(profile, &words(declared), by, task).unwrap_err();
    assert!(refused(P::Claude, &[], None, &task()).contains("command: [\"claude\"]"));
    assert!(refused(P::Claude, &["claude", "--output-format", "json"], None, &task()).contains("profile: plain"));
    assert!(refused(P::Opencode, &["opencode", "run", "--format=default"], None, &task()).contains("profile: plain"));
    assert!(refused(P::Goose, &["goose", "run", "--recipe", "x"], None, &task()).contains("--recipe"));
    assert!(refused(P::Aider, &["aider", "-m", "hello"], None, &task()).contains("--message={prompt}"));
    assert!(refused(P::Plain, &["a", "{prompt}"], Some(PromptBy::Stdin), &task()).contains("keep one"));
    for session in ["--last", "a b", "", "../x\n"] {
        let task = Task { session: Some(session.into()), ..task() };
        assert!(refused(P::Claude, &["claude"], None, &task).contains("session"), "{session}");
    }
    let task_of = |prompt: &str| Task { prompt: prompt.into(), ..task() };
    assert!(refused(P::Plain, &["a"], Some(PromptBy::Argument), &task_of("a\0b")).contains("NUL"));
    let named = Task { offer: Some(Offer { name: "a.b".into(), ..rich().offer.unwrap() }), ..task() };
    assert!(refused(P::Codex, &["codex"], None, &named).contains("tool server"));
}

#[test]
fn each_program_is_known_to_the_doctor() {
    for profile in P::ALL {
        let checkup = checkup(profile);
        assert!(!checkup.version_argv.is_empty());
        assert_eq!(checkup.signed_in_variables, key_variables(profile));
        for folder in own_folders(profile).iter().chain(checkup.signed_in_files) {
            assert!(!folder.starts_with('/') && !folder.contains(".."), "{folder} is not below HOME");
        }
    }
    assert!(takes_tools(P::Claude) && !takes_tools(P::Gemini) && !takes_tools(P::Plain));
}
