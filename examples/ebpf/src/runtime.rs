//! Runs a translated program: native code, helpers, assumptions, and the ways in and out.
//!
//! The unsafe code here and in [`crate::interpreter`] is the embedder's promise: the program
//! accesses memory of the process at its addresses.
#![allow(unsafe_code, reason = "the machine's programs access memory of the process")]

use crate::interpreter::{ByteRegion, Fault, Interpreter, Profile, Registers, Space, text};
use crate::memory::sizes;
use crate::program::{Op, Program, op};
use crate::translate::{BOUNDS, Shape, Translated, registers, translate};
use osier::driver::{NoObserver, Step, Vigilance};
use osier::inlining::PassPlan;
use osier::interp::{HostError, Limits, Options, Outcome};
use osier::ir::{
    DeclaredEffect, FrameStates, Func, Function, Opcode, Point, Signature, TrapKind, Type, Value,
};
use osier::jit::{
    CallbackEnd, Config, DeoptFrame, DirectFunction, Embedder, Engine, Entered, FailedPoint,
    HotLoop, Session, SessionEnd, Slot, TypedEntry, VersionSpec, Vm,
};
use osier::landing::LandingRow;
use osier::osr::VersionTree;
use osier::passes::Pipeline;
use osier::speculate::{Assumption, Plan, speculate};
use osier::tiers::{self, Compiled, Tiered, install_handing};
use rbpf::ebpf;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most nested runs at which the interpreter still enters loops.
const MOST_NESTED: usize = 100;

/// How a program is run.
#[derive(Clone, Debug)]
pub enum Mode {
    /// By Osier's interpreter.
    Interpreted,
    /// In native code, after the passes of a pipeline.
    Native(PassPlan),
    /// In native code that assumes a profile: a branch that never jumped never jumps.
    Assuming(Pipeline, Profile),
    /// By the interpreter of this crate, which enters native code in loops.
    Entering(Pipeline),
    /// As [`Mode::Entering`], and the code assumes a profile: rows of landing tables, which the
    /// interpreter enters in loops, and which native code continues in where assumptions fail.
    Landing(Pipeline, Profile),
}

/// A program, ready to run.
#[derive(Debug)]
pub struct Native {
    vm: Vm,
    host: Runner,
    main: Func,
    entry: Option<MainEntry>,
    shape: Shape,
    stack: Box<[u64]>,
    enters: bool,
    args: Vec<u64>,
    /// The assumptions made, and those dropped for want of an exit.
    pub assumed: (usize, usize),
    tables: TableCounts,
}

/// Counts the rows of landing tables, and the exits that lead to rows.
#[derive(Clone, Default, Debug)]
struct TableCounts(Arc<[AtomicU64; 2]>);

impl tiers::Observer for TableCounts {
    fn step(&mut self, _step: Option<Step>) {}

    fn begin(&mut self) {}

    fn compiled(&mut self, _made: Compiled) {}

    fn row(&mut self, _func: Func, _at: Point, _made: &LandingRow) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }

    fn linked(&mut self, _exit: FailedPoint<'_>, _at: Point, _row: usize) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
    }
}

/// The typed entry of a program. A program with more arguments runs by [`Vm::run`].
#[derive(Clone, Debug)]
enum MainEntry {
    Five(TypedEntry<(u64, u64, u64, u64, u64), u64>),
    Six(TypedEntry<(u64, u64, u64, u64, u64, u64), u64>),
}

impl MainEntry {
    fn of(vm: &mut Vm, main: Func) -> Option<MainEntry> {
        let five = vm.entry(main).map(MainEntry::Five);
        five.or_else(|_| vm.entry(main).map(MainEntry::Six)).ok()
    }

    fn call(&self, session: &mut Session<'_>, args: &[u64]) -> Result<u64, Box<SessionEnd>> {
        match (self, args) {
            (MainEntry::Five(entry), &[a, b, c, d, e]) => session.call(entry, (a, b, c, d, e)),
            (MainEntry::Six(entry), &[a, b, c, d, e, f]) => session.call(entry, (a, b, c, d, e, f)),
            _ => panic!("the entry was made for the signature"),
        }
    }
}

/// What the embedder of a run knows.
#[derive(Debug)]
struct Runner {
    program: Arc<Program>,
    helpers: Arc<HashMap<u32, ebpf::Helper>>,
    funcs: BTreeMap<Func, usize>,
    states: BTreeMap<Func, Arc<FrameStates>>,
    space: Space,
    bounds: Vec<u64>,
    fault: Option<Fault>,
    exits: u64,
    entries: u64,
    has_buffer: bool,
}

