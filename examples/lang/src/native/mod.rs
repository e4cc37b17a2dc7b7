//! Native code above the interpreter.
//!
//! The interpreter counts calls and turns of loops. A hot function gets a base by its profile
//! (`lower.rs`), which Osier optimizes and compiles. From then on calls go to native code, and a
//! loop of an activation in the interpreter continues in native code, too. Where a guard fails, the
//! run leaves with the frame of the interpreter ([`Embedder::resume`]). A function that leaves too
//! often is compiled anew, by the interpreter's observations since.
//!
//! A base cannot be replaced, so a function of the language has several functions of the IR, a
//! *generation* each. The code of an earlier generation then calls the next generation.

mod allocate;
mod branches;
mod calls;
mod compile;
mod complete;
mod counts;
mod emit;
mod entrances;
mod inline;
mod library;
mod lower;
mod operations;
mod registers;
mod runtime;

use crate::bytecode::{Op, Pc, Reg};
use crate::heap::{EXCEPTION, FULL, Heap, OPERANDS, PAGES, THROWN, Thrown, header};
use crate::interp::{Failed, Frame, Host, Machine, Uncaught};
use crate::value::{NIL, Word, address, as_number, int, is_int, number, tag, tag_of};
use compile::{Asked, Code, Compiled, Loops, RowCounts};
pub use counts::{Counts, RowEvents};
use osier::interp::{Allocator, HostError, Limits, Options, Outcome, TraceLevel};
use osier::ir::module::{FuncDecl, MemoryDecl, MemoryKind};
use osier::ir::{Func, LocalContent, Memory, Module, Value};
use osier::jit::{
    Callback, CallbackEnd, Config, DeoptFrame, Embedder, Engine, HandedActivation, HandedContent,
    HotLoop, Nans, Slot, Vm,
};
use osier::tiers::TableUse;
use runtime::{ExitObjects, Imports, operands_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The memory that the heap is in.
pub(crate) fn heap_memory() -> Memory {
    Memory::from_u32(0)
}

/// The functions of the IR for each function of the language.
const GENERATIONS: usize = 8;
/// The most nested runs at which the interpreter still enters loops.
const MOST_NESTED: usize = 200;

/// A hot loop without a way up counts as this many exits: code made before the loop ran leaves in
/// front of the loop.
const MISSED: u32 = 10;

/// The code of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallUse {
    /// It goes through the interpreter, whatever function is called.
    Any,
    /// It compares the callee with the functions called so far, and calls them directly.
    Direct,
    /// As `Direct`, with small functions inlined.
    Inlined,
}

/// When code is made.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The calls by the interpreter after which a function is compiled.
    pub calls: u32,
    /// The turns of loops of a function after which the interpreter requests native code.
    pub turns: u32,
    /// The times that code of a function leaves before it is compiled anew.
    pub exits: u32,
    /// Makes every guard fail at random, too, by this seed.
    pub chaos: Option<u64>,
    /// Whether passes run.
    pub is_optimizing: bool,
    /// Where both kinds of numbers were seen, code computes with doubles (`None`), or assumes the
    /// kinds. Runs continue in rows of landing tables at these places.
    pub tables: Option<TableUse>,
    /// The code of calls.
    pub callees: CallUse,
    /// Whether objects that nothing needs are not made. It takes longer to compile, and counts only
    /// without landing tables.
    pub leaves_objects_out: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        let (chaos, is_optimizing, tables, callees) = (None, true, None, CallUse::Inlined);
        let (calls, turns, exits, leaves_objects_out) = (500, 3000, 30, false);
        Tuning { calls, turns, exits, chaos, is_optimizing, tables, callees, leaves_objects_out }
    }
}

/// The native half of a machine.
#[derive(Debug)]
pub struct Native {
    tuning: Tuning,
    engine: Engine,
    module: Arc<Module>,
    imports: Imports,
    /// By function of the language.
    codes: Vec<Code>,
    loops: Loops,
    asked: Asked,
    rows: RowCounts,
    counts: Counts,
}

