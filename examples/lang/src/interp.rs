//! The interpreter.
//!
//! A loop over the instructions of the innermost activation. Registers of all activations are in
//! one stack, so a call moves a window: its arguments are where the callee expects its parameters.
//! A window has 256 registers, as many as a number of 8 bits, so that accesses need no test.

use crate::bytecode::{Arith, Capture, Compare, Constant, Op, Pc, Program, Proto, Reg};
use crate::compile::{self, MOST_ARGUMENTS};
use crate::heap::{FULL, GLOBALS, Heap, OUT_OF_MEMORY, PAGES, Place, Thrown, at, header};
use crate::library::Runtime;
use crate::native::Native;
use crate::ops::Product as _;
use crate::profile::{self, ProtoProfile, kind, kind_of};
use crate::syntax::{self, SyntaxError};
use crate::value::{
    self, NIL, Word, address, as_number, boolean, int, is_int, is_true, tag, tag_of,
};
use osier::jit::{Callback, CallbackEnd};
use std::fmt;
use std::sync::Arc;

mod rare;
mod roots;

/// The most activations at once. A call beyond throws `stack overflow`.
pub const MOST_FRAMES: u32 = 20_000;

/// The registers that a register number can name.
const WINDOW: usize = 256;

/// An exception that no handler has caught.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uncaught {
    /// The line of the instruction that threw it, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The exception as `print` shows it.
    pub what: String,
}

impl fmt::Display for Uncaught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: uncaught exception: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for Uncaught {}

/// A program, and the state of its run.
#[derive(Debug)]
pub struct Machine {
    text: String,
    pub(crate) program: Program,
    /// By function: its constants.
    pub(crate) constants: Vec<Vec<Word>>,
    /// By function and access site: the shape that objects had last, and the place of the field.
    caches: Vec<Vec<(u32, Place)>>,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) stack: Vec<Word>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) profile: Vec<ProtoProfile>,
    /// Native code, if the program may have some.
    pub(crate) native: Option<Native>,
    /// Whether every allocation collects.
    is_stressed: bool,
    collections: u32,
    pub(crate) allocated: u64,
}

/// An activation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) proto: u32,
    /// Its next instruction, while it waits.
    pub(crate) pc: Pc,
    /// Its first register.
    pub(crate) base: usize,
    /// The word of its closure.
    pub(crate) closure: Word,
    /// The activations below it, native ones included.
    pub(crate) depth: u32,
    /// The register of the caller that takes the result.
    pub(crate) result: Reg,
}

/// No shape: the access site has not found a field yet.
const NO_SHAPE: u32 = u32::MAX;

/// How an instruction leaves the loop over the instructions of an activation.
enum Left {
    Call {
        to: Reg,
        callee: Reg,
        args: u8,
    },
    Return(Word),
    Throw(Thrown),
    /// The activation is at the header of a hot loop.
    Hot,
}

/// The memory of a run: the interpreter's own, or the memory of a machine of Osier.
pub(crate) enum Host<'a, 'b> {
    Alone(&'a mut Vec<u8>),
    Native(&'a mut Callback<'b>),
}

impl Host<'_, '_> {
    pub(crate) fn heap(&mut self) -> Heap<'_> {
        match self {
            Host::Alone(memory) => Heap(memory),
            Host::Native(back) => {
                let bytes = back.memories().bytes_mut(crate::native::heap_memory());
                Heap(bytes.expect("the machine does not track its memories"))
            }
        }
    }
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It throws.
    Thrown(Word),
    /// The run of native code has ended.
    Ended(CallbackEnd),
}

impl From<CallbackEnd> for Failed {
    fn from(end: CallbackEnd) -> Failed {
        Failed::Ended(end)
    }
}

impl Machine {
    /// Compiles a program to bytecode.
    ///
    /// # Errors
    /// The first error of the text.
    pub fn new(text: &str) -> Result<Machine, SyntaxError> {
        let statements = syntax::parse(text)?;
        let runtime = Runtime::default();
        let program = compile::compile(text, &statements, &mut runtime.shapes())?;
        let profile = profile::empty(&program);
        let empty = (NO_SHAPE, Place::Inside(0));
        let caches = program.protos.iter().map(|proto| vec![empty; proto.sites.len()]).collect();
        let (constants, stack, frames, collections, allocated) = Default::default();
        let (runtime, native, is_stressed) = (Arc::new(runtime), None, false);
        Ok(Machine {
            text: text.to_owned(),
            program,
            constants,
            caches,
            runtime,
            stack,
            frames,
            profile,
            native,
            is_stressed,
            collections,
            allocated,
        })
    }

