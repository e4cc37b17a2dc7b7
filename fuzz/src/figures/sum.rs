//! Declares figures that add up.

use std::collections::BTreeMap;
use std::time::Duration;

/// Figures that add up in any order.
pub trait AddUp {
    /// Adds the figures of other programs.
    fn add(&mut self, other: &Self);
}

/// Declares a struct of figures. The struct declares each figure once, and the macro derives the
/// sum from the fields' methods `add`, so the sum cannot omit a figure.
macro_rules! figures {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$figure_about:meta])* pub $figure:ident: $kind:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct $name {
            $($(#[$figure_about])* pub $figure: $kind,)*
        }

        impl $crate::figures::sum::AddUp for $name {
            fn add(&mut self, other: &$name) {
                $(self.$figure.add(&other.$figure);)*
            }
        }
    };
}
pub(super) use figures;

impl AddUp for u64 {
    fn add(&mut self, other: &u64) {
        *self += other;
    }
}

impl AddUp for Duration {
    fn add(&mut self, other: &Duration) {
        *self += *other;
    }
}

impl<F: AddUp, const COUNT: usize> AddUp for [F; COUNT] {
    fn add(&mut self, other: &[F; COUNT]) {
        self.iter_mut().zip(other).for_each(|(sum, more)| sum.add(more));
    }
}

impl<K: Ord + Clone, F: AddUp + Default> AddUp for BTreeMap<K, F> {
    fn add(&mut self, other: &BTreeMap<K, F>) {
        for (key, more) in other {
            self.entry(key.clone()).or_default().add(more);
        }
    }
}
