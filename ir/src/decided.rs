//! Decided branches: the branches that constants decide, and the edges that no run takes as a
//! result.
//!
//! The analysis propagates constants through operations and block parameters, along the edges that
//! may be taken. It starts from the assumption that no edge is taken (Wegman and Zadeck, "Constant
//! Propagation with Conditional Branches", TOPLAS 1991). The result is a fact about one version,
//! independent of any mapping. The values that an entry must provide follow from it
//! ([`crate::liveness::Liveness::of_run`]), and must be the same for all mappings to that version.
//! The pass `sccp` has its own analysis, so that a mistake in either shows as a difference.

use crate::cfg::{Cfg, check_stamp};
use crate::entity::{Block, Inst, Value};
use crate::eval::{fold, is_evaluated};
use crate::function::Function;
use crate::inst::{Edge, InstData};
use crate::opcode::Opcode;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use std::collections::BTreeMap;

/// The decided branches of a function, valid for one stamp.
///
/// Every run from the start of the function takes only edges for which [`Decided::may_take`]
/// returns `true`.
#[derive(Clone, Debug)]
pub struct Decided {
    choices: BTreeMap<Inst, u32>,
    /// The block parameters that are always the same constant.
    constants: FixedBitSet,
    cfg: Cfg,
}

impl Decided {
    /// Computes the decided branches. Cost: linear in the number of operands of the function.
    ///
    /// # Panics
    /// When the function has no block.
    pub fn new(function: &Function) -> Decided {
        let contents = vec![Content::Unseen; function.value_bound()];
        let mut search = DecidedSearch {
            function,
            contents,
            entered: FixedBitSet::with_capacity(function.block_bound()),
            work: Vec::new(),
            listed: FixedBitSet::with_capacity(function.inst_bound()),
        };
        search.run();
        let ends = function
            .blocks()
            .filter(|b| search.entered.contains(b.index()))
            .map(|b| function.terminator(b));
        let chosen = ends.filter_map(|end| match search.targets(end) {
            Targets::One(index) if function.inst(end).opcode != Opcode::Jump => Some((end, index)),
            Targets::One(_) | Targets::Any | Targets::NoneYet => None,
        });
        let choices: BTreeMap<Inst, u32> = chosen.collect();
        let cfg = Cfg::of_edges(function, |e| admits(&choices, e));
        let mut constants = FixedBitSet::new();
        let params = function.blocks().flat_map(|block| function.block_params(block));
        let known = params.filter(|param| matches!(search.content(**param), Content::Always(_)));
        constants.extend(known.map(|param| param.index()));
        Decided { choices, constants, cfg }
    }

    /// Whether this block parameter, on which the decision of a branch may rest, is always the same
    /// constant.
    pub fn is_constant(&self, param: Value) -> bool {
        self.constants.contains(param.index())
    }

    /// Whether a run that reaches the source block of an edge may take the edge. The answer is
    /// `false` only if constants decide the branch for another target.
    pub fn may_take(&self, edge: Edge) -> bool {
        admits(&self.choices, edge)
    }

    /// The control-flow graph of the edges that may be taken.
    pub fn cfg(&self) -> &Cfg {
        &self.cfg
    }

    /// Whether no branch is decided. Every edge may be taken then.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// Checks that the function has not changed since the analysis was computed.
    ///
    /// # Panics
    /// When the function has changed.
    pub fn check(&self, function: &Function) {
        check_stamp("Decided", self.cfg.stamp(), function);
    }
}

fn admits(choices: &BTreeMap<Inst, u32>, edge: Edge) -> bool {
    choices.get(&edge.inst).is_none_or(|index| *index == edge.index)
}

/// The contents of a value over all its computations. An entry only moves down this list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    /// No computation of the value has been reached yet.
    Unseen,
    /// The value always has these bits.
    Always(u64),
    Unknown,
}

/// The targets at which a terminator may continue, as far as the search knows.
enum Targets {
    NoneYet,
    One(u32),
    Any,
}

