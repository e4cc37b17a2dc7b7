//! The values that code under construction may use.

use cranelift_entity::EntityRef;
use ir::{Type, Value};

/// The values available at the current place, by type, in order of definition.
///
/// Regions nest, so the set grows and shrinks like a stack. The values pushed after a [`ScopeMark`]
/// are defined in blocks added since then. They go out of scope where these blocks no longer
/// dominate.
#[derive(Debug, Default)]
pub(super) struct ValueScope {
    by_type: [Vec<Value>; Type::ALL.len()],
    /// By value index: whether the value is in scope.
    visible: Vec<bool>,
}

/// A state of a [`ValueScope`], to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeMark([usize; Type::ALL.len()]);

impl ValueScope {
    pub(super) fn push(&mut self, value: Value, ty: Type) {
        self.by_type[ty as usize].push(value);
        if self.visible.len() <= value.index() {
            self.visible.resize(value.index() + 1, false);
        }
        self.visible[value.index()] = true;
    }

    pub(super) fn mark(&self) -> ScopeMark {
        ScopeMark(std::array::from_fn(|t| self.by_type[t].len()))
    }

    /// Removes all values pushed since the mark.
    pub(super) fn rewind(&mut self, mark: ScopeMark) {
        for (values, len) in self.by_type.iter_mut().zip(mark.0) {
            for value in values.drain(len.min(values.len())..) {
                self.visible[value.index()] = false;
            }
        }
    }

    /// The values of a type in scope, the latest last.
    pub(super) fn of(&self, ty: Type) -> &[Value] {
        &self.by_type[ty as usize]
    }

    /// The values of a type that were in scope at the mark.
    pub(super) fn of_at(&self, ty: Type, mark: ScopeMark) -> &[Value] {
        let values = self.of(ty);
        &values[..mark.0[ty as usize].min(values.len())]
    }

    pub(super) fn sees(&self, value: Value) -> bool {
        self.visible.get(value.index()).copied().unwrap_or(false)
    }
}
