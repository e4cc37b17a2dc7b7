//! Needed values: the values on which the behavior of the function depends.
//!
//! A value is *needed* when an effect, a trap, a branch or a result of the function depends on it.
//! A value that is not needed may have arbitrary contents; an example is a sum that a loop carries
//! and no instruction reads. The algorithm is the marking phase of aggressive dead code
//! elimination. It omits control dependence: every branch counts. (Cytron et al., "Efficiently
//! Computing Static Single Assignment Form and the Control Dependence Graph", TOPLAS 1991, section
//! 7.1.)

use crate::cfg::Cfg;
use crate::decided::Decided;
use crate::entity::{Inst, Value};
use crate::function::{Function, ValueDef};
use crate::inst::Edge;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use std::collections::BTreeMap;

/// The needed values of a function, valid for one stamp.
#[derive(Clone, Debug)]
pub struct Needed {
    values: FixedBitSet,
    /// The decided branches, if they count. Arguments on excluded edges are then not needed.
    decided: Option<Decided>,
}

impl Needed {
    /// Computes the needed values. Each value in `extra` counts as used by an effect before its
    /// instruction. Cost: linear in the number of operands of the function.
    ///
    /// # Panics
    /// When `cfg` is stale.
    pub fn new(function: &Function, cfg: &Cfg, extra: &BTreeMap<Inst, Vec<Value>>) -> Needed {
        Needed::along(function, cfg, None, extra)
    }

    /// Computes the values that a run needs. Code behind edges that constants exclude needs no
    /// values. The condition of a decided branch is needed like any other. `extra` and the cost are
    /// described at [`Needed::new`].
    ///
    /// # Panics
    /// When `decided` is stale.
    pub fn of_run(
        function: &Function,
        decided: &Decided,
        extra: &BTreeMap<Inst, Vec<Value>>,
    ) -> Needed {
        Needed::along(function, decided.cfg(), Some(decided.clone()), extra)
    }

    fn along(
        function: &Function,
        cfg: &Cfg,
        decided: Option<Decided>,
        extra: &BTreeMap<Inst, Vec<Value>>,
    ) -> Needed {
        cfg.check(function);
        let mut needed =
            Needed { values: FixedBitSet::with_capacity(function.value_bound()), decided };
        let mut work: Vec<Value> = Vec::new();
        for &block in cfg.rpo() {
            for inst in function.block_insts(block) {
                work.extend(demanded(function, inst));
            }
        }
        work.extend(extra.values().flatten());
        while let Some(value) = work.pop() {
            if needed.values.put(value.index()) {
                continue;
            }
            match function.value_def(value) {
                ValueDef::Result(inst, _) => work.extend(&function.inst(inst).args),
                ValueDef::Param(block, index) => {
                    let comes = |e: &&Edge| {
                        cfg.is_reachable(function.inst_block(e.inst)) && needed.may_take(**e)
                    };
                    let edges = function.predecessors(block).iter().filter(comes);
                    work.extend(edges.map(|e| function.target(*e).args[index as usize]));
                }
            }
        }
        needed
    }

    /// Whether a value is needed.
    pub fn contains(&self, value: Value) -> bool {
        self.values.contains(value.index())
    }

    fn may_take(&self, edge: Edge) -> bool {
        self.decided.as_ref().is_none_or(|d| d.may_take(edge))
    }

    /// The operands that an instruction makes needed. An effect, a branch, an instruction that may
    /// trap, and the computation of a needed value need all value operands. An argument of a target
    /// counts if its parameter is needed and a run may take the edge.
    pub fn operands<'f>(
        &'f self,
        function: &'f Function,
        inst: Inst,
    ) -> impl Iterator<Item = Value> + 'f {
        let data = function.inst(inst);
        let computes = data.results.iter().any(|v| self.contains(*v));
        let args =
            if computes { data.args.as_slice() } else { demanded(function, inst) }.iter().copied();
        let targets = (0..)
            .zip(&data.targets)
            .filter(move |(index, _)| self.may_take(Edge { inst, index: *index }));
        args.chain(targets.flat_map(move |(_, target)| {
            let params = function.block_params(target.block).iter();
            target
                .args
                .iter()
                .zip(params)
                .filter(|(_, param)| self.contains(**param))
                .map(|(arg, _)| *arg)
        }))
    }
}

/// The value operands that an instruction needs independently of its results. An effect, a branch
/// and an instruction that may trap need all of them. A division that cannot trap because of its
/// constant divisor needs the divisor: with another divisor, dead code would trap. Without this
/// rule, `liveness_is_as_defined_over_points` and the state oracle fail.
fn demanded(function: &Function, inst: Inst) -> &[Value] {
    let data = function.inst(inst);
    if !data.opcode.is_effect_free() || function.may_trap(inst) {
        &data.args
    } else if data.opcode.can_trap() {
        &data.args[1..]
    } else {
        &[]
    }
}
