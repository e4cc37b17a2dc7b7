//! Continuations: checks the claim that a function is the code of versions behind the frames that
//! an entry lands in ([`ContinuationClaim`]). The relation follows [`super::copy`], with one
//! environment for each block.
//!
//! The entry block executes claimed steps and all replays of the entry, and nothing in front of
//! them. Behind them, the environment is the assignments of the frames. Every reachable block is
//! walked once, beside the code of the version of its frame:
//!
//! - An instruction that stands for an instruction of the version has its opcode, type and
//!   immediate, and its operands and results under the environment. From then on, the results hold
//!   the contents of the version's results.
//! - An instruction of the version without a copy has no effect and cannot trap. Its results leave
//!   the environment.
//! - A terminator leads to blocks at the starts of the original's targets. A jump may stand for a
//!   branch that constants decide ([`Decided`]). In the place of a `return` of a frame with a
//!   waiting caller, a jump leads behind the caller's call. In the place of a `return` of the
//!   outermost frame may be a jump to a block that returns its parameters.
//! - Where several frames are, no instruction is an assumption or an OSR point.
//! - A jump that stands for nothing leads to a block at the same place. These jumps form no cycle.
//! - On each edge, the environment of its target block follows. A value of the function that holds
//!   a version's value there is an argument of the edge, or held this value before. The arguments
//!   of the original bind the parameters of its block, and the operands of a `return` the results
//!   of the call.
//!
//! *Why this suffices.* By induction over a run of the function: the frames that have not returned
//! are at the place of the block, or wait within their calls. Each value of the function in the
//! environment has the contents of the version's value that it stands for. A value of the function
//! changes only at its definition. A parameter is defined on an edge, which the check of the edge
//! reads. The result of an instruction enters the environment there, and is in no environment at
//! the start of its own block. The first path to the block has not defined it, and the checks of
//! the edges of that path hand on defined values alone. Types need no check: operations of one
//! opcode and type on operands of the same types have results of the same types. The run makes
//! progress, since between two jumps that stand for nothing, some instruction of the versions is
//! executed or passed over. It takes no edge that `Decided` rules out, since it is the rest of a
//! run of the version.
//!
//! Cost: linear in the claim, but for lookups; an environment counts once for each edge to its
//! block.

use super::Checked;
use cranelift_entity::EntityRef;
use ir::decided::Decided;
use ir::{Block, Edge, Function, Imm, Inst, Opcode, Target, Value, ValueDef};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use transition::copy::{ContinuationClaim, Environment, FrameBlock};
use transition::frames::FramePlace;
use transition::mapping::{Assign, Entry, Operand, Replay};

/// The version of a frame that an entry lands in.
#[derive(Clone, Copy)]
pub struct LandedVersion<'e> {
    /// The version.
    pub version: &'e Function,
    /// For an instrumented version: the version without OSR points, and the map from each copied
    /// instruction to its original. Constants decide the branches of the version without points.
    /// The caller answers for this.
    pub without_points: Option<WithoutPoints<'e>>,
}

/// A frame that an entry lands in: its version, its place, and what it is assigned.
pub(super) type LandedFrame<'e> = (LandedVersion<'e>, FramePlace, &'e [Assign]);

/// A version without the OSR points of an instrumented version, and the map from each copied
/// instruction to its original.
pub type WithoutPoints<'e> = (&'e Function, &'e dyn Fn(Inst) -> Option<Inst>);

/// A continuation, as the checker has accepted it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedFrames {
    origins: BTreeMap<Inst, (usize, Inst)>,
}

impl CopiedFrames {
    /// The instructions that stand for others, each with the frame and the instruction of its
    /// version.
    pub fn into_origins(self) -> BTreeMap<Inst, (usize, Inst)> {
        self.origins
    }
}

