//! Pre-decodes one version of a function for the exact dispatch loop.

use super::bulk::BulkOp;
use super::decoded::{Decoded, ExpectedBits, FarAccess, NONE, narrow};
use super::fast;
use super::fast::code::Fast;
use super::moves::sequentialize;
use super::op::{ExactOp, ExactOpCode, value_code};
use super::ref_slots::RefSlots;
use cranelift_entity::EntityRef;
use ir::entity::{Block, Value};
use ir::function::Function;
use ir::inst::{Imm, InstData, Target};
use ir::module::Module;
use ir::opcode::{Opcode, Shape};
use ir::types::Type;

/// Decodes one version of a function of `module`. [`super::Code::new`] has the cost and the panics.
pub(super) fn decode(module: &Module, function: &Function) -> Decoded {
    let mut decoder = ExactDecoder::new(module, function);
    decoder.number_values();
    decoder.number_insts();
    for inst in function.all_insts() {
        let op = decoder.op(function.inst(inst));
        decoder.code.ops.push(op);
    }
    let mut code = decoder.finish();
    code.fast = fast::decode::decode(module, function, &code);
    code.consts = code.fast.as_ref().map_or(0, Fast::constants);
    code.refs = RefSlots::new(function, &code.values, code.fast.as_ref());
    code
}

struct ExactDecoder<'a> {
    module: &'a Module,
    function: &'a Function,
    code: Decoded,
    /// The pc of each block id.
    blocks: Vec<u32>,
    /// The moves on edges, which `finish` appends after the instructions.
    edges: Vec<ExactOp>,
}

