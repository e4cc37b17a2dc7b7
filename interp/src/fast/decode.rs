//! Decodes a function and its exact code into fast code.

use super::coalesce::{SlotChoice, coalesce};
use super::code::{Fast, WINDOW};
use super::op::{FastOp, FastOpCode, branch_code, step_codes, value_code};

use crate::decoded::Decoded;
use crate::moves::sequentialize;
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::entity::{Block, Inst, Point, Value};
use ir::function::Function;
use ir::inst::{Imm, InstData, Target};
use ir::module::Module;
use ir::opcode::{Opcode, Shape};
use ir::types::Type;
use std::collections::{BTreeMap, BTreeSet};

/// Up to this many distinct constants, all of them get slots, including constants outside of loops.
const FEW: usize = 24;

/// Most distinct constants that get slots. Entering a frame copies them all.
const MANY: usize = 512;

/// How the instructions of a function use a value.
#[derive(Clone, Copy, Default)]
struct Uses {
    count: u32,
    /// Whether some instruction that uses or defines the value is left to the exact loop.
    rare: bool,
    /// Whether the value is available at an assumption. The exit may read it, even if the version
    /// does not (`runs_that_leave_keep_values_in_both_tiers`).
    kept: bool,
}

struct FastDecoder<'a> {
    module: &'a Module,
    function: &'a Function,
    exact: &'a Decoded,
    insts: Vec<Inst>,
    uses: Vec<Uses>,
    /// The slot of each value, by index: the slot of the exact code, a constant slot, or a slot
    /// shared with another value.
    slots: Vec<Option<u16>>,
    fast: Fast,
    edges: Vec<FastOp>,
}

/// Decodes fast code, with operations at the pcs of the exact code. Returns `None` when the frame
/// does not fit the window, or a call has more arguments than operations can number. Cost: linear
/// in the function, plus the cost of [`coalesce`]; the dominator tree for a function with
/// assumptions.
pub(crate) fn decode(module: &Module, function: &Function, exact: &Decoded) -> Option<Fast> {
    if exact.frame_size() as usize + MANY > WINDOW {
        return None;
    }
    // A call may list one value many times (`a_call_may_have_more_arguments_than_a_frame`).
    let most = function.all_insts().map(|inst| function.inst(inst).args.len()).max();
    if most >= Some(WINDOW) {
        return None;
    }
    let fast = Fast {
        ops: Vec::new(),
        pool: Vec::new(),
        targets: Vec::new(),
        indirect: Vec::new(),
        consts: Vec::new(),
        consts_at: exact.frame_size(),
        shared: Vec::new(),
    };
    let insts = function.all_insts().collect();
    let uses = vec![Uses::default(); function.value_bound()];
    let slots = (0..function.value_bound())
        .map(|v| exact.slot_of(Value::new(v)).map(|s| narrow(s as usize)))
        .collect();
    let mut decoder =
        FastDecoder { module, function, exact, insts, uses, slots, fast, edges: Vec::new() };
    decoder.count_uses();
    if !exact.assumptions.is_empty() {
        decoder.keep_available();
    }
    decoder.share_slots();
    decoder.pool_constants();
    decoder.translate();
    decoder.fuse();
    // A run that stops at moves on an edge takes its site from the exact code, so pcs must agree.
    assert_eq!(
        decoder.fast.ops.len(),
        exact.ops.len(),
        "interp: fast and exact code have the same number of operations"
    );
    Some(decoder.fast)
}

/// Whether the fast loop has an operation for this instruction.
fn is_known(module: &Module, function: &Function, data: &InstData) -> bool {
    match data.opcode.shape() {
        Shape::Load(_) | Shape::Store(_) => {
            let near = matches!(data.imm, Imm::Address(memory, offset)
                if memory.index() == 0 && u32::try_from(offset).is_ok());
            // The verifier accepts only i32 addresses. The fast loop depends on it, because it
            // truncates addresses to 32 bits.
            near && function.value_type(data.args[0]) == Type::I32 && data.ty != Type::I16
        }
        Shape::Call | Shape::CallValue => {
            matches!(data.imm, Imm::Func(func) if module.funcs.is_valid(func))
        }
        Shape::CallIndirect => matches!(data.imm, Imm::Indirect(..)),
        Shape::GlobalGet | Shape::GlobalSet => matches!(data.imm, Imm::Global(_)),
        Shape::Jump
        | Shape::BrIf
        | Shape::Switch
        | Shape::Return
        | Shape::OsrTest
        | Shape::OsrExit
        | Shape::Assume => true,
        _ => is_value_op(function, data),
    }
}

