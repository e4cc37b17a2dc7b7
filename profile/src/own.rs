//! Counts of an interpreter of the embedder's own.

use super::FunctionProfile;
use interp::{CallTarget, CallTargets};
use ir::{Func, Function, Inst, Opcode, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The decisions that an interpreter of the embedder's own makes in one function, in terms of its
/// base. The front end knows the instructions of its bytecodes ([`ir::FinishedIds::inst`]).
///
/// The fields of [`FunctionProfile`] are public: an interpreter that has counters already fills
/// them instead. Each method costs a logarithm of the places counted.
#[derive(Clone, Debug)]
pub struct OwnCounts {
    base: Arc<Function>,
    profile: FunctionProfile,
    /// The instructions that gave several values.
    varied: BTreeSet<Inst>,
}

impl OwnCounts {
    /// Counts of a function that was not called yet.
    pub fn new(base: Arc<Function>) -> OwnCounts {
        OwnCounts { base, profile: FunctionProfile::default(), varied: BTreeSet::new() }
    }

    /// Counts a call with these arguments, as bits.
    ///
    /// # Panics
    /// If the function has another number of arguments.
    pub fn call(&mut self, arguments: &[u64]) {
        let count = self.base.arguments().len();
        assert!(arguments.len() == count, "the function has {count} arguments");
        if self.profile.calls == 0 {
            self.profile.arguments = arguments.iter().map(|bits| Some(*bits)).collect();
        }
        for (known, bits) in self.profile.arguments.iter_mut().zip(arguments) {
            *known = known.filter(|known| known == bits);
        }
        self.profile.calls = self.profile.calls.saturating_add(1);
    }

    /// Counts a `br_if` or `switch` that takes this of its targets, from 0. The target of a true
    /// condition is the first of a `br_if`, and the default is the last of a `switch`. Count all
    /// branches that are executed: suggestions weigh a place by the visits that follow from them.
    ///
    /// # Panics
    /// If the instruction is no branch of the base, or has no such target.
    pub fn branch(&mut self, branch: Inst, target: usize) {
        let data = self.base.inst(branch);
        let (opcode, count) = (data.opcode, data.targets.len());
        assert!(matches!(opcode, Opcode::BrIf | Opcode::Switch), "{branch} is no branch");
        let sides = self.profile.branches.entry(branch).or_insert_with(|| vec![0; count]);
        sides[target] = sides[target].saturating_add(1);
    }

    /// Counts an indirect call with this index, of this function.
    ///
    /// # Panics
    /// If the instruction is no indirect call of the base.
    pub fn target(&mut self, call: Inst, index: u64, func: Func) {
        let opcode = self.base.inst(call).opcode;
        assert!(opcode == Opcode::CallIndirect, "{call} is no indirect call");
        let one = CallTargets { targets: vec![CallTarget { index, func, calls: 1 }], others: 0 };
        super::add_targets(self.profile.targets.entry(call).or_default(), &one);
    }

    /// Notes the bits of the result of an instruction. A value that was the same at all visits is
    /// suggested as an assumption, if that pays.
    ///
    /// # Panics
    /// If the base lacks the instruction, or the instruction has no result or several.
    pub fn value(&mut self, inst: Inst, bits: u64) {
        let result: Option<Value> = self.base.inst(inst).result();
        assert!(result.is_some(), "{inst} has not one result");
        if !self.varied.contains(&inst) && *self.profile.values.entry(inst).or_insert(bits) != bits
        {
            self.profile.values.remove(&inst);
            self.varied.insert(inst);
        }
    }

    /// The profile so far.
    pub fn profile(&self) -> &FunctionProfile {
        &self.profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::text::parse_module;

    #[test]
    fn own_counts_are_a_profile() {
        let text = "memory @mem 1\ntable @t 4\nfunc @g(%x: i32) {\nentry:\n  return\n}\n\
                    func @f(%x: i32, %y: i32) {\nentry:\n  %a = load.i32 @mem[%x]\n  \
                    %b = load.i32 @mem[%y]\n  call_indirect @t (i32) -> () [%y](%a)\n  \
                    br_if %b, one, two\none:\n  return\ntwo:\n  return\n}";
        let module = parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let (callee, (_, base)) =
            (Func::from_u32(0), module.defined().nth(1).expect("the second function"));
        let insts: Vec<Inst> = base.all_insts().collect();
        let mut counts = OwnCounts::new(Arc::new(base.clone()));
        for (y, b, side) in [(4, 1, 0), (4, 0, 1), (5, 1, 0)] {
            counts.call(&[8, y]);
            counts.value(insts[0], 7);
            counts.value(insts[1], b);
            counts.target(insts[2], 3, callee);
            counts.branch(insts[3], side);
        }
        let profile = counts.profile();
        assert_eq!((profile.calls, &profile.arguments[..]), (3, &[Some(8), None][..]));
        assert_eq!(profile.branches[&insts[3]], [2, 1]);
        assert_eq!(profile.values.iter().collect::<Vec<_>>(), [(&insts[0], &7)]);
        let target = CallTarget { index: 3, func: callee, calls: 3 };
        assert_eq!(profile.targets[&insts[2]].targets, [target]);
    }
}