/// Why a run with native code ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NativeError {
    /// The program has not caught an exception.
    Uncaught(Uncaught),
    /// The machine of Osier has failed.
    Failed(String),
}

impl std::fmt::Display for NativeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NativeError::Uncaught(uncaught) => uncaught.fmt(f),
            NativeError::Failed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for NativeError {}

impl Machine {
    /// Runs the program from its start, hot functions natively. To be called once.
    ///
    /// # Errors
    /// The exception that ended it, or a failure of native code.
    pub fn run_native(&mut self, tuning: Tuning) -> Result<Counts, NativeError> {
        let failed = |what: &dyn std::fmt::Display| NativeError::Failed(what.to_string());
        let config = Config { nans: Nans::Platform, ..Config::default() };
        let engine = Engine::new(config).map_err(|error| failed(&error))?;
        let (module, imports, codes) = self.module();
        let options = Options { poison: false, track_memory: false, trace: TraceLevel::Off };
        let limits = Limits { fuel: u64::MAX, call_depth: u32::MAX, ..Limits::default() };
        let vm = Vm::new(&engine, &module, limits, options);
        let mut vm = vm.map_err(|error| failed(&error))?;
        let on_heap = runtime::direct(&self.runtime);
        vm.bind(imports.on_heap, &on_heap).map_err(|error| failed(&error))?;
        for func in [imports.runtime, imports.new] {
            let body = module.body(func).expect("it is defined");
            let version = engine.version(&module, func, body, &[]);
            let version = version.map_err(|error| failed(&error))?;
            vm.install(&version, Vec::new()).map_err(|error| failed(&error))?;
        }
        let at_exits = Arc::new(ExitObjects::default());
        vm.machine_mut().make_objects_by(Arc::clone(&at_exits) as Arc<dyn Allocator>);
        let (loops, asked, rows) = (Loops::default(), Asked::default(), RowCounts::default());
        match tuning.tables {
            Some(places) => {
                vm.set_tiering(Box::new(compile::with_tables(&asked, &rows, places)));
            }
            None => vm.set_tiering(Box::new(loops.clone())),
        }
        for profile in &mut self.profile {
            (profile.every, profile.left) = (tuning.turns, tuning.turns);
        }
        self.native = Some(Native {
            tuning,
            engine,
            module,
            imports,
            codes,
            loops,
            asked,
            rows: rows.clone(),
            counts: Counts::default(),
        });
        let outcome = vm.run(imports.main, &[], self);
        let counts = self.native.take().map(|native| native.counts).unwrap_or_default();
        let objects_made = at_exits.made.load(Relaxed);
        let mut counts = Counts { objects_made, rows: rows.events(), ..counts };
        counts.refused.extend(rows.refused());
        let memory = vm.machine_mut().memories_mut().bytes_mut(heap_memory());
        let heap = Heap(memory.ok_or_else(|| failed(&"the machine tracks its memories"))?);
        match outcome {
            Ok(Outcome::Returned(words)) if words[0] == THROWN => {
                let exception = heap.word(EXCEPTION);
                Err(NativeError::Uncaught(self.uncaught(exception, &heap)))
            }
            Ok(Outcome::Returned(_)) => {
                counts.bytes = self.allocated + u64::from(heap.allocated_since());
                Ok(counts)
            }
            Ok(other) => Err(failed(&other)),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The module of the program: the runtime, and functions whose bodies come later.
    fn module(&self) -> (Arc<Module>, Imports, Vec<Code>) {
        let mut module = Module::new();
        let (name, import) = ("heap".to_owned(), None);
        module.memories.push(MemoryDecl {
            kind: MemoryKind::Linear,
            name,
            min_pages: PAGES,
            max_pages: None,
            import,
        });
        let imports = runtime::declare(&mut module);
        let mut codes = Vec::new();
        for (number, proto) in self.program.protos.iter().enumerate() {
            let sig = module.sig(&lower::signature(proto.params));
            let funcs = std::array::from_fn(|generation| {
                let name = format!("{}.{number}.{generation}", proto.name);
                let func = module.funcs.push(FuncDecl {
                    name,
                    sig,
                    import: None,
                    effect: Default::default(),
                });
                module.define_later(func);
                func
            });
            codes.push(Code::new(funcs));
        }
        (Arc::new(module), imports, codes)
    }

    /// The native code of a function that the interpreter calls, if it has some by now.
    pub(crate) fn hot_callee(
        &mut self,
        back: &mut Callback<'_>,
        number: u32,
        args: &[Word],
    ) -> Result<Option<Func>, CallbackEnd> {
        let profile = &mut self.profile[number as usize];
        profile.called += 1;
        args.iter().enumerate().for_each(|(index, arg)| profile.saw_argument(index, *arg));
        let Some(native) = &self.native else { return Ok(None) };
        if profile.called >= native.tuning.calls && native.codes[number as usize].is_new() {
            self.make(back, number)?;
        }
        let native = self.native.as_ref();
        Ok(native.and_then(|native| native.codes[number as usize].native()))
    }

    /// Calls native code.
    pub(crate) fn call_native(
        &mut self,
        back: &mut Callback<'_>,
        func: Func,
        closure: Word,
        depth: u32,
        args: &[Word],
    ) -> Result<Word, Failed> {
        let mut given = vec![closure, depth.into()];
        given.extend(args);
        let results = back.call(self, func, &given)?;
        returned(results[0], back)
    }

    /// Continues in native code at a loop header, to the end of the activation. `None` if there is
    /// no code for the loop.
    pub(crate) fn enter(
        &mut self,
        host: &mut Host<'_, '_>,
        frame: Frame,
    ) -> Result<Option<Word>, Failed> {
        let Host::Native(back) = host else { return Ok(None) };
        let is_new = |native: &Native| native.codes[frame.proto as usize].is_new();
        if back.depth() > MOST_NESTED {
            return Ok(None);
        }
        if self.native.as_ref().is_some_and(is_new) {
            self.make(back, frame.proto)?;
        }
        let Some((place, contents)) = self.contents(back, frame) else {
            self.left(back, frame.proto, MISSED)?;
            return Ok(None);
        };
        let left = self.leave_window(frame);
        let entered = back.enter(self, place, &|value| contents.get(&value).copied())?;
        let Some(results) = entered else {
            // Nothing has run, so no object has moved.
            self.restore_window(frame, &left);
            return Ok(None);
        };
        if let Some(native) = &mut self.native {
            native.counts.entered += 1;
            native.rows.entered(place);
        }
        returned(results[0], back).map(Some)
    }

    /// The place of a loop header in the base, and the values of the base there. `None` if there is
    /// no code, or a register is not of the kind that the code expects.
    fn contents(
        &mut self,
        back: &mut Callback<'_>,
        frame: Frame,
    ) -> Option<(HotLoop, BTreeMap<Value, u64>)> {
        let native = self.native.as_mut()?;
        let code = native.codes[frame.proto as usize].compiled()?;
        let (at, state) = code.header(frame.pc)?;
        let place = HotLoop { func: code.func, at };
        // The policy of landing tables asks for the values itself.
        let required = match code.has_tables() {
            true => Vec::new(),
            false => native.loops.required(&native.engine, code, place)?,
        };
        let registers = &self.stack[frame.base..];
        let mut host = Host::Native(back);
        let heap = host.heap();
        let mut contents = BTreeMap::new();
        for local in &state.locals {
            let LocalContent::Value(value) = local.content else { continue };
            let bits = match local.slot {
                lower::CLOSURE => frame.closure,
                lower::DEPTH => frame.depth.into(),
                register => unboxed(&heap, registers[register as usize], local.representation)?,
            };
            contents.insert(value, bits);
        }
        let is_given = |value: &Value| contents.contains_key(value) || code.is_constant(*value);
        if !required.iter().all(is_given) {
            return None;
        }
        Some((place, contents))
    }

    /// Notes that native code has left, or could not be entered, and compiles the function anew if
    /// that has happened often.
    fn left(
        &mut self,
        back: &mut Callback<'_>,
        number: u32,
        weight: u32,
    ) -> Result<(), CallbackEnd> {
        let Some(native) = &mut self.native else { return Ok(()) };
        let (code, most) = (&mut native.codes[number as usize], native.tuning.exits);
        if code.has_next() {
            // The next loop header asks for code again: a callee that has changed shows its number
            // in a few turns.
            self.profile[number as usize].left = 1;
        }
        match code.leaves_often(weight, most) {
            true => self.make(back, number),
            false => Ok(()),
        }
    }
}

fn thrown(Thrown(exception): Thrown) -> Failed {
    Failed::Thrown(exception)
}

/// The result of native code.
fn returned(word: Word, back: &mut Callback<'_>) -> Result<Word, Failed> {
    match word == THROWN {
        true => Err(Failed::Thrown(Host::Native(back).heap().word(EXCEPTION))),
        false => Ok(word),
    }
}

/// The result of the interpreter for native code.
fn result(ended: Result<Word, Failed>, back: &mut Callback<'_>) -> Result<Word, CallbackEnd> {
    match ended {
        Ok(word) => Ok(word),
        Err(Failed::Ended(end)) => Err(end),
        Err(Failed::Thrown(exception)) => {
            Host::Native(back).heap().set_word(EXCEPTION, exception);
            Ok(THROWN)
        }
    }
}

/// The bits of a word in a representation of a frame state. `None` if it is not of this kind.
fn unboxed(heap: &Heap<'_>, word: Word, representation: u32) -> Option<u64> {
    let is_object = tag_of(word) == tag::OBJECT;
    match representation {
        lower::WORD => Some(word),
        lower::INT => is_int(word).then_some(u64::from(word as u32)),
        lower::DOUBLE => as_number(word).map(f64::to_bits),
        shaped if shaped >= lower::SHAPED => {
            (is_object && heap.u32(address(word)) == shaped - lower::SHAPED).then_some(word)
        }
        tagged => (tag_of(word) == u64::from(tagged - lower::TAGGED)).then_some(word),
    }
}

/// An activation that native code has left, so many instructions behind its program counter.
fn frame_of(activation: &HandedActivation, behind: Pc, result: Reg) -> Frame {
    let slot = |slot| activation.slot(slot).map_or(0, |slot| slot.bits);
    let (closure, depth) = (slot(lower::CLOSURE), slot(lower::DEPTH) as u32);
    let (proto, pc) = (activation.function, (activation.pc & !lower::HEADER) as Pc + behind);
    Frame { proto, pc, base: 0, closure, depth, result }
}

/// The registers of an activation that native code has left.
fn registers(activation: &HandedActivation) -> impl Iterator<Item = (usize, Word)> {
    activation.locals.iter().filter_map(|local| {
        let HandedContent::Bits(Slot { bits, .. }) = local.content else { return None };
        let word = match local.representation {
            lower::INT => int(bits as i32),
            lower::DOUBLE => number(f64::from_bits(bits)),
            _ => bits,
        };
        (local.slot < lower::CLOSURE).then_some((local.slot as usize, word))
    })
}

impl Embedder for Machine {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        func: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        let Some(native) = &self.native else { return Ok(()) };
        let ended = if func == native.imports.main {
            self.set_chaos(back);
            self.main(&mut Host::Native(back)).map(|()| NIL)
        } else if func == native.imports.collect {
            let collected =
                self.collect(&mut Host::Native(back), &mut [], operands_of(args[0] as u32));
            collected.map(|()| NIL).map_err(thrown)
        } else if func == native.imports.go_on {
            self.go_on(back, args)
        } else {
            self.call_any(back, args)
        };
        results[0] = result(ended, back)?;
        Ok(())
    }

    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let activations = frame.activations.to_vec();
        let mut back = frame.back();
        if let Some(native) = &mut self.native {
            native.counts.exits += 1;
        }
        self.set_chaos(&mut back);
        let (inner, outer) = activations.split_first().expect("there is one at least");
        self.left(&mut back, outer.last().unwrap_or(inner).function, 1)?;
        let (floor, mut to) = (self.frames.len(), 0);
        for caller in outer.iter().rev() {
            // It waits behind its call.
            let frame = frame_of(caller, 1, to);
            let code = &self.program.protos[caller.function as usize].code;
            let Op::Call(result, ..) = code[frame.pc as usize - 1] else {
                return Err(HostError::failed("an activation waits without a call").into());
            };
            to = result;
            self.wait(frame, registers(caller));
        }
        self.wait(frame_of(inner, 0, to), registers(inner));
        let ended = self.execute_behind_exit(&mut Host::Native(&mut back), floor);
        let bits = result(ended, &mut back)?;
        Ok(vec![Slot { ty: osier::ir::Type::Ref, bits }])
    }
}