fn is_value_op(function: &Function, data: &InstData) -> bool {
    match (data.opcode, data.imm) {
        (Opcode::Const, Imm::Bits(_)) => true,
        (Opcode::Select | Opcode::Uextend | Opcode::Bitcast, _) => true,
        (Opcode::RefBits | Opcode::RefOf, _) => true,
        (opcode, _) => match data.args.first() {
            Some(first) => value_code(opcode, data.ty, function.value_type(*first)).is_some(),
            None => false,
        },
    }
}

/// A slot index or a number of slots as 16 bits. The frame is no larger than the window.
fn narrow(number: usize) -> u16 {
    u16::try_from(number).expect("interp: the frame fits the window")
}

fn wide(length: usize) -> u32 {
    u32::try_from(length).expect("interp: a function has fewer than 2^32 operands")
}

impl FastDecoder<'_> {
    fn count_uses(&mut self) {
        for inst in &self.insts {
            let data = self.function.inst(*inst);
            let rare = !is_known(self.module, self.function, data);
            // Arguments of edges are uses too: a value passed on must be stored.
            let passed = data.targets.iter().flat_map(|t| t.args.iter());
            for value in data.args.iter().chain(passed) {
                let uses = &mut self.uses[value.index()];
                uses.count += 1;
                uses.rare |= rare;
            }
            for result in &data.results {
                self.uses[result.index()].rare |= rare;
            }
        }
    }

    /// Marks the values that are available at some assumption.
    fn keep_available(&mut self) {
        let f = self.function;
        let dom = DomTree::new(f, &Cfg::new(f));
        let is_assumption = |inst: &Inst| f.inst(*inst).opcode == Opcode::Assume;
        // The last assumption of each block, and the blocks above: all values of the blocks above
        // are available.
        let mut last: BTreeMap<Block, Inst> = BTreeMap::new();
        for inst in self.insts.iter().copied().filter(is_assumption) {
            last.insert(f.inst_block(inst), inst);
        }
        let mut above: BTreeSet<Block> = BTreeSet::new();
        for block in last.keys() {
            let mut at = dom.idom(*block);
            while let Some(block) = at.filter(|block| above.insert(*block)) {
                at = dom.idom(block);
            }
        }
        for block in f.blocks() {
            let end = last.get(&block);
            if end.is_none() && !above.contains(&block) {
                continue;
            }
            let keeps = |inst: &Inst| above.contains(&block) || Some(inst) != end;
            let results = f.block_insts(block).take_while(keeps);
            let results = results.flat_map(|inst| f.inst(inst).results.iter());
            for value in f.block_params(block).iter().chain(results) {
                self.uses[value.index()].kept = true;
            }
        }
    }

    /// Coalesces values into shared slots. Values that a rare instruction reads or writes are
    /// pinned: the exact loop executes that instruction and uses the slots of the exact code.
    fn share_slots(&mut self) {
        let uses = |value: Value| self.uses[value.index()];
        let choice = SlotChoice {
            pinned: |value: Value| uses(value).rare,
            apart: |value: Value| uses(value).kept,
        };
        let shared = coalesce(self.function, self.exact, choice);
        for (value, root) in shared {
            let (own, slot) = (self.slot(value), self.slot(root));
            self.fast.shared.push((own, slot));
            self.slots[value.index()] = Some(slot);
        }
    }

    /// Gives constants slots of their own after the frame. All constants get a slot if at most
    /// `FEW` of them are distinct. Otherwise only constants in loops get a slot, at most `MANY`.
    /// Entering a frame fills these slots.
    fn pool_constants(&mut self) {
        let function = self.function;
        let constant = |inst: &Inst| match (function.inst(*inst).opcode, function.inst(*inst).imm) {
            (Opcode::Const, Imm::Bits(bits)) => {
                let data = function.inst(*inst);
                Some((data.result()?, bits & data.ty.mask()))
            }
            _ => None,
        };
        let usable: Vec<(usize, Value, u64)> = (self.insts.iter().enumerate())
            .filter_map(|(pc, inst)| constant(inst).map(|(value, bits)| (pc, value, bits)))
            .filter(|(_, value, _)| !self.uses[value.index()].rare)
            .collect();
        let mut different: Vec<u64> = usable.iter().map(|(_, _, bits)| *bits).collect();
        different.sort_unstable();
        different.dedup();
        let repeated =
            if different.len() > FEW { self.repeated() } else { vec![true; self.insts.len()] };
        let mut slots: BTreeMap<u64, u16> = BTreeMap::new();
        for (pc, value, bits) in usable {
            if !repeated[pc] || (slots.len() == MANY && !slots.contains_key(&bits)) {
                continue;
            }
            let next = narrow(self.fast.consts_at as usize + slots.len());
            let slot = *slots.entry(bits).or_insert_with(|| {
                self.fast.consts.push(bits);
                next
            });
            self.slots[value.index()] = Some(slot);
        }
    }

    /// For each pc, whether it lies between a branch and an earlier target of it in the layout.
    /// This approximates "lies in a loop" without a loop analysis.
    fn repeated(&self) -> Vec<bool> {
        let mut depth = vec![0i32; self.insts.len() + 1];
        for (pc, inst) in self.insts.iter().enumerate() {
            for target in &self.function.inst(*inst).targets {
                let start = self.block_pc(target.block) as usize;
                if start <= pc {
                    depth[start] += 1;
                    depth[pc + 1] -= 1;
                }
            }
        }
        let sums = depth.iter().scan(0, |sum, change| {
            *sum += change;
            Some(*sum > 0)
        });
        sums.take(self.insts.len()).collect()
    }

    fn slot(&self, value: Value) -> u16 {
        self.slots[value.index()]
            .unwrap_or_else(|| panic!("interp: {} has no {value}", self.function.name()))
    }

    /// Whether a value is a constant in a slot of its own, so that its instruction need not be
    /// executed. Such slots follow the slots of the exact code.
    fn is_pooled(&self, value: Value) -> bool {
        u32::from(self.slot(value)) >= self.fast.consts_at
    }

    fn block_pc(&self, block: Block) -> u32 {
        let first =
            self.function.block_insts(block).next().expect("interp: a block has a terminator");
        self.exact.pc_of(Point::before(first)).expect("interp: the code has every instruction")
    }

    fn pool_slots(&mut self, values: &[Value]) -> u32 {
        let at = wide(self.fast.pool.len());
        for value in values {
            let slot = self.slot(*value);
            self.fast.pool.push(slot);
        }
        at
    }

    fn translate(&mut self) {
        for index in 0..self.insts.len() {
            let function = self.function;
            let data = function.inst(self.insts[index]);
            let op = if is_known(self.module, function, data) { self.op(data) } else { RARE };
            self.fast.ops.push(op);
        }
    }

    fn op(&mut self, data: &InstData) -> FastOp {
        let arg =
            |decoder: &Self, index: usize| data.args.get(index).map_or(0, |v| decoder.slot(*v));
        let result = data.result().map_or(0, |v| self.slot(v));
        match (data.opcode.shape(), data.imm) {
            (Shape::Load(_), Imm::Address(_, offset)) => {
                FastOp::new(load_code(data), [result, arg(self, 0)], [offset as u32, 0])
            }
            (Shape::Store(bytes), Imm::Address(_, offset)) => {
                let bytes = if bytes == 0 { data.ty.bytes() } else { bytes.into() };
                let code = match bytes {
                    1 => FastOpCode::Store1,
                    2 => FastOpCode::Store2,
                    4 => FastOpCode::Store4,
                    _ => FastOpCode::Store8,
                };
                FastOp::new(code, [arg(self, 0), arg(self, 1)], [offset as u32, 0])
            }
            (Shape::GlobalGet, Imm::Global(global)) => {
                FastOp::new(FastOpCode::GlobalGet, [result, 0], [global.as_u32(), 0])
            }
            (Shape::GlobalSet, Imm::Global(global)) => {
                FastOp::new(FastOpCode::GlobalSet, [arg(self, 0), 0], [global.as_u32(), 0])
            }
            (Shape::Call | Shape::CallIndirect | Shape::CallValue, _) => self.call(data),
            (Shape::Jump | Shape::BrIf | Shape::Switch | Shape::Return | Shape::OsrExit, _) => {
                self.terminator(data)
            }
            (Shape::Assume, Imm::Assumed(bits, _)) => FastOp::new(
                FastOpCode::Assume,
                [result, arg(self, 0)],
                [bits as u32, (bits >> 32) as u32],
            ),
            (Shape::OsrTest, _) => FastOp::new(FastOpCode::Const, [result, 0], [0, 0]),
            _ => match (data.opcode, data.imm) {
                (Opcode::Const, Imm::Bits(bits)) => {
                    let bits = bits & data.ty.mask();
                    FastOp::new(FastOpCode::Const, [result, 0], [bits as u32, (bits >> 32) as u32])
                }
                (Opcode::Select, _) => {
                    let choices = [arg(self, 1).into(), arg(self, 2).into()];
                    FastOp::new(FastOpCode::Select, [result, arg(self, 0)], choices)
                }
                (Opcode::Uextend | Opcode::Bitcast | Opcode::RefBits | Opcode::RefOf, _) => {
                    FastOp::new(FastOpCode::Copy, [result, arg(self, 0)], [0, 0])
                }
                (opcode, _) => {
                    let source = self.function.value_type(data.args[0]);
                    let code = value_code(opcode, data.ty, source)
                        .expect("interp: `is_known` accepted the operation");
                    FastOp::new(code, [result, arg(self, 0)], [arg(self, 1).into(), 0])
                }
            },
        }
    }

    fn call(&mut self, data: &InstData) -> FastOp {
        let (code, entry, callee, args) = match data.imm {
            Imm::Indirect(sig, table) => {
                let (index, args) =
                    data.args.split_last().expect("interp: an indirect call has an index");
                self.fast.indirect.push((sig, table));
                let at = wide(self.fast.indirect.len() - 1);
                (FastOpCode::CallIndirect, self.slot(*index), at, args)
            }
            Imm::Func(callee) => {
                let imported = self.module.funcs[callee].import.is_some();
                let code = if imported { FastOpCode::CallHost } else { FastOpCode::Call };
                (code, 0, callee.as_u32(), &data.args[..])
            }
            imm => panic!("interp: {} has the wrong immediate {imm:?}", data.opcode.name()),
        };
        let at = self.pool_slots(args);
        self.pool_slots(&data.results);
        FastOp::new(code, [entry, narrow(args.len())], [callee, at])
    }

    fn terminator(&mut self, data: &InstData) -> FastOp {
        match data.opcode {
            Opcode::Jump => self.moves(&data.targets[0]),
            Opcode::BrIf => {
                let (then, otherwise) = (self.edge(&data.targets[0]), self.edge(&data.targets[1]));
                FastOp::new(FastOpCode::BrIf, [self.slot(data.args[0]), 0], [then, otherwise])
            }
            Opcode::Switch => {
                let targets: Vec<u32> = data.targets.iter().map(|t| self.edge(t)).collect();
                let at = wide(self.fast.targets.len());
                self.fast.targets.extend(&targets);
                FastOp::new(
                    FastOpCode::Switch,
                    [self.slot(data.args[0]), 0],
                    [at, wide(targets.len() - 1)],
                )
            }
            opcode => {
                let code =
                    if opcode == Opcode::OsrExit { FastOpCode::Leave } else { FastOpCode::Return };
                let at = self.pool_slots(&data.args);
                FastOp::new(code, [0, 0], [at, wide(data.args.len())])
            }
        }
    }

    /// The pc a branch jumps to for this target: the moves on the edge if there are any, else the
    /// block.
    fn edge(&mut self, target: &Target) -> u32 {
        let params = self.function.block_params(target.block);
        let op = self.moves(target);
        if params == &target.args[..] {
            return op.x;
        }
        let code = match op.code {
            FastOpCode::Jump1 => FastOpCode::Edge1,
            FastOpCode::Jump2 => FastOpCode::Edge2,
            FastOpCode::JumpN => FastOpCode::EdgeN,
            code => code,
        };
        // When coalescing removed all moves, no branch jumps to this operation. It stays in place,
        // because the exact code has moves at this pc and the pcs of both tiers must agree.
        self.edges.push(FastOp { code, ..op });
        if code == FastOpCode::Jump { op.x } else { wide(self.insts.len() + self.edges.len() - 1) }
    }

    fn moves(&mut self, target: &Target) -> FastOp {
        let pc = self.block_pc(target.block);
        let params = self.function.block_params(target.block);
        let moves: Vec<(u32, u32)> = params
            .iter()
            .zip(&target.args)
            .map(|(p, a)| (self.slot(*p).into(), self.slot(*a).into()))
            .collect();
        let scratch = self.fast.consts_at - 1;
        let sequence = sequentialize(&moves, scratch);
        let slots: Vec<u16> = sequence
            .iter()
            .flat_map(|(to, from)| [narrow(*to as usize), narrow(*from as usize)])
            .collect();
        match *slots.as_slice() {
            [] => FastOp::new(FastOpCode::Jump, [0, 0], [pc, 0]),
            [a, b] => FastOp::new(FastOpCode::Jump1, [a, b], [pc, 0]),
            [a, b, to, from] => {
                FastOp::new(FastOpCode::Jump2, [a, b], [pc, u32::from(from) | u32::from(to) << 16])
            }
            _ => {
                let at = wide(self.fast.pool.len());
                self.fast.pool.extend(&slots);
                FastOp::new(FastOpCode::JumpN, [0, narrow(slots.len() / 2)], [pc, at])
            }
        }
    }

    /// Fuses instructions into the operation that follows them. The walk goes backward, so that an
    /// operation that was fused already can absorb the instruction before it too.
    fn fuse(&mut self) {
        for pc in (0..self.insts.len()).rev() {
            if let Some(next) = self.fast.ops.get(pc + 1)
                && let Some(fused) = self.fused(pc, *next)
            {
                self.fast.ops[pc] = fused;
            }
        }
        self.fast.ops.append(&mut self.edges);
    }

    /// The operation `next`, which follows the instruction at a pc, extended to execute that
    /// instruction too. `None` when no fused operation exists. A fused value that is not stored
    /// must have `next` as its only use.
    fn fused(&self, pc: usize, next: FastOp) -> Option<FastOp> {
        let data = self.function.inst(self.insts[pc]);
        let result = data.result()?;
        let both = next.with_one_before()?;
        if self.is_pooled(result) {
            return Some(both);
        }
        let to = self.slot(result);
        let operands: Vec<u16> = data.args.iter().map(|v| self.slot(*v)).collect();
        // `next` reads the slot of `result` at once, so that slot still holds `result` even if it
        // is shared.
        let is_sum = (data.opcode, data.ty) == (Opcode::Add, Type::I32);
        let uses = self.uses[result.index()];
        if uses.count == 1 && !uses.kept {
            let fused = if is_sum {
                summed(both, to, operands[0], operands[1])
            } else if next.code == FastOpCode::BrIf && next.a == to {
                tested(both, data, &operands)
            } else {
                None
            };
            if fused.is_some() {
                return fused;
            }
        }
        match operands.as_slice() {
            [a, b] if is_sum && *a == to => stepped(pc, both, to, *b),
            [a, b] if is_sum && *b == to => stepped(pc, both, to, *a),
            _ => None,
        }
    }
}

