//! The data of instructions.

use crate::entity::{Block, Data, Elem, Func, Global, Inst, Memory, OsrPoint, Sig, Table, Value};
use crate::opcode::{Opcode, Shape};
use crate::trap::TrapKind;
use crate::types::Type;
use smallvec::SmallVec;

/// The immediate of an instruction: its part besides opcode, types and values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Imm {
    /// No immediate.
    None,
    /// The bits of a constant, as [`Type::mask`] says.
    Bits(u64),
    /// A memory and a constant offset in bytes. The sum of address and offset does not wrap.
    Address(Memory, u64),
    /// A host memory and a constant offset in bytes. The sum of address and offset does not wrap.
    HostAddress(Memory, u64),
    /// A memory.
    Memory(Memory),
    /// A global.
    Global(Global),
    /// The function called.
    Func(Func),
    /// The expected signature and the table of an indirect call.
    Indirect(Sig, Table),
    /// The kind of a trap.
    Trap(TrapKind),
    /// The destination memory and the source memory of a copy.
    Memories(Memory, Memory),
    /// The destination memory and the source segment of a copy.
    MemoryData(Memory, Data),
    /// A data segment.
    Data(Data),
    /// A table.
    Table(Table),
    /// The destination table and the source table of a copy.
    Tables(Table, Table),
    /// The destination table and the source segment of a copy.
    TableElem(Table, Elem),
    /// An element segment.
    Elem(Elem),
    /// A point at which a run may leave the version.
    Exit(OsrPoint),
    /// The bits that an assumption expects, as [`Type::mask`] says, and the embedder's number for
    /// its reason.
    Assumed(u64, u32),
}

impl Imm {
    /// The memory and the constant offset of a load or store; `None` for other immediates.
    pub fn address(&self) -> Option<(Memory, u64)> {
        match *self {
            Imm::Address(memory, offset) | Imm::HostAddress(memory, offset) => {
                Some((memory, offset))
            }
            _ => None,
        }
    }

    /// The type of the address operand of a load or store; `None` for other immediates.
    pub fn address_type(&self) -> Option<Type> {
        match self {
            Imm::Address(..) => Some(Type::I32),
            Imm::HostAddress(..) => Some(Type::I64),
            _ => None,
        }
    }
}

/// A target of a terminator: a block and one argument for each of its parameters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// The block at which control continues.
    pub block: Block,
    /// The arguments, in the order of the block's parameters.
    pub args: SmallVec<[Value; 2]>,
}

impl Target {
    /// A target with these arguments.
    pub fn new(block: Block, args: &[Value]) -> Target {
        Target { block, args: args.into() }
    }
}

impl From<Block> for Target {
    /// A target without arguments.
    fn from(block: Block) -> Target {
        Target::new(block, &[])
    }
}

/// A control-flow edge: a terminator and the index of one of its targets. Two edges may connect the
/// same blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Edge {
    /// The terminator of the source block.
    pub inst: Inst,
    /// The index of the target among the terminator's targets.
    pub index: u32,
}

/// The data of an instruction, without its position.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InstData {
    /// The operation.
    pub opcode: Opcode,
    /// The controlling type; `i32` by convention for an opcode without a controlling type.
    pub ty: Type,
    /// The immediate.
    pub imm: Imm,
    /// The value operands, without the arguments of targets.
    pub args: SmallVec<[Value; 3]>,
    /// The results.
    pub results: SmallVec<[Value; 1]>,
    /// The targets; empty unless the instruction is a terminator.
    pub targets: Vec<Target>,
}

impl InstData {
    /// The result of an instruction with exactly one result; `None` otherwise.
    pub fn result(&self) -> Option<Value> {
        match self.results.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Every operand: the value operands first, then the arguments of the targets in order.
    pub fn operands(&self) -> impl Iterator<Item = Value> + '_ {
        self.args.iter().copied().chain(self.targets.iter().flat_map(|t| t.args.iter().copied()))
    }

    /// The number of operands, including the arguments of targets.
    pub fn operand_count(&self) -> usize {
        self.args.len() + self.targets.iter().map(|t| t.args.len()).sum::<usize>()
    }

    /// The operand with this index in the order of [`InstData::operands`].
    pub fn operand(&self, index: usize) -> Option<Value> {
        self.operands().nth(index)
    }

