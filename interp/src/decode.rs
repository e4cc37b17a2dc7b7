//! Pre-decodes one version of a function for the exact dispatch loop.

use super::bulk::BulkOp;
use super::code::{Code, FarAccess, NONE};
use super::fast;
use super::fast::data::Fast;
use super::moves::sequentialize;
use super::op::{Code as OpCode, Op, value_code};
use cranelift_entity::EntityRef;
use ir::entity::{Block, Point, Value};
use ir::function::Function;
use ir::inst::{Imm, InstData, Target};
use ir::module::Module;
use ir::opcode::{Opcode, Shape};
use ir::types::Type;
use transition::VersionKey;

impl Code {
    /// Pre-decodes one version of a function of `module`. The function must be verified.
    ///
    /// Cost: linear in the function and in its id bounds. Where loops pass arguments, the cost adds
    /// the blocks in which these arguments are live.
    ///
    /// # Panics
    /// When the verifier would reject the function for this module, or when the function has 2^32
    /// operands or more.
    pub fn new(module: &Module, function: &Function) -> Code {
        let mut decoder = Decoder::new(module, function);
        decoder.number_values();
        decoder.number_insts();
        for inst in function.all_insts() {
            let op = decoder.op(function.inst(inst));
            decoder.code.ops.push(op);
        }
        let mut code = decoder.finish();
        code.fast = fast::decode(module, function, &code);
        code.consts = code.fast.as_ref().map_or(0, Fast::constants);
        code
    }
}

struct Decoder<'a> {
    module: &'a Module,
    function: &'a Function,
    code: Code,
    /// The pc of each block id.
    blocks: Vec<u32>,
    /// The moves on edges, which `finish` appends after the instructions.
    edges: Vec<Op>,
}

/// A length or index as a 32-bit field of an [`Op`].
fn narrow(length: usize) -> u32 {
    u32::try_from(length).expect("interp: a function has fewer than 2^32 operands")
}

