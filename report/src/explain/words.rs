//! Describes actions of a log in words.

use crate::blame::History;
use crate::listing::NamedVersion;
use crate::schema::PassAction;
use ir::edit::ActionKind;
use ir::{Block, Inst, Value};

/// The most bytes of an instruction that a description shows.
const INST: usize = 60;

/// The most blocks of a list that a description shows.
const SHOWN: usize = 4;

/// The two versions with their names, and the log between them.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) base: NamedVersion<'a>,
    pub(super) opt: NamedVersion<'a>,
    pub(super) history: History<'a>,
}

impl Told<'_> {
    /// The versions in the order of look-ups by id: the base comes first.
    fn versions(&self) -> [&NamedVersion<'_>; 2] {
        [&self.base, &self.opt]
    }

    pub(super) fn value(&self, value: Value) -> String {
        let named = self.versions().into_iter().find(|v| v.version.has_value(value));
        named.map_or_else(|| format!("%{value}"), |v| v.text.value(value))
    }

    fn block(&self, block: Block) -> String {
        let named = self.versions().into_iter().find(|v| v.version.has_block(block));
        named.map_or_else(|| block.to_string(), |v| v.text.block(block))
    }

    /// An instruction and its id.
    pub(super) fn inst(&self, inst: Inst) -> String {
        let known = self.versions().into_iter().find(|v| v.version.has_inst(inst));
        known.map_or_else(
            || inst.to_string(),
            |v| format!("{inst} ({})", v.text.inst_up_to(inst, INST)),
        )
    }

    /// The text of an instruction in the base, and its id. After a fold, the optimized version has
    /// a jump instead of the branch.
    fn inst_before(&self, inst: Inst) -> String {
        match self.base.version.has_inst(inst) {
            true => format!("{inst} ({})", self.base.text.inst_up_to(inst, INST)),
            false => self.inst(inst),
        }
    }

    /// Whether an instruction has no results, as a store. A store is deleted because nothing reads
    /// the memory, other instructions because nothing uses their results.
    fn is_store(&self, inst: Inst) -> bool {
        let version = self.versions().into_iter().find(|v| v.version.has_inst(inst));
        version.is_some_and(|v| v.version.inst(inst).results.is_empty())
    }

    /// The block of an instruction, in the first of `versions` with this instruction.
    fn home(&self, inst: Inst, versions: [&NamedVersion<'_>; 2]) -> Option<String> {
        let version = versions.into_iter().find(|v| v.version.has_inst(inst))?;
        Some(version.text.block(version.version.inst_block(inst)))
    }

    /// Describes the action with this number in the log.
    ///
    /// # Panics
    /// If the log has no such action.
    pub(super) fn done(&self, number: usize) -> PassAction {
        let action = &self.history.log.actions()[number];
        let origin = action.origin();
        PassAction {
            number: action.stamp(),
            pass: origin.pass(),
            rule: origin.rule(),
            action: action.to_string(),
            words: self.words(action.kind()),
        }
    }

    fn words(&self, kind: &ActionKind) -> String {
        match kind {
            ActionKind::Add { inst, data, .. } => match self.opt.version.has_inst(*inst) {
                true => format!("added {}", self.inst(*inst)),
                false => {
                    format!("added {inst} ({}), which a later action removed", data.opcode.name())
                }
            },
            ActionKind::Delete { inst, .. } if self.is_store(*inst) => {
                format!("removed {}, whose effect nothing can observe", self.inst(*inst))
            }
            ActionKind::Delete { inst, .. } => {
                format!("removed {}, which had no uses left", self.inst(*inst))
            }
            ActionKind::Hoist { inst, to, .. } => self.moved(*inst, *to, "up"),
            ActionKind::Sink { inst, to, .. } => self.moved(*inst, *to, "down"),
            ActionKind::ReplaceOperand { inst, before, after, .. } => {
                format!(
                    "made {} read {} instead of {}",
                    self.inst(*inst),
                    self.value(*after),
                    self.value(*before)
                )
            }
            ActionKind::ReplaceAll { before, after } => {
                format!(
                    "replaced every use of {} by {}, which is equal",
                    self.value(*before),
                    self.value(*after)
                )
            }
            ActionKind::FoldBranch { inst, keep } => {
                let base = self.base.version;
                let targets =
                    if base.has_inst(*inst) { base.inst(*inst).targets.as_slice() } else { &[] };
                let target = targets.get(*keep as usize).map(|target| self.block(target.block));
                let target = target.unwrap_or_else(|| format!("its target {keep}"));
                format!("replaced the branch {} by a jump to {target}", self.inst_before(*inst))
            }
            ActionKind::ResolveCall { inst, func } => {
                format!(
                    "made the call through a table, {}, a call of {func}",
                    self.inst_before(*inst)
                )
            }
            ActionKind::Inline { call, body } => {
                let callee = body.callee.function().name();
                format!("put the code of @{callee} in the place of {}", self.inst_before(*call))
            }
            ActionKind::SplitEdge { edge, block, .. } => {
                format!(
                    "split an edge of {1} with the new block {0}",
                    self.block(*block),
                    self.inst(edge.inst)
                )
            }
            ActionKind::JoinEdges { edges, block, .. } => {
                format!("joined {} edges in the new block {}", edges.len(), self.block(*block))
            }
            ActionKind::Redirect { edge, past, .. } => {
                format!("redirected an edge of {} past {}", self.inst(edge.inst), self.block(*past))
            }
            ActionKind::MergeBlocks { into, from, jump } => {
                format!(
                    "appended {} to {}, without the jump {jump} between them",
                    self.block(*from),
                    self.block(*into)
                )
            }
            ActionKind::RemoveUnreachable { blocks } => self.removed_blocks(blocks),
            ActionKind::AddBlockParam { block, param, .. } => {
                format!("added the parameter {} to {}", self.value(*param), self.block(*block))
            }
            ActionKind::RemoveBlockParam { block, param, .. } => {
                format!(
                    "removed the parameter {} of {}, which nothing used",
                    self.value(*param),
                    self.block(*block)
                )
            }
            ActionKind::RemoveDead { params, insts } => {
                let (p, i) = (params.len(), insts.len());
                format!("removed {p} parameters and {i} instructions that only used each other")
            }
        }
    }

    fn moved(&self, inst: Inst, to: Inst, way: &str) -> String {
        let from = self.home(inst, [&self.base, &self.opt]);
        let place = self
            .home(to, [&self.opt, &self.base])
            .or_else(|| self.home(inst, [&self.opt, &self.base]));
        let between = match (from, place) {
            (Some(from), Some(place)) if from != place => format!(", from {from} to {place}"),
            _ => format!(", before {to}"),
        };
        format!("moved {} {way}{between}", self.inst(inst))
    }

    fn removed_blocks(&self, blocks: &[Block]) -> String {
        let mut names: Vec<String> = blocks.iter().take(SHOWN).map(|b| self.block(*b)).collect();
        if blocks.len() > SHOWN {
            names.push(format!("and {} more", blocks.len() - SHOWN));
        }
        format!("removed unreachable blocks: {}", names.join(", "))
    }
}
