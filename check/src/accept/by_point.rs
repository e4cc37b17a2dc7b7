//! Tables by source point.

use ir::{Function, Point};

/// A table by point of a version. Empty tables take no memory.
pub(crate) struct ByPoint<T> {
    /// By instruction index; empty at first.
    all: Vec<Option<T>>,
    bound: usize,
}

impl<T> ByPoint<T> {
    pub(crate) fn new(f: &Function) -> ByPoint<T> {
        ByPoint { all: Vec::new(), bound: f.inst_bound() }
    }

    pub(crate) fn get(&self, point: Point) -> Option<&T> {
        self.all.get(point.inst().as_u32() as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, point: Point) -> Option<&mut T> {
        self.all.get_mut(point.inst().as_u32() as usize)?.as_mut()
    }

    /// Notes a fact of a point, unless the version cannot have the point: a forged mapping may name
    /// points far beyond.
    pub(crate) fn insert(&mut self, point: Point, known: T) {
        if self.all.is_empty() {
            self.all.resize_with(self.bound, || None);
        }
        if let Some(slot) = self.all.get_mut(point.inst().as_u32() as usize) {
            *slot = Some(known);
        }
    }
}
