//! Which values anything depends on.
//!
//! A value is *needed* when an effect, a trap, a branch or a result of the function depends on it.
//! What is not needed may hold anything: a sum carried around a loop that nobody reads, say. This
//! is the marking phase of aggressive dead code elimination (Cytron et al., "Efficiently Computing
//! Static Single Assignment Form and the Control Dependence Graph", TOPLAS 1991, section 7.1),
//! without control dependence: every branch counts.

use crate::cfg::Cfg;
use crate::decided::Decided;
use crate::entity::{Inst, Value};
use crate::function::{Function, ValueDef};
use crate::inst::Edge;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use std::collections::BTreeMap;

/// The needed values of a function. Holds for one stamp.
#[derive(Clone, Debug)]
pub struct Needed {
    values: FixedBitSet,
    /// What other edges pass does not count.
    decided: Option<Decided>,
}

impl Needed {
    /// Finds them, as if each value listed in `extra` were used by an effect before its
    /// instruction. Cost: linear in the operands of the function.
    ///
    /// # Panics
    /// When `cfg` is stale.
    pub fn new(function: &Function, cfg: &Cfg, extra: &BTreeMap<Inst, Vec<Value>>) -> Needed {
        Needed::along(function, cfg, None, extra)
    }

    /// Finds those that a run needs: what stands behind edges that constants keep from being taken
    /// needs nothing. The condition of a decided branch is needed like any other. `extra` and cost
    /// as in [`Needed::new`].
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

    /// The operands of an instruction that are needed because of it: all of an effect, a branch and
    /// what may trap, and of what computes a needed value; of the arguments of a target, those of
    /// needed parameters, if control may go there.
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

/// The value operands that an instruction needs whatever becomes of its results: all of an effect,
/// a branch and what may trap. What cannot trap only because of its divisor needs that: with
/// another divisor dead code would trap (`liveness_is_as_defined_over_points`, and the state oracle
/// at once).
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