    /// Mutable access to the operand with this index.
    pub(crate) fn operand_mut(&mut self, index: usize) -> Option<&mut Value> {
        let InstData { args, targets, .. } = self;
        args.iter_mut().chain(targets.iter_mut().flat_map(|t| t.args.iter_mut())).nth(index)
    }

    /// The bits of a constant instruction; `None` for other instructions.
    pub fn constant(&self) -> Option<u64> {
        match (self.opcode, self.imm) {
            (Opcode::Const, Imm::Bits(bits)) => Some(bits),
            _ => None,
        }
    }

    /// The operand of an assumption that it is about, and the bits that it expects; `None` for
    /// other instructions.
    pub fn assumed(&self) -> Option<(Value, u64)> {
        match (self.opcode, self.imm, self.args.first()) {
            (Opcode::Assume, Imm::Assumed(bits, _), Some(value)) => Some((*value, bits)),
            _ => None,
        }
    }
}

/// The description of an instruction to be created: all its data except its ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstSpec {
    /// The operation.
    pub opcode: Opcode,
    /// The controlling type: the suffix in the text form, `i64` in `load.i64`. Opcodes without a
    /// suffix ([`Opcode::has_type_suffix`]), such as `call`, `jump` and `trap`, have [`Type::I32`]
    /// here, whatever the types of their operands are.
    pub ty: Type,
    /// The immediate.
    pub imm: Imm,
    /// The value operands.
    pub args: SmallVec<[Value; 3]>,
    /// The types of the results.
    pub result_types: SmallVec<[Type; 1]>,
    /// The targets; empty unless the instruction is a terminator.
    pub targets: Vec<Target>,
}

impl InstSpec {
    /// An instruction whose opcode and controlling type determine its result type.
    pub fn new(opcode: Opcode, ty: Type, imm: Imm, args: &[Value]) -> InstSpec {
        InstSpec {
            opcode,
            ty,
            imm,
            args: args.into(),
            result_types: opcode.result_type(ty).into_iter().collect(),
            targets: Vec::new(),
        }
    }

    /// A constant. Bits outside the type are dropped.
    pub fn constant(ty: Type, bits: u64) -> InstSpec {
        InstSpec::new(Opcode::Const, ty, Imm::Bits(bits & ty.mask()), &[])
    }

    /// An assumption that a value has these bits. Bits outside the type are dropped.
    pub fn assume(ty: Type, value: Value, bits: u64, reason: u32) -> InstSpec {
        InstSpec::new(Opcode::Assume, ty, Imm::Assumed(bits & ty.mask(), reason), &[value])
    }

    /// A call. The result types are the result types of the callee's signature.
    pub fn call(callee: Func, args: &[Value], results: &[Type]) -> InstSpec {
        InstSpec {
            result_types: results.into(),
            ..InstSpec::new(Opcode::Call, Type::I32, Imm::Func(callee), args)
        }
    }

    /// A call of a function with a declared effect, whose result is a number of type `ty`:
    /// [`Opcode::CallPure`] or [`Opcode::CallReads`].
    ///
    /// # Panics
    /// When the opcode is not of this shape.
    pub fn call_value(opcode: Opcode, callee: Func, args: &[Value], ty: Type) -> InstSpec {
        assert_eq!(opcode.shape(), Shape::CallValue, "{} is no such call", opcode.name());
        InstSpec::new(opcode, ty, Imm::Func(callee), args)
    }

    /// An indirect call. The last operand is the table index.
    pub fn call_indirect(sig: Sig, table: Table, args: &[Value], results: &[Type]) -> InstSpec {
        let spec = InstSpec::new(Opcode::CallIndirect, Type::I32, Imm::Indirect(sig, table), args);
        InstSpec { result_types: results.into(), ..spec }
    }

    /// A trap. The outcome of the run reports the operand, an `i32` or an `i64`.
    pub fn trap(kind: TrapKind, operand: Option<Value>) -> InstSpec {
        InstSpec::new(Opcode::Trap, Type::I32, Imm::Trap(kind), operand.as_slice())
    }

    /// A terminator.
    pub fn terminator(opcode: Opcode, args: &[Value], targets: Vec<Target>) -> InstSpec {
        InstSpec { targets, ..InstSpec::new(opcode, Type::I32, Imm::None, args) }
    }
}
