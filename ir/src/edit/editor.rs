//! The editor: the only way to change a function.

use super::action::{Action, ActionKind, Origin};
use super::log::ActionLog;
use super::perform::{carry_out, perform};
use crate::entity::{Block, Inst, Value};
use crate::function::Function;
use crate::inst::{Edge, InstData, InstSpec};
use crate::types::Type;
use std::marker::PhantomData;
use std::panic::Location;

/// A pass: reads the function, decides, and changes it through the editor.
///
/// `run` is generic over the editor's lifetime and sessions are opened by [`apply`] alone, so a
/// pass can neither open a session nor swap two of them (`tests/compile-fail` holds the attempts).
pub trait Pass {
    /// The name in pipelines, logs and reports.
    fn name(&self) -> &'static str;

    /// Changes the function. Calls [`Editor::plan`] before each whole rewrite and stops when it
    /// says no. A pass has changed the function exactly when its log is not empty.
    fn run(&self, editor: &mut Editor<'_>);
}

/// How many whole rewrites the passes of a pipeline may still make: stopping between rewrites
/// leaves a correct function, so a failure can be bisected to one rewrite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fuel {
    left: u64,
}

impl Fuel {
    /// As many rewrites as the passes find.
    pub const UNLIMITED: Fuel = Fuel { left: u64::MAX };

    /// At most this many rewrites.
    pub fn rewrites(count: u64) -> Fuel {
        Fuel { left: count }
    }

    /// How many are left.
    pub fn left(self) -> u64 {
        self.left
    }
}

/// A new version and the actions that lead to it: made by [`apply`] alone, so that neither is ever
/// paired with another's.
#[derive(Clone, Debug)]
pub struct Applied {
    function: Function,
    log: ActionLog,
}

impl Applied {
    /// The version the pass made.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Every action, in order.
    pub fn log(&self) -> &ActionLog {
        &self.log
    }

    /// The version and the log, to own each.
    pub fn into_parts(self) -> (Function, ActionLog) {
        (self.function, self.log)
    }
}

/// Runs one pass on a copy of a version. The version itself stays; if the pass panics, copy and log
/// are dropped together.
///
/// # Panics
/// When the pass asks for an edit that is not legal; the message names pass, action and entity.
pub fn apply(version: &Function, pass: &dyn Pass, fuel: &mut Fuel) -> Applied {
    let mut function = version.clone();
    let log = ActionLog::starting_at(function.stamp());
    let origin = (pass.name(), "");
    let mut editor =
        Editor { function: &mut function, log, records: true, origin, fuel, session: PhantomData };
    pass.run(&mut editor);
    let log = editor.log;
    Applied { function, log }
}

/// Runs one pass on a copy of a version and keeps no log: to measure what logging costs. What it
/// gives is no version of the family: nothing leads to it, and its history is that of the version
/// it was made from.
///
/// # Panics
/// As [`apply`].
pub fn apply_without_log(version: &Function, pass: &dyn Pass, fuel: &mut Fuel) -> Function {
    let mut function = version.clone();
    let log = ActionLog::starting_at(function.stamp());
    let origin = (pass.name(), "");
    pass.run(&mut Editor {
        function: &mut function,
        log,
        records: false,
        origin,
        fuel,
        session: PhantomData,
    });
    function
}

/// A session that changes one function and records every change.
///
/// Each method checks the edit, carries it out and appends one action. Invariant in its lifetime,
/// so two sessions never have the same type and cannot be swapped.
#[derive(Debug)]
pub struct Editor<'e> {
    function: &'e mut Function,
    log: ActionLog,
    /// Whether changes are recorded.
    records: bool,
    origin: (&'static str, &'static str),
    fuel: &'e mut Fuel,
    session: PhantomData<fn(&'e ()) -> &'e ()>,
}