/// Why a function is no continuation as claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContinuationFault {
    /// The parameters of the function differ from the entry, its results differ from the outermost
    /// frame, or the frames are not the frames of an entry.
    Signature,
    /// An instruction of the entry block is not the next step or replay of the entry.
    Compensation(Inst),
    /// A reachable block has no claim, or its claim names a missing place or missing values.
    Unclaimed(Block),
    /// An instruction differs from its original, or instructions in front of it are missing.
    Differs(Inst),
    /// An edge leads elsewhere than the original's edge, or hands over other values.
    Leads(Inst),
    /// Jumps form a cycle in which nothing is executed.
    Stuck(Block),
}

impl fmt::Display for ContinuationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContinuationFault::Signature => f.write_str("it has another signature than the entry"),
            ContinuationFault::Compensation(inst) => write!(f, "{inst} is no part of the entry"),
            ContinuationFault::Unclaimed(block) => write!(f, "nothing is claimed of {block}"),
            ContinuationFault::Differs(inst) => write!(f, "{inst} differs from the original"),
            ContinuationFault::Leads(inst) => write!(f, "{inst} leads elsewhere than the original"),
            ContinuationFault::Stuck(block) => write!(f, "jumps lead from {block} back to it"),
        }
    }
}

impl std::error::Error for ContinuationFault {}

/// Checks that a function is the code behind the frames of an entry from `source`, as claimed.
/// `versions` are the versions of the frames, the innermost first. The verifier has accepted the
/// function and the versions of the entry; the checker has accepted the entry.
///
/// # Errors
/// The first difference.
pub fn continuation(
    function: &Function,
    source: &Function,
    versions: &[LandedVersion<'_>],
    entry: &Entry,
    claim: &ContinuationClaim,
) -> Result<Checked<CopiedFrames>, ContinuationFault> {
    if versions.len() != entry.activations() {
        return Err(ContinuationFault::Signature);
    }
    let walk = walked(function, source, versions, entry, claim, BTreeSet::new())?;
    Ok(Checked::accepted(CopiedFrames { origins: walk.origins }))
}

/// The states of the innermost frame's version before instructions of a continuation, by
/// instruction: its place, and by value of the continuation the values that it holds. Replays, what
/// is in front of them, and unreachable code have none.
pub(super) type VersionStates = BTreeMap<Inst, (Inst, BTreeMap<Value, Vec<Value>>)>;

/// The walk over a continuation, which has found no fault.
pub(super) fn walked<'a>(
    function: &'a Function,
    source: &'a Function,
    versions: &[LandedVersion<'a>],
    entry: &'a Entry,
    claim: &'a ContinuationClaim,
    asked: BTreeSet<Inst>,
) -> Result<ContinuationWalk<'a>, ContinuationFault> {
    let frames = versions.iter().zip(entry.places().zip(entry.assign_lists()));
    let frames = frames.map(|(version, (at, assigns))| (*version, at, assigns)).collect();
    let mut walk = ContinuationWalk::new(function, source, frames, entry, claim, asked);
    walk.signature()?;
    walk.claims()?;
    walk.run()?;
    walk.progress()?;
    Ok(walk)
}

/// What a check of a part of the function finds.
pub(super) type Verified = Result<(), ContinuationFault>;

/// A place in the code of a frame's version.
type Place = (usize, Inst);

pub(super) struct ContinuationWalk<'a> {
    function: &'a Function,
    source: &'a Function,
    entry: &'a Entry,
    frames: Vec<LandedFrame<'a>>,
    claim: &'a ContinuationClaim,
    /// By frame: the edges of its version that runs take, once they are known.
    decided: Vec<OnceCell<Decided>>,
    origins: BTreeMap<Inst, Place>,
    /// Blocks that execute nothing, each with the target of its jump.
    idle: BTreeMap<Block, Block>,
    /// The instructions of the function before which states are to be found.
    asked: BTreeSet<Inst>,
    pub(super) states: VersionStates,
}

