//! Native code of one function: its base, the optimized version, and the ways between them.

use super::complete::Dispatch;
use super::emit::UNTYPED;
use super::lower::{self, Input, Lowered, lower};
use super::{GENERATIONS, Made, Native, RowEvents, Tuning};
use crate::bytecode::Pc;
use crate::heap::OPERANDS;
use crate::interp::Machine;
use osier::check::Checked;
use osier::driver::{NoObserver, Recipe, Retry, StatePoints, Step, Vigilance, derive_with_states};
use osier::inlining::{CalleeLandings, InlinePlan, StatePlaces, inline};
use osier::interp::HostError;
use osier::ir::{
    FrameState, FrameStates, Func, Function, FunctionBuilder, Imm, InstSpec, Module, Opcode, Point,
    Type, Value, ValueDef,
};
use osier::jit::{
    Action, Callback, CallbackEnd, Condition, Continuation, Engine, FailedPoint, HotLoop,
    PointSpec, RunError, Tier, Tiering, Version,
};
use osier::landing::LandingRow;
use osier::osr::Level;
use osier::passes::{InlinePolicy, ObjectPlaces, ObjectPlan, Pipeline};
use osier::speculate::{Assumption, SpeculateError, Speculative};
use osier::tiers::{self, AskedFunction, RowError, TableUse, Tiered};
use osier::transition::VersionKey;
use osier::transition::mapping::Mapping;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By function: what the policy of a run with landing tables asks for ([`Tiered::asking`]).
pub(super) type Asked = Arc<Mutex<BTreeMap<Func, AskedFunction>>>;

/// The policy of a run with landing tables. A failed assumption about the kinds of operands leads
/// to a row that assumes the other kinds, or to this interpreter.
pub(super) fn with_tables(
    asked: &Asked,
    counts: &RowCounts,
    places: TableUse,
) -> Tiered<RowCounts> {
    let asked = Arc::clone(asked);
    let source =
        move |func: Func| asked.lock().unwrap_or_else(PoisonError::into_inner).get(&func).cloned();
    let policy = Tiered::new_observed(1, Pipeline::default(), counts.clone());
    policy.asking(source).entering(places)
}

/// Counts the events of rows, and collects what could not be made.
#[derive(Clone, Default, Debug)]
pub(super) struct RowCounts(Arc<Mutex<RowsSeen>>);

#[derive(Default, Debug)]
struct RowsSeen {
    events: RowEvents,
    /// The functions and rows that could not be made, each with the reason.
    refused: Vec<String>,
    /// The points whose tables have rows that assume.
    places: BTreeSet<(Func, Point)>,
    /// The versions that are such rows.
    versions: BTreeSet<VersionKey>,
}

impl RowCounts {
    fn seen(&self) -> MutexGuard<'_, RowsSeen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events so far.
    pub(super) fn events(&self) -> RowEvents {
        self.seen().events
    }

    /// The functions and rows that could not be made, each with the reason.
    pub(super) fn refused(&self) -> Vec<String> {
        self.seen().refused.clone()
    }

    /// Notes that a run has entered the middle of a loop.
    pub(super) fn entered(&self, place: HotLoop) {
        let mut seen = self.seen();
        seen.events.entered += u32::from(seen.places.contains(&(place.func, place.at)));
    }

    fn note(&self, func: Func, what: &dyn std::fmt::Display) {
        self.seen().refused.push(format!("{func}: {what}"));
    }
}

impl tiers::Observer for RowCounts {
    fn step(&mut self, _step: Option<Step>) {}

    fn begin(&mut self) {}

    fn compiled(&mut self, _made: tiers::Compiled) {}

    fn refused(&mut self, func: Func, error: &SpeculateError) {
        self.note(func, error);
    }

    fn without_row(&mut self, func: Func, _at: Point, error: &RowError) {
        self.note(func, error);
    }

    fn speculated(&mut self, func: Func, made: &Speculative) {
        made.dropped.iter().for_each(|(_, why)| self.note(func, why));
    }

    fn row(&mut self, func: Func, at: Point, made: &LandingRow) {
        let mut seen = self.seen();
        if made.exits.is_empty() {
            seen.events.plain += 1;
            return;
        }
        seen.events.made += 1;
        seen.places.insert((func, at));
        seen.versions.insert(VersionKey::of(&made.function));
    }

