//! The interpreter.
//!
//! A loop over the instructions of the innermost activation. Registers of all activations are in
//! one stack, so a call moves a window: its arguments are where the callee expects its parameters.
//! A window has 256 registers, which a register number of 8 bits cannot exceed, so that accesses
//! need no test.

use crate::bytecode::{Arith, Capture, Compare, Constant, Op, Pc, Program, Proto, Reg};
use crate::compile;
use crate::heap::{GLOBALS, Heap, PAGES, Place, Runtime, Thrown, at};
use crate::syntax::{self, SyntaxError};
use crate::value::{
    self, NIL, Word, address, as_number, boolean, double, int, is_int, is_true, reference, tag,
    tag_of,
};
use std::fmt;

/// The most activations at once. A call beyond throws `stack overflow`.
pub const MOST_FRAMES: usize = 100_000;

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
    program: Program,
    /// By function: its constants.
    constants: Vec<Vec<Word>>,
    /// By function and access site: the shape that objects had last, and the place of the field.
    caches: Vec<Vec<(u32, Place)>>,
    runtime: Runtime,
    memory: Vec<u8>,
    stack: Vec<Word>,
    frames: Vec<Frame>,
}

/// An activation.
#[derive(Clone, Copy, Debug)]
struct Frame {
    proto: u32,
    /// Its next instruction, while it waits.
    pc: Pc,
    /// Its first register.
    base: usize,
    /// Its closure.
    closure: u32,
    /// The register of the caller that takes the result.
    result: Reg,
}

/// No shape: an access site that has not found a field yet.
const NO_SHAPE: u32 = u32::MAX;

/// How an instruction leaves the loop over those of one activation.
enum Left {
    Call { to: Reg, callee: Reg, args: u8 },
    Return(Word),
    Throw(Thrown),
}

impl Machine {
    /// Compiles a program.
    ///
    /// # Errors
    /// The first error of the text.
    pub fn new(text: &str) -> Result<Machine, SyntaxError> {
        let statements = syntax::parse(text)?;
        let runtime = Runtime::default();
        let program = compile::compile(text, &statements, &mut runtime.shapes())?;
        let mut memory = vec![0; PAGES as usize * 65_536];
        let mut heap = Heap(&mut memory);
        heap.start();
        let full = |_| SyntaxError::new(text, 0, "the strings of the program exceed the heap");
        let mut word = |constant: &Constant| match constant {
            Constant::Word(word) => Ok(*word),
            Constant::Text(text) => heap.string(text.as_bytes()).map_err(full),
        };
        let mut constants = Vec::new();
        for proto in &program.protos {
            constants.push(proto.constants.iter().map(&mut word).collect::<Result<_, _>>()?);
        }
        let empty = (NO_SHAPE, Place::Inside(0));
        let caches = program.protos.iter().map(|proto| vec![empty; proto.sites.len()]).collect();
        let (stack, frames) = (Vec::new(), Vec::new());
        let text = text.to_owned();
        Ok(Machine { text, program, constants, caches, runtime, memory, stack, frames })
    }

    /// The output of the program since the last call.
    pub fn take_output(&self) -> Vec<u8> {
        self.runtime.take_output()
    }

    /// Runs the program from its start.
    ///
    /// # Errors
    /// The exception that ended it.
    pub fn run(&mut self) -> Result<(), Uncaught> {
        let main = self.program.protos.len() as u32 - 1;
        self.frames.push(Frame { proto: main, pc: 0, base: 0, closure: 0, result: 0 });
        self.stack.resize(WINDOW, NIL);
        loop {
            let (frame, left) = self.steps();
            let pc = frame.pc;
            *self.frames.last_mut().expect("a frame is running") = frame;
            let thrown = match left {
                Left::Call { to, callee, args } => self.call(to, callee, args).err(),
                Left::Return(result) => {
                    self.frames.pop();
                    let Some(caller) = self.frames.last() else { return Ok(()) };
                    self.stack[caller.base + usize::from(frame.result)] = result;
                    None
                }
                Left::Throw(thrown) => Some(thrown),
            };
            if let Some(Thrown(exception)) = thrown {
                let place = self.program.protos[frame.proto as usize].places[pc as usize - 1];
                self.unwind(exception).map_err(|()| {
                    let what = Heap(&mut self.memory).show(exception);
                    let SyntaxError { line, column, what } =
                        SyntaxError::new(&self.text, place as usize, what);
                    Uncaught { line, column, what }
                })?;
            }
        }
    }