extern "C" fn more(ranges: &Vec<Range<u64>>, at: u64, _bytes: u64) -> u64 {
    ranges.iter().any(|range| range.contains(&at)).into()
}

impl Native {
    /// Translates and compiles a program.
    ///
    /// # Errors
    /// A message if the program cannot be translated or compiled.
    ///
    /// # Safety
    /// While the program runs, it may read and write the `allowed` ranges, and up to 7 bytes behind
    /// the end of each: as in the runtime, the first byte of an access decides. No helper panics:
    /// nothing unwinds through native code.
    pub unsafe fn new(
        program: &Arc<Program>,
        helpers: &Arc<HashMap<u32, ebpf::Helper>>,
        allowed: &[Range<u64>],
        has_buffer: bool,
        mode: &Mode,
    ) -> Result<Native, String> {
        let states = !matches!(mode, Mode::Interpreted | Mode::Native(_));
        let shape = Shape { has_buffer, has_more: !allowed.is_empty(), states };
        let mut numbers: Vec<u32> = helpers.keys().copied().collect();
        numbers.sort_unstable();
        let translated = translate(program, &numbers, shape)?;
        let Translated { module, funcs, states, helpers: imports, more: import } = translated;
        let module = Arc::new(module);
        let engine = Engine::new(Config::default()).map_err(|error| error.to_string())?;
        let limits = Limits { fuel: u64::MAX, ..Limits::default() };
        // SAFETY: the program tests each access against the regions of the run, which `run` has
        // borrowed, and its first byte against ranges for which the caller of `new` vouches.
        let vm = unsafe { Vm::with_host_memory(&engine, &module, limits, Options::default()) };
        let mut vm = vm.map_err(|error| error.to_string())?;
        for (number, func) in imports {
            let code = helpers[&number] as *const ();
            let signature = Signature::new(&[Type::I64; 5], &[Type::I64]);
            // SAFETY: a helper is a function of five words with one result, which the caller
            // promises not to unwind. The runtime's own compilers call it by the convention of C,
            // too.
            let bound =
                unsafe { DirectFunction::from_raw(code, None, signature, DeclaredEffect::Any) };
            vm.bind(func, &bound).map_err(|error| error.to_string())?;
        }
        if let Some(func) = import {
            let code = more as extern "C" fn(&Vec<Range<u64>>, u64, u64) -> u64;
            let bound = DirectFunction::new(Arc::new(allowed.to_vec()), code, DeclaredEffect::Any);
            vm.bind(func, &bound).map_err(|error| error.to_string())?;
        }
        let states = states.into_iter().map(|(func, states)| (func, Arc::new(states))).collect();
        let host = Runner {
            program: Arc::clone(program),
            helpers: Arc::clone(helpers),
            funcs: funcs.iter().map(|(entry, func)| (*func, *entry)).collect(),
            states,
            space: Space { more: allowed.to_vec(), ..Space::default() },
            bounds: Vec::new(),
            fault: None,
            exits: 0,
            entries: 0,
            has_buffer,
        };
        let stack = vec![0; ebpf::STACK_SIZE / 8].into();
        let enters = matches!(mode, Mode::Entering(_) | Mode::Landing(..));
        let (main, args) = (funcs[&0], Vec::new());
        let (entry, assumed, tables) = (None, (0, 0), TableCounts::default());
        let mut made =
            Native { vm, host, main, entry, shape, stack, enters, args, assumed, tables };
        made.compile(mode)?;
        if !matches!(mode, Mode::Interpreted) {
            made.entry = MainEntry::of(&mut made.vm, main);
        }
        Ok(made)
    }

    fn compile(&mut self, mode: &Mode) -> Result<(), String> {
        let funcs: Vec<Func> = self.host.funcs.keys().copied().collect();
        match mode {
            Mode::Interpreted => {}
            Mode::Native(plan) => self.optimized(plan)?,
            Mode::Entering(pipeline) => {
                self.vm.set_tiering(Box::new(Tiered::new(1, pipeline.clone())));
            }
            Mode::Landing(pipeline, profile) => {
                let all = funcs.iter().map(|func| (*func, self.assumptions(*func, profile)));
                let assume: BTreeMap<Func, Vec<Assumption>> = all.collect();
                let tiered = Tiered::new_observed(1, pipeline.clone(), self.tables.clone());
                let tiered = tiered.speculating(assume).handing(self.host.states.clone());
                self.vm.set_tiering(Box::new(tiered));
            }
            Mode::Assuming(pipeline, profile) => {
                for func in funcs {
                    self.assuming(func, pipeline, profile)?;
                }
            }
        }
        Ok(())
    }