    fn linked(&mut self, _exit: FailedPoint<'_>, _at: Point, _row: usize) {
        self.seen().events.linked += 1;
    }

    fn failed(&mut self, at: FailedPoint<'_>) {
        let mut seen = self.seen();
        seen.events.left += u32::from(seen.versions.contains(&at.version.key()));
    }
}

/// The code of a function of the language.
#[derive(Debug)]
pub(super) struct Code {
    funcs: [Func; GENERATIONS],
    /// The generations begun.
    begun: usize,
    compiled: Option<Compiled>,
    /// The times that the last generation has left.
    exits: u32,
}

impl Code {
    pub(super) fn new(funcs: [Func; GENERATIONS]) -> Code {
        Code { funcs, begun: 0, compiled: None, exits: 0 }
    }

    pub(super) fn is_new(&self) -> bool {
        self.begun == 0
    }

    /// The function that calls lead to.
    fn func(&self) -> Func {
        self.funcs[self.begun.saturating_sub(1)]
    }

    /// The function to call, if it has native code.
    pub(super) fn native(&self) -> Option<Func> {
        self.compiled.as_ref().map(|compiled| compiled.func)
    }

    pub(super) fn compiled(&self) -> Option<&Compiled> {
        self.compiled.as_ref()
    }

    /// Whether code may be made anew.
    pub(super) fn has_next(&self) -> bool {
        self.compiled.is_some() && self.begun < GENERATIONS
    }

    /// Notes `exits` exits. Returns whether it is time for the next generation. Each waits twice as
    /// long as the one before, for the reasons to leave that the code does not know yet.
    pub(super) fn leaves_often(&mut self, exits: u32, most: u32) -> bool {
        self.exits += exits;
        self.exits >= most << self.begun.saturating_sub(1) && self.has_next()
    }
}

/// Native code, and the ways that lead there.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) func: Func,
    base: Arc<Function>,
    states: Arc<FrameStates>,
    /// The version, and the mapping from the base to it. `None` with landing tables: the policy
    /// makes the versions.
    code: Option<(Arc<Version>, Checked<Mapping>)>,
    /// By loop header: its point in the base.
    headers: BTreeMap<Pc, Point>,
}

impl Compiled {
    /// The point of a loop header in the base, and its frame state.
    pub(super) fn header(&self, pc: Pc) -> Option<(Point, &FrameState)> {
        let at = *self.headers.get(&pc)?;
        Some((at, self.states.get(at)?))
    }

    /// Whether the policy of landing tables makes the code.
    pub(super) fn has_tables(&self) -> bool {
        self.code.is_none()
    }

    /// Whether a value of the base is a constant, which an entry reads without the interpreter.
    pub(super) fn is_constant(&self, value: Value) -> bool {
        match self.base.value_def(value) {
            ValueDef::Result(inst, _) => self.base.inst(inst).constant().is_some(),
            ValueDef::Param(..) => false,
        }
    }
}

/// By function and loop header: the code for the loop, if any.
type KnownLoops = BTreeMap<(Func, Point), Option<Arc<Continuation>>>;

/// The continuations of loops, for the run to find. `None` where there is no entry.
#[derive(Clone, Default, Debug)]
pub(super) struct Loops(Arc<Mutex<KnownLoops>>);

impl Loops {
    /// The values that the continuation of a loop requires, which is made at the first question.
    /// `None` if there is no entry.
    pub(super) fn required(
        &self,
        engine: &Engine,
        code: &Compiled,
        place: HotLoop,
    ) -> Option<Vec<Value>> {
        let mut loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = loops.entry((place.func, place.at)).or_insert_with(|| {
            let (version, forward) = code.code.as_ref()?;
            let entry = forward.checked_entry(place.at)?;
            engine.continuation(&code.base, entry, version).ok()
        });
        made.as_ref().map(|made| made.requires().to_vec())
    }
}

impl Tiering for Loops {
    fn hot(
        &mut self,
        _: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(loops.get(&(at.func, at.at)).cloned().flatten())
    }
}