/// Fuses a comparison, or another tested operation, into the branch on its result.
fn tested(branch: FastOp, data: &InstData, operands: &[u16]) -> Option<FastOp> {
    match (data.opcode, operands) {
        (Opcode::Eqz, [a]) => {
            let flipped = !branch.flipped;
            Some(FastOp { flipped, a: *a, x: branch.y, y: branch.x, ..branch })
        }
        (opcode, [a, b]) => {
            branch_code(opcode, data.ty).map(|code| FastOp { code, a: *a, b: *b, ..branch })
        }
        _ => None,
    }
}

/// Fuses an addition to a slot into the branch on that slot at the next pc, or into the branch on a
/// comparison of that slot. A compare-and-branch has no room for a second target pc besides the
/// addend. So its other target must be the next operation.
fn stepped(pc: usize, branch: FastOp, slot: u16, addend: u16) -> Option<FastOp> {
    if branch.code == FastOpCode::BrIf && branch.a == slot {
        return Some(FastOp { code: FastOpCode::Step, b: addend, ..branch });
    }
    let [first, second] = step_codes(branch.code)?;
    let (code, other) = match (branch.a == slot, branch.b == slot) {
        (true, _) => (first, branch.b),
        (_, true) => (second, branch.a),
        _ => return None,
    };
    let is_next = branch.y as usize == pc + usize::from(branch.length);
    is_next.then(|| FastOp { code, a: slot, b: addend, y: other.into(), ..branch })
}

