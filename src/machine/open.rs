//! Values whose type only their owner knows: the machine keeps, copies and compares them, and looks into none.

use std::any::Any;
use std::fmt::Debug;

/// Something of a playbook's own.
pub trait Open: Any + Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + Debug + PartialEq + Send + Sync> Open for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }
}

/// The playbook's part of a run's state.
pub trait Work: Open {
    fn boxed(&self) -> Box<dyn Work>;
}

impl<T: Open + Clone> Work for T {
    fn boxed(&self) -> Box<dyn Work> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Work> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl PartialEq for dyn Work {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other.as_any())
    }
}
