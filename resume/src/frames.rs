//! Continuations of several activations: the code behind all frames of an entry, as one function.
//!
//! Example: an entry lands in `@g` before `i5`, and in `@f` within `i7`, a call of `@g`. The
//! function runs the compensation code, the rest of `@g` from `i5` on, and with its results the
//! rest of `@f` behind `i7`. The rests are joined like inlining joins a callee: a `return` of the
//! inner rest is a jump to the outer rest. So a transition into native code needs no frame of the
//! stack for each activation, and no call.

use crate::claim::Draft;
use crate::continuation::{Continuation, ContinuationError, judged, rest_of};
use check::{CheckedEntry, LandedVersion};
use ir::edit::{Editor, Fuel, InlinedBody, Pass, apply};
use ir::{
    FrameStates, Func, Function, FunctionBuilder, Imm, Inst, InstSpec, Opcode, Point, Signature,
    Type, Value,
};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::BTreeMap;
use transition::copy::Environment;
use transition::frames::FramePlace;
use transition::mapping::{Assign, Entry, Operand, Replay, Step};

/// Makes a function of the code behind the frames of an entry from `source` to these versions, the
/// innermost first. Cost: near linear in the code that is copied.
///
/// # Errors
/// As [`crate::continuation`].
pub(crate) fn joined(
    name: &str,
    source: &Function,
    versions: &[&Function],
    entry: CheckedEntry<'_>,
) -> Result<Continuation, ContinuationError> {
    let entry = entry.entry();
    let frames = entry.places().zip(entry.assign_lists()).zip(versions);
    let rests = frames.map(|((at, assigns), version)| Rest::new(at, assigns, version));
    let rests: Vec<Rest> = rests.collect::<Result<_, _>>()?;
    let (joined, calls) = compensated(name, source, entry, &rests)?;
    let start = behind_steps(&joined, entry);
    let pass = JoinRests { calls, rests: &rests, draft: RefCell::default() };
    let (function, _) = apply(&joined, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
    let steps = (0..).take(entry.steps.len()).collect();
    let draft = Draft { steps, ..pass.draft.into_inner() };
    let taken_out = FrameStates::default();
    let claim = draft.clone().claim(&function, versions, start, &taken_out);
    let (origins, copied, provided) = Default::default();
    let made = Continuation { function, origins, copied, claim, draft, provided, taken_out };
    let landed: Vec<LandedVersion<'_>> =
        versions.iter().map(|version| LandedVersion { version, without_points: None }).collect();
    judged(made, source, &landed, entry)
}

/// The environment behind the compensation code.
fn behind_steps(joined: &Function, entry: &Entry) -> Environment {
    let start = joined.entry();
    let params = joined.block_params(start);
    let results = joined.block_insts(start).take(entry.steps.len());
    let results: Vec<Value> = results.map(|inst| joined.inst(inst).results[0]).collect();
    let required: BTreeMap<Value, Value> =
        entry.requires.iter().copied().zip(params.iter().copied()).collect();
    let held = |operand: Operand| match operand {
        Operand::Source(value) => required[&value],
        Operand::Step(index) => results[index as usize],
    };
    let frames = entry.assign_lists().enumerate();
    let assigns = frames.flat_map(|(frame, list)| list.iter().map(move |a| (frame, a)));
    assigns.map(|(frame, assign)| ((frame, assign.value), held(assign.from))).collect()
}

/// The code of one frame, as a function of the values assigned to it, and behind a call of the
/// results.
struct Rest {
    code: Continuation,
    /// The values that its parameters stand for.
    values: Vec<Value>,
    /// Where it begins.
    at: Inst,
}

impl Rest {
    fn new(
        place: FramePlace,
        assigns: &[Assign],
        version: &Function,
    ) -> Result<Rest, ContinuationError> {
        let at = place.inst();
        if !version.has_inst(at) {
            return Err(ContinuationError::NoSuchPoint(Point::before(at)));
        }
        let mut values: Vec<Value> = assigns.iter().map(|assign| assign.value).collect();
        let target = match place {
            FramePlace::Before(point) => point,
            FramePlace::Within(call) => {
                values.extend_from_slice(&version.inst(call).results);
                let behind = version.next_inst(call);
                Point::before(behind.ok_or(ContinuationError::NoSuchPoint(Point::before(call)))?)
            }
        };
        let mut assigns: Vec<Assign> = values
            .iter()
            .map(|value| Assign { value: *value, from: Operand::Source(*value) })
            .collect();
        assigns.sort_unstable();
        let entry = Entry {
            target,
            steps: Vec::new(),
            replays: Vec::new(),
            assigns,
            requires: values.clone(),
            kept: Vec::new(),
            inner: Box::default(),
        };
        let name = format!("{}.at.{at}", version.name());
        let code = rest_of(&name, version, version, &entry, None)?;
        Ok(Rest { code, values, at: target.inst() })
    }
}

/// The function that runs the compensation code and calls the rests, and these calls.
fn compensated(
    name: &str,
    source: &Function,
    entry: &Entry,
    rests: &[Rest],
) -> Result<(Function, Vec<Inst>), ContinuationError> {
    let ty = |value: &Value| match source.has_value(*value) {
        true => Ok(source.value_type(*value)),
        false => Err(ContinuationError::NotInSource(*value)),
    };
    let params: Vec<Type> = entry.requires.iter().map(ty).collect::<Result<_, _>>()?;
    let results = rests.last().map(|rest| rest.code.function.signature().results.clone());
    let signature = Signature {
        params: params.iter().copied().collect(),
        results: results.unwrap_or_default(),
    };
    let mut builder = FunctionBuilder::new(name, signature);
    let block = builder.create_block();
    let taken: Vec<Value> = params.iter().map(|ty| builder.append_param(block, *ty)).collect();
    builder.switch_to(block);
    let mut code = Compensation::new(entry, taken);
    code.emit(&mut builder)?;
    // The rests take the place of the calls, so these may name any function.
    let anyone = Func::from_u32(0);
    let mut given: SmallVec<[Value; 4]> = SmallVec::new();
    for (assigns, rest) in entry.assign_lists().zip(rests) {
        let mut args: SmallVec<[Value; 8]> =
            assigns.iter().map(|a| code.value(a.from)).collect::<Result<_, _>>()?;
        args.extend(given);
        let wanted = rest.code.function.signature();
        let values = assigns.iter().map(|assign| assign.value);
        for ((value, arg), ty) in values.zip(&args).zip(&wanted.params) {
            let given = builder.function().value_type(*arg);
            if given != *ty {
                return Err(ContinuationError::WrongType { value, ty: *ty, given });
            }
        }
        let call = builder.insert(InstSpec::call(anyone, &args, &wanted.results));
        given = builder.function().inst(call).results.iter().copied().collect();
    }
    builder.ret(&given);
    let function = builder.finish().expect("its block ends in a return").function;
    let is_call = |inst: &Inst| function.inst(*inst).opcode == Opcode::Call;
    let calls = function.all_insts().filter(is_call).collect();
    Ok((function, calls))
}

/// The compensation code of an entry.
pub(crate) struct Compensation<'e> {
    entry: &'e Entry,
    /// The parameters.
    taken: Vec<Value>,
    /// The results of the steps so far.
    steps: Vec<Value>,
}

