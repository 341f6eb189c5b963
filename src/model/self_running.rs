//! Files that run by themselves: a shell or git runs them later, without anybody asking for it.
//!
//! By their paths alone; nothing is opened here.

/// Start-up files of shells, and of git.
pub const START_UP: [&str; 18] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".envrc",
    ".gitconfig",
    ".xprofile",
    "config.fish",
];

/// Places inside a repository that git takes commands from.
const GIT: [&str; 4] = ["/.git/hooks/", "/.git/config/", "/.git/config.worktree/", "/.git/info/attributes/"];

/// Does a shell or git run what is in this file? The path has no `.` or `..` in it.
pub fn runs_by_itself(path: &str) -> bool {
    let inside = format!("/{}/", path.trim_matches('/'));
    let name = path.rsplit('/').next().unwrap_or(path);
    START_UP.contains(&name) || GIT.iter().any(|place| inside.contains(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_their_places_and_names() {
        for path in [".git/hooks/pre-commit", "sub/.git/config", ".git/info/attributes", ".bashrc", "a/.envrc"] {
            assert!(runs_by_itself(path), "{path}");
        }
        for path in ["src/main.rs", ".git/HEAD", "git/hooks/x", "my.bashrc", ".gitignore"] {
            assert!(!runs_by_itself(path), "{path}");
        }
    }
}