impl<'a> ContinuationWalk<'a> {
    pub(super) fn new(
        function: &'a Function,
        source: &'a Function,
        frames: Vec<LandedFrame<'a>>,
        entry: &'a Entry,
        claim: &'a ContinuationClaim,
        asked: BTreeSet<Inst>,
    ) -> ContinuationWalk<'a> {
        let decided = frames.iter().map(|_| OnceCell::new()).collect();
        let (origins, idle, states) = Default::default();
        ContinuationWalk {
            function,
            source,
            entry,
            frames,
            claim,
            decided,
            origins,
            idle,
            asked,
            states,
        }
    }

    fn version(&self, frame: usize) -> &'a Function {
        self.frames[frame].0.version
    }

    fn claimed(&self, block: Block) -> Result<&'a FrameBlock, ContinuationFault> {
        self.claim.blocks.get(&block).ok_or(ContinuationFault::Unclaimed(block))
    }

    /// Checks the parameters, the results, and that the frames stand somewhere.
    pub(super) fn signature(&self) -> Verified {
        let (source, frames, requires) = (self.source, &self.frames, &self.entry.requires);
        let stands = |(index, (landed, at, _)): (usize, &LandedFrame<'_>)| {
            let waits = matches!(at, FramePlace::Within(_));
            landed.version.has_inst(at.inst()) && waits == (index > 0)
        };
        let params = self.function.block_params(self.function.entry());
        let is_of = |(param, of): (&Value, &Value)| {
            source.has_value(*of) && self.function.value_type(*param) == source.value_type(*of)
        };
        let results = |version: &'a Function| &version.signature().results;
        let are_right =
            frames.last().is_some_and(|outer| results(outer.0.version) == results(self.function))
                && frames.iter().enumerate().all(stands)
                && params.len() == requires.len()
                && params.iter().zip(requires).all(is_of);
        if are_right { Ok(()) } else { Err(ContinuationFault::Signature) }
    }

    /// Checks that places and values of the claim exist, also for unreachable blocks.
    fn claims(&self) -> Verified {
        let frames = &self.frames;
        for (block, FrameBlock { frame, at, values }) in &self.claim.blocks {
            let is_end = *frame == frames.len();
            let is_place = frames.get(*frame).is_some_and(|landed| landed.0.version.has_inst(*at));
            let exist = values.values().all(|value| self.function.has_value(*value));
            if !exist || !(is_end || is_place) {
                return Err(ContinuationFault::Unclaimed(*block));
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Verified {
        let start = self.function.entry();
        let mut insts = self.function.block_insts(start);
        let at = self.frames[0].1.inst();
        let mut early = Vec::new();
        let values = self.compensation(&mut insts, &mut early)?;
        // Steps change nothing, so the version is at its landing point still. A replay does.
        if self.entry.replays.is_empty() {
            early.iter().for_each(|(inst, values)| self.note(*inst, at, values));
        }
        self.code(start, insts, 0, at, values)?;
        let mut seen = BTreeSet::from([start]);
        let mut open = vec![start];
        while let Some(block) = open.pop() {
            for target in self.function.successors(block) {
                if seen.insert(target.block) {
                    self.block(target.block)?;
                    open.push(target.block);
                }
            }
        }
        Ok(())
    }

    /// Checks the compensation code, and returns the environment behind it. Appends to `early` the
    /// environments before the steps that were asked for.
    pub(super) fn compensation(
        &self,
        insts: &mut impl Iterator<Item = Inst>,
        early: &mut Vec<(Inst, Environment)>,
    ) -> Result<Environment, ContinuationFault> {
        let last = self.function.terminator(self.function.entry());
        let params = self.function.block_params(self.function.entry());
        let mut held: BTreeMap<Operand, Value> = self
            .entry
            .requires
            .iter()
            .zip(params)
            .map(|(of, param)| (Operand::Source(*of), *param))
            .collect();
        let mut next = || insts.next().ok_or(ContinuationFault::Compensation(last));
        for index in &self.claim.steps {
            let inst = next()?;
            if self.asked.contains(&inst) {
                early.push((inst, self.assigned(&held)));
            }
            let fault = ContinuationFault::Compensation(inst);
            let step = self.entry.steps.get(*index as usize).ok_or(fault)?;
            let imm = if step.opcode == Opcode::Const { Imm::Bits(step.bits) } else { Imm::None };
            let data = self.function.inst(inst);
            let is_it = (data.opcode, data.ty, data.imm) == (step.opcode, step.ty, imm)
                && are_held(&held, &step.args, &data.args);
            let [result] = data.results[..] else { return Err(fault) };
            if !is_it {
                return Err(fault);
            }
            held.insert(Operand::Step(*index), result);
        }
        for Replay { opcode, ty, imm, args, .. } in &self.entry.replays {
            let inst = next()?;
            let data = self.function.inst(inst);
            let is_it = (data.opcode, data.ty, data.imm) == (*opcode, *ty, *imm)
                && are_held(&held, args, &data.args);
            if !is_it {
                return Err(ContinuationFault::Compensation(inst));
            }
        }
        Ok(self.assigned(&held))
    }

    /// The values that the entry assigns, as far as the function holds what it reads.
    fn assigned(&self, held: &BTreeMap<Operand, Value>) -> Environment {
        let of = |(frame, assigns): (usize, &'a [Assign])| {
            let given = assigns
                .iter()
                .filter_map(move |assign| Some(((frame, assign.value), *held.get(&assign.from)?)));
            given.collect::<Vec<_>>()
        };
        self.entry.assign_lists().enumerate().flat_map(of).collect()
    }

    fn block(&mut self, block: Block) -> Verified {
        let FrameBlock { frame, at, values } = self.claimed(block)?;
        if *frame == self.frames.len() {
            return self.returns(block);
        }
        self.code(block, self.function.block_insts(block), *frame, *at, values.clone())
    }

    /// Checks a block behind the `return` of the outermost frame: it returns its parameters.
    fn returns(&self, block: Block) -> Verified {
        let last = self.function.terminator(block);
        let data = self.function.inst(last);
        let is_alone = self.function.first_inst(block) == last
            && data.opcode == Opcode::Return
            && data.args[..] == *self.function.block_params(block);
        if is_alone { Ok(()) } else { Err(ContinuationFault::Unclaimed(block)) }
    }

    /// Checks the instructions of a block from a place on.
    fn code(
        &mut self,
        block: Block,
        insts: impl Iterator<Item = Inst>,
        frame: usize,
        start: Inst,
        mut values: Environment,
    ) -> Verified {
        let version = self.version(frame);
        let mut at = start;
        for inst in insts {
            let copy = self.function.inst(inst);
            let Some(of) = self.claim.insts.get(&inst).copied() else {
                self.note(inst, at, &values);
                return self.idle_jump(block, inst, frame, start, at, values);
            };
            // A run that has just landed has not passed over anything.
            let is_landing = block == self.function.entry() && at == start;
            if is_landing {
                self.note(inst, at, &values);
            }
            self.pass(frame, at, of, &mut values).ok_or(ContinuationFault::Differs(inst))?;
            if !is_landing {
                self.note(inst, of, &values);
            }
            self.origins.insert(inst, (frame, of));
            let data = version.inst(of);
            if self.frames.len() > 1 && leaves(data.opcode) {
                return Err(ContinuationFault::Differs(inst));
            }
            if copy.opcode.is_terminator() {
                return self.end(inst, frame, of, &values);
            }
            let is_same = (copy.opcode, copy.ty, copy.imm) == (data.opcode, data.ty, data.imm)
                && are_values(frame, &values, &data.args, &copy.args);
            let results = data.results.iter().map(|of| (frame, *of));
            values.extend(results.zip(copy.results.iter().copied()));
            at = version
                .next_inst(of)
                .filter(|_| is_same)
                .ok_or(ContinuationFault::Differs(inst))?;
        }
        Err(ContinuationFault::Unclaimed(block))
    }

    /// Notes the state of the version before an instruction of the function, if it was asked for.
    fn note(&mut self, inst: Inst, at: Inst, values: &Environment) {
        if self.asked.contains(&inst) {
            let mut held = BTreeMap::<Value, Vec<Value>>::new();
            values.iter().for_each(|((_, of), by)| held.entry(*by).or_default().push(*of));
            self.states.insert(inst, (at, held));
        }
    }

    /// Passes over the instructions of a version from one to another of the same block, which the
    /// function leaves out. `None` if runs may not skip one of them.
    fn pass(&self, frame: usize, mut at: Inst, to: Inst, values: &mut Environment) -> Option<()> {
        let version = self.version(frame);
        while at != to {
            let data = version.inst(at);
            let may_go =
                data.opcode.is_effect_free() && !(data.opcode.can_trap() && version.may_trap(at));
            for result in &data.results {
                values.remove(&(frame, *result));
            }
            at = version.next_inst(at).filter(|_| may_go)?;
        }
        Some(())
    }

    /// Checks a jump that stands for nothing, in a block that began at `start` and is at `at` now.
    fn idle_jump(
        &mut self,
        block: Block,
        inst: Inst,
        frame: usize,
        start: Inst,
        at: Inst,
        mut values: Environment,
    ) -> Verified {
        let copy = self.function.inst(inst);
        let [target] = &copy.targets[..] else { return Err(ContinuationFault::Differs(inst)) };
        let claimed = self.claimed(target.block)?;
        if copy.opcode != Opcode::Jump || claimed.frame != frame {
            return Err(ContinuationFault::Differs(inst));
        }
        self.pass(frame, at, claimed.at, &mut values).ok_or(ContinuationFault::Differs(inst))?;
        if claimed.at == start {
            self.idle.insert(block, target.block);
        }
        self.edge(inst, target, &values, &BTreeMap::new())
    }

    /// Checks a terminator that stands for the terminator of a frame's version at `at`.
    fn end(&self, inst: Inst, frame: usize, at: Inst, values: &Environment) -> Verified {
        let (copy, of) = (self.function.inst(inst), self.version(frame).inst(at));
        let outer = self.frames.get(frame + 1);
        if let (Opcode::Return, Some((outer, at, _))) = (of.opcode, outer) {
            let call = at.inst();
            let behind = outer.version.next_inst(call).map(|next| (frame + 1, next));
            let results = outer.version.inst(call).results.iter();
            let bound = results.map(|r| (frame + 1, *r)).zip(of.args.iter().map(|v| (frame, *v)));
            return self.jumps(inst, behind, &bound.collect(), values);
        }
        if (copy.opcode, of.opcode) == (Opcode::Jump, Opcode::Return) {
            let [target] = &copy.targets[..] else { return Err(ContinuationFault::Differs(inst)) };
            let is_end = self.claimed(target.block)?.frame == self.frames.len();
            let is_same = is_end && are_values(frame, values, &of.args, &target.args);
            return if is_same { Ok(()) } else { Err(ContinuationFault::Leads(inst)) };
        }
        if copy.opcode == Opcode::Jump && of.targets.len() > 1 {
            let index = self.only_edge(frame, at).ok_or(ContinuationFault::Differs(inst))?;
            let (place, bound) = self.bound(frame, &of.targets[index]);
            return self.jumps(inst, place, &bound, values);
        }
        let is_same = (copy.opcode, copy.ty, copy.imm) == (of.opcode, of.ty, of.imm)
            && are_values(frame, values, &of.args, &copy.args)
            && copy.targets.len() == of.targets.len();
        if !is_same {
            return Err(ContinuationFault::Differs(inst));
        }
        for (index, target) in of.targets.iter().enumerate() {
            let (place, bound) = self.bound(frame, target);
            self.leads(inst, &copy.targets[index], place, &bound, values)?;
        }
        Ok(())
    }

    /// The place that a target of a version leads to, and the values that it binds there.
    fn bound(&self, frame: usize, target: &Target) -> (Option<Place>, Bound) {
        let version = self.version(frame);
        let params = version.block_params(target.block).iter().map(|param| (frame, *param));
        let bound = params.zip(target.args.iter().map(|arg| (frame, *arg))).collect();
        (Some((frame, version.first_inst(target.block))), bound)
    }

    /// The index of the only edge of a branch that runs take.
    fn only_edge(&self, frame: usize, at: Inst) -> Option<usize> {
        let landed = &self.frames[frame].0;
        let (version, inst) = match landed.without_points {
            None => (landed.version, at),
            Some((version, of)) => (version, of(at)?),
        };
        let decided = self.decided[frame].get_or_init(|| Decided::new(version));
        let count = landed.version.inst(at).targets.len();
        let mut ways =
            (0..count).filter(|index| decided.may_take(Edge { inst, index: *index as u32 }));
        ways.next().filter(|_| ways.next().is_none())
    }

    /// Checks a jump that stands for an edge to a place, which binds values there.
    fn jumps(
        &self,
        inst: Inst,
        place: Option<Place>,
        bound: &Bound,
        values: &Environment,
    ) -> Verified {
        let copy = self.function.inst(inst);
        match &copy.targets[..] {
            [target] if copy.opcode == Opcode::Jump => {
                self.leads(inst, target, place, bound, values)
            }
            _ => Err(ContinuationFault::Differs(inst)),
        }
    }

    /// Checks an edge that stands for one to a place, which binds values there.
    fn leads(
        &self,
        inst: Inst,
        target: &Target,
        place: Option<Place>,
        bound: &Bound,
        values: &Environment,
    ) -> Verified {
        let claimed = self.claimed(target.block)?;
        match place == Some((claimed.frame, claimed.at)) {
            true => self.edge(inst, target, values, bound),
            false => Err(ContinuationFault::Leads(inst)),
        }
    }

    /// Checks that the environment behind an edge follows from that in front of it.
    fn edge(&self, inst: Inst, target: &Target, values: &Environment, bound: &Bound) -> Verified {
        let follows = |(of, held): (&(usize, Value), &Value)| {
            let before = bound.get(of).unwrap_or(of);
            let now = match self.function.value_def(*held) {
                ValueDef::Param(block, index) if block == target.block => {
                    target.args.get(index as usize)
                }
                _ => Some(held),
            };
            now.is_some() && values.get(before) == now
        };
        match self.claimed(target.block)?.values.iter().all(follows) {
            true => Ok(()),
            false => Err(ContinuationFault::Leads(inst)),
        }
    }

    /// Checks that jumps that stand for nothing form no cycle.
    fn progress(&self) -> Verified {
        let mut done = vec![false; self.function.block_bound()];
        for start in self.idle.keys() {
            let mut way = BTreeSet::new();
            let mut at = Some(start);
            while let Some(block) = at.filter(|block| !done[block.index()]) {
                if !way.insert(*block) {
                    return Err(ContinuationFault::Stuck(*block));
                }
                at = self.idle.get(block);
            }
            way.iter().for_each(|block| done[block.index()] = true);
        }
        Ok(())
    }
}

/// Whether an instruction may leave the version. Its exit describes a single activation, so it must
/// not stand where other activations wait.
fn leaves(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Assume | Opcode::OsrTest | Opcode::OsrExit)
}

/// The bindings of an edge: values behind it, each with the value in front.
type Bound = BTreeMap<(usize, Value), (usize, Value)>;

/// Whether values hold operands of compensation code.
fn are_held(held: &BTreeMap<Operand, Value>, operands: &[Operand], values: &[Value]) -> bool {
    let is = |(operand, value): (&Operand, &Value)| held.get(operand) == Some(value);
    operands.len() == values.len() && operands.iter().zip(values).all(is)
}

/// Whether `values` hold the values `of` of a frame's version.
fn are_values(frame: usize, held: &Environment, of: &[Value], values: &[Value]) -> bool {
    let is = |(of, value): (&Value, &Value)| held.get(&(frame, *of)) == Some(value);
    of.len() == values.len() && of.iter().zip(values).all(is)
}