impl<'a> Decoder<'a> {
    fn new(module: &'a Module, function: &'a Function) -> Decoder<'a> {
        let code = Code {
            key: VersionKey::of(function),
            ops: Vec::new(),
            pool: Vec::new(),
            far: Vec::new(),
            bulk: Vec::new(),
            traps: Vec::new(),
            params: narrow(function.arguments().len()),
            frame_size: 0,
            fast: None,
            consts: 0,
            insts: Vec::new(),
            pcs: vec![NONE; function.inst_bound()],
            slots: vec![NONE; function.value_bound()],
            values: Vec::new(),
        };
        Decoder {
            module,
            function,
            code,
            blocks: vec![NONE; function.block_bound()],
            edges: Vec::new(),
        }
    }

    fn number_values(&mut self) {
        let function = self.function;
        for block in function.blocks() {
            let params = function.block_params(block).iter();
            let results = function.block_insts(block).flat_map(|i| function.inst(i).results.iter());
            for value in params.chain(results) {
                self.code.slots[value.index()] = narrow(self.code.values.len());
                self.code.values.push(*value);
            }
        }
        self.code.frame_size = narrow(self.code.values.len() + 1);
    }

    fn number_insts(&mut self) {
        for block in self.function.blocks() {
            self.blocks[block.index()] = narrow(self.code.insts.len());
            for inst in self.function.block_insts(block) {
                self.code.pcs[inst.index()] = narrow(self.code.insts.len());
                self.code.insts.push(inst);
            }
        }
    }

    fn finish(mut self) -> Code {
        self.code.ops.append(&mut self.edges);
        self.code
    }

    fn slot(&self, value: Value) -> u32 {
        self.code
            .slot_of(value)
            .unwrap_or_else(|| panic!("interp: {} has no {value}", self.function.name()))
    }

    fn block_pc(&self, block: Block) -> u32 {
        self.blocks[block.index()]
    }

    /// Appends the slots of values to the pool and returns the index of the first.
    fn pool_slots(&mut self, values: &[Value]) -> u32 {
        let at = narrow(self.code.pool.len());
        for value in values {
            let slot = self.slot(*value);
            self.code.pool.push(slot);
        }
        at
    }

    fn op(&mut self, data: &InstData) -> Op {
        match data.opcode.shape() {
            Shape::Load(_) => self.load(data),
            Shape::Store(_) => self.store(data),
            Shape::Call | Shape::CallIndirect => self.call(data),
            Shape::Jump | Shape::BrIf | Shape::Switch | Shape::Return => self.terminator(data),
            Shape::Trap | Shape::OsrExit => self.terminator(data),
            Shape::MemorySize | Shape::MemoryGrow | Shape::GlobalGet | Shape::GlobalSet => {
                self.state_access(data)
            }
            Shape::MemoryCopy | Shape::MemoryFill | Shape::MemoryInit | Shape::DataDrop => {
                self.bulk(data)
            }
            Shape::TableGet | Shape::TableSet | Shape::TableSize | Shape::TableGrow => {
                self.bulk(data)
            }
            Shape::TableFill | Shape::TableCopy | Shape::TableInit | Shape::ElemDrop => {
                self.bulk(data)
            }
            Shape::OsrTest => {
                let to = data.result().expect("interp: a test of an OSR point has one result");
                Op::new(OpCode::Const, self.slot(to), 0, 0)
            }
            _ => self.value_op(data),
        }
    }

    /// Decodes an operation on values, including constants.
    fn value_op(&mut self, data: &InstData) -> Op {
        let to = self.slot(data.result().expect("interp: an operation on values has one result"));
        let arg =
            |decoder: &Self, index: usize| data.args.get(index).map_or(0, |v| decoder.slot(*v));
        match (data.opcode, data.imm) {
            (Opcode::Const, Imm::Bits(bits)) => {
                let bits = bits & data.ty.mask();
                Op::new(OpCode::Const, to, bits as u32, (bits >> 32) as u32)
            }
            (Opcode::Select, _) => {
                let at = self.pool_slots(&data.args);
                Op::new(OpCode::Select, to, at, 0)
            }
            // Values keep the bits outside their type clear, so both operations are plain copies.
            (Opcode::Uextend | Opcode::Bitcast, _) => Op::new(OpCode::Copy, to, arg(self, 0), 0),
            (opcode, _) => {
                let source = self.function.value_type(data.args[0]);
                let code = value_code(opcode, data.ty, source).unwrap_or_else(|| {
                    panic!("interp: no code for {} of {} and {source}", opcode.name(), data.ty)
                });
                Op::new(code, to, arg(self, 0), arg(self, 1))
            }
        }
    }

    fn load(&mut self, data: &InstData) -> Op {
        use Opcode::{Sload8, Sload16, Sload32};
        let to = self.slot(data.result().expect("interp: a load has one result"));
        let address = self.slot(data.args[0]);
        let access = far_access(data);
        let code = match (access.bytes, access.signed, access.ty) {
            (1, true, Type::I16) => OpCode::Load1I16,
            (1, true, Type::I32) => OpCode::Load1I32,
            (1, true, _) => OpCode::Load1I64,
            (2, true, Type::I32) => OpCode::Load2I32,
            (2, true, _) => OpCode::Load2I64,
            (4, true, _) => OpCode::Load4I64,
            (1, ..) => OpCode::Load1,
            (2, ..) => OpCode::Load2,
            (4, ..) => OpCode::Load4,
            _ => OpCode::Load8,
        };
        debug_assert_eq!(access.signed, matches!(data.opcode, Sload8 | Sload16 | Sload32));
        match self.near_or_far(access) {
            Ok(offset) => Op::new(code, to, address, offset),
            Err(index) => Op::new(OpCode::LoadFar, to, address, index),
        }
    }

    fn store(&mut self, data: &InstData) -> Op {
        let (address, value) = (self.slot(data.args[0]), self.slot(data.args[1]));
        let access = far_access(data);
        let code = match access.bytes {
            1 => OpCode::Store1,
            2 => OpCode::Store2,
            4 => OpCode::Store4,
            _ => OpCode::Store8,
        };
        match self.near_or_far(access) {
            Ok(offset) => Op::new(code, address, value, offset),
            Err(index) => Op::new(OpCode::StoreFar, address, value, index),
        }
    }

    /// The offset of an access that fits an [`Op`], or else the index of its `FarAccess`.
    fn near_or_far(&mut self, access: FarAccess) -> Result<u32, u32> {
        match u32::try_from(access.offset) {
            Ok(offset) if access.memory.index() == 0 => Ok(offset),
            _ => {
                self.code.far.push(access);
                Err(narrow(self.code.far.len() - 1))
            }
        }
    }

    fn state_access(&mut self, data: &InstData) -> Op {
        let result = data.result().map_or(0, |v| self.slot(v));
        let operand = data.args.first().map_or(0, |v| self.slot(*v));
        match (data.opcode, data.imm) {
            (Opcode::MemorySize, Imm::Memory(m)) => {
                Op::new(OpCode::MemorySize, result, m.as_u32(), 0)
            }
            (Opcode::MemoryGrow, Imm::Memory(m)) => {
                Op::new(OpCode::MemoryGrow, result, m.as_u32(), operand)
            }
            (Opcode::GlobalGet, Imm::Global(g)) => {
                Op::new(OpCode::GlobalGet, result, g.as_u32(), 0)
            }
            (Opcode::GlobalSet, Imm::Global(g)) => {
                Op::new(OpCode::GlobalSet, operand, g.as_u32(), 0)
            }
            (opcode, imm) => panic!("interp: {} has immediate {imm:?}", opcode.name()),
        }
    }

    /// Decodes an operation on ranges, tables or segments.
    fn bulk(&mut self, data: &InstData) -> Op {
        let mut args = [0; 3];
        for (slot, value) in args.iter_mut().zip(&data.args) {
            *slot = self.slot(*value);
        }
        let result = data.result().map(|value| self.slot(value));
        self.code.bulk.push(BulkOp { opcode: data.opcode, imm: data.imm, args, result });
        Op::new(OpCode::Bulk, narrow(self.code.bulk.len() - 1), 0, 0)
    }

    fn call(&mut self, data: &InstData) -> Op {
        match data.imm {
            Imm::Func(callee) => {
                let at = self.pool_slots(&data.args);
                self.pool_slots(&data.results);
                let imported = self.module.funcs[callee].import.is_some();
                let code = if imported { OpCode::CallHost } else { OpCode::Call };
                Op::new(code, callee.as_u32(), at, narrow(data.args.len()))
            }
            Imm::Indirect(sig, table) => {
                let (index, args) =
                    data.args.split_last().expect("interp: an indirect call has an index");
                let at = narrow(self.code.pool.len());
                let index = self.slot(*index);
                self.code.pool.extend([table.as_u32(), index]);
                self.pool_slots(args);
                self.pool_slots(&data.results);
                Op::new(OpCode::CallIndirect, sig.as_u32(), at, narrow(args.len()))
            }
            imm => panic!("interp: {} has immediate {imm:?}", data.opcode.name()),
        }
    }

    fn terminator(&mut self, data: &InstData) -> Op {
        match (data.opcode, data.imm) {
            (Opcode::Jump, _) => self.moves(&data.targets[0], OpCode::Jump1, OpCode::JumpN),
            (Opcode::BrIf, _) => {
                let condition = self.slot(data.args[0]);
                let (then, otherwise) = (self.edge(&data.targets[0]), self.edge(&data.targets[1]));
                Op::new(OpCode::BrIf, condition, then, otherwise)
            }
            (Opcode::Switch, _) => {
                let index = self.slot(data.args[0]);
                let targets: Vec<u32> = data.targets.iter().map(|t| self.edge(t)).collect();
                let at = narrow(self.code.pool.len());
                self.code.pool.extend(&targets);
                Op::new(OpCode::Switch, index, at, narrow(targets.len() - 1))
            }
            (Opcode::Return, _) => {
                let at = self.pool_slots(&data.args);
                Op::new(OpCode::Return, at, narrow(data.args.len()), 0)
            }
            (_, Imm::Exit(point)) => {
                let at = self.pool_slots(&data.args);
                Op::new(OpCode::Leave, point.as_u32(), at, narrow(data.args.len()))
            }
            (_, Imm::Trap(kind)) => {
                self.code.traps.push(kind);
                Op::new(OpCode::Trap, narrow(self.code.traps.len() - 1), 0, 0)
            }
            (opcode, imm) => panic!("interp: {} has immediate {imm:?}", opcode.name()),
        }
    }

    /// The pc a branch jumps to for this target: the moves on the edge if there are any, else the
    /// block.
    fn edge(&mut self, target: &Target) -> u32 {
        let op = self.moves(target, OpCode::Edge1, OpCode::EdgeN);
        if op.code == OpCode::Jump {
            return op.c;
        }
        self.edges.push(op);
        narrow(self.code.insts.len() + self.edges.len() - 1)
    }

    /// The moves to a target as one operation: `Jump` without moves, `one` for a single move, else
    /// `many`.
    fn moves(&mut self, target: &Target, one: OpCode, many: OpCode) -> Op {
        let pc = self.block_pc(target.block);
        let params = self.function.block_params(target.block);
        assert_eq!(params.len(), target.args.len(), "interp: the arguments of {}", target.block);
        let moves: Vec<_> =
            params.iter().zip(&target.args).map(|(p, a)| (self.slot(*p), self.slot(*a))).collect();
        match sequentialize(&moves, self.code.frame_size - 1).as_slice() {
            [] => Op::new(OpCode::Jump, 0, 0, pc),
            [(to, from)] => Op::new(one, *to, *from, pc),
            sequence => {
                let at = narrow(self.code.pool.len());
                self.code.pool.extend(sequence.iter().flat_map(|(to, from)| [*to, *from]));
                Op::new(many, at, narrow(sequence.len()), pc)
            }
        }
    }
}

/// The memory, offset and width that a load or store accesses.
fn far_access(data: &InstData) -> FarAccess {
    let Imm::Address(memory, offset) = data.imm else {
        panic!("interp: {} has immediate {:?}", data.opcode.name(), data.imm)
    };
    let bytes = match data.opcode.shape() {
        Shape::Load(0) | Shape::Store(0) => data.ty.bytes(),
        Shape::Load(bytes) | Shape::Store(bytes) => u32::from(bytes),
        shape => panic!("interp: {shape:?} accesses no memory"),
    };
    let signed = matches!(data.opcode, Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32);
    FarAccess { memory, offset, bytes, signed, ty: data.ty }
}
