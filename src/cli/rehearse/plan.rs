//! Which fault strikes which call.

use std::hash::{BuildHasher as _, Hasher as _};
use std::str::FromStr;

use crate::agent::rehearsal::{FaultKind, Planned};

/// A random fault strikes one of the first calls.
const RANDOM_CALLS: u64 = 9;

/// A fault as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultWish {
    pub kind: FaultKind,
    /// Absent: at a random call.
    pub call: Option<u64>,
}

impl FromStr for FaultWish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, call) = match text.split_once('@') {
            Some((name, number)) => {
                let number = number.parse().ok().filter(|number| *number > 0);
                (name, Some(number.ok_or_else(|| format!("`{text}`: calls are counted from 1, as in `{name}@3`"))?))
            }
            None => (text, None),
        };
        let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = FaultKind::ALL.map(FaultKind::name).join(", ");
            format!("there is no fault `{name}`; the faults are {names}")
        })?;
        Ok(Self { kind, call })
    }
}

/// The calls that are struck. Equal seeds give equal plans.
pub fn plan(wishes: &[FaultWish], seed: u64) -> Vec<Planned> {
    let mut random = seed;
    wishes
        .iter()
        .map(|wish| {
            random = mix(random);
            Planned { kind: wish.kind, call: wish.call.unwrap_or(random % RANDOM_CALLS + 1) }
        })
        .collect()
}

/// One step of a generator of numbers that look random (SplitMix64).
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed that can be typed again.
pub fn some_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish() % 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_and_wrong_ones_explained() {
        assert_eq!("429@3".parse(), Ok(FaultWish { kind: FaultKind::RateLimit, call: Some(3) }));
        assert_eq!("bad-json".parse(), Ok(FaultWish { kind: FaultKind::BadJson, call: None }));
        assert!("cut@0".parse::<FaultWish>().unwrap_err().contains("counted from 1"));
        assert!("fire@1".parse::<FaultWish>().unwrap_err().contains("the faults are 429, 529"));
    }

    #[test]
    fn a_seed_is_a_plan() {
        let wishes: Vec<FaultWish> = ["cut", "429", "stall@7"].map(|text| text.parse().unwrap()).to_vec();
        let calls = |seed| plan(&wishes, seed).iter().map(|planned| planned.call).collect::<Vec<_>>();
        assert_eq!(calls(1), calls(1));
        assert!((0..20).any(|seed| calls(seed) != calls(1)));
        assert!((0..50).all(|seed| calls(seed).iter().all(|call| (1..=RANDOM_CALLS).contains(call))));
        assert_eq!(calls(3)[2], 7);
    }
}