    /// Makes every allocation collect, in tests.
    pub fn stress(&mut self) {
        self.is_stressed = true;
    }

    /// The collections so far.
    pub fn collections(&self) -> u32 {
        self.collections
    }

    /// Lays out the heap: the variables of the outermost level, and the constants.
    pub(crate) fn start(&mut self, heap: &mut Heap<'_>) -> Result<(), Thrown> {
        heap.start(self.program.globals);
        let mut word = |constant: &Constant| match constant {
            Constant::Word(word) => Ok(*word),
            Constant::Text(text) => heap.string(text.as_bytes()),
        };
        self.constants.clear();
        for proto in &self.program.protos {
            let words: Result<_, _> = proto.constants.iter().map(&mut word).collect();
            self.constants.push(words?);
        }
        heap.open(self.is_stressed);
        Ok(())
    }

    /// The output of the program since the last call.
    pub fn take_output(&self) -> Vec<u8> {
        self.runtime.take_output()
    }

    /// Runs the program from its start, in the interpreter alone.
    ///
    /// # Errors
    /// The exception that ended it.
    pub fn run(&mut self) -> Result<(), Uncaught> {
        // The system provides the pages that are touched.
        let mut memory = vec![0; PAGES as usize * 65_536];
        let ended = self.main(&mut Host::Alone(&mut memory));
        match ended {
            Err(Failed::Thrown(exception)) => Err(self.uncaught(exception, &Heap(&mut memory))),
            Err(Failed::Ended(_)) | Ok(()) => Ok(()),
        }
    }

    /// Runs the outermost level.
    pub(crate) fn main(&mut self, host: &mut Host<'_, '_>) -> Result<(), Failed> {
        self.start(&mut host.heap()).map_err(|_| Failed::Thrown(OUT_OF_MEMORY.0))?;
        let proto = self.program.protos.len() as u32 - 1;
        self.frames.clear();
        self.push(Frame { proto, pc: 0, base: 0, closure: NIL, depth: 0, result: 0 });
        self.execute(host, 0).map(|_| ())
    }

    /// The exception that ended the program, and where it was thrown.
    pub(crate) fn uncaught(&self, exception: Word, heap: &Heap<'_>) -> Uncaught {
        let place = heap.u32(header::THROWN_AT) as usize;
        let SyntaxError { line, column, what } =
            SyntaxError::new(&self.text, place, heap.show(exception));
        Uncaught { line, column, what }
    }

    fn push(&mut self, frame: Frame) {
        if self.stack.len() < frame.base + WINDOW {
            self.stack.resize((frame.base + WINDOW) * 2, NIL);
        }
        self.frames.push(frame);
    }

    /// Runs an activation, which begins or continues with these registers, to its end.
    pub(crate) fn activate(
        &mut self,
        host: &mut Host<'_, '_>,
        frame: Frame,
        registers: impl IntoIterator<Item = (usize, Word)>,
    ) -> Result<Word, Failed> {
        let floor = self.frames.len();
        self.wait(frame, registers);
        self.execute(host, floor)
    }

    /// Begins an activation, or lets it continue, with these registers.
    pub(crate) fn wait(
        &mut self,
        frame: Frame,
        registers: impl IntoIterator<Item = (usize, Word)>,
    ) {
        let base = self.frames.last().map_or(0, |below| below.base + WINDOW);
        self.push(Frame { base, ..frame });
        for (register, word) in registers {
            self.stack[base + register] = word;
            if frame.pc == 0 {
                self.profile[frame.proto as usize].saw_argument(register, word);
            }
        }
    }