    fn optimized(&mut self, plan: &PassPlan) -> Result<(), String> {
        let module = Arc::clone(self.vm.module());
        let made = plan.optimize(&module, Vigilance::Off, &mut NoObserver);
        let versions: Vec<_> = made.module.defined().collect();
        for (func, function) in versions {
            let spec = VersionSpec::default().calling(&self.vm.bound());
            let spec = match made.sites.get(&func) {
                Some(sites) => spec.with_sites(Arc::clone(sites)),
                None => spec,
            };
            self.install(func, function, spec)?;
        }
        Ok(())
    }

    fn base(&self, func: Func) -> Function {
        let module = self.vm.module();
        module.body(func).expect("the functions of the program have bodies").clone()
    }

    fn install(&mut self, func: Func, code: &Function, spec: VersionSpec) -> Result<(), String> {
        let module = Arc::clone(self.vm.module());
        let made = self.vm.engine().version(&module, func, code, spec);
        let made = made.map_err(|error| error.to_string())?;
        self.vm.install(&made, Vec::new()).map_err(|error| error.to_string())
    }

    /// The assumptions that a profile suggests for a function.
    fn assumptions(&self, func: Func, profile: &Profile) -> Vec<Assumption> {
        let states = &self.host.states[&func];
        let base = self.base(func);
        let program = &self.host.program;
        let mut found = Vec::new();
        for (at, state) in states.noted() {
            let pc = state.pc as usize;
            let block = base.inst_block(at.inst());
            match op(program.insns[pc].opc) {
                Op::Branch(_) => {
                    let seen = profile.branches.get(&pc).copied().unwrap_or_default();
                    let expected = match seen {
                        [fell, 0] if fell > 0 => 0,
                        [0, jumped] if jumped > 0 => 1,
                        _ => continue,
                    };
                    let branch = base.terminator(block);
                    let holds = base.inst(branch).args[0];
                    found.push(Assumption::is(Point::before(branch), holds, expected));
                }
                Op::Call if program.insns[pc].src == 0 => {
                    let Some(result) = profile.results.get(&pc).copied().flatten() else {
                        continue;
                    };
                    let mut inst = at.inst();
                    while base.inst(inst).opcode != Opcode::Call {
                        let Some(next) = base.next_inst(inst) else { break };
                        inst = next;
                    }
                    let value = base.inst(inst).result();
                    if let (Some(value), Some(next)) = (value, base.next_inst(inst)) {
                        found.push(Assumption::is(Point::before(next), value, result));
                    }
                }
                _ => {}
            }
        }
        found
    }

    fn assuming(
        &mut self,
        func: Func,
        pipeline: &Pipeline,
        profile: &Profile,
    ) -> Result<(), String> {
        let assume = self.assumptions(func, profile);
        let module = Arc::clone(self.vm.module());
        let states = Arc::clone(&self.host.states[&func]);
        let mut tree = VersionTree::new(self.base(func));
        tree.arm_states(VersionTree::BASE, &states).map_err(|error| error.to_string())?;
        let plan = Plan::new(&assume, pipeline);
        let made = speculate(&module, &mut tree, VersionTree::BASE, &plan);
        let made = made.map_err(|error| error.to_string())?;
        self.assumed.0 += made.exits.len();
        self.assumed.1 += made.dropped.len();
        match made.backward.get(&VersionTree::BASE).filter(|_| !made.exits.is_empty()) {
            Some(back) => {
                install_handing(&mut self.vm, func, tree.function(made.optimized), back, &states)
                    .map_err(|error| error.to_string())?;
                Ok(())
            }
            None => self.install(func, tree.function(made.optimized), VersionSpec::default()),
        }
    }

    /// The bytes of native code of the functions, and the exits and entries taken so far.
    pub fn counts(&self) -> (usize, u64, u64) {
        let versions = self.host.funcs.keys().filter_map(|func| self.vm.installed(*func));
        (versions.map(|version| version.code_size()).sum(), self.host.exits, self.host.entries)
    }

    /// The rows of landing tables made so far, and the exits that lead to rows.
    pub fn rows(&self) -> [u64; 2] {
        std::array::from_fn(|at| self.tables.0[at].load(Ordering::Relaxed))
    }

