//! The primitive actions that an action log consists of.

use super::inline::InlinedBody;
use crate::entity::{Block, Func, Inst, Value};
use crate::inst::{Edge, InstData};
use crate::text::AtName;
use crate::types::Type;
use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;

/// The kind of one primitive action. The action contains all new ids, so replay creates equal ids.
///
/// The first six kinds are the instruction actions of D'Elia's thesis (section 4.3). The other
/// kinds are the control-flow primitives that this IR needs besides. Every compound edit consists
/// of these primitives.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ActionKind {
    /// Inserts a new instruction before another. The data includes its results.
    Add {
        /// The id of the new instruction.
        inst: Inst,
        /// The opcode, operands and results of the new instruction.
        data: Box<InstData>,
        /// The types of its results.
        result_types: SmallVec<[Type; 1]>,
        /// The instruction that follows it.
        before: Inst,
    },
    /// Removes an instruction whose results are unused.
    Delete {
        /// The instruction.
        inst: Inst,
        /// The instruction that followed it.
        next: Inst,
    },
    /// Moves an instruction to a place that dominates its current place.
    Hoist {
        /// The instruction.
        inst: Inst,
        /// The instruction that followed it before the move.
        from: Inst,
        /// The instruction that follows it after the move.
        to: Inst,
    },
    /// Moves an instruction to a place that its current place dominates.
    Sink {
        /// The instruction.
        inst: Inst,
        /// The instruction that followed it before the move.
        from: Inst,
        /// The instruction that follows it after the move.
        to: Inst,
    },
    /// Replaces one operand of an instruction. The equality of the two values is a fact about this
    /// use only. The instruction computes the same result as before.
    ReplaceOperand {
        /// The instruction.
        inst: Inst,
        /// The index of the operand. Target arguments count after the value operands.
        index: u32,
        /// The operand before the replacement.
        before: Value,
        /// The operand after the replacement.
        after: Value,
    },
    /// Replaces every use of a value by another value. The action asserts that both are equal
    /// wherever both are available in the current function.
    ReplaceAll {
        /// The value whose uses are replaced.
        before: Value,
        /// The value that takes its place.
        after: Value,
    },
    /// Turns a branch or switch into a jump under its own id. The terminator always continues at
    /// the kept target.
    FoldBranch {
        /// The terminator.
        inst: Inst,
        /// The index of the kept target.
        keep: u32,
    },
    /// Turns a call through a table into a call of the function there, under its own id. The index
    /// always selects this function.
    ResolveCall {
        /// The call.
        inst: Inst,
        /// The function.
        func: Func,
    },
    /// Puts the code of a function in the place of a call of it ([`InlinedBody`]).
    Inline {
        /// The call.
        call: Inst,
        /// The callee and its copy.
        body: Box<InlinedBody>,
    },
    /// Inserts a new block without parameters on one edge. The jump of the new block passes on the
    /// arguments of the edge.
    SplitEdge {
        /// The edge.
        edge: Edge,
        /// The new block.
        block: Block,
        /// The jump of the new block.
        jump: Inst,
    },
    /// Inserts a new block on several edges to one block. The new block has one parameter for each
    /// parameter of that block and passes them on.
    JoinEdges {
        /// The edges, all to the same block.
        edges: Vec<Edge>,
        /// The new block.
        block: Block,
        /// The parameters of the new block.
        params: SmallVec<[Value; 4]>,
        /// The jump of the new block.
        jump: Inst,
    },
    /// Redirects an edge past its target block, to the block that this block jumps to. The edge may
    /// skip the target block under three conditions:
    ///
    /// - The block has no effect and no instruction that may trap.
    /// - All uses of its definitions are inside the block.
    /// - It ends in a jump.
    Redirect {
        /// The edge.
        edge: Edge,
        /// The skipped block.
        past: Block,
    },
    /// Appends to a block its only successor. The successor has no other predecessor and no
    /// parameters. The jump between the two blocks is removed.
    MergeBlocks {
        /// The block that stays.
        into: Block,
        /// The block that is appended.
        from: Block,
        /// The removed jump.
        jump: Inst,
    },
    /// Removes blocks, with their contents, to which no edge from outside leads.
    RemoveUnreachable {
        /// The blocks.
        blocks: Vec<Block>,
    },
    /// Appends a parameter to a block, with an argument for every edge that leads to the block.
    AddBlockParam {
        /// The block.
        block: Block,
        /// The new parameter.
        param: Value,
        /// The type of the parameter.
        ty: Type,
        /// The argument on each edge.
        args: Vec<(Edge, Value)>,
    },
    /// Removes an unused parameter, with its argument on every edge.
    RemoveBlockParam {
        /// The block.
        block: Block,
        /// The parameter.
        param: Value,
        /// The index of the parameter.
        index: u32,
    },
    /// Removes parameters and instructions without uses outside the removed set, all at once.
    /// Example: a dead value carried around a loop. No order of single removals can remove it.
    RemoveDead {
        /// The parameters, each with its block.
        params: Vec<(Block, Value)>,
        /// The instructions.
        insts: Vec<Inst>,
    },
}

