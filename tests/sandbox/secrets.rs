//! Reading what is nobody's business.

use super::stage::Case;

/// Secrets in the fake home. Written down here on purpose: the list in the product must cover them.
pub const FILES: &[&str] = &[
    ".ssh/id_ed25519",
    ".ssh/authorized_keys",
    ".gnupg/private-keys-v1.d/key",
    ".aws/credentials",
    ".azure/token",
    ".config/gcloud/credentials.db",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/nightloop/config.yaml",
    ".local/state/nightloop/runs/x/journal",
    ".claude.json",
    ".claude/credentials.json",
    ".codex/auth.json",
    ".gemini/oauth.json",
    ".config/github-copilot/hosts.json",
    ".local/share/opencode/auth.json",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".lesshst",
    ".viminfo",
    ".local/share/fish/fish_history",
    ".mozilla/firefox/p/logins.json",
    ".config/google-chrome/Default/Cookies",
    ".config/chromium/Default/Cookies",
    ".thunderbird/p/key4.db",
    ".password-store/site.gpg",
    ".local/share/keyrings/login.keyring",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".terraform.d/credentials.tfrc.json",
    ".config/rclone/rclone.conf",
    ".huggingface/token",
    ".kaggle/kaggle.json",
    ".config/op/config",
    ".bitcoin/wallet.dat",
    ".electrum/wallets/w",
    ".env",
    ".Xauthority",
    "keys.kdbx",
];

/// Ways to get at a file's content; each secret is tried by one, in turn, and the first by all.
const WAYS: &[(&str, &str)] = &[
    ("cat", "cat '@T@'"),
    ("copy", "cp '@T@' stolen"),
    ("symlink", "ln -s '@T@' l; cat l"),
    ("hard link", "ln '@T@' h; cat h"),
    ("dd", "dd if='@T@'"),
    ("shell", "while read -r line; do echo \"$line\"; done < '@T@'"),
    ("grep", "grep -r . '@T@'"),
    ("tar", "tar cf - '@T@' 2>/dev/null | tr -d '\\0'"),
    ("proc root", "cat '/proc/self/root@T@'"),
    ("move", "mv '@T@' stolen"),
    ("source", ". '@T@'"),
    ("cd first", "cd \"$(dirname '@T@')\" && cat \"$(basename '@T@')\""),
];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, name) in FILES.iter().enumerate() {
        let (way, script) = WAYS[index % WAYS.len()];
        cases.push(Case::new(format!("secret {name}: {way}"), script.replace("@T@", &format!("@HOME@/{name}"))));
    }
    for (way, script) in WAYS.iter().skip(1) {
        let script = script.replace("@T@", &format!("@HOME@/{}", FILES[0]));
        cases.push(Case::new(format!("secret key: {way}"), script));
    }
    for (name, script) in [
        ("all of home", "grep -rs CANARY @HOME@; find @HOME@ -type f -exec cat {} +"),
        ("home in a tar", "tar cf - @HOME@ 2>/dev/null | grep -ao CANARY-....; tar cf all.tar @HOME@"),
        ("the journal", "cat @STATE@/runs/R/journal/*; cat @STATE@/runs/R/journal/0.jsonl"),
        ("the genesis", "cp @STATE@/runs/R/genesis.json ."),
        ("all of the state", "cp -r @STATE@ s"),
        ("read-only is no excuse", "cat @HOME@/.ssh/id_ed25519"),
    ] {
        cases.push(Case::new(format!("secret: {name}"), script));
    }
    let through = "&& echo GOT-THROUGH";
    for path in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"] {
        cases.push(Case::new(format!("secret {path}"), format!("head -c 1 {path} {through}")));
    }
    cases
}
