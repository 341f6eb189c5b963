//! Events of a playbook, as the machine knows them: by what the table of their family says, and no further.

use serde_json::value::RawValue;

use crate::machine::open::Open;
use crate::machine::words::{Place, Told};
use crate::model::digest::Digest;

use super::Origin;

/// An event that only the room of its playbook looks into.
pub trait WorkEvent: Open {
    fn kind(&self) -> &'static str;
    fn origin(&self) -> Origin;
    fn blobs(&self) -> Vec<Digest>;
    fn data(&self) -> Result<Box<RawValue>, serde_json::Error>;
    fn told(&self, at: &Place) -> Told;
    fn boxed(&self) -> Box<dyn WorkEvent>;
}

impl Clone for Box<dyn WorkEvent> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl PartialEq for dyn WorkEvent {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other.as_any())
    }
}

/// Makes a family (see [`family`](mod@super::family)) a playbook's own.
macro_rules! work_event {
    ($family:ident) => {
        impl $crate::machine::event::WorkEvent for $family {
            fn kind(&self) -> &'static str {
                $family::kind(self)
            }
            fn origin(&self) -> $crate::machine::event::Origin {
                $family::origin(self)
            }
            fn blobs(&self) -> Vec<$crate::model::digest::Digest> {
                $family::blobs(self)
            }
            fn data(&self) -> Result<Box<serde_json::value::RawValue>, serde_json::Error> {
                $family::data(self)
            }
            fn told(&self, at: &$crate::machine::words::Place) -> $crate::machine::words::Told {
                $family::told(self, at)
            }
            fn boxed(&self) -> Box<dyn $crate::machine::event::WorkEvent> {
                Box::new(self.clone())
            }
        }

        impl From<$family> for $crate::machine::event::Event {
            fn from(event: $family) -> Self {
                Self::Work(Box::new(event))
            }
        }
    };
}
pub(crate) use work_event;