    /// Gives an exception to the innermost handler. Fails if there is none.
    fn unwind(&mut self, exception: Word) -> Result<(), ()> {
        while let Some(frame) = self.frames.last_mut() {
            let proto = &self.program.protos[frame.proto as usize];
            // The program counter is behind the instruction that has thrown or called.
            if let Some(handler) = proto.handler(frame.pc - 1) {
                frame.pc = handler.target;
                self.stack[frame.base + usize::from(handler.register)] = exception;
                return Ok(());
            }
            self.frames.pop();
        }
        Err(())
    }

    /// Begins an activation of a closure.
    fn call(&mut self, to: Reg, callee: Reg, args: u8) -> Result<(), Thrown> {
        let caller = *self.frames.last().expect("a frame is running");
        let base = caller.base + usize::from(callee) + 1;
        let word = self.stack[base - 1];
        let mut heap = Heap(&mut self.memory);
        if tag_of(word) != tag::CLOSURE {
            return Err(heap.raise(&format!("a {} is no function", value::type_name(word))));
        }
        let closure = address(word);
        let number = heap.u32(closure);
        let proto = &self.program.protos[number as usize];
        if proto.params != args {
            let what = format!("{} takes {} arguments, not {args}", proto.name, proto.params);
            return Err(heap.raise(&what));
        }
        if self.frames.len() >= MOST_FRAMES {
            return Err(heap.raise("stack overflow"));
        }
        if self.stack.len() < base + WINDOW {
            self.stack.resize((base + WINDOW) * 2, NIL);
        }
        self.frames.push(Frame { proto: number, pc: 0, base, closure, result: to });
        Ok(())
    }