/// Whether a frame state is that of a loop header.
fn is_header(state: &FrameState) -> bool {
    state.pc & lower::HEADER != 0
}

/// By loop header: its point in a base with these states.
fn headers(states: &FrameStates) -> BTreeMap<Pc, Point> {
    let headers = states.noted().filter(|(_, state)| is_header(state));
    headers.map(|(at, state)| (state.pc & !lower::HEADER, at)).collect()
}

/// The passes of optimized code: the default ones, and ranges, which decide tests of overflow.
fn optimizing() -> Pipeline {
    osier::passes::parse("O1R").expect("named pipelines are known")
}

/// The places at which runs enter a base with these states, at loop headers, and leave for good.
fn places(states: &FrameStates) -> StatePlaces {
    let leaves = |(_, state): &(Point, &FrameState)| !is_header(state);
    StatePlaces {
        entrances: headers(states).values().copied().collect(),
        exits: states.noted().filter(leaves).map(|(at, _)| at).collect(),
    }
}

/// Ends the run with a failure.
fn failed(what: &dyn std::fmt::Display) -> CallbackEnd {
    HostError::failed(what.to_string()).into()
}

impl Machine {
    /// Makes the next generation of code of a function. Returns the functions that it calls. If
    /// there can be no code, the function of the IR calls the interpreter.
    pub(super) fn make_one(
        &mut self,
        back: &mut Callback<'_>,
        number: u32,
    ) -> Result<BTreeSet<u32>, CallbackEnd> {
        let Some(native) = &mut self.native else { return Ok(BTreeSet::new()) };
        let code = &mut native.codes[number as usize];
        let earlier = code.funcs[..code.begun].to_vec();
        code.begun += 1;
        code.exits = 0;
        let func = code.func();
        let funcs: Vec<Func> = native.codes.iter().map(Code::func).collect();
        let runtime = &self.runtime;
        let inside = |shape| runtime.shapes().inside(shape);
        let input = |calls_new: bool| Input {
            program: &self.program,
            number,
            name: &native.module.funcs[func].name,
            constants: &self.constants,
            profiles: &self.profile,
            imports: &native.imports,
            funcs: &funcs,
            inside: &inside,
            is_chaotic: native.tuning.chaos.is_some(),
            is_complete: native.tuning.tables.is_some(),
            callees: native.tuning.callees,
            calls_new,
        };
        let params = self.program.protos[number as usize].params;
        let mut callees = BTreeSet::new();
        let Tuning { is_optimizing, tables, leaves_objects_out, .. } = native.tuning;
        let may_remove = leaves_objects_out && is_optimizing && tables.is_none();
        let without_some = || lower(&input(true)).filter(|made| native.can_remove(made));
        let without_some = may_remove.then(without_some).flatten();
        let removes = without_some.is_some();
        let made = match without_some.or_else(|| lower(&input(false))) {
            None => Err("no base".to_owned()),
            Some(lowered) => {
                callees = lowered.callees;
                native.counts.inlined += lowered.inlined_calls;
                let (base, states) = (Arc::new(lowered.function), Arc::new(lowered.states));
                back.supply(func, Arc::clone(&base)).map_err(|error| failed(&error))?;
                let complete = native.tuning.tables.is_some().then(|| {
                    native.leave_to_policy(back, func, &base, &states, &lowered.dispatches)
                });
                let compile = |native: &Native, back: &mut Callback<'_>, pipeline: &Pipeline| {
                    native.compile(back, func, Arc::clone(&base), Arc::clone(&states), pipeline)
                };
                let plain = Pipeline::of(Vec::new());
                let optimized = match complete {
                    Some(made) => made,
                    None if native.tuning.is_optimizing => {
                        let (base, states) = (Arc::clone(&base), Arc::clone(&states));
                        let lighter = removes
                            .then(|| native.compile_without_objects(back, func, base, states));
                        match lighter {
                            Some(Ok((made, removed))) => {
                                native.counts.objects += removed as u32;
                                Ok(made)
                            }
                            Some(Err(why)) => {
                                native.counts.kept.push(format!("{func}: {why}"));
                                compile(native, back, &optimizing())
                            }
                            None => compile(native, back, &optimizing()),
                        }
                    }
                    None => compile(native, back, &plain),
                };
                // A pass may take a value that an exit needs. Code without passes has all exits.
                optimized.or_else(|what| {
                    if native.tuning.tables.is_some() {
                        return Err(what);
                    }
                    native.counts.plain.push(format!("{}: {what}", base.name()));
                    compile(native, back, &plain)
                })
            }
        };
        native.counts.compiled += u32::from(made.is_ok());
        let code = &mut native.codes[number as usize];
        match made {
            Ok(compiled) => code.compiled = Some(compiled),
            Err(what) => {
                native
                    .counts
                    .refused
                    .push(format!("{}: {what}", self.program.protos[number as usize].name));
                code.compiled = None;
                let stub =
                    interpreting(&native.module.funcs[func].name, params, native.imports.call);
                native.install(back, func, stub)?;
            }
        }
        for other in earlier {
            native.install(back, other, calling(&native.module.funcs[other].name, params, func))?;
        }
        Ok(callees)
    }
}

