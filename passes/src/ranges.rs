//! Branches that the ranges of integers decide.
//!
//! *Does*: folds a branch whose condition is always zero, or never, in all runs that reach it.
//! Example: in a loop over `%i` from 0 below `%n`, `sadd_overflows %i, 1` is 0. Conditions follow
//! from intervals of integers, by induction over loops, and from comparisons of the same operands
//! on the way to the branch ([`number::RangeAnalysis`]).
//!
//! *Does not*: replace values other than by folding; relate two integers, unless a branch has
//! compared them; look through memory; fold a `switch`.
//!
//! *Needs on entry*: nothing. It finds more where equal values are one value.
//!
//! *Holds on exit*: no branch of reachable code is decided by the intervals before the pass.
//!
//! *Actions emitted*: `fold_branch`.
//!
//! *Effect on mappings*: blocks that no run reaches lose their points. The certifier finds the
//! intervals again, and claims them in the certificate.
//!
//! *Why correct*: by induction over the blocks that a run enters, each integer is in its interval.
//! An interval covers what live edges bring, narrowed by the tests that the run has taken on the
//! way, and results of operations on intervals cover all results (`ir::ranges`). A value that
//! dominates a block has not changed since the tests between both.
//!
//! *Cost*: near linear in the instructions, for each of up to eighteen walks.

use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::eval::is_evaluated;
use ir::ranges::Interval;
use ir::rules::possible_bits;
use ir::{Function, Opcode, Value, ValueDef};
use number::{RangeAnalysis, RangeClasses, RangeOperation, TermIndex};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Ranges;

impl Pass for Ranges {
    fn name(&self) -> &'static str {
        "ranges"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let f = ed.func();
        let cfg = Cfg::new(f);
        let is_branch = |block| f.inst(f.terminator(block)).opcode == Opcode::BrIf;
        let branches: Vec<_> = cfg.rpo().iter().copied().filter(|b| is_branch(*b)).collect();
        if branches.is_empty() {
            return;
        }
        let dom = DomTree::new(f, &cfg);
        let classes = OwnValues(f);
        let analysis = RangeAnalysis::new(f, &dom, cfg.rpo(), &|_| true, &classes);
        let decided = branches.into_iter().filter_map(|block| {
            let branch = f.terminator(block);
            let is_zero = analysis.is_zero(block, f.inst(branch).args[0])?;
            Some((branch, u32::from(is_zero)))
        });
        // Each follows from the function as it is, and folding another leaves it true.
        let decided: Vec<_> = decided.collect();
        for (branch, kept) in decided {
            if ed.plan("known-range") {
                ed.fold_branch(branch, kept);
            }
        }
    }
}

/// Each value is a class of its own.
struct OwnValues<'f>(&'f Function);

impl OwnValues<'_> {
    fn value(class: TermIndex) -> Value {
        Value::from_u32(class)
    }
}

impl RangeClasses for OwnValues<'_> {
    fn class(&self, value: Value) -> TermIndex {
        value.as_u32()
    }

    fn operation(&self, value: Value) -> Option<RangeOperation> {
        let data = self.0.inst(self.0.defining_inst(value)?);
        let args = || data.args.iter().map(|arg| arg.as_u32()).collect();
        let (opcode, ty) = (data.opcode, data.ty);
        is_evaluated(opcode).then(|| RangeOperation { opcode, ty, args: args() })
    }

    fn first_operation(&self, class: TermIndex) -> Option<RangeOperation> {
        self.operation(OwnValues::value(class))
    }

    fn always(&self, class: TermIndex) -> Option<Interval> {
        let value = OwnValues::value(class);
        let ty = self.0.value_type(value);
        let all = Interval::of_type(ty)?;
        let Some(inst) = self.0.defining_inst(value) else { return Some(all) };
        let data = self.0.inst(inst);
        let of_mask = || Interval::of_mask(ty, possible_bits(data.opcode, data.ty, ty, &[]));
        Some(data.constant().map_or_else(of_mask, |bits| Interval::of_bits(ty, bits)))
    }

    fn is_bound(&self, param: Value) -> bool {
        matches!(self.0.value_def(param), ValueDef::Param(..))
    }
}
