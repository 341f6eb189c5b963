//! Verification rungs. Ordered by level, never as numbers: 65537 is the highest, not the middle.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How much verification a success claim carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// 641: local correctness.
    Local,
    /// 274177: convergence, replay, self-checks.
    Stable,
    /// 65537: security, interface and paraphrase sweeps.
    Promoted,
}

impl Rung {
    pub const ALL: [Self; 3] = [Self::Local, Self::Stable, Self::Promoted];

    /// The number that the seeds use as the rung's name.
    pub const fn number(self) -> u64 {
        match self {
            Self::Local => 641,
            Self::Stable => 274_177,
            Self::Promoted => 65_537,
        }
    }

    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.number() == number)
    }
}

/// What 641 x 274177 x 65537 must be.
pub const SEED_CHECKSUM: u64 = 11_517_961_089_409;

/// Recomputes the checksum as integers; never read from a file.
pub fn seed_checksum() -> u64 {
    Rung::ALL.into_iter().map(Rung::number).product()
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

impl Serialize for Rung {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.number())
    }
}

/// A visitor, so that an error is reported at the place of the number.
struct Number;

impl serde::de::Visitor<'_> for Number {
    type Value = Rung;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rung: 641, 274177 or 65537")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Rung, E> {
        Rung::from_number(number)
            .ok_or_else(|| E::custom(format!("rung {number} is unknown: use 641, 274177 or 65537")))
    }
}

impl<'de> Deserialize<'de> for Rung {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_compare_by_level_not_by_number() {
        assert!(Rung::Promoted > Rung::Stable);
        assert!(Rung::Promoted.number() < Rung::Stable.number());
    }

    #[test]
    fn the_checksum_is_the_product() {
        assert_eq!(seed_checksum(), SEED_CHECKSUM);
    }
}
