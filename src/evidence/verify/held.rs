//! What the sandbox of a run did not hold, read from the level that its first event records.

/// First version of Landlock that keeps signals in.
const SIGNALS: u32 = 6;

/// In words; `None` where everything that is known of was held.
pub(super) fn not_held(level: &str) -> Option<String> {
    if matches!(level, "off" | "none") {
        return Some("anything: commands ran with the user's own rights".to_owned());
    }
    let (parts, rest) = level.split_once(',').unwrap_or((level, ""));
    let parts: Vec<&str> = parts.split('+').map(str::trim).collect();
    let landlock = parts.iter().find_map(|part| part.strip_prefix("landlock ")?.parse::<u32>().ok()).unwrap_or(0);
    let mut open = Vec::new();
    if landlock == 0 {
        open.push("files outside the workspace");
    }
    if !parts.contains(&"seccomp") {
        open.push("network other than TCP");
    }
    if !parts.contains(&"mounts") {
        open.push("modes and times of the user's own files outside");
    }
    if landlock < SIGNALS {
        open.push("signals to other processes");
    }
    if rest.contains("network on") || rest.contains("network open") {
        open.push("the network, which was allowed");
    }
    if rest.contains("network listed") {
        open.push("the hosts of `sandbox.network`, which were allowed");
    }
    (!open.is_empty()).then(|| open.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_back() {
        assert_eq!(not_held("landlock 7 + seccomp + mounts, network off"), None);
        assert!(not_held("off").unwrap().contains("own rights"));
        let open = not_held("landlock 4 + seccomp").unwrap();
        assert_eq!(open, "modes and times of the user's own files outside, signals to other processes");
    }
}