impl ActionKind {
    /// The name of the primitive, as reports and the text of a log write it.
    pub fn name(&self) -> &'static str {
        match self {
            ActionKind::Add { .. } => "add",
            ActionKind::Delete { .. } => "delete",
            ActionKind::Hoist { .. } => "hoist",
            ActionKind::Sink { .. } => "sink",
            ActionKind::ReplaceOperand { .. } => "replace_operand",
            ActionKind::ReplaceAll { .. } => "replace_all",
            ActionKind::FoldBranch { .. } => "fold_branch",
            ActionKind::ResolveCall { .. } => "resolve_call",
            ActionKind::Inline { .. } => "inline",
            ActionKind::SplitEdge { .. } => "split_edge",
            ActionKind::JoinEdges { .. } => "join_edges",
            ActionKind::Redirect { .. } => "redirect",
            ActionKind::MergeBlocks { .. } => "merge_blocks",
            ActionKind::RemoveUnreachable { .. } => "remove_unreachable",
            ActionKind::AddBlockParam { .. } => "add_block_param",
            ActionKind::RemoveBlockParam { .. } => "remove_block_param",
            ActionKind::RemoveDead { .. } => "remove_dead",
        }
    }
}

impl fmt::Display for ActionKind {
    /// One line that refers to entities by id: `hoist inst7 from inst9 to inst3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            ActionKind::Add { inst, data, before, .. } => {
                write!(f, " {inst} {}", data.opcode.name())?;
                if data.opcode.has_type_suffix() {
                    write!(f, ".{}", data.ty)?;
                }
                for value in &data.results {
                    write!(f, " {value}")?;
                }
                write!(f, " before {before}")
            }
            ActionKind::Delete { inst, next } => write!(f, " {inst} before {next}"),
            ActionKind::Hoist { inst, from, to } | ActionKind::Sink { inst, from, to } => {
                write!(f, " {inst} from {from} to {to}")
            }
            ActionKind::ReplaceOperand { inst, index, before, after } => {
                write!(f, " {inst} operand {index} {before} -> {after}")
            }
            ActionKind::ReplaceAll { before, after } => write!(f, " {before} -> {after}"),
            ActionKind::FoldBranch { inst, keep } => write!(f, " {inst} to target {keep}"),
            ActionKind::ResolveCall { inst, func } => write!(f, " {inst} to {func}"),
            ActionKind::Inline { call, body } => {
                let callee = body.callee.function();
                let name = AtName(callee.name());
                write!(f, " {name} for {call} with {} before {}", body.jump, body.rest)
            }
            ActionKind::SplitEdge { edge, block, jump } => {
                write!(f, " {} target {} by {block} with {jump}", edge.inst, edge.index)
            }
            ActionKind::JoinEdges { edges, block, params, jump } => {
                for edge in edges {
                    write!(f, " {} target {}", edge.inst, edge.index)?;
                }
                write!(f, " by {block}(")?;
                for (i, param) in params.iter().enumerate() {
                    write!(f, "{}{param}", if i == 0 { "" } else { ", " })?;
                }
                write!(f, ") with {jump}")
            }
            ActionKind::Redirect { edge, past } => {
                write!(f, " {} target {} past {past}", edge.inst, edge.index)
            }
            ActionKind::MergeBlocks { into, from, jump } => {
                write!(f, " {from} into {into} without {jump}")
            }
            ActionKind::RemoveUnreachable { blocks } => {
                blocks.iter().try_for_each(|block| write!(f, " {block}"))
            }
            ActionKind::AddBlockParam { block, param, ty, args } => {
                write!(f, " {block} {param}: {ty}")?;
                args.iter()
                    .try_for_each(|(e, v)| write!(f, ", {v} on {} target {}", e.inst, e.index))
            }
            ActionKind::RemoveBlockParam { block, param, index } => {
                write!(f, " {block} {param} at {index}")
            }
            ActionKind::RemoveDead { params, insts } => {
                params.iter().try_for_each(|(block, param)| write!(f, " {block} {param}"))?;
                insts.iter().try_for_each(|inst| write!(f, " {inst}"))
            }
        }
    }
}

/// The origin of an action. It serves human readers; no correctness argument relies on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub(super) pass: &'static str,
    pub(super) rule: &'static str,
    pub(super) rewrite: u64,
    pub(super) site: &'static Location<'static>,
}

impl Origin {
    /// The name of the pass.
    pub fn pass(&self) -> &'static str {
        self.pass
    }

    /// The rule that the pass announced last before the action.
    pub fn rule(&self) -> &'static str {
        self.rule
    }

    /// The number of the rewrite that the pass announced last before the action
    /// ([`super::Fuel::without`] leaves it out).
    pub fn rewrite(&self) -> u64 {
        self.rewrite
    }

    /// The place in the pass's source that called the editor.
    pub fn site(&self) -> &'static Location<'static> {
        self.site
    }
}

/// One entry of a log. Only the editor creates actions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    pub(super) kind: ActionKind,
    pub(super) stamp: u64,
    pub(super) origin: Origin,
}

impl Action {
    /// The kind of the action, with its operands.
    pub fn kind(&self) -> &ActionKind {
        &self.kind
    }

    /// The stamp of the function to which the action was applied. It is the position of the action
    /// in the log since the base of the family.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The pass, rule and call site that performed the action.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{} {}/{} {}", self.stamp, self.origin.pass, self.origin.rule, self.kind)
    }
}