/// The operation of an instruction that is left to the exact loop.
const RARE: FastOp =
    FastOp { code: FastOpCode::Rare, length: 1, flipped: false, a: 0, b: 0, x: 0, y: 0 };

/// Fuses an i32 addition into the load or store that uses the sum as its address, if it does. The
/// sum cannot also be the value of the store, because it has one use.
fn summed(op: FastOp, address: u16, base: u16, index: u16) -> Option<FastOp> {
    let (code, is_load) = match op.code {
        FastOpCode::Load1 => (FastOpCode::Load1At, true),
        FastOpCode::Load2 => (FastOpCode::Load2At, true),
        FastOpCode::Load4 => (FastOpCode::Load4At, true),
        FastOpCode::Load8 => (FastOpCode::Load8At, true),
        FastOpCode::Load1I32 => (FastOpCode::Load1I32At, true),
        FastOpCode::Load2I32 => (FastOpCode::Load2I32At, true),
        FastOpCode::Store1 => (FastOpCode::Store1At, false),
        FastOpCode::Store2 => (FastOpCode::Store2At, false),
        FastOpCode::Store4 => (FastOpCode::Store4At, false),
        FastOpCode::Store8 => (FastOpCode::Store8At, false),
        _ => return None,
    };
    match is_load {
        true if op.b == address => Some(FastOp { code, b: base, y: index.into(), ..op }),
        false if op.a == address => Some(FastOp { code, a: base, y: index.into(), ..op }),
        _ => None,
    }
}

fn load_code(data: &InstData) -> FastOpCode {
    use Opcode::{Sload8, Sload16, Sload32};
    let bytes = match data.opcode.shape() {
        Shape::Load(bytes) if bytes > 0 => u32::from(bytes),
        _ => data.ty.bytes(),
    };
    let signed = matches!(data.opcode, Sload8 | Sload16 | Sload32);
    match (bytes, signed, data.ty) {
        (1, true, Type::I32) => FastOpCode::Load1I32,
        (1, true, _) => FastOpCode::Load1I64,
        (2, true, Type::I32) => FastOpCode::Load2I32,
        (2, true, _) => FastOpCode::Load2I64,
        (4, true, _) => FastOpCode::Load4I64,
        (1, ..) => FastOpCode::Load1,
        (2, ..) => FastOpCode::Load2,
        (4, ..) => FastOpCode::Load4,
        _ => FastOpCode::Load8,
    }
}
