//! The editor: the only way to change a function.

use super::action::{Action, ActionKind, Origin};
use super::inline::InlinedBody;
use super::log::ActionLog;
use super::perform::{carry_out, leave_history, perform};
use crate::entity::{Block, Func, Inst, Value};
use crate::function::Function;
use crate::inst::{Edge, InstData, InstSpec};
use crate::types::Type;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::Location;

/// A pass: it reads the function, decides, and changes the function through the editor.
///
/// `run` is generic over the editor's lifetime, and [`apply`] alone opens sessions. A pass
/// therefore can neither open a session nor swap two of them. The folder `tests/compile-fail` holds
/// attempts that the compiler rejects.
pub trait Pass {
    /// The name in pipelines, logs and reports.
    fn name(&self) -> &'static str;

    /// Changes the function. The pass calls [`Editor::plan`] before each whole rewrite, and leaves
    /// the rewrite out when the call returns `false`. Stopping then is always right; continuing
    /// with independent rewrites loses less. The pass has changed the function exactly when its log
    /// is not empty.
    fn run(&self, editor: &mut Editor<'_>);
}

/// The whole rewrites that the passes of a pipeline may still make.
///
/// Each announcement of a rewrite ([`Editor::plan`]) has a number: the count of earlier
/// announcements, over all passes that share this fuel. The fuel grants announcements below a
/// limit, except for numbers that it leaves out. Equal functions, passes and fuels lead to equal
/// announcements up to the first announcement that two fuels answer differently. So a failure can
/// be bisected to one rewrite, and the pipeline can run again without it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fuel {
    limit: u64,
    planned: u64,
    /// The number of rewrites left out so far.
    refused: u64,
    /// Ascending, not empty, and apart from each other.
    left_out: Vec<Range<u64>>,
    /// The values that count as used.
    kept: BTreeSet<Value>,
}

impl Fuel {
    /// All rewrites that the passes find.
    pub const UNLIMITED: Fuel = Fuel {
        limit: u64::MAX,
        planned: 0,
        refused: 0,
        left_out: Vec::new(),
        kept: BTreeSet::new(),
    };

    /// At most this many rewrites.
    pub fn rewrites(count: u64) -> Fuel {
        Fuel { limit: count, ..Fuel::UNLIMITED }
    }

    /// The same fuel without the rewrites of these numbers, ranges in any order. They count toward
    /// the limit.
    #[must_use]
    pub fn without(self, left_out: impl IntoIterator<Item = Range<u64>>) -> Fuel {
        let mut ranges: Vec<Range<u64>> = left_out.into_iter().filter(|r| !r.is_empty()).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, range| {
            let is_joined = next.start <= range.end;
            if is_joined {
                range.end = range.end.max(next.end);
            }
            is_joined
        });
        Fuel { left_out: ranges, ..self }
    }

    /// The same fuel. In addition, these values count as used in every version that has them.
    /// Example: an entry reads a value that no instruction reads, and that nothing can compute
    /// again. Passes still replace such a value by an equal one, and still move its instruction
    /// ([`Editor::kept`]).
    #[must_use]
    pub fn keeping(self, kept: BTreeSet<Value>) -> Fuel {
        Fuel { kept, ..self }
    }

    /// The number of rewrites left.
    pub fn left(&self) -> u64 {
        self.limit - self.planned
    }

    /// The number of rewrites announced so far, including rewrites left out. Announcements beyond
    /// the limit do not count.
    pub fn planned(&self) -> u64 {
        self.planned
    }

    /// The number of rewrites left out so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Answers the next announcement.
    fn grant(&mut self) -> bool {
        if self.planned == self.limit {
            return false;
        }
        let before = self.left_out.partition_point(|range| range.end <= self.planned);
        let is_left_out = self.left_out.get(before).is_some_and(|r| r.contains(&self.planned));
        self.planned += 1;
        self.refused += u64::from(is_left_out);
        !is_left_out
    }
}

/// A new version, together with the actions that lead to it. [`apply`] and [`apply_to`] alone
/// create this pair, so a version is never paired with the log of another.
#[derive(Clone, Debug)]
pub struct Applied {
    function: Function,
    log: ActionLog,
}

impl Applied {
    /// The version after the pass.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Every action, in order.
    pub fn log(&self) -> &ActionLog {
        &self.log
    }

    /// The version and the log, by value.
    pub fn into_parts(self) -> (Function, ActionLog) {
        (self.function, self.log)
    }
}

/// Runs one pass on a copy of a version. The version itself does not change. If the pass panics,
/// the copy and its log are dropped together.
///
/// # Panics
/// When the pass requests an illegal edit. The message names the pass, the action and the entity.
pub fn apply(version: &Function, pass: &dyn Pass, fuel: &mut Fuel) -> Applied {
    apply_to(version.clone(), pass, fuel)
}