impl<'e> Compensation<'e> {
    /// The code as a function of these values, which are those that the entry requires.
    pub(crate) fn new(entry: &'e Entry, taken: Vec<Value>) -> Compensation<'e> {
        Compensation { entry, taken, steps: Vec::new() }
    }

    pub(crate) fn emit(&mut self, builder: &mut FunctionBuilder) -> Result<(), ContinuationError> {
        for (index, step) in self.entry.steps.iter().enumerate() {
            if step.allocator().is_some() {
                return Err(ContinuationError::MakesObject { index });
            }
            let args: SmallVec<[Value; 3]> =
                step.args.iter().map(|arg| self.value(*arg)).collect::<Result<_, _>>()?;
            let types: SmallVec<[Type; 3]> =
                args.iter().map(|value| builder.function().value_type(*value)).collect();
            let Step { opcode, ty, .. } = *step;
            if !opcode.allows_type(ty) || !step.accepts(&types) {
                return Err(ContinuationError::MalformedStep { index });
            }
            let imm = if opcode == Opcode::Const { Imm::Bits(step.bits) } else { Imm::None };
            self.steps.push(builder.insert_value(InstSpec::new(opcode, ty, imm, &args)));
        }
        for Replay { opcode, ty, imm, args, .. } in &self.entry.replays {
            let args: SmallVec<[Value; 3]> =
                args.iter().map(|arg| self.value(*arg)).collect::<Result<_, _>>()?;
            builder.insert(InstSpec::new(*opcode, *ty, *imm, &args));
        }
        Ok(())
    }

    pub(crate) fn value(&self, operand: Operand) -> Result<Value, ContinuationError> {
        match operand {
            Operand::Source(value) => {
                let at = self.entry.requires.iter().position(|other| *other == value);
                at.map(|at| self.taken[at]).ok_or(ContinuationError::NotRequired(value))
            }
            Operand::Step(index) => {
                let known = self.steps.get(index as usize).copied();
                known.ok_or(ContinuationError::NoSuchStep { index })
            }
        }
    }
}

/// Puts the rests in the place of the calls.
struct JoinRests<'r> {
    calls: Vec<Inst>,
    rests: &'r [Rest],
    draft: RefCell<Draft>,
}

impl Pass for JoinRests<'_> {
    fn name(&self) -> &'static str {
        "join_rests"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        if !ed.plan("rests") {
            return;
        }
        let mut draft = self.draft.borrow_mut();
        for (frame, (call, rest)) in self.calls.iter().zip(self.rests).enumerate() {
            let results = ed.func().inst(*call).results.clone();
            let body = ed.inline(*call, &rest.code.function);
            draft.add(frame, rest, &body);
            let behind = self.rests.get(frame + 1).map_or(rest.at, |outer| outer.at);
            draft.blocks.insert(body.rest, (frame + 1, behind));
            // The results of a call are the last parameters of the rest behind it.
            let outer = self.rests.get(frame + 1).into_iter();
            let values =
                outer.flat_map(|outer| &outer.values[outer.values.len() - results.len()..]);
            let params = results.iter().zip(values);
            draft.params.extend(params.map(|(param, of)| (*param, (frame + 1, *of))));
        }
    }
}

impl Draft {
    /// Adds the copy of a rest.
    fn add(&mut self, frame: usize, rest: &Rest, body: &InlinedBody) {
        let draft = &rest.code.draft;
        let function = &rest.code.function;
        let start = function.entry();
        let params = function.block_params(start).iter().zip(&rest.values);
        let params: BTreeMap<Value, Value> = params.map(|(param, of)| (*param, *of)).collect();
        for (of, copy) in &body.values {
            let known = draft.params.get(of).map(|(_, value)| value).or_else(|| params.get(of));
            if let Some(value) = known {
                self.params.insert(*copy, (frame, *value));
            }
        }
        for (of, copy) in &body.blocks {
            let at = draft.blocks.get(of).map_or(rest.at, |(_, at)| *at);
            self.blocks.insert(*copy, (frame, at));
        }
        for (of, copy) in &body.insts {
            if let Some(inst) = draft.insts.get(of) {
                self.insts.insert(*copy, *inst);
            }
        }
    }
}
