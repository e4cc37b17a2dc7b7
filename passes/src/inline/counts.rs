//! How often profiled runs executed calls.

use ir::{Func, Inst};
use std::collections::BTreeMap;

/// How often profiled runs called functions, and executed the calls in them. A function and a call
/// that is missing was never executed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallCounts {
    functions: BTreeMap<Func, u64>,
    calls: BTreeMap<(Func, Inst), u64>,
    /// By callee: the largest count of one of its calls.
    largest: BTreeMap<Func, u64>,
}

impl CallCounts {
    /// Sets how often a function was called.
    pub fn set_function(&mut self, func: Func, count: u64) {
        self.functions.insert(func, count);
    }

    /// Sets how often a call in the base of a function was executed, and how often it called each
    /// callee.
    pub fn set_call(&mut self, func: Func, call: Inst, count: u64, callees: &[(Func, u64)]) {
        self.calls.insert((func, call), count);
        for (callee, count) in callees {
            let largest = self.largest.entry(*callee).or_default();
            *largest = (*largest).max(*count);
        }
    }

    /// How often a call in the base of a function was executed, in all calls of the function. Cost:
    /// logarithmic.
    pub fn of(&self, func: Func, call: Inst) -> u64 {
        self.calls.get(&(func, call)).copied().unwrap_or(0)
    }

    /// How often a call in a function was executed on behalf of one call site that called the
    /// function `executed` times. The profile does not distinguish the calls of a function, so each
    /// call gets a share. Cost: logarithmic.
    pub fn share(&self, func: Func, call: Inst, executed: u64) -> u64 {
        let (all, runs) = (self.of(func, call), self.functions.get(&func).copied().unwrap_or(0));
        let share = u128::from(all) * u128::from(executed) / u128::from(runs.max(1));
        // Counts of a run that ended within the function do not fit together.
        u64::try_from(share).map_or(all, |share| share.min(all))
    }

    /// The largest count of a call of a function. Cost: logarithmic.
    pub fn largest(&self, callee: Func) -> u64 {
        self.largest.get(&callee).copied().unwrap_or(0)
    }
}