impl Editor<'_> {
    /// The function as it stands.
    pub fn func(&self) -> &Function {
        self.function
    }

    /// Announces one whole rewrite under the name of a rule. When this says no, the fuel is spent
    /// and the pass must stop without touching anything.
    #[must_use]
    pub fn plan(&mut self, rule: &'static str) -> bool {
        self.origin.1 = rule;
        if self.fuel.left == 0 {
            return false;
        }
        self.fuel.left -= 1;
        true
    }

    /// Adds an instruction before another. Its id and those of its results are new in the family.
    ///
    /// # Panics
    /// When an operand does not exist, or the instruction is a terminator.
    #[track_caller]
    pub fn add(&mut self, spec: InstSpec, before: Inst) -> Inst {
        let family = self.function.family();
        let inst = family.new_inst();
        let results = spec.result_types.iter().map(|_| family.new_value()).collect();
        let InstSpec { opcode, ty, imm, args, result_types, targets } = spec;
        let data = Box::new(InstData { opcode, ty, imm, args, results, targets });
        self.act(ActionKind::Add { inst, data, result_types, before });
        inst
    }

    /// Adds an instruction with one result and returns that.
    ///
    /// # Panics
    /// As [`Editor::add`], and when it has not exactly one result.
    #[track_caller]
    pub fn add_value(&mut self, spec: InstSpec, before: Inst) -> Value {
        let inst = self.add(spec, before);
        self.function.inst(inst).result().expect("the instruction has one result")
    }

    /// Removes an instruction.
    ///
    /// # Panics
    /// When it is a terminator, or a result is still used.
    #[track_caller]
    pub fn delete(&mut self, inst: Inst) {
        let next = self.follower(inst);
        self.act(ActionKind::Delete { inst, next });
    }

    /// Moves an instruction before another whose place dominates its own.
    ///
    /// # Panics
    /// When it is a terminator, or stands there already.
    #[track_caller]
    pub fn hoist(&mut self, inst: Inst, to: Inst) {
        let from = self.follower(inst);
        self.act(ActionKind::Hoist { inst, from, to });
    }

    /// Moves an instruction before another whose place its own dominates.
    ///
    /// # Panics
    /// When it is a terminator, or stands there already.
    #[track_caller]
    pub fn sink(&mut self, inst: Inst, to: Inst) {
        let from = self.follower(inst);
        self.act(ActionKind::Sink { inst, from, to });
    }

    /// Makes one operand another value that is equal at this use.
    ///
    /// # Panics
    /// When there is no such operand, or the types differ.
    #[track_caller]
    pub fn replace_operand(&mut self, inst: Inst, index: usize, after: Value) {
        let before = self.function.inst(inst).operand(index).expect("the operand exists");
        self.act(ActionKind::ReplaceOperand { inst, index: index as u32, before, after });
    }

    /// Makes every use of `before` a use of `after`, which equals it wherever both are available.
    ///
    /// # Panics
    /// When the types differ, or both are one.
    #[track_caller]
    pub fn replace_all(&mut self, before: Value, after: Value) {
        self.act(ActionKind::ReplaceAll { before, after });
    }

    /// Turns a branch or switch that always takes one of its targets into a jump there.
    ///
    /// # Panics
    /// When the instruction is neither, or has no such target.
    #[track_caller]
    pub fn fold_branch(&mut self, inst: Inst, keep: u32) {
        self.act(ActionKind::FoldBranch { inst, keep });
    }

    /// Puts a new block on an edge.
    ///
    /// # Panics
    /// When there is no such edge.
    #[track_caller]
    pub fn split_edge(&mut self, edge: Edge) -> Block {
        let (block, jump) = (self.function.family().new_block(), self.function.family().new_inst());
        self.act(ActionKind::SplitEdge { edge, block, jump });
        block
    }

    /// Puts a new block on several edges that lead to one block.
    ///
    /// # Panics
    /// When there are no edges, one comes twice, or they lead to different blocks.
    #[track_caller]
    pub fn join_edges(&mut self, edges: &[Edge]) -> Block {
        let family = self.function.family().clone();
        let target = self.function.target(edges[0]).block;
        let params =
            self.function.block_params(target).iter().map(|_| family.new_value()).collect();
        let (block, jump) = (family.new_block(), family.new_inst());
        self.act(ActionKind::JoinEdges { edges: edges.to_vec(), block, params, jump });
        block
    }

    /// Sends an edge past the block it leads to, to the target at which [`way_past`] says control
    /// goes on.
    ///
    /// [`way_past`]: super::way_past
    ///
    /// # Panics
    /// When the edge cannot be redirected, or control goes on elsewhere.
    #[track_caller]
    pub fn redirect(&mut self, edge: Edge, index: u32) {
        let past = self.function.target(edge).block;
        self.act(ActionKind::Redirect { edge, past, index });
    }

    /// Appends to a block its only successor, which has no other predecessor and no parameters.
    ///
    /// # Panics
    /// When the block has not such a successor.
    #[track_caller]
    pub fn merge_blocks(&mut self, into: Block) {
        let jump = self.function.terminator(into);
        let from = self.function.successors(into).first().expect("the block has a successor").block;
        self.act(ActionKind::MergeBlocks { into, from, jump });
    }

    /// Removes blocks that no edge from outside leads to.
    ///
    /// # Panics
    /// When an edge from another block leads to one of them, or a value of theirs is used
    /// elsewhere.
    #[track_caller]
    pub fn remove_unreachable(&mut self, blocks: &[Block]) {
        self.act(ActionKind::RemoveUnreachable { blocks: blocks.to_vec() });
    }

    /// Adds a parameter to a block, with one argument for every edge that leads there.
    ///
    /// # Panics
    /// When the edges are not exactly those that lead there, or an argument has another type.
    #[track_caller]
    pub fn add_block_param(&mut self, block: Block, ty: Type, args: &[(Edge, Value)]) -> Value {
        let param = self.function.family().new_value();
        self.act(ActionKind::AddBlockParam { block, param, ty, args: args.to_vec() });
        param
    }

    /// Removes a parameter that nothing uses, but perhaps its own argument around a loop.
    ///
    /// # Panics
    /// When it is used, or the block is the entry.
    #[track_caller]
    pub fn remove_block_param(&mut self, block: Block, index: usize) {
        let param = self.function.block_params(block)[index];
        self.act(ActionKind::RemoveBlockParam { block, param, index: index as u32 });
    }

    /// Removes parameters and instructions that nothing but each other uses, where single removals
    /// would wait for one another. What can be removed singly should be.
    ///
    /// # Panics
    /// When one of them is used elsewhere, is a terminator, or is a parameter of the entry.
    #[track_caller]
    pub fn remove_dead(&mut self, params: &[(Block, Value)], insts: &[Inst]) {
        self.act(ActionKind::RemoveDead { params: params.to_vec(), insts: insts.to_vec() });
    }

    #[track_caller]
    fn follower(&self, inst: Inst) -> Inst {
        self.function
            .next_inst(inst)
            .unwrap_or_else(|| panic!("{inst} is a terminator: it stays where it is"))
    }

    /// Checks, changes and records, in one step.
    #[track_caller]
    fn act(&mut self, kind: ActionKind) {
        let stamp = self.function.stamp();
        let (pass, rule) = self.origin;
        let performed = if self.records {
            perform(self.function, &kind)
        } else {
            carry_out(self.function, &kind)
        };
        if let Err(fault) = performed {
            panic!(
                "pass {pass}, rule {rule}, action {stamp} of {}: {kind}: {fault}",
                self.function.name()
            );
        }
        if !self.records {
            return;
        }
        let origin = Origin { pass, rule, site: Location::caller() };
        self.log.push(Action { kind, stamp, origin });
    }
}