impl Native {
    /// Optimizes and compiles a base, and installs the code.
    fn compile(
        &self,
        back: &mut Callback<'_>,
        func: Func,
        base: Arc<Function>,
        states: Arc<FrameStates>,
        pipeline: &Pipeline,
    ) -> Made {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        // Optimize, then prove the entries: up at loop headers, and down at each trap that leaves.
        let StatePlaces { entrances, exits } = &places(&states);
        let places = StatePoints { states: &states, entrances, exits };
        let (vigilance, retry) = (Vigilance::Off, Retry::BRIEF);
        let recipe = Recipe { vigilance, retry, ..Recipe::new(pipeline, &[Level::Avail]) };
        let made = derive_with_states(&self.module, &base, places, &recipe, &mut NoObserver);
        let made = made.map_err(|error| text(&error))?;
        if let Some(missing) = made.down().missing.first() {
            return Err(text(missing));
        }
        let (up, down) = (made.proved.before.mapping, made.proved.after.mapping);
        self.install_ways(back, func, [up, down], base, states, &made.derived.function)
    }

    /// Compiles a version and installs it, with the ways up from the base and down to it.
    fn install_ways(
        &self,
        back: &mut Callback<'_>,
        func: Func,
        [forward, down]: [Checked<Mapping>; 2],
        base: Arc<Function>,
        states: Arc<FrameStates>,
        optimized: &Function,
    ) -> Made {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let of_exit = |at: Point| PointSpec::of_entry(&down, at, Condition::Always);
        let points: Option<Vec<PointSpec>> = down.points().map(of_exit).collect();
        let points = points.ok_or("an exit lacks its entry")?;
        let version = self.engine.version(&self.module, func, optimized, &points);
        let version = version.map_err(|error| text(&error))?;
        let back_to_base = Arc::new(down);
        let landed = Arc::new(BTreeMap::from([(func, Arc::clone(&states))]));
        let hand = || Action::Hand(Arc::clone(&back_to_base), Arc::clone(&landed));
        let actions = points.iter().map(|_| hand()).collect();
        back.tier().install(&version, actions).map_err(|error| text(&error))?;
        let headers = headers(&states);
        Ok(Compiled { func, base, states, code: Some((version, forward)), headers })
    }

    /// Whether a base makes an object that nothing needs.
    fn can_remove(&self, made: &Lowered) -> bool {
        let StatePlaces { entrances, exits } = places(&made.states);
        let named = |at: &Point| Some((at.inst(), made.states.get(*at)?.all_values().collect()));
        let places = ObjectPlaces {
            entered: entrances.iter().map(|at| at.inst()).collect(),
            taken: exits.iter().filter_map(named).collect(),
        };
        !ObjectPlan::new(&self.module, &made.function, &places).is_empty()
    }