/// As [`apply`], on a version that nobody needs any more. A copy costs as much as many a pass.
///
/// # Panics
/// As [`apply`].
pub fn apply_to(version: Function, pass: &dyn Pass, fuel: &mut Fuel) -> Applied {
    let mut function = version;
    let log = ActionLog::starting_at(function.stamp());
    let origin = (pass.name(), "", fuel.planned);
    let mut editor =
        Editor { function: &mut function, log, records: true, origin, fuel, session: PhantomData };
    pass.run(&mut editor);
    let log = editor.log;
    Applied { function, log }
}

/// Runs one pass on a copy of a version and keeps no log, to measure the cost of logging. The
/// result is not a version of the family, because no log leads to it. Its history is a digest of
/// its text.
///
/// # Panics
/// As [`apply`].
pub fn apply_without_log(version: &Function, pass: &dyn Pass, fuel: &mut Fuel) -> Function {
    let mut function = version.clone();
    let log = ActionLog::starting_at(function.stamp());
    let origin = (pass.name(), "", fuel.planned);
    pass.run(&mut Editor {
        function: &mut function,
        log,
        records: false,
        origin,
        fuel,
        session: PhantomData,
    });
    // The history of the copied version must not stand for the result. Two results of equally many
    // edits would else count as one version, and a mapping judged for one version could fire into
    // the other version (`versions_without_a_log_are_told_apart`).
    leave_history(&mut function);
    function
}

/// A session that changes one function and records every change.
///
/// Each method checks the edit, carries it out and appends one action. The type is invariant in its
/// lifetime, so two sessions never have the same type and cannot be swapped.
#[derive(Debug)]
pub struct Editor<'e> {
    function: &'e mut Function,
    log: ActionLog,
    /// Whether the editor records changes; `false` only in [`apply_without_log`].
    records: bool,
    /// The pass, the rule that it announced last, and the number of that announcement.
    origin: (&'static str, &'static str, u64),
    fuel: &'e mut Fuel,
    session: PhantomData<fn(&'e ()) -> &'e ()>,
}