    /// Runs the innermost activations until `floor` are left. Returns the result of the last.
    pub(crate) fn execute(
        &mut self,
        host: &mut Host<'_, '_>,
        floor: usize,
    ) -> Result<Word, Failed> {
        loop {
            let (frame, left) = match self.native.is_some() {
                true => self.steps::<true>(host),
                false => self.steps::<false>(host),
            };
            let done = match left {
                Left::Call { to, callee, args } => {
                    let closure = self.stack[frame.base + usize::from(callee)];
                    match self.callee(&mut host.heap(), closure, args, frame.depth + 1) {
                        Ok(number) => self.call(host, to, callee, number),
                        Err(thrown) => self.throw_here(host, thrown),
                    }
                }
                Left::Return(result) => Ok(Some(result)),
                Left::Throw(thrown) => self.throw_here(host, thrown),
                Left::Hot => {
                    let entered = self.enter(host, frame);
                    if let Err(Failed::Thrown(_)) = entered {
                        // Native code has tried the handlers of this activation.
                        self.frames.pop();
                    }
                    entered
                }
            };
            match done {
                Ok(None) => {}
                Ok(Some(result)) => {
                    self.frames.pop();
                    if self.frames.len() == floor {
                        return Ok(result);
                    }
                    let caller = self.frames.last().expect("a caller waits");
                    self.stack[caller.base + usize::from(frame.result)] = result;
                }
                Err(Failed::Thrown(exception)) => self.unwind(exception, floor)?,
                Err(ended) => {
                    self.frames.truncate(floor);
                    return Err(ended);
                }
            }
        }
    }

    /// The innermost activation throws, or needs a collection and then executes its instruction
    /// once more.
    fn throw_here(
        &mut self,
        host: &mut Host<'_, '_>,
        Thrown(mut exception): Thrown,
    ) -> Result<Option<Word>, Failed> {
        if exception == FULL {
            match self.collect(host, &mut [], 0) {
                Ok(()) => {
                    self.frames.last_mut().expect("a frame is running").pc -= 1;
                    return Ok(None);
                }
                Err(Thrown(full)) => exception = full,
            }
        }
        let frame = self.frames.last().expect("a frame is running");
        let place = self.program.protos[frame.proto as usize].places[frame.pc as usize - 1];
        host.heap().set_u32(header::THROWN_AT, place);
        Err(Failed::Thrown(exception))
    }

    /// Gives an exception to the innermost handler above `floor`.
    fn unwind(&mut self, exception: Word, floor: usize) -> Result<(), Failed> {
        while self.frames.len() > floor
            && let Some(frame) = self.frames.last_mut()
        {
            let proto = &self.program.protos[frame.proto as usize];
            // The program counter is behind the instruction that has thrown or called.
            if let Some(handler) = proto.handler(frame.pc.saturating_sub(1)) {
                frame.pc = handler.target;
                self.stack[frame.base + usize::from(handler.register)] = exception;
                return Ok(());
            }
            self.frames.pop();
        }
        Err(Failed::Thrown(exception))
    }

    /// Begins an activation of a closure, or calls its native code and stores the result.
    fn call(
        &mut self,
        host: &mut Host<'_, '_>,
        to: Reg,
        callee: Reg,
        number: u32,
    ) -> Result<Option<Word>, Failed> {
        let caller = *self.frames.last().expect("a frame is running");
        let base = caller.base + usize::from(callee) + 1;
        let (closure, depth) = (self.stack[base - 1], caller.depth + 1);
        if let Host::Native(back) = host {
            let args: [Word; MOST_ARGUMENTS] =
                std::array::from_fn(|index| self.stack.get(base + index).copied().unwrap_or(NIL));
            let given = usize::from(self.program.protos[number as usize].params);
            self.profile[caller.proto as usize].calls[caller.pc as usize - 1].note(number);
            if let Some(func) = self.hot_callee(back, number, &args[..given])? {
                let result = self.call_native(back, func, closure, depth, &args[..given])?;
                self.stack[caller.base + usize::from(to)] = result;
                return Ok(None);
            }
        }
        self.push(Frame { proto: number, pc: 0, base, closure, depth, result: to });
        Ok(None)
    }

    /// The function of a closure that is called.
    #[inline]
    pub(crate) fn callee(
        &self,
        heap: &mut Heap<'_>,
        word: Word,
        args: u8,
        depth: u32,
    ) -> Result<u32, Thrown> {
        if tag_of(word) != tag::CLOSURE {
            return Err(heap.raise(&format!("a {} is no function", value::type_name(word))));
        }
        let number = heap.u32(address(word));
        let proto = &self.program.protos[number as usize];
        if proto.params != args {
            let what = format!("{} takes {} arguments, not {args}", proto.name, proto.params);
            return Err(heap.raise(&what));
        }
        match depth >= MOST_FRAMES {
            true => Err(heap.raise("stack overflow")),
            false => Ok(number),
        }
    }