    /// Runs the program on a packet and a metadata buffer, which is empty if the program has none.
    ///
    /// # Errors
    /// The text of the machine for a fault.
    pub fn run(&mut self, packet: &mut [u8], buffer: &mut [u8]) -> Result<u64, String> {
        // SAFETY: both are borrowed until the run has ended.
        unsafe { self.run_at(ByteRegion::of(packet), ByteRegion::of(buffer)) }
    }

    /// Runs the program several times on a packet, in one session, and returns the last result.
    ///
    /// # Errors
    /// As [`Native::run`]; the first fault ends all.
    pub fn run_often(&mut self, packet: &mut [u8], count: u32) -> Result<u64, String> {
        if self.entry.is_none() || self.enters {
            return (0..count).try_fold(0, |_, _| self.run(packet, &mut []));
        }
        self.begin(ByteRegion::of(packet), ByteRegion::default());
        let (stack, uses_stack) = (&mut self.stack, self.host.program.uses_stack);
        let (entry, args) = (&self.entry, &self.args);
        let ended = self.vm.session(&mut self.host, |session| {
            (0..count).try_fold(0, |_, _| {
                if uses_stack {
                    stack.fill(0);
                }
                entry.iter().try_fold(0, |_, entry| entry.call(session, args))
            })
        });
        match ended.map_err(|error| error.to_string())? {
            Ok(result) => Ok(result),
            Err(end) => match *end {
                SessionEnd::Outcome(outcome) => self.ended(outcome),
                other => Err(other.to_string()),
            },
        }
    }

    fn ended(&mut self, outcome: Outcome) -> Result<u64, String> {
        self.host.result(outcome).map_err(|fault| self.host.text(&fault))
    }

    /// As [`Native::run`], with the places of the bytes.
    ///
    /// # Errors
    /// As [`Native::run`].
    ///
    /// # Safety
    /// The bytes are the program's for the run: to read, and to write if the program does.
    pub unsafe fn run_at(&mut self, packet: ByteRegion, buffer: ByteRegion) -> Result<u64, String> {
        if self.host.program.uses_stack {
            self.stack.fill(0);
        }
        let (first, stack) = self.begin(packet, buffer);
        if self.enters {
            return self.enter(first, stack);
        }
        let outcome = self.vm.run(self.main, &self.args, &mut self.host);
        let outcome = outcome.map_err(|error| error.to_string())?;
        self.ended(outcome)
    }

    /// Computes the arguments of a run. Returns the program's first register and its stack.
    fn begin(&mut self, packet: ByteRegion, buffer: ByteRegion) -> (u64, u64) {
        let stack = self.stack.as_mut_ptr().expose_provenance() as u64;
        let host = &mut self.host;
        host.space.regions = [packet, buffer, ByteRegion::of_stack(stack)];
        let bounds = &mut host.bounds;
        bounds.clear();
        if host.program.counts_depth {
            bounds.push(0);
        }
        bounds.extend([packet.at, packet.length]);
        if self.shape.has_buffer {
            bounds.extend([buffer.at, buffer.length]);
        }
        bounds.push(stack);
        let first = match (buffer.length, packet.length) {
            (1.., _) => buffer.at,
            (_, 1..) => packet.at,
            _ => 0,
        };
        self.args.clear();
        self.args.extend_from_slice(&self.host.bounds);
        self.args.extend([first, 0]);
        (first, stack)
    }

    /// Runs by the interpreter, and asks for native code at jumps back.
    fn enter(&mut self, first: u64, stack: u64) -> Result<u64, String> {
        let mut r = [0; 11];
        (r[1], r[10]) = (first, stack + ebpf::STACK_SIZE as u64);
        let (program, helpers) = (Arc::clone(&self.host.program), Arc::clone(&self.host.helpers));
        let space = self.host.space.clone();
        let mut interpreter =
            Interpreter { program: &program, space: &space, helpers: &helpers, profile: None };
        let (vm, host, main) = (&mut self.vm, &mut self.host, self.main);
        let result = interpreter.run::<Stop>(0, 0, r, 0, &mut |pc, r, depth| {
            if depth > 0 {
                return Ok(None);
            }
            let Some(header) = host.header(main, pc, r) else { return Ok(None) };
            let at = header.at;
            let contents = |value| header.content(value);
            match vm.enter(HotLoop { func: main, at }, &contents, host) {
                Ok(Entered::NotYet) => Ok(None),
                Ok(Entered::Ended(outcome)) => {
                    host.entries += 1;
                    let mut end = *r;
                    end[0] = host.result(outcome)?;
                    Ok(Some(end))
                }
                Err(error) => Err(Stop::Other(error.to_string())),
            }
        });
        match result {
            Ok(registers) => Ok(registers[0]),
            Err(Stop::Fault(fault)) => Err(self.host.text(&fault)),
            Err(Stop::Other(text)) => Err(text),
        }
    }
}