impl Editor<'_> {
    /// The function in its current state.
    pub fn func(&self) -> &Function {
        self.function
    }

    /// Announces one whole rewrite under the name of a rule. If the answer is `false`, the pass
    /// must not make this rewrite, or a rewrite that is only right after it. Other rewrites may
    /// follow, each announced in turn. A pass must not announce the same rewrite again and again:
    /// without fuel every answer is `false` ([`Editor::has_fuel`]).
    #[must_use]
    pub fn plan(&mut self, rule: &'static str) -> bool {
        (self.origin.1, self.origin.2) = (rule, self.fuel.planned);
        self.fuel.grant()
    }

    /// The values that count as used although no instruction uses them ([`Fuel::keeping`]). A pass
    /// does not remove one for want of uses. The function may lack some.
    pub fn kept(&self) -> &BTreeSet<Value> {
        &self.fuel.kept
    }

    /// Whether a later announcement may be granted. A pass that analyses the function anew after a
    /// refusal calls this first.
    pub fn has_fuel(&self) -> bool {
        self.fuel.left() > 0
    }

    /// Inserts an instruction before another. The id of the instruction and the ids of its results
    /// are new in the family.
    ///
    /// # Panics
    /// When an operand or `before` does not exist, or the instruction is a terminator or has
    /// targets.
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

    /// Inserts an instruction with one result and returns the result.
    ///
    /// # Panics
    /// As [`Editor::add`], and when the number of results is not one.
    #[track_caller]
    pub fn add_value(&mut self, spec: InstSpec, before: Inst) -> Value {
        let inst = self.add(spec, before);
        self.function.inst(inst).result().expect("the instruction has one result")
    }

    /// Removes an instruction.
    ///
    /// # Panics
    /// When the instruction does not exist or is a terminator, or a result is still used.
    #[track_caller]
    pub fn delete(&mut self, inst: Inst) {
        let next = self.follower(inst);
        self.act(ActionKind::Delete { inst, next });
    }

    /// Moves an instruction before another, to a place that dominates its current place.
    ///
    /// # Panics
    /// When one of the instructions does not exist, or `inst` is a terminator or already stands
    /// there.
    #[track_caller]
    pub fn hoist(&mut self, inst: Inst, to: Inst) {
        let from = self.follower(inst);
        self.act(ActionKind::Hoist { inst, from, to });
    }

    /// Moves an instruction before another, to a place that its current place dominates.
    ///
    /// # Panics
    /// When one of the instructions does not exist, or `inst` is a terminator or already stands
    /// there.
    #[track_caller]
    pub fn sink(&mut self, inst: Inst, to: Inst) {
        let from = self.follower(inst);
        self.act(ActionKind::Sink { inst, from, to });
    }

    /// Replaces one operand by a value that is equal at this use.
    ///
    /// # Panics
    /// When the operand does not exist, or the types differ.
    #[track_caller]
    pub fn replace_operand(&mut self, inst: Inst, index: usize, after: Value) {
        let before = self.function.inst(inst).operand(index).expect("the operand exists");
        self.act(ActionKind::ReplaceOperand { inst, index: index as u32, before, after });
    }

    /// Replaces every use of `before` by `after`. The two values are equal wherever both are
    /// available.
    ///
    /// # Panics
    /// When the types differ, or the two values are the same.
    #[track_caller]
    pub fn replace_all(&mut self, before: Value, after: Value) {
        self.act(ActionKind::ReplaceAll { before, after });
    }

    /// Turns a branch or switch that always continues at one target into a jump to that target.
    ///
    /// # Panics
    /// When the instruction is neither a branch nor a switch, or lacks this target.
    #[track_caller]
    pub fn fold_branch(&mut self, inst: Inst, keep: u32) {
        self.act(ActionKind::FoldBranch { inst, keep });
    }

    /// Turns a call through a table into a call of the function that its index always selects.
    ///
    /// # Panics
    /// When the instruction is no call through a table.
    #[track_caller]
    pub fn resolve_call(&mut self, inst: Inst, func: Func) {
        self.act(ActionKind::ResolveCall { inst, func });
    }

    /// Puts a copy of a version of another function in the place of a call of that function.
    /// Returns the copy. Cost: linear in the callee.
    ///
    /// # Panics
    /// When the instruction is no direct call with the signature of the callee, or the callee has
    /// OSR points.
    #[track_caller]
    pub fn inline(&mut self, call: Inst, callee: &Function) -> InlinedBody {
        let body = InlinedBody::new(self.function, callee);
        self.act(ActionKind::Inline { call, body: Box::new(body.clone()) });
        body
    }

    /// Inserts a new block on an edge and returns it.
    ///
    /// # Panics
    /// When the edge does not exist.
    #[track_caller]
    pub fn split_edge(&mut self, edge: Edge) -> Block {
        let (block, jump) = (self.function.family().new_block(), self.function.family().new_inst());
        self.act(ActionKind::SplitEdge { edge, block, jump });
        block
    }

    /// Inserts a new block on several edges that lead to one block, and returns the new block.
    ///
    /// # Panics
    /// When `edges` is empty, lists an edge twice, or has edges to different blocks.
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

    /// Redirects an edge past its target block, to the block that this block jumps to
    /// ([`ActionKind::Redirect`] gives the conditions).
    ///
    /// # Panics
    /// When the edge cannot be redirected.
    #[track_caller]
    pub fn redirect(&mut self, edge: Edge) {
        let past = self.function.target(edge).block;
        self.act(ActionKind::Redirect { edge, past });
    }

    /// Appends to a block its only successor. The successor must have no other predecessor and no
    /// parameters.
    ///
    /// # Panics
    /// When the block has no such successor.
    #[track_caller]
    pub fn merge_blocks(&mut self, into: Block) {
        let jump = self.function.terminator(into);
        let from = self.function.successors(into).first().expect("the block has a successor").block;
        self.act(ActionKind::MergeBlocks { into, from, jump });
    }

    /// Removes blocks to which no edge from outside leads.
    ///
    /// # Panics
    /// When an edge from outside leads to one of the blocks, or code outside uses a value defined
    /// in them.
    #[track_caller]
    pub fn remove_unreachable(&mut self, blocks: &[Block]) {
        self.act(ActionKind::RemoveUnreachable { blocks: blocks.to_vec() });
    }

    /// Appends a parameter to a block, with one argument for every edge that leads to the block.
    /// Returns the parameter.
    ///
    /// # Panics
    /// When `args` does not list exactly these edges, or the type of an argument differs.
    #[track_caller]
    pub fn add_block_param(&mut self, block: Block, ty: Type, args: &[(Edge, Value)]) -> Value {
        let param = self.function.family().new_value();
        self.act(ActionKind::AddBlockParam { block, param, ty, args: args.to_vec() });
        param
    }

    /// Removes an unused parameter. A use as its own argument around a loop does not count.
    ///
    /// # Panics
    /// When the parameter is used, or the block is the entry.
    #[track_caller]
    pub fn remove_block_param(&mut self, block: Block, index: usize) {
        let param = self.function.block_params(block)[index];
        self.act(ActionKind::RemoveBlockParam { block, param, index: index as u32 });
    }

    /// Removes parameters and instructions that only each other use. Single removals would each
    /// wait for another removal. Where single removals suffice, passes should prefer them.
    ///
    /// # Panics
    /// When one of them has another use, is a terminator, or is a parameter of the entry.
    #[track_caller]
    pub fn remove_dead(&mut self, params: &[(Block, Value)], insts: &[Inst]) {
        self.act(ActionKind::RemoveDead { params: params.to_vec(), insts: insts.to_vec() });
    }

    #[track_caller]
    fn follower(&self, inst: Inst) -> Inst {
        self.function
            .next_inst(inst)
            .unwrap_or_else(|| panic!("{inst} is a terminator and cannot be deleted or moved"))
    }

    /// Checks, performs and records one action.
    #[track_caller]
    fn act(&mut self, kind: ActionKind) {
        let stamp = self.function.stamp();
        let (pass, rule, rewrite) = self.origin;
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
        let origin = Origin { pass, rule, rewrite, site: Location::caller() };
        self.log.push(Action { kind, stamp, origin });
    }
}