impl Machine {
    /// In a chaotic program, chooses the guard that fails next.
    fn set_chaos(&mut self, back: &mut Callback<'_>) {
        let tuning = self.native.as_mut().map(|native| &mut native.tuning);
        if let Some(Tuning { chaos: Some(state), .. }) = tuning {
            // Knuth's linear congruential generator.
            *state =
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1405_7b7e_f767_814f);
            let guards = 1 + (*state >> 59) as u32;
            Host::Native(back).heap().set_u32(header::CHAOS, guards);
        }
    }

    /// Continues where a guard of a complete base has failed: closure, depth, function and program
    /// counter, with the live registers in memory.
    fn go_on(&mut self, back: &mut Callback<'_>, args: &[u64]) -> Result<Word, Failed> {
        let (closure, depth, proto, pc) = (args[0], args[1] as u32, args[2] as u32, args[3] as Pc);
        let live = lower::liveness(&self.program, proto)[pc as usize];
        let mut host = Host::Native(&mut *back);
        let heap = host.heap();
        let is_live = |register: &u32| registers::has(&live, *register as Reg);
        let word = |register: u32| (register as usize, heap.word(OPERANDS + register * 8));
        let words: Vec<(usize, Word)> = (0..256).filter(is_live).map(word).collect();
        if let Some(native) = &mut self.native {
            native.counts.exits += 1;
        }
        self.set_chaos(back);
        self.left(back, proto, 1)?;
        let frame = Frame { proto, pc, base: 0, closure, depth, result: 0 };
        self.activate(&mut Host::Native(back), frame, words)
    }

    /// Calls any function for native code: closure, depth and number of operands, in memory.
    fn call_any(&mut self, back: &mut Callback<'_>, args: &[u64]) -> Result<Word, Failed> {
        let (mut closure, depth, count) = ([args[0]], args[1] as u32, args[2] as u32);
        let host = &mut Host::Native(back);
        let number = loop {
            match self.callee(&mut host.heap(), closure[0], count as u8, depth) {
                Ok(number) => break number,
                // There was no space for the message.
                Err(Thrown(FULL)) => self.collect(host, &mut closure, count).map_err(thrown)?,
                Err(exception) => return Err(thrown(exception)),
            }
        };
        let (closure, heap) = (closure[0], host.heap());
        let word = |index: u32| heap.word(OPERANDS + index * 8);
        let operands: Vec<Word> = (0..count).map(word).collect();
        if let Some(func) = self.hot_callee(back, number, &operands)? {
            return self.call_native(back, func, closure, depth, &operands);
        }
        let frame = Frame { proto: number, pc: 0, base: 0, closure, depth, result: 0 };
        self.activate(&mut Host::Native(back), frame, operands.into_iter().enumerate())
    }

    /// Makes the next generation of code of a function, and code of the functions that it calls.
    fn make(&mut self, back: &mut Callback<'_>, number: u32) -> Result<(), CallbackEnd> {
        let begun = std::time::Instant::now();
        let mut wanted: Vec<u32> = self.make_one(back, number)?.into_iter().collect();
        while let Some(callee) = wanted.pop() {
            let is_new = |native: &Native| native.codes[callee as usize].is_new();
            if self.native.as_ref().is_some_and(is_new) {
                wanted.extend(self.make_one(back, callee)?);
            }
        }
        if let Some(native) = &mut self.native {
            native.counts.micros += begun.elapsed().as_micros() as u64;
        }
        Ok(())
    }
}

/// The result of [`Machine::make`] for a generation.
type Made = Result<Compiled, String>;
