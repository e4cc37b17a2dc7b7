//! Primitive actions: the vocabulary of the log.

use crate::entity::{Block, Inst, Value};
use crate::inst::{Edge, InstData};
use crate::types::Type;
use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;

/// What one primitive action does. New ids are part of the action, so replay makes equal ids.
///
/// The first six are the instruction actions of D'Elia's thesis (section 4.3); the others are the
/// control-flow primitives this IR needs besides. Every compound edit is written in terms of these.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ActionKind {
    /// A new instruction, its results among the data, put before another.
    Add {
        /// The new id.
        inst: Inst,
        /// What it is.
        data: Box<InstData>,
        /// The types of its results.
        result_types: SmallVec<[Type; 1]>,
        /// The instruction it is put before.
        before: Inst,
    },
    /// An instruction without used results is removed.
    Delete {
        /// The instruction.
        inst: Inst,
        /// The instruction it stood before.
        next: Inst,
    },
    /// An instruction is moved to a place that dominates the one it leaves.
    Hoist {
        /// The instruction.
        inst: Inst,
        /// The instruction it stood before.
        from: Inst,
        /// The instruction it is put before.
        to: Inst,
    },
    /// An instruction is moved to a place that the one it leaves dominates.
    Sink {
        /// The instruction.
        inst: Inst,
        /// The instruction it stood before.
        from: Inst,
        /// The instruction it is put before.
        to: Inst,
    },
    /// One operand of an instruction is replaced; a fact about this one use. The instruction
    /// computes what it computed before.
    ReplaceOperand {
        /// The instruction.
        inst: Inst,
        /// The index of the operand, target arguments counted after the value operands.
        index: u32,
        /// The value it was.
        before: Value,
        /// The value it is now.
        after: Value,
    },
    /// Every use of a value is replaced. Asserts that both are equal wherever both are available in
    /// the function as it stands.
    ReplaceAll {
        /// The value whose uses are replaced.
        before: Value,
        /// The value they become.
        after: Value,
    },
    /// A branch or switch always continues at one of its targets; it becomes a jump under its own
    /// id.
    FoldBranch {
        /// The terminator.
        inst: Inst,
        /// The index of the target that stays.
        keep: u32,
    },
    /// A new block without parameters on one edge; its jump takes the edge's arguments along.
    SplitEdge {
        /// The edge.
        edge: Edge,
        /// The new block.
        block: Block,
        /// Its jump.
        jump: Inst,
    },
    /// A new block on several edges to one block; it has a parameter for each of that block's and
    /// hands them on.
    JoinEdges {
        /// The edges, all to the same block.
        edges: Vec<Edge>,
        /// The new block.
        block: Block,
        /// Its parameters.
        params: SmallVec<[Value; 4]>,
        /// Its jump.
        jump: Inst,
    },
    /// An edge leads past the block it led to, straight to where control goes on from there. The
    /// block misses nothing: it holds no effect and nothing that may trap, what it defines is used
    /// in it alone, and it goes on by a jump or by a branch that constants among the edge's
    /// arguments decide.
    Redirect {
        /// The edge.
        edge: Edge,
        /// The block it led to.
        past: Block,
        /// The index of the target of that block at which control goes on.
        index: u32,
    },
    /// A block's only successor, which has no other predecessor and no parameters, becomes its end;
    /// the jump between them goes.
    MergeBlocks {
        /// The block that stays.
        into: Block,
        /// The block that is appended.
        from: Block,
        /// The jump that goes.
        jump: Inst,
    },
    /// Blocks no edge from outside leads to are removed, with all they hold.
    RemoveUnreachable {
        /// The blocks.
        blocks: Vec<Block>,
    },
    /// A parameter is added at the end of a block's, with an argument for every edge that leads
    /// there.
    AddBlockParam {
        /// The block.
        block: Block,
        /// The new parameter.
        param: Value,
        /// Its type.
        ty: Type,
        /// The argument on each edge.
        args: Vec<(Edge, Value)>,
    },
    /// An unused parameter is removed, with its argument on every edge.
    RemoveBlockParam {
        /// The block.
        block: Block,
        /// The parameter.
        param: Value,
        /// Its index.
        index: u32,
    },
    /// Parameters and instructions that nothing but each other uses are removed together: a dead
    /// value carried around a loop, which no order of single removals gets rid of.
    RemoveDead {
        /// The parameters, each with its block.
        params: Vec<(Block, Value)>,
        /// The instructions.
        insts: Vec<Inst>,
    },
}

impl ActionKind {
    /// The name of the primitive, as the report and the text of a log write it.
    pub fn name(&self) -> &'static str {
        match self {
            ActionKind::Add { .. } => "add",
            ActionKind::Delete { .. } => "delete",
            ActionKind::Hoist { .. } => "hoist",
            ActionKind::Sink { .. } => "sink",
            ActionKind::ReplaceOperand { .. } => "replace_operand",
            ActionKind::ReplaceAll { .. } => "replace_all",
            ActionKind::FoldBranch { .. } => "fold_branch",
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
    /// One line, by ids: `hoist inst7 from inst9 to inst3`.
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
            ActionKind::Redirect { edge, past, index } => {
                write!(f, " {} target {} past {past} to its target {index}", edge.inst, edge.index)
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

/// Who did an action, for people: never for trust.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub(super) pass: &'static str,
    pub(super) rule: &'static str,
    pub(super) site: &'static Location<'static>,
}

impl Origin {
    /// The name of the pass.
    pub fn pass(&self) -> &'static str {
        self.pass
    }

    /// The rule the pass named last before the action.
    pub fn rule(&self) -> &'static str {
        self.rule
    }

    /// The place in the pass's source that called the editor.
    pub fn site(&self) -> &'static Location<'static> {
        self.site
    }
}

/// One entry of a log. Only the editor makes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    pub(super) kind: ActionKind,
    pub(super) stamp: u64,
    pub(super) origin: Origin,
}

impl Action {
    /// What was done.
    pub fn kind(&self) -> &ActionKind {
        &self.kind
    }

    /// The stamp of the function the action was applied to: its position in the log of everything
    /// that happened since the base of the family.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Who did it.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{} {}/{} {}", self.stamp, self.origin.pass, self.origin.rule, self.kind)
    }
}
