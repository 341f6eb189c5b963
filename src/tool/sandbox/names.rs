//! The names that matter: what commands may not read, which caches they may write, where sockets lead out.
//!
//! Plain lists, so that adding one is one line. `policy` says what is done with them.

use std::ffi::CStr;

/// Below the home folder: keys, tokens, sessions, histories. Files and folders alike.
pub(super) const SECRETS: &[&str] = &[
    // Keys and logins.
    ".ssh",
    ".gnupg",
    ".pki",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".git-credentials",
    ".config/git/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/op",
    ".config/Bitwarden CLI",
    ".vault-token",
    ".rhosts",
    ".putty",
    ".subversion/auth",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".msmtprc",
    ".fetchmailrc",
    ".s3cfg",
    ".boto",
    ".passwd-s3fs",
    // Clouds and clusters.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/rclone",
    ".config/sops",
    ".config/heroku",
    ".config/netlify",
    ".config/vercel",
    ".config/fly",
    ".fly",
    ".oci",
    ".kube",
    ".minikube",
    ".docker",
    ".config/containers/auth.json",
    ".helm",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".tsh",
    ".cloudflared",
    ".databrickscfg",
    ".snowsql",
    // Registries of packages and code.
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet.Config",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/tea",
    ".condarc",
    ".huggingface",
    ".cache/huggingface/token",
    ".kaggle",
    ".config/wandb",
    // Other agents.
    ".codex",
    ".gemini",
    ".cursor",
    ".copilot",
    ".continue",
    ".aider.conf.yml",
    ".config/github-copilot",
    ".config/opencode",
    ".local/share/opencode",
    ".config/goose",
    ".local/share/goose",
    ".config/anthropic",
    ".config/openai",
    ".config/io.datasette.llm",
    // nightloop itself.
    ".config/nightloop",
    ".local/state/nightloop",
    ".local/share/nightloop",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".config/Slack",
    ".config/discord",
    ".config/Signal",
    ".local/share/evolution",
    ".var/app",
    "snap",
    // Money.
    ".bitcoin",
    ".ethereum",
    ".electrum",
    // What was typed.
    ".lesshst",
    ".viminfo",
    ".local/share/fish/fish_history",
    ".local/share/atuin",
    ".config/fish/fish_variables",
    ".screen",
    ".ICEauthority",
    ".Xauthority",
];

/// Direct children of the home folder that begin like this.
pub(super) const SECRET_STARTS: &[&str] = &[".claude", ".env"];
/// Direct children of the home folder that end like this.
pub(super) const SECRET_ENDS: &[&str] = &["_history", ".kdbx", ".pem", ".p12", ".pfx"];

/// Of the whole system.
pub(super) const SYSTEM_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ipsec.secrets",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/NetworkManager/system-connections",
    "/etc/docker",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/private",
    "/var/spool/cron",
    "/var/spool/mail",
    "/var/mail",
    "/run/secrets",
    "/run/user",
    "/run/credentials",
    "/lost+found",
    "/boot",
];

/// Folders whose children are the homes of people.
pub(super) const HOMES: &[&str] = &["/home", "/var/home", "/export/home"];

/// Below the home folder: what build tools download and share between projects. Nothing that runs by itself later:
/// plugins, wrappers and installed programs are not in it.
pub(super) const CACHES: &[&str] = &[
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".npm",
    ".yarn/berry/cache",
    ".bun/install/cache",
    ".local/share/pnpm/store",
    ".pnpm-store",
    ".cache/pip",
    ".cache/uv",
    ".cache/pypoetry",
    ".cache/go-build",
    ".cache/yarn",
    ".cache/pnpm",
    ".cache/node",
    ".cache/node-gyp",
    ".cache/deno",
    ".cache/bazel",
    ".cache/ccache",
    ".cache/sccache",
    ".cache/zig",
    ".cache/golangci-lint",
    ".cache/typescript",
    ".cache/ms-playwright",
    ".ccache",
    "go/pkg",
    ".gradle/caches",
    ".gradle/native",
    ".m2/repository",
    ".ivy2",
    ".nuget/packages",
    ".gem/specs",
    ".bundle/cache",
    ".composer/cache",
    ".hex",
    ".stack/pantry",
    ".cabal/packages",
    ".opam/download-cache",
    ".pub-cache/hosted",
];

/// Devices that every program may use.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Terminals, and what makes a new one: at its place of old, and within the folder of them.
pub(super) const TERMINALS: &CStr = c"/dev/pts";
pub(super) const TERMINAL_MAKER: &CStr = c"/dev/ptmx";
pub(super) const TERMINAL_MAKER_WITHIN: &CStr = c"/dev/pts/ptmx";

/// Where programs keep shared memory and semaphores.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Places with sockets of servers that would do for a command what it may not do itself. Put out of sight where
/// a mount namespace can be had.
pub(super) const WAYS_OUT: &[&str] = &[
    "/run/docker.sock",
    "/run/docker",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/libvirt",
    "/run/lxd.socket",
    "/run/incus",
    "/var/lib/lxd/unix.socket",
    "/run/snapd.socket",
    "/run/dbus",
    "/run/systemd/private",
    "/run/systemd/io.systemd.Manager",
    "/run/user",
    "/run/screen",
    "/run/tmux",
    "/run/pcscd",
    "/tmp/.X11-unix",
    "/tmp/.ICE-unix",
];

/// Direct children of the temporary folder that begin like this belong to terminals, key agents and other runs.
pub(super) const TEMPORARY_WAYS_OUT: &[&str] = &["tmux-", "ssh-", "screen-", "gpg-", "keyring-"];
