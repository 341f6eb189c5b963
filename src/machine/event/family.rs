//! The table of a family of events: one row per event, everything else is derived.
//!
//! A row says the payload, the kind in the journal, whose word the event is, and which blobs it names:
//!
//! ```text
//! TreeTaken = "tree.taken", Fact, |taken| vec![taken.tree];
//! ```
//!
//! What an event is in English stands beside the table, as `told` of the family.

/// Makes the enum of a family from its rows.
macro_rules! family {
    ($(#[$doc:meta])* $family:ident { $($variant:ident = $kind:literal, $origin:ident $(, |$data:ident| $blobs:expr)?;)+ }) => {
        $(#[$doc])*
        // Events are made one at a time; where many wait, they wait as lines of the journal.
        #[allow(clippy::large_enum_variant)]
        #[derive(Debug, Clone, PartialEq)]
        pub enum $family {
            $($variant($variant),)+
        }

        impl $family {
            /// As the journal names them.
            pub const KINDS: &[&str] = &[$($kind,)+];

            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)+
                }
            }

            /// Whose word it is.
            pub const fn origin(&self) -> $crate::machine::event::Origin {
                match self {
                    $(Self::$variant(_) => $crate::machine::event::Origin::$origin,)+
                }
            }

            /// The blobs it leans on.
            pub fn blobs(&self) -> Vec<$crate::model::digest::Digest> {
                match self {
                    $(Self::$variant(_data) => family!(@blobs _data $(, |$data| $blobs)?),)+
                }
            }

            /// The payload as one line of JSON.
            pub fn data(&self) -> Result<Box<serde_json::value::RawValue>, serde_json::Error> {
                match self {
                    $(Self::$variant(data) => serde_json::value::to_raw_value(data),)+
                }
            }

            /// Reads a payload. `None`: the kind is not of this family.
            pub fn parse(kind: &str, data: &str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($kind => Some(serde_json::from_str(data).map(Self::$variant)),)+
                    _ => None,
                }
            }
        }

        $(impl From<$variant> for $crate::machine::event::Event {
            fn from(data: $variant) -> Self {
                $family::$variant(data).into()
            }
        })+
    };
    (@blobs $data:ident) => { Vec::new() };
    (@blobs $given:ident, |$data:ident| $blobs:expr) => {{ let $data = $given; $blobs }};
}
pub(crate) use family;
