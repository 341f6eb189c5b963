//! Names of hosts that commands may reach: patterns, the registries of tools, addresses that are nobody's business.
//!
//! Text in, values out. Not here: looking a name up, connecting (`engine::network`).
//! Invariants: a name that is compared is lower case and holds nothing but the characters of names; the shipped table of
//! registries parses strictly (a test holds that).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// Ports that packages are fetched from.
pub const PORTS: [u16; 2] = [443, 80];
/// The longest name of a host.
pub const MAX_NAME: usize = 253;
/// Hosts that one declaration may list.
pub const MAX_LISTED: usize = 100;

/// A host, all hosts below a name (`*.example.org`), or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

impl Pattern {
    /// The error says what one looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no host: write a name (`registry.example.org`), all below one (`*.example.org`), or an address; without port or path"
            )
        };
        let (star, name) = text.strip_prefix("*.").map_or((false, text), |below| (true, below));
        let name = host(name).ok_or_else(wrong)?;
        // All below a top-level name would be nearly everything.
        if star && (name.parse::<IpAddr>().is_ok() || !name.contains('.')) {
            return Err(wrong());
        }
        Ok(Self(if star { format!("*.{name}") } else { name }))
    }

    /// Is this the host, in the form of [`host`], that is meant?
    pub fn matches(&self, host: &str) -> bool {
        match self.0.strip_prefix("*.") {
            Some(below) => host.strip_suffix(below).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => self.0 == host,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The one form of a host's name or address; `None`: it is none.
pub fn host(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(address.to_canonical().to_string());
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
    };
    // What ends in a number would be read as an address by some, in ways of their own.
    let last_is_a_word = name.rsplit('.').next().is_some_and(|last| last.bytes().any(|b| b.is_ascii_alphabetic()));
    let hexadecimal = name.rsplit('.').next().is_some_and(|last| last.starts_with("0x"));
    (name.len() <= MAX_NAME && name.split('.').all(label) && last_is_a_word && !hexadecimal).then_some(name)
}

/// Is it an address of the public network? All else is this machine, its neighbours, or nobody.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocols = a == 192 && b == 0 && c == 0;
    let benchmarks = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 240
        || shared
        || protocols
        || benchmarks
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match words {
        // Ways to say an address of version 4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo and other protocols; documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        // Global unicast is all that begins so.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Where one tool gets its packages.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    pub tool: String,
    /// The workspace uses the tool if it holds one of these.
    pub files: Vec<String>,
    pub hosts: Vec<Pattern>,
}

/// The shipped table.
pub fn registries() -> &'static [Registry] {
    static TABLE: OnceLock<Vec<Registry>> = OnceLock::new();
    // A test holds that it parses; an empty one opens nothing.
    TABLE.get_or_init(|| serde_yaml::from_str(include_str!("../../assets/registries.yaml")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_valid() {
        let tools: Vec<&str> = registries().iter().map(|registry| registry.tool.as_str()).collect();
        assert!(tools.len() > 8, "{tools:?}");
        let mut once = tools.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), tools.len());
        assert!(registries().iter().all(|registry| !registry.files.is_empty() && !registry.hosts.is_empty()));
    }

    #[test]
    fn a_pattern_means_itself_or_what_is_below() {
        let one = Pattern::parse("Registry.Example.org.").unwrap();
        assert!(one.matches("registry.example.org") && !one.matches("a.registry.example.org"));
        let below = Pattern::parse("*.example.org").unwrap();
        assert!(below.matches("a.example.org") && below.matches("a.b.example.org"));
        for other in ["example.org", ".example.org", "badexample.org", "example.org.evil.net", "a.example.com"] {
            assert!(!below.matches(other), "{other}");
        }
        assert!(Pattern::parse("[::1]").unwrap().matches("::1"));
        for wrong in
            ["", "*", "*.", "*.org", "*.1.2.3.4", "a b.org", "a.org:80", "http://a.org", "a..org", "a/b", "-a.org"]
        {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn odd_ways_to_write_an_address_are_no_names() {
        for odd in ["127.1", "2130706433", "0x7f.1", "0x7f000001", "1.2.3.0x4", "127.0.0.1.", "a%00.org", "a\n.org"] {
            assert_eq!(host(odd), None, "{odd:?}");
        }
        assert_eq!(host("::ffff:127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(host("A.org").as_deref(), Some("a.org"));
    }

    #[test]
    fn addresses_that_are_not_public() {
        for inside in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "192.0.2.1",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["1.1.1.1", "151.101.1.1", "2606:4700::1111", "2002:101:101::", "64:ff9b::101:101"] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }
}