    /// Runs instructions of the innermost activation until it calls, returns or throws. Returns the
    /// activation as it is then. `PROFILED` notes the kinds of values, and stops at hot loops.
    fn steps<const PROFILED: bool>(&mut self, host: &mut Host<'_, '_>) -> (Frame, Left) {
        let frame = self.frames.last_mut().expect("a frame is running");
        let number = frame.proto as usize;
        let window =
            self.stack[frame.base..].first_chunk_mut().expect("a window has its registers");
        let proto = &self.program.protos[number];
        let mut activation = Activation {
            proto,
            constants: &self.constants[number],
            caches: &mut self.caches[number],
            runtime: &self.runtime,
            heap: host.heap(),
            r: window,
            closure: address(frame.closure),
            pc: frame.pc as usize,
            program: &self.program,
            profile: &mut self.profile[number],
        };
        let left = activation.run::<PROFILED>().unwrap_or_else(Left::Throw);
        frame.pc = activation.pc as Pc;
        (*frame, left)
    }
}

/// The state that the instructions of one activation work on.
struct Activation<'a> {
    proto: &'a Proto,
    program: &'a Program,
    constants: &'a [Word],
    caches: &'a mut [(u32, Place)],
    runtime: &'a Runtime,
    heap: Heap<'a>,
    r: &'a mut [Word; WINDOW],
    closure: u32,
    pc: usize,
    profile: &'a mut ProtoProfile,
}

/// The result of an operation on two int32, and of the same on two doubles.
macro_rules! arithmetic {
    ($self:ident, $d:ident, $a:ident, $b:ident, $checked:ident, $kind:expr) => {{
        let (a, b) = ($self.r[$a as usize], $self.r[$b as usize]);
        $self.saw::<P>(a, b);
        if is_int(a)
            && is_int(b)
            && let Some(result) = (a as i32).$checked(b as i32)
        {
            $self.r[$d as usize] = int(result);
        } else {
            if is_int(a) && is_int(b) {
                $self.saw_event::<P>(kind::OVERFLOW);
            }
            $self.r[$d as usize] = $self.heap.arith($kind, a, b)?;
        }
    }};
}

/// A jump on the comparison of two numbers.
macro_rules! compare_jump {
    ($self:ident, $a:ident, $b:ident, $to:ident, $op:tt, $kind:expr, $when:expr) => {{
        let (a, b) = ($self.r[$a as usize], $self.r[$b as usize]);
        $self.saw::<P>(a, b);
        let holds = match is_int(a) && is_int(b) {
            true => (a as i32) $op (b as i32),
            false => $self.heap.compare($kind, a, b)?,
        };
        if holds == $when {
            $self.pc = $to as usize;
        }
    }};
}

