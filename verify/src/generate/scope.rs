//! The values that code under construction may use.

use cranelift_entity::EntityRef;
use ir::{Type, Value};

/// The values available at the place where code is being added, by type, in order of definition.
///
/// Regions nest, so the set grows and shrinks like a stack: everything pushed after a [`Mark`] is
/// what the blocks since then define, and leaves the scope where they stop dominating.
#[derive(Debug, Default)]
pub(super) struct Scope {
    by_type: [Vec<Value>; Type::ALL.len()],
    /// By value index.
    visible: Vec<bool>,
}

/// A state of a [`Scope`] to come back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark([usize; Type::ALL.len()]);

impl Scope {
    pub(super) fn push(&mut self, value: Value, ty: Type) {
        self.by_type[ty as usize].push(value);
        if self.visible.len() <= value.index() {
            self.visible.resize(value.index() + 1, false);
        }
        self.visible[value.index()] = true;
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(std::array::from_fn(|t| self.by_type[t].len()))
    }

    /// Takes out everything pushed since the mark.
    pub(super) fn rewind(&mut self, mark: Mark) {
        for (values, len) in self.by_type.iter_mut().zip(mark.0) {
            for value in values.drain(len.min(values.len())..) {
                self.visible[value.index()] = false;
            }
        }
    }

    /// The values of a type, the latest last.
    pub(super) fn of(&self, ty: Type) -> &[Value] {
        &self.by_type[ty as usize]
    }

    /// The values of a type that were there at the mark.
    pub(super) fn of_at(&self, ty: Type, mark: Mark) -> &[Value] {
        let values = self.of(ty);
        &values[..mark.0[ty as usize].min(values.len())]
    }

    pub(super) fn sees(&self, value: Value) -> bool {
        self.visible.get(value.index()).copied().unwrap_or(false)
    }
}
