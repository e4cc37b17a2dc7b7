//! The instructions executed by the interpreter so far, and the code that pays off for them.

use super::compiler::Goal;
use super::costs::Costs;
use ir::{Func, Function};
use jit::Tier;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The interpreted instructions that take as long as a run from native code into the interpreter
/// and back.
const ENTRY: u64 = 300;

/// The policy looks at a function again after this number of calls by native code.
const DEMANDS: u64 = 16;

/// The work of the interpreter, by function.
#[derive(Debug, Default)]
pub(super) struct Savings {
    /// The calls by native code of functions without code.
    demands: BTreeMap<Func, u64>,
    /// The instructions executed before calls became native. They no longer pay for a loop.
    settled: BTreeMap<Func, u64>,
}

impl Savings {
    /// Counts a call by native code of a function without code. Returns whether the policy looks at
    /// the function now.
    pub(super) fn demand(&mut self, func: Func) -> bool {
        let demands = self.demands.entry(func).or_default();
        *demands += 1;
        demands.is_multiple_of(DEMANDS)
    }

    /// The instructions executed in a function; a call by native code counts as [`ENTRY`]
    /// instructions.
    fn executed(&self, tier: &mut Tier<'_>, func: Func) -> u64 {
        let entries = self.demands.get(&func).copied().unwrap_or(0);
        tier.interpreted(func).saturating_add(entries.saturating_mul(ENTRY))
    }

    /// Notes that calls of a function are native from now on.
    pub(super) fn settle(&mut self, tier: &mut Tier<'_>, func: Func) {
        let executed = self.executed(tier, func);
        self.settled.insert(func, executed);
    }

    /// Whether native code would have saved a share of its price by now, in percent. A loop counts
    /// what was executed since calls of its function became native.
    pub(super) fn pay(&self, tier: &mut Tier<'_>, costs: &Costs, goal: Goal, share: u64) -> bool {
        let func = goal.func();
        let size = tier.module().body(func).map_or(0, Function::inst_count);
        let executed = self.executed(tier, func);
        let (price, executed, share) = match goal {
            Goal::Version(_) => (costs.of_base(size, false), executed, share),
            Goal::Loop(..) => {
                let settled = self.settled.get(&func).copied().unwrap_or(0);
                let share = if tier.installed(func).is_some() { Costs::SHARE_LATE } else { share };
                (costs.of_base(size, true), executed.saturating_sub(settled), share)
            }
        };
        costs.saved(1, executed) >= price / 100 * share
    }
}

/// The instructions that the interpreter has executed in a function, divided by the function's
/// size, in units of 2^-10. This orders functions by the savings of native code per price.
pub(super) fn worth(tier: &mut Tier<'_>, func: Func) -> u64 {
    let size = tier.module().body(func).map_or(1, Function::inst_count) as u64;
    tier.interpreted(func).saturating_mul(1 << 10) / size.max(1)
}

/// Whether the interpreter executes a call of a function faster than it enters native code: the
/// function is short, and calls nothing.
pub(super) fn is_small_leaf(tier: &mut Tier<'_>, func: Func) -> bool {
    let module = Arc::clone(tier.module());
    let Some(body) = module.body(func) else { return false };
    let calls = |inst| body.inst(inst).opcode.is_call();
    let (executed, visits) = (tier.interpreted(func), tier.visits(func, None));
    executed < visits.saturating_mul(ENTRY / 2) && !body.all_insts().any(calls)
}