impl Activation<'_> {
    /// Notes the kinds of the operands of the instruction.
    #[inline(always)]
    fn saw<const P: bool>(&mut self, a: Word, b: Word) {
        if P {
            let [of_a, of_b] = &mut self.profile.operands[self.pc - 1];
            *of_a |= kind_of(a);
            *of_b |= kind_of(b);
        }
    }

    /// Notes [`kind::OVERFLOW`] or [`kind::APPENDED`].
    #[inline(always)]
    fn saw_event<const P: bool>(&mut self, event: u16) {
        if P {
            self.profile.operands[self.pc - 1][0] |= event;
        }
    }

    /// Goes back to a loop header. Returns whether the loop is hot.
    #[inline(always)]
    fn turn<const P: bool>(&mut self, to: Pc) -> bool {
        self.pc = to as usize;
        if !P {
            return false;
        }
        self.profile.left -= 1;
        let is_hot = self.profile.left == 0;
        if is_hot {
            self.profile.left = self.profile.every;
        }
        is_hot
    }

    /// The loop over instructions. `P`: notes kinds of values, and stops at hot loops.
    fn run<const P: bool>(&mut self) -> Result<Left, Thrown> {
        let code = &self.proto.code[..];
        loop {
            let op = code[self.pc];
            self.pc += 1;
            match op {
                Op::Const(d, index) => self.r[d as usize] = self.constants[index as usize],
                Op::Move(d, a) => self.r[d as usize] = self.r[a as usize],
                Op::Add(d, a, b) => arithmetic!(self, d, a, b, checked_add, Arith::Add),
                Op::Sub(d, a, b) => arithmetic!(self, d, a, b, checked_sub, Arith::Sub),
                Op::Mul(d, a, b) => arithmetic!(self, d, a, b, product, Arith::Mul),
                Op::AddInt(d, a, n) => {
                    let a = self.r[a as usize];
                    self.saw::<P>(a, int(n));
                    let sum = if is_int(a) { (a as i32).checked_add(n) } else { None };
                    self.r[d as usize] = match sum {
                        Some(sum) => int(sum),
                        None => {
                            if is_int(a) {
                                self.saw_event::<P>(kind::OVERFLOW);
                            }
                            self.heap.arith(Arith::Add, a, int(n))?
                        }
                    };
                }
                Op::Jump(to) => self.pc = to as usize,
                Op::JumpBack(to) => {
                    if self.turn::<P>(to) {
                        return Ok(Left::Hot);
                    }
                }
                Op::JumpIf(a, to) if is_true(self.r[a as usize]) => self.pc = to as usize,
                Op::JumpUnless(a, to) if !is_true(self.r[a as usize]) => self.pc = to as usize,
                Op::JumpIf(..) | Op::JumpUnless(..) => {}
                Op::JumpLt(a, b, to) => compare_jump!(self, a, b, to, <, Compare::Lt, true),
                Op::JumpNotLt(a, b, to) => compare_jump!(self, a, b, to, <, Compare::Lt, false),
                Op::JumpLe(a, b, to) => compare_jump!(self, a, b, to, <=, Compare::Le, true),
                Op::JumpNotLe(a, b, to) => compare_jump!(self, a, b, to, <=, Compare::Le, false),
                Op::JumpEq(a, b, to) => compare_jump!(self, a, b, to, ==, Compare::Eq, true),
                Op::JumpNe(a, b, to) => compare_jump!(self, a, b, to, ==, Compare::Eq, false),
                Op::ForNext(counter, end, to) => {
                    let (now, end) = (self.r[counter as usize], self.r[end as usize]);
                    self.saw::<P>(now, end);
                    let next = if is_int(now) { (now as i32).checked_add(1) } else { None };
                    let next = match next {
                        Some(next) => int(next),
                        None => {
                            self.saw_event::<P>(kind::OVERFLOW);
                            self.heap.arith(Arith::Add, now, int(1))?
                        }
                    };
                    self.r[counter as usize] = next;
                    let goes_on = match is_int(next) && is_int(end) {
                        true => (next as i32) < (end as i32),
                        false => self.heap.compare(Compare::Lt, next, end)?,
                    };
                    if goes_on && self.turn::<P>(to) {
                        return Ok(Left::Hot);
                    }
                }
                Op::GetField(d, a, site) => {
                    let of = self.r[a as usize];
                    let (shape, place) = self.caches[site as usize];
                    self.saw::<P>(of, NIL);
                    self.r[d as usize] =
                        if tag_of(of) == tag::OBJECT && self.heap.u32(address(of)) == shape {
                            self.heap.word(self.heap.slot(address(of), place))
                        } else {
                            self.read_field(of, site)?
                        };
                }
                Op::GetIndex(d, a, index) => {
                    self.saw::<P>(self.r[a as usize], self.r[index as usize]);
                    let element = self.heap.element(self.r[a as usize], self.r[index as usize])?;
                    self.r[d as usize] = self.heap.word(element);
                }
                Op::SetIndex(a, index, value) => {
                    let [a, index, value] = [a, index, value].map(|at| self.r[at as usize]);
                    self.saw::<P>(a, index);
                    if self.heap.set_index(a, index, value)? {
                        self.saw_event::<P>(kind::APPENDED);
                    }
                }
                Op::Call(to, callee, args) => return Ok(Left::Call { to, callee, args }),
                Op::Return(a) => return Ok(Left::Return(self.r[a as usize])),
                Op::Throw(a) => return Err(Thrown(self.r[a as usize])),
                other => self.rare::<P>(other)?,
            }
        }
    }
}
