//! Why the search for one value failed.

use crate::derive::Deriver;
use crate::node::{Alternative, SearchNode};
use crate::reason::{Obstacle, Reason};
use crate::source::SourcePoint;
use ir::{Effects, Value};

impl Deriver<'_, '_> {
    /// Why the search found a value lost. Follows operands down to a value that no rule derives
    /// from others, or whose search stopped at the limit. In the second case the reason is the
    /// limit: the value may be derivable.
    pub(crate) fn explain(&self, here: &SourcePoint, value: Value) -> Obstacle {
        self.trace(here, value, |v| self.cut_off.get(v.as_u32() as usize).is_some())
    }

    /// Why no set of kept values gives a value. Follows operands as [`Deriver::explain`] does, but
    /// the limit of visits does not count: the search for kept values has gone on behind it
    /// (`a_long_chain_is_lost_for_the_read_at_its_end`).
    pub(crate) fn explain_hopeless(&self, here: &SourcePoint, value: Value) -> Obstacle {
        self.trace(here, value, |_| false)
    }

    fn trace(
        &self,
        here: &SourcePoint,
        mut value: Value,
        is_cut_off: impl Fn(Value) -> bool,
    ) -> Obstacle {
        loop {
            if is_cut_off(value) {
                return Obstacle { value: Some(value), ..Obstacle::new(Reason::TooLong) };
            }
            let alternative = self.executed_again(value).or_else(|| self.parameter(value));
            let missing = match &alternative {
                Some(Alternative::Execute { args, .. }) => {
                    // `known` is `Some(None)` for an operand that the search found lost. One
                    // exists, or else the value would have an expression.
                    args.iter().copied().find(|n| self.known(*n) == Some(None))
                }
                Some(Alternative::Same(node)) => Some(*node),
                _ => None,
            };
            match missing {
                Some(SearchNode::Wanted(next)) => value = next,
                _ => {
                    let reason = self.lost_because(here, value);
                    return Obstacle { value: Some(value), ..Obstacle::new(reason) };
                }
            }
        }
    }

    fn lost_because(&self, here: &SourcePoint, value: Value) -> Reason {
        if here.alternative_of(self.p, value).is_some() {
            return Reason::NotLive;
        }
        let Some(inst) = self.q.f.defining_inst(value) else { return Reason::Parameter };
        let opcode = self.q.f.inst(inst).opcode;
        let effects = opcode.effects();
        if effects.has(Effects::TRACED) || opcode.is_call() {
            Reason::Call
        } else if effects.has(Effects::READS) {
            Reason::Load
        } else {
            Reason::Unavailable
        }
    }
}