    /// Runs instructions of the innermost activation until it calls, returns or throws. Returns the
    /// activation as it is then.
    fn steps(&mut self) -> (Frame, Left) {
        let frame = *self.frames.last().expect("a frame is running");
        let number = frame.proto as usize;
        let window =
            self.stack[frame.base..].first_chunk_mut().expect("a window has its registers");
        let proto = &self.program.protos[number];
        let mut activation = Activation {
            proto,
            constants: &self.constants[number],
            caches: &mut self.caches[number],
            runtime: &self.runtime,
            heap: Heap(&mut self.memory),
            r: window,
            closure: frame.closure,
            pc: frame.pc as usize,
            program: &self.program,
        };
        let left = activation.run().unwrap_or_else(Left::Throw);
        (Frame { pc: activation.pc as Pc, ..frame }, left)
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
}

/// The result of an operation on two int32, and of the same on two doubles.
macro_rules! arithmetic {
    ($self:ident, $d:ident, $a:ident, $b:ident, $checked:ident, $kind:expr) => {{
        let (a, b) = ($self.r[$a as usize], $self.r[$b as usize]);
        if is_int(a)
            && is_int(b)
            && let Some(result) = (a as i32).$checked(b as i32)
        {
            $self.r[$d as usize] = int(result);
        } else {
            $self.r[$d as usize] = $self.slow($kind, a, b)?;
        }
    }};
}

/// A jump on the comparison of two numbers.
macro_rules! compare_jump {
    ($self:ident, $a:ident, $b:ident, $to:ident, $op:tt, $kind:expr, $when:expr) => {{
        let (a, b) = ($self.r[$a as usize], $self.r[$b as usize]);
        let holds = match is_int(a) && is_int(b) {
            true => (a as i32) $op (b as i32),
            false => $self.compare($kind, a, b)?,
        };
        if holds == $when {
            $self.pc = $to as usize;
        }
    }};
}

impl Activation<'_> {
    /// The loop over instructions.
    fn run(&mut self) -> Result<Left, Thrown> {
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
                    let sum = if is_int(a) { (a as i32).checked_add(n) } else { None };
                    self.r[d as usize] = match sum {
                        Some(sum) => int(sum),
                        None => self.slow(Arith::Add, a, int(n))?,
                    };
                }
                Op::Jump(to) | Op::JumpBack(to) => self.pc = to as usize,
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
                    let now = self.r[counter as usize];
                    let next = if is_int(now) { (now as i32).checked_add(1) } else { None };
                    self.r[counter as usize] = match next {
                        Some(next) => int(next),
                        None => self.slow(Arith::Add, now, int(1))?,
                    };
                    compare_jump!(self, counter, end, to, <, Compare::Lt, true);
                }
                Op::GetField(d, a, site) => {
                    let of = self.r[a as usize];
                    let (shape, place) = self.caches[site as usize];
                    self.r[d as usize] =
                        if tag_of(of) == tag::OBJECT && self.heap.u32(address(of)) == shape {
                            self.heap.word(self.heap.slot(address(of), place))
                        } else {
                            self.read_field(of, site)?
                        };
                }
                Op::GetIndex(d, a, index) => {
                    let element = self.element(self.r[a as usize], self.r[index as usize])?;
                    self.r[d as usize] = self.heap.word(element);
                }
                Op::SetIndex(a, index, value) => {
                    let value = self.r[value as usize];
                    self.set_index(self.r[a as usize], self.r[index as usize], value)?;
                }
                Op::Call(to, callee, args) => return Ok(Left::Call { to, callee, args }),
                Op::Return(a) => return Ok(Left::Return(self.r[a as usize])),
                Op::Throw(a) => return Err(Thrown(self.r[a as usize])),
                other => self.rare(other)?,
            }
        }
    }

    /// The other instructions.
    fn rare(&mut self, op: Op) -> Result<(), Thrown> {
        match op {
            Op::Arith(arith, d, a, b) => {
                self.r[d as usize] = self.slow(arith, self.r[a as usize], self.r[b as usize])?;
            }
            Op::Negate(d, a) => {
                let word = self.r[a as usize];
                let number = as_number(word).ok_or_else(|| self.unfit("-", word, None))?;
                self.r[d as usize] = value::number(-number);
            }
            Op::Not(d, a) => self.r[d as usize] = boolean(!is_true(self.r[a as usize])),
            Op::Compare(kind, d, a, b) => {
                let holds = self.compare(kind, self.r[a as usize], self.r[b as usize])?;
                self.r[d as usize] = boolean(holds);
            }
            Op::GetGlobal(d, global) => self.r[d as usize] = self.heap.word(GLOBALS + global * 8),
            Op::SetGlobal(a, global) => {
                self.heap.set_word(GLOBALS + global * 8, self.r[a as usize])
            }
            Op::NewCell(d, a) => {
                let cell = self.heap.allocate(8)?;
                self.heap.set_word(cell, self.r[a as usize]);
                self.r[d as usize] = reference(tag::CELL, cell);
            }
            Op::GetCell(d, a) => self.r[d as usize] = self.heap.word(address(self.r[a as usize])),
            Op::SetCell(cell, a) => {
                self.heap.set_word(address(self.r[cell as usize]), self.r[a as usize]);
            }
            Op::GetUp(d, up) => {
                let cell = address(self.heap.word(self.closure + at::CELLS + up * 8));
                self.r[d as usize] = self.heap.word(cell);
            }
            Op::SetUp(a, up) => {
                let cell = address(self.heap.word(self.closure + at::CELLS + up * 8));
                self.heap.set_word(cell, self.r[a as usize]);
            }
            Op::Closure(d, number) => self.r[d as usize] = self.make_closure(number)?,
            Op::NewObject(d, shape) => {
                let inside = self.runtime.shapes().inside(shape);
                self.r[d as usize] = self.heap.object(shape, inside)?;
            }
            Op::InitSlot(object, a, slot) => {
                let at = address(self.r[object as usize]) + at::SLOTS + slot * 8;
                self.heap.set_word(at, self.r[a as usize]);
            }
            Op::NewArray(d, from, count) => {
                let elements = &self.r[from as usize..from as usize + count as usize];
                self.r[d as usize] = self.heap.array(elements)?;
            }
            Op::SetField(object, a, site) => {
                self.write_field(self.r[object as usize], site, self.r[a as usize])?;
            }
            Op::Builtin(which, d, from, count) => {
                let args = &self.r[from as usize..from as usize + usize::from(count)];
                self.r[d as usize] = self.runtime.builtin(&mut self.heap, which, args)?;
            }
            frequent => unreachable!("the loop handles {frequent:?}"),
        }
        Ok(())
    }

    fn make_closure(&mut self, number: u32) -> Result<Word, Thrown> {
        let captures = &self.program.protos[number as usize].captures;
        let closure = self.heap.allocate(u64::from(at::CELLS) + captures.len() as u64 * 8)?;
        self.heap.set_u32(closure, number);
        self.heap.set_u32(closure + 4, captures.len() as u32);
        for (index, capture) in (0..).zip(captures) {
            let cell = match capture {
                Capture::Local(register) => self.r[*register as usize],
                Capture::Up(up) => self.heap.word(self.closure + at::CELLS + up * 8),
            };
            self.heap.set_word(closure + at::CELLS + index * 8, cell);
        }
        Ok(reference(tag::CLOSURE, closure))
    }

    #[cold]
    fn unfit(&mut self, what: &str, a: Word, b: Option<Word>) -> Thrown {
        let and = b.map_or(String::new(), |b| format!(" and {}", value::type_name(b)));
        self.heap.raise(&format!("{what} does not take {}{and}", value::type_name(a)))
    }

    /// An operation on any two values. A number that an int32 can stand for becomes one.
    #[cold]
    fn slow(&mut self, arith: Arith, a: Word, b: Word) -> Result<Word, Thrown> {
        let (Some(x), Some(y)) = (as_number(a), as_number(b)) else {
            return match tag_of(a) == tag::STRING && tag_of(b) == tag::STRING {
                true if arith == Arith::Add => self.heap.concat(a, b),
                _ => Err(self.unfit(&format!("{arith:?}"), a, Some(b))),
            };
        };
        Ok(match arith {
            Arith::Add => double(x + y),
            Arith::Sub => double(x - y),
            Arith::Mul => double(x * y),
            Arith::Div => double(x / y),
            Arith::FloorDiv => value::number((x / y).floor()),
            Arith::Mod => value::number(x - (x / y).floor() * y),
            _ => {
                let (Some(x), Some(y)) = (low_bits(x), low_bits(y)) else {
                    return Err(self.heap.raise("an operation on bits needs whole numbers"));
                };
                int(match arith {
                    Arith::And => x & y,
                    Arith::Or => x | y,
                    Arith::Xor => x ^ y,
                    Arith::Shl => x.wrapping_shl(y as u32),
                    _ => x.wrapping_shr(y as u32),
                })
            }
        })
    }

    fn compare(&mut self, kind: Compare, a: Word, b: Word) -> Result<bool, Thrown> {
        if kind == Compare::Eq {
            return Ok(self.heap.equal(a, b));
        }
        match (as_number(a), as_number(b)) {
            (Some(a), Some(b)) if kind == Compare::Lt => Ok(a < b),
            (Some(a), Some(b)) => Ok(a <= b),
            _ => Err(self.unfit("a comparison", a, Some(b))),
        }
    }

    /// The address of an element.
    #[inline]
    fn element(&mut self, array: Word, index: Word) -> Result<u32, Thrown> {
        let at = if is_int(index) { Some(index as i32 as u32) } else { whole(index) };
        if tag_of(array) == tag::ARRAY
            && let Some(at) = at
            && at < self.heap.u32(address(array))
        {
            return Ok(self.heap.u32(address(array) + at::ELEMENTS) + at * 8);
        }
        Err(self.no_element(array, index))
    }

    #[cold]
    fn no_element(&mut self, array: Word, index: Word) -> Thrown {
        if tag_of(array) != tag::ARRAY {
            return self.unfit("an index", array, None);
        }
        let (index, length) = (self.heap.show(index), self.heap.u32(address(array)));
        self.heap.raise(&format!("index {index} of an array of {length}"))
    }

    /// Sets an element. The one behind the last is appended.
    fn set_index(&mut self, array: Word, index: Word, value: Word) -> Result<(), Thrown> {
        let at = if is_int(index) { Some(index as i32 as u32) } else { whole(index) };
        if tag_of(array) == tag::ARRAY && at == Some(self.heap.u32(address(array))) {
            return self.heap.push(address(array), value);
        }
        let element = self.element(array, index)?;
        self.heap.set_word(element, value);
        Ok(())
    }

    #[cold]
    fn read_field(&mut self, of: Word, site: u32) -> Result<Word, Thrown> {
        let name = self.proto.sites[site as usize];
        let value = self.runtime.field(&mut self.heap, of, name)?;
        self.note(of, site, name);
        Ok(value)
    }

    /// Remembers the shape of an object at an access site, and where it has the field.
    fn note(&mut self, of: Word, site: u32, name: u32) {
        let shape = self.heap.u32(address(of));
        if let Some(place) = self.runtime.shapes().place(shape, name) {
            self.caches[site as usize] = (shape, place);
        }
    }

    fn write_field(&mut self, of: Word, site: u32, value: Word) -> Result<(), Thrown> {
        let (shape, place) = self.caches[site as usize];
        if tag_of(of) == tag::OBJECT && self.heap.u32(address(of)) == shape {
            let slot = self.heap.slot(address(of), place);
            self.heap.set_word(slot, value);
            return Ok(());
        }
        let name = self.proto.sites[site as usize];
        self.runtime.set_field(&mut self.heap, (of, name), value)?;
        self.note(of, site, name);
        Ok(())
    }
}

/// The product of two int32, unless it overflows or is `-0`, which is no int32.
trait Product: Sized {
    fn product(self, other: Self) -> Option<Self>;
}

impl Product for i32 {
    #[inline(always)]
    fn product(self, other: i32) -> Option<i32> {
        let product = self.checked_mul(other)?;
        (product != 0 || (self | other) >= 0).then_some(product)
    }
}

/// The low 32 bits of a whole number.
fn low_bits(number: f64) -> Option<i32> {
    (number == number.trunc() && number.abs() < 9e15).then_some(number as i64 as i32)
}

/// The index that a double stands for, if it is one.
fn whole(index: Word) -> Option<u32> {
    let number = as_number(index)?;
    (number == number.trunc() && (0.0..4e9).contains(&number)).then_some(number as u32)
}
