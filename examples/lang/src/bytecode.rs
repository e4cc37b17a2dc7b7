//! Register bytecode.
//!
//! `func f(n) { var s = 0; for i in 0..n { s = s + i; } return s; }` becomes
//!
//! ```text
//! 0  Const s, 0          the register of n is 0, that of s is 1
//! 1  Const i, 0
//! 2  Move end, n
//! 3  JumpNotLt i, end, 6
//! 4  Add s, s, i         the loop header: ForNext leads here
//! 5  ForNext i, end, 4
//! 6  Return s
//! ```
//!
//! Variables live in registers, except two kinds. Variables of the outermost level are in the heap
//! ([`crate::heap::GLOBALS`]). Variables that an inner function mentions are in *cells* of the
//! heap, which closures share.

use crate::library::Builtin;
use crate::syntax::Offset;
use crate::value::Word;
use std::collections::HashMap;

/// A register of an activation.
pub type Reg = u8;
/// An index of code.
pub type Pc = u32;

/// An operation on two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arith {
    /// The sum, or two strings joined.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient.
    Div,
    /// The quotient rounded down.
    FloorDiv,
    /// The remainder with the sign of the divisor.
    Mod,
    /// An operation on the low 32 bits, like the operations below.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
    /// A shift to the left.
    Shl,
    /// A signed shift to the right.
    Shr,
}

impl Arith {
    /// All operations, by number.
    pub const ALL: [Arith; 11] = [
        Arith::Add,
        Arith::Sub,
        Arith::Mul,
        Arith::Div,
        Arith::FloorDiv,
        Arith::Mod,
        Arith::And,
        Arith::Or,
        Arith::Xor,
        Arith::Shl,
        Arith::Shr,
    ];

    /// Whether it takes the low 32 bits of whole numbers.
    pub fn is_on_bits(self) -> bool {
        self as u32 >= Arith::And as u32
    }
}

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    /// Equal values.
    Eq,
    /// A smaller number.
    Lt,
    /// A number at most as large.
    Le,
}

/// An instruction, in 8 bytes. The first register is the result, if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Loads a constant.
    Const(Reg, u32),
    /// Copies a register.
    Move(Reg, Reg),
    /// The sum, the most frequent operation.
    Add(Reg, Reg, Reg),
    /// The difference.
    Sub(Reg, Reg, Reg),
    /// The product.
    Mul(Reg, Reg, Reg),
    /// The sum with a small constant.
    AddInt(Reg, Reg, i32),
    /// Any operation on two numbers.
    Arith(Arith, Reg, Reg, Reg),
    /// The negation.
    Negate(Reg, Reg),
    /// Whether a condition does not hold.
    Not(Reg, Reg),
    /// A comparison, as a value.
    Compare(Compare, Reg, Reg, Reg),
    /// Jumps.
    Jump(Pc),
    /// Goes back to a loop header.
    JumpBack(Pc),
    /// Jumps if a condition holds.
    JumpIf(Reg, Pc),
    /// Jumps unless a condition holds.
    JumpUnless(Reg, Pc),
    /// Jumps if the numbers compare so.
    JumpLt(Reg, Reg, Pc),
    /// Unless they do.
    JumpNotLt(Reg, Reg, Pc),
    /// Jumps if the numbers compare so.
    JumpLe(Reg, Reg, Pc),
    /// Unless they do.
    JumpNotLe(Reg, Reg, Pc),
    /// Jumps if the values are equal.
    JumpEq(Reg, Reg, Pc),
    /// Unless they are.
    JumpNe(Reg, Reg, Pc),
    /// Adds 1 to the first register, and goes back to a loop header if it is less than the second.
    ForNext(Reg, Reg, Pc),
    /// Reads a variable of the outermost level.
    GetGlobal(Reg, u32),
    /// Sets one.
    SetGlobal(Reg, u32),
    /// Makes a cell with a value.
    NewCell(Reg, Reg),
    /// Reads a cell in a register.
    GetCell(Reg, Reg),
    /// Sets the cell in the first register to the second.
    SetCell(Reg, Reg),
    /// Reads a cell of the closure.
    GetUp(Reg, u32),
    /// Sets one.
    SetUp(Reg, u32),
    /// Makes a closure.
    Closure(Reg, u32),
    /// Makes an object of a shape.
    NewObject(Reg, u32),
    /// Sets a slot of the new object in the first register to the second.
    InitSlot(Reg, Reg, u32),
    /// Makes an array of this many registers from the second on.
    NewArray(Reg, Reg, u32),
    /// Reads a field by its access site.
    GetField(Reg, Reg, u32),
    /// Sets a field of the first register to the second.
    SetField(Reg, Reg, u32),
    /// Reads an element.
    GetIndex(Reg, Reg, Reg),
    /// Sets the element of the first register at the second to the third.
    SetIndex(Reg, Reg, Reg),
    /// Calls the closure in the second register with this many registers behind it.
    Call(Reg, Reg, u8),
    /// Calls a function of the library with this number of registers from the second on.
    Builtin(Builtin, Reg, Reg, u8),
    /// Returns.
    Return(Reg),
    /// Throws.
    Throw(Reg),
}

impl Op {
    /// Where it may lead other than to the next instruction.
    pub(crate) fn target(&mut self) -> Option<&mut Pc> {
        match self {
            Op::Jump(to) | Op::JumpBack(to) | Op::JumpIf(_, to) | Op::JumpUnless(_, to) => Some(to),
            Op::JumpLt(.., to)
            | Op::JumpNotLt(.., to)
            | Op::JumpLe(.., to)
            | Op::JumpNotLe(.., to)
            | Op::JumpEq(.., to)
            | Op::JumpNe(.., to)
            | Op::ForNext(.., to) => Some(to),
            _ => None,
        }
    }
}

/// A cell that a closure takes along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capture {
    /// The cell in a register of the function around.
    Local(Reg),
    /// A cell of the closure around.
    Up(u32),
}

/// A region of code with a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handler {
    /// Its first instruction.
    pub start: Pc,
    /// Behind its last.
    pub end: Pc,
    /// The handler.
    pub target: Pc,
    /// The register that takes the exception.
    pub register: Reg,
}

/// A constant.
#[derive(Clone, PartialEq, Debug)]
pub enum Constant {
    /// A word.
    Word(Word),
    /// A string, which the heap gets at the start.
    Text(String),
}

/// A compiled function.
#[derive(Clone, Debug, Default)]
pub struct Proto {
    /// Its name.
    pub name: String,
    /// The number of parameters, in the first registers.
    pub params: u8,
    /// The number of registers.
    pub registers: u32,
    /// The instructions.
    pub code: Vec<Op>,
    /// By instruction: the place in the text.
    pub places: Vec<Offset>,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The cells that a closure takes along.
    pub captures: Vec<Capture>,
    /// Handlers, inner handlers first.
    pub handlers: Vec<Handler>,
    /// By access site: the name of the field.
    pub sites: Vec<u32>,
}

impl Proto {
    /// The handler around an instruction.
    pub fn handler(&self, pc: Pc) -> Option<&Handler> {
        self.handlers.iter().find(|handler| (handler.start..handler.end).contains(&pc))
    }
}

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    /// The functions. The last is the outermost level.
    pub protos: Vec<Proto>,
    /// The number of variables of the outermost level.
    pub globals: u32,
    /// By variable of the outermost level that its definition alone sets: the function.
    pub functions: HashMap<u32, u32>,
}