/// A loop header that the interpreter has come to.
struct Header {
    at: Point,
    states: Arc<FrameStates>,
    registers: Registers,
    bounds: Vec<u64>,
}

impl Header {
    /// The contents of a value of the base that the frame state names.
    fn content(&self, value: Value) -> Option<u64> {
        let slot = self.states.get(self.at)?.slot_of(value)?;
        Some(match slot.checked_sub(BOUNDS) {
            Some(bound) => self.bounds[bound as usize],
            None => self.registers[slot as usize],
        })
    }
}

/// The end of an interpreted run.
enum Stop {
    Fault(Fault),
    Other(String),
}

/// The end of the interpreter where native code has left.
enum ResumeEnd {
    Fault(Fault),
    Native(CallbackEnd),
}

impl From<Fault> for ResumeEnd {
    fn from(fault: Fault) -> ResumeEnd {
        ResumeEnd::Fault(fault)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

impl Runner {
    /// The place of a loop header of the main function, and what the interpreter holds there.
    fn header(&self, func: Func, pc: usize, registers: &Registers) -> Option<Header> {
        let states = Arc::clone(&self.states[&func]);
        let (at, _) = states.noted().find(|(_, state)| state.pc == pc as u32)?;
        let mut bounds = self.bounds.clone();
        let sizes = sizes(&self.program, &self.program.functions[&0]);
        let lengths = self.space.regions.iter().take(if self.has_buffer { 2 } else { 1 });
        for ByteRegion { length, .. } in lengths {
            bounds.extend(sizes.iter().map(|size| (length + 1).saturating_sub(*size)));
        }
        Some(Header { at, states, registers: *registers, bounds })
    }

    fn result(&mut self, outcome: Outcome) -> Result<u64, Fault> {
        match outcome {
            Outcome::Returned(values) => Ok(values[0]),
            Outcome::Trapped { kind: TrapKind::User(pc), operand: at, .. } => {
                Err(self.fault.take().unwrap_or(Fault { pc: pc as usize, at }))
            }
            other => panic!("a program ends in no other way: {other:?}"),
        }
    }

    fn text(&self, fault: &Fault) -> String {
        text(&self.program, fault)
    }
}

impl Embedder for Runner {
    /// Continues in the interpreter where a version with assumptions leaves.
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        self.exits += 1;
        let activation = &frame.activations[0];
        let entry = self.funcs[&activation.func];
        let mut r: Registers = std::array::from_fn(|register| {
            activation.slot(register as u32).map_or(0, |slot| slot.bits)
        });
        if entry == 0 {
            r[10] = self.bounds[self.bounds.len() - 1] + ebpf::STACK_SIZE as u64;
        }
        let depth = if self.program.counts_depth {
            activation.slot(BOUNDS).map_or(0, |slot| slot.bits)
        } else {
            0
        };
        let (program, helpers) = (Arc::clone(&self.program), Arc::clone(&self.helpers));
        let (space, pc, func) = (self.space.clone(), activation.pc as usize, activation.func);
        let mut interpreter =
            Interpreter { program: &program, space: &space, helpers: &helpers, profile: None };
        let mut back = frame.back();
        let end = interpreter.run::<ResumeEnd>(entry, pc, r, depth, &mut |pc, r, depth| {
            if entry != 0 || depth > 0 || back.depth() > MOST_NESTED {
                return Ok(None);
            }
            let Some(header) = self.header(func, pc, r) else { return Ok(None) };
            let place = HotLoop { func, at: header.at };
            let entered = back.enter(self, place, &|value| header.content(value));
            let Some(results) = entered.map_err(ResumeEnd::Native)? else { return Ok(None) };
            self.entries += 1;
            let mut end = *r;
            end[0] = results[0];
            Ok(Some(end))
        });
        let end = match end {
            Ok(end) => end,
            Err(ResumeEnd::Native(end)) => return Err(end),
            Err(ResumeEnd::Fault(fault)) => {
                let kind = TrapKind::User(fault.pc as u32);
                self.fault = Some(fault);
                return Err(CallbackEnd::new(HostError::Trap(kind)));
            }
        };
        let results = if entry == 0 { 1 } else { self.program.functions[&entry].results };
        let slot = |register: usize| Slot { ty: Type::I64, bits: end[register] };
        Ok(registers(results).map(slot).collect())
    }
}