    /// As [`Native::compile`], without the objects that nothing needs. Returns their number, too.
    fn compile_without_objects(
        &self,
        back: &mut Callback<'_>,
        func: Func,
        base: Arc<Function>,
        states: Arc<FrameStates>,
    ) -> Result<(Compiled, usize), String> {
        let mut module = Module::clone(&self.module);
        module.define(func, Function::clone(&base));
        let none = InlinePolicy { size: 0, single_size: 0, hot_size: 0, ..InlinePolicy::default() };
        let plan = InlinePlan::new(Pipeline::of(Vec::new()), none, optimizing())
            .removing_objects()
            .with_retry(Retry::BRIEF)
            .with_states(BTreeMap::from([(func, Arc::clone(&states))]))
            .at_places(BTreeMap::from([(func, places(&states))]));
        let landings = CalleeLandings::new(&module, &plan);
        let made = inline(&module, func, &plan, &landings, &mut NoObserver);
        let made = made.map_err(|error| error.to_string())?;
        if let Some(lost) = made.exits.iter().find(|at| !made.down.has_entry(**at)) {
            return Err(format!("the exit at {} has no entry", lost.inst()));
        }
        let optimized = made.tree.function(made.optimized);
        let ways = [made.up.clone(), made.down.clone()];
        let compiled = self.install_ways(back, func, ways, base, states, optimized)?;
        Ok((compiled, made.removed_objects))
    }

    /// Tells the policy of landing tables what a complete base may assume: that operands which were
    /// int32 and doubles are int32, and that the value which is called is a certain function. Where
    /// that fails, a row assumes what has come instead.
    fn leave_to_policy(
        &self,
        back: &mut Callback<'_>,
        func: Func,
        base: &Arc<Function>,
        states: &Arc<FrameStates>,
        dispatches: &[Dispatch],
    ) -> Made {
        let holds = |of: &Dispatch| Assumption::is(of.at, of.holds, 1);
        let assume = dispatches.iter().map(holds).collect();
        let asked = AskedFunction { assume, states: Some(Arc::clone(states)) };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(func, asked);
        back.demand(func).map_err(|_| "the policy has failed".to_owned())?;
        if back.tier().installed(func).is_none() {
            return Err("the policy has made no code".to_owned());
        }
        let headers = headers(states);
        let (base, states) = (Arc::clone(base), Arc::clone(states));
        Ok(Compiled { func, base, states, code: None, headers })
    }

    /// Makes a function run the code of a stub.
    fn install(
        &self,
        back: &mut Callback<'_>,
        func: Func,
        stub: Function,
    ) -> Result<(), CallbackEnd> {
        if self.module.awaits_body(func) {
            back.supply(func, stub.clone()).map_err(|error| failed(&error))?;
        }
        let version = self.engine.version(&self.module, func, &stub, &[]);
        let version = version.map_err(|error| failed(&error))?;
        back.tier().install(&version, Vec::new()).map_err(|error| failed(&error))
    }
}

/// A function that calls the interpreter: `call(closure, depth, count)`, with operands in memory.
fn interpreting(name: &str, params: u8, call: Func) -> Function {
    let mut b = FunctionBuilder::new(name, lower::signature(params));
    let entry = b.create_block();
    b.switch_to(entry);
    let (closure, depth) = (b.append_param(entry, Type::Ref), b.append_param(entry, Type::I32));
    let base = b.constant(Type::I32, 0);
    for index in 0..u64::from(params) {
        let word = b.append_param(entry, Type::Ref);
        let word = b.op(Opcode::RefBits, UNTYPED, &[word]);
        let imm = Imm::Address(super::heap_memory(), u64::from(OPERANDS) + index * 8);
        b.insert(InstSpec::new(Opcode::Store, Type::I64, imm, &[base, word]));
    }
    let count = b.constant(Type::I32, params.into());
    let result = b.insert_value(InstSpec::call(call, &[closure, depth, count], &[Type::Ref]));
    b.ret(&[result]);
    b.finish().expect("the stub is one block").function
}

/// A function that calls another of the same signature.
fn calling(name: &str, params: u8, func: Func) -> Function {
    let mut b = FunctionBuilder::new(name, lower::signature(params));
    let entry = b.create_block();
    b.switch_to(entry);
    let types = lower::signature(params).params;
    let args: Vec<_> = types.into_iter().map(|ty| b.append_param(entry, ty)).collect();
    let result = b.insert_value(InstSpec::call(func, &args, &[Type::Ref]));
    b.ret(&[result]);
    b.finish().expect("the stub is one block").function
}