struct DecidedSearch<'f> {
    function: &'f Function,
    contents: Vec<Content>,
    entered: FixedBitSet,
    /// A work list of instructions in entered blocks, and the set of its members.
    work: Vec<Inst>,
    listed: FixedBitSet,
}

impl DecidedSearch<'_> {
    fn run(&mut self) {
        self.enter(self.function.entry());
        for argument in self.function.arguments() {
            self.contents[argument.index()] = Content::Unknown;
        }
        while let Some(inst) = self.work.pop() {
            self.listed.set(inst.index(), false);
            let data = self.function.inst(inst);
            if data.opcode.is_terminator() {
                self.leave(inst, data);
            }
            for &result in &data.results {
                self.lower(result, self.computed(data));
            }
        }
    }

    fn content(&self, value: Value) -> Content {
        self.contents[value.index()]
    }

    /// The terminator goes onto the stack first and is processed last. The search then evaluates it
    /// once instead of after each of its arguments.
    fn enter(&mut self, block: Block) {
        if self.entered.put(block.index()) {
            return;
        }
        let mut at = Some(self.function.terminator(block));
        while let Some(inst) = at {
            self.list(inst);
            at = self.function.prev_inst(inst);
        }
    }

    fn list(&mut self, inst: Inst) {
        if !self.listed.put(inst.index()) {
            self.work.push(inst);
        }
    }

    /// Records the contents of a value and lists its users again. The contents of a value move down
    /// at most twice.
    fn lower(&mut self, value: Value, content: Content) {
        if self.content(value) == content {
            return;
        }
        self.contents[value.index()] = content;
        for &user in self.function.users(value) {
            if self.entered.contains(self.function.inst_block(user).index()) {
                self.list(user);
            }
        }
    }

    /// The contents of an instruction's results, given its operands. The results of an operation
    /// that traps count as unknown.
    fn computed(&self, data: &InstData) -> Content {
        if let Some(bits) = data.constant() {
            return Content::Always(bits);
        }
        let Some(&first) = data.args.first().filter(|_| is_evaluated(data.opcode)) else {
            return Content::Unknown;
        };
        let mut bits = [0; 3];
        for (slot, arg) in bits.iter_mut().zip(&data.args) {
            match self.content(*arg) {
                Content::Always(known) => *slot = known,
                other => return other,
            }
        }
        let result = fold(
            data.opcode,
            data.ty,
            self.function.value_type(first),
            &bits[..data.args.len().min(3)],
        );
        result.map_or(Content::Unknown, |bits| Content::Always(bits & data.ty.mask()))
    }

    fn targets(&self, inst: Inst) -> Targets {
        let data = self.function.inst(inst);
        let condition = match data.opcode {
            Opcode::BrIf | Opcode::Switch => {
                data.args.first().map_or(Content::Unknown, |v| self.content(*v))
            }
            _ => return Targets::Any,
        };
        match condition {
            Content::Unseen => Targets::NoneYet,
            Content::Unknown => Targets::Any,
            Content::Always(bits) if data.opcode == Opcode::BrIf => {
                Targets::One(u32::from(bits == 0))
            }
            Content::Always(bits) => Targets::One(bits.min(data.targets.len() as u64 - 1) as u32),
        }
    }

    /// Follows the edges that may be taken. The arguments on other edges do not count.
    fn leave(&mut self, inst: Inst, data: &InstData) {
        let targets = match self.targets(inst) {
            Targets::NoneYet => return,
            Targets::One(index) => index as usize..index as usize + 1,
            Targets::Any => 0..data.targets.len(),
        };
        for target in &data.targets[targets] {
            self.enter(target.block);
            for (&param, &arg) in self.function.block_params(target.block).iter().zip(&target.args)
            {
                // The contents of a parameter are the meet over all edges taken so far.
                let met = match (self.content(param), self.content(arg)) {
                    (Content::Unseen, content) | (content, Content::Unseen) => content,
                    (a, b) if a == b => a,
                    _ => Content::Unknown,
                };
                self.lower(param, met);
            }
        }
    }
}