impl<'a> ExactDecoder<'a> {
    fn new(module: &'a Module, function: &'a Function) -> ExactDecoder<'a> {
        let code = Decoded {
            ops: Vec::new(),
            pool: Vec::new(),
            far: Vec::new(),
            bulk: Vec::new(),
            traps: Vec::new(),
            assumptions: Vec::new(),
            frame_size: 0,
            fast: None,
            refs: None,
            consts: 0,
            insts: Vec::new(),
            pcs: vec![NONE; function.inst_bound()],
            slots: vec![NONE; function.value_bound()],
            values: Vec::new(),
        };
        ExactDecoder {
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

    fn finish(mut self) -> Decoded {
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

    fn op(&mut self, data: &InstData) -> ExactOp {
        match data.opcode.shape() {
            Shape::Load(_) => self.load(data),
            Shape::Store(_) => self.store(data),
            Shape::Call | Shape::CallIndirect | Shape::CallValue => self.call(data),
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
            Shape::Assume => self.assume(data),
            Shape::OsrTest => {
                let to = data.result().expect("interp: a test of an OSR point has one result");
                ExactOp::new(ExactOpCode::Const, self.slot(to), 0, 0)
            }
            _ => self.value_op(data),
        }
    }

    fn assume(&mut self, data: &InstData) -> ExactOp {
        let Imm::Assumed(bits, reason) = data.imm else {
            panic!("interp: an assumption has the wrong immediate {:?}", data.imm)
        };
        self.code.assumptions.push(ExpectedBits { bits, reason });
        let to = self.slot(data.result().expect("interp: an assumption has one result"));
        let index = narrow(self.code.assumptions.len() - 1);
        ExactOp::new(ExactOpCode::Assume, to, self.slot(data.args[0]), index)
    }

    /// Decodes an operation on values, including constants.
    fn value_op(&mut self, data: &InstData) -> ExactOp {
        let to = self.slot(data.result().expect("interp: an operation on values has one result"));
        let arg =
            |decoder: &Self, index: usize| data.args.get(index).map_or(0, |v| decoder.slot(*v));
        match (data.opcode, data.imm) {
            (Opcode::Const, Imm::Bits(bits)) => {
                let bits = bits & data.ty.mask();
                ExactOp::new(ExactOpCode::Const, to, bits as u32, (bits >> 32) as u32)
            }
            (Opcode::Select, _) => {
                let at = self.pool_slots(&data.args);
                ExactOp::new(ExactOpCode::Select, to, at, 0)
            }
            // Values keep the bits outside their type clear, so the first two operations are plain
            // copies. A reference is held as its word, which a collector updates in place.
            (Opcode::Uextend | Opcode::Bitcast | Opcode::RefBits | Opcode::RefOf, _) => {
                ExactOp::new(ExactOpCode::Copy, to, arg(self, 0), 0)
            }
            (opcode, _) => {
                let source = self.function.value_type(data.args[0]);
                let code = value_code(opcode, data.ty, source).unwrap_or_else(|| {
                    panic!("interp: no code for {} of {} and {source}", opcode.name(), data.ty)
                });
                ExactOp::new(code, to, arg(self, 0), arg(self, 1))
            }
        }
    }

    fn load(&mut self, data: &InstData) -> ExactOp {
        use Opcode::{Sload8, Sload16, Sload32};
        let to = self.slot(data.result().expect("interp: a load has one result"));
        let address = self.slot(data.args[0]);
        let access = far_access(data);
        let code = match (access.bytes, access.signed, access.ty) {
            (1, true, Type::I16) => ExactOpCode::Load1I16,
            (1, true, Type::I32) => ExactOpCode::Load1I32,
            (1, true, _) => ExactOpCode::Load1I64,
            (2, true, Type::I32) => ExactOpCode::Load2I32,
            (2, true, _) => ExactOpCode::Load2I64,
            (4, true, _) => ExactOpCode::Load4I64,
            (1, ..) => ExactOpCode::Load1,
            (2, ..) => ExactOpCode::Load2,
            (4, ..) => ExactOpCode::Load4,
            _ => ExactOpCode::Load8,
        };
        debug_assert_eq!(access.signed, matches!(data.opcode, Sload8 | Sload16 | Sload32));
        match self.near_or_far(access) {
            Ok(offset) => ExactOp::new(code, to, address, offset),
            Err(index) => ExactOp::new(ExactOpCode::LoadFar, to, address, index),
        }
    }

    fn store(&mut self, data: &InstData) -> ExactOp {
        let (address, value) = (self.slot(data.args[0]), self.slot(data.args[1]));
        let access = far_access(data);
        let code = match access.bytes {
            1 => ExactOpCode::Store1,
            2 => ExactOpCode::Store2,
            4 => ExactOpCode::Store4,
            _ => ExactOpCode::Store8,
        };
        match self.near_or_far(access) {
            Ok(offset) => ExactOp::new(code, address, value, offset),
            Err(index) => ExactOp::new(ExactOpCode::StoreFar, address, value, index),
        }
    }

    /// The offset of an access that fits an [`ExactOp`], or else the index of its `FarAccess`.
    fn near_or_far(&mut self, access: FarAccess) -> Result<u32, u32> {
        match u32::try_from(access.offset) {
            Ok(offset) if access.memory.index() == 0 && !access.is_host => Ok(offset),
            _ => {
                self.code.far.push(access);
                Err(narrow(self.code.far.len() - 1))
            }
        }
    }

    fn state_access(&mut self, data: &InstData) -> ExactOp {
        let result = data.result().map_or(0, |v| self.slot(v));
        let operand = data.args.first().map_or(0, |v| self.slot(*v));
        match (data.opcode, data.imm) {
            (Opcode::MemorySize, Imm::Memory(m)) => {
                ExactOp::new(ExactOpCode::MemorySize, result, m.as_u32(), 0)
            }
            (Opcode::MemoryGrow, Imm::Memory(m)) => {
                ExactOp::new(ExactOpCode::MemoryGrow, result, m.as_u32(), operand)
            }
            (Opcode::GlobalGet, Imm::Global(g)) => {
                ExactOp::new(ExactOpCode::GlobalGet, result, g.as_u32(), 0)
            }
            (Opcode::GlobalSet, Imm::Global(g)) => {
                ExactOp::new(ExactOpCode::GlobalSet, operand, g.as_u32(), 0)
            }
            (opcode, imm) => panic!("interp: {} has the wrong immediate {imm:?}", opcode.name()),
        }
    }

    /// Decodes an operation on ranges, tables or segments.
    fn bulk(&mut self, data: &InstData) -> ExactOp {
        let mut args = [0; 3];
        for (slot, value) in args.iter_mut().zip(&data.args) {
            *slot = self.slot(*value);
        }
        let result = data.result().map(|value| self.slot(value));
        self.code.bulk.push(BulkOp { opcode: data.opcode, imm: data.imm, args, result });
        ExactOp::new(ExactOpCode::Bulk, narrow(self.code.bulk.len() - 1), 0, 0)
    }

    fn call(&mut self, data: &InstData) -> ExactOp {
        match data.imm {
            Imm::Func(callee) => {
                let at = self.pool_slots(&data.args);
                self.pool_slots(&data.results);
                let imported = self.module.funcs[callee].import.is_some();
                let code = if imported { ExactOpCode::CallHost } else { ExactOpCode::Call };
                ExactOp::new(code, callee.as_u32(), at, narrow(data.args.len()))
            }
            Imm::Indirect(sig, table) => {
                let (index, args) =
                    data.args.split_last().expect("interp: an indirect call has an index");
                let at = narrow(self.code.pool.len());
                let index = self.slot(*index);
                self.code.pool.extend([table.as_u32(), index]);
                self.pool_slots(args);
                self.pool_slots(&data.results);
                ExactOp::new(ExactOpCode::CallIndirect, sig.as_u32(), at, narrow(args.len()))
            }
            imm => panic!("interp: {} has the wrong immediate {imm:?}", data.opcode.name()),
        }
    }

    fn terminator(&mut self, data: &InstData) -> ExactOp {
        match (data.opcode, data.imm) {
            (Opcode::Jump, _) => {
                self.moves(&data.targets[0], ExactOpCode::Jump1, ExactOpCode::JumpN)
            }
            (Opcode::BrIf, _) => {
                let condition = self.slot(data.args[0]);
                let (then, otherwise) = (self.edge(&data.targets[0]), self.edge(&data.targets[1]));
                ExactOp::new(ExactOpCode::BrIf, condition, then, otherwise)
            }
            (Opcode::Switch, _) => {
                let index = self.slot(data.args[0]);
                let targets: Vec<u32> = data.targets.iter().map(|t| self.edge(t)).collect();
                let at = narrow(self.code.pool.len());
                self.code.pool.extend(&targets);
                ExactOp::new(ExactOpCode::Switch, index, at, narrow(targets.len() - 1))
            }
            (Opcode::Return, _) => {
                let at = self.pool_slots(&data.args);
                ExactOp::new(ExactOpCode::Return, at, narrow(data.args.len()), 0)
            }
            (_, Imm::Exit(point)) => {
                let at = self.pool_slots(&data.args);
                ExactOp::new(ExactOpCode::Leave, point.as_u32(), at, narrow(data.args.len()))
            }
            (_, Imm::Trap(kind)) => {
                self.code.traps.push(kind);
                let at = narrow(self.code.traps.len() - 1);
                match data.args.first() {
                    None => ExactOp::new(ExactOpCode::Trap, at, 0, 0),
                    Some(operand) => {
                        ExactOp::new(ExactOpCode::TrapWith, at, self.slot(*operand), 0)
                    }
                }
            }
            (opcode, imm) => panic!("interp: {} has the wrong immediate {imm:?}", opcode.name()),
        }
    }

    /// The pc a branch jumps to for this target: the moves on the edge if there are any, else the
    /// block.
    fn edge(&mut self, target: &Target) -> u32 {
        let op = self.moves(target, ExactOpCode::Edge1, ExactOpCode::EdgeN);
        if op.code == ExactOpCode::Jump {
            return op.c;
        }
        self.edges.push(op);
        narrow(self.code.insts.len() + self.edges.len() - 1)
    }

    /// The moves to a target as one operation: `Jump` without moves, `one` for a single move, else
    /// `many`.
    fn moves(&mut self, target: &Target, one: ExactOpCode, many: ExactOpCode) -> ExactOp {
        let pc = self.block_pc(target.block);
        let params = self.function.block_params(target.block);
        assert_eq!(
            params.len(),
            target.args.len(),
            "interp: an edge to {} has the wrong number of arguments",
            target.block
        );
        let moves: Vec<_> =
            params.iter().zip(&target.args).map(|(p, a)| (self.slot(*p), self.slot(*a))).collect();
        match sequentialize(&moves, self.code.frame_size - 1).as_slice() {
            [] => ExactOp::new(ExactOpCode::Jump, 0, 0, pc),
            [(to, from)] => ExactOp::new(one, *to, *from, pc),
            sequence => {
                let at = narrow(self.code.pool.len());
                self.code.pool.extend(sequence.iter().flat_map(|(to, from)| [*to, *from]));
                ExactOp::new(many, at, narrow(sequence.len()), pc)
            }
        }
    }
}

/// The memory, offset and width that a load or store accesses.
fn far_access(data: &InstData) -> FarAccess {
    let Some((memory, offset)) = data.imm.address() else {
        panic!("interp: {} has the wrong immediate {:?}", data.opcode.name(), data.imm)
    };
    let is_host = matches!(data.imm, Imm::HostAddress(..));
    let bytes = match data.opcode.shape() {
        Shape::Load(0) | Shape::Store(0) => data.ty.bytes(),
        Shape::Load(bytes) | Shape::Store(bytes) => u32::from(bytes),
        shape => panic!("interp: {shape:?} accesses no memory"),
    };
    let signed = matches!(data.opcode, Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32);
    FarAccess { memory, is_host, offset, bytes, signed, ty: data.ty }
}
