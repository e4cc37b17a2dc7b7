//! A program, decoded, and the facts that translation needs.

use rbpf::ebpf::{self, Insn};
use std::collections::{BTreeMap, BTreeSet};

/// The registers of the machine; r10 is the frame pointer.
pub const REGISTERS: usize = 11;
/// The registers that a return from a local function leaves to the caller: r0 to r5.
const SHARED: u16 = 0x3f;

/// The kind of an instruction, by its opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Loads a constant of 64 bits, in two slots.
    Wide,
    /// Loads this many bytes of the packet at `imm`, plus the source register if `true`, into r0.
    Packet(u64, bool),
    /// Loads this many bytes at the source register.
    Load(u64),
    /// Stores this many bytes at the destination register: the source register if `true`, or `imm`.
    Store(u64, bool),
    /// An operation on 64 bits if `true`, or 32.
    Alu(bool),
    /// Swaps the bytes if `true`, and cuts the value off to `imm` bits.
    End(bool),
    Jump,
    /// A branch on 64 bits if `true`, or 32.
    Branch(bool),
    Call,
    Exit,
    /// An instruction that the machine rejects when it is executed.
    Unsupported,
}

/// The kind of an opcode.
pub fn op(opcode: u8) -> Op {
    let bytes = [4, 2, 1, 8][usize::from(opcode >> 3 & 3)];
    let by_register = opcode & ebpf::BPF_X != 0;
    let operation = opcode & ebpf::BPF_ALU_OP_MASK;
    // Some codes of operations are not defined, and a negation has no second operand.
    let negates_register = operation == ebpf::BPF_NEG && by_register;
    let computes = operation <= ebpf::BPF_ARSH && !negates_register;
    let compares =
        matches!(operation, ebpf::BPF_JEQ..=ebpf::BPF_JSGE | ebpf::BPF_JLT..=ebpf::BPF_JSLE);
    match (opcode & ebpf::BPF_CLS_MASK, opcode & 0xe0) {
        (ebpf::BPF_LD, _) if opcode == ebpf::LD_DW_IMM => Op::Wide,
        (ebpf::BPF_LD, ebpf::BPF_ABS) => Op::Packet(bytes, false),
        (ebpf::BPF_LD, ebpf::BPF_IND) => Op::Packet(bytes, true),
        (ebpf::BPF_LDX, ebpf::BPF_MEM) => Op::Load(bytes),
        (ebpf::BPF_ST, ebpf::BPF_MEM) => Op::Store(bytes, false),
        (ebpf::BPF_STX, ebpf::BPF_MEM) => Op::Store(bytes, true),
        (ebpf::BPF_ALU, _) if operation == ebpf::BPF_END => Op::End(by_register),
        (ebpf::BPF_ALU, _) if computes => Op::Alu(false),
        (ebpf::BPF_ALU64, _) if computes => Op::Alu(true),
        _ if opcode == ebpf::JA => Op::Jump,
        _ if opcode == ebpf::CALL => Op::Call,
        _ if opcode == ebpf::EXIT => Op::Exit,
        (ebpf::BPF_JMP, _) if compares => Op::Branch(true),
        (ebpf::BPF_JMP32, _) if compares => Op::Branch(false),
        _ => Op::Unsupported,
    }
}

/// A decoded program. Program counters are indices of instructions.
#[derive(Clone, Debug)]
pub struct Program {
    pub insns: Vec<Insn>,
    /// The functions, by their first instruction; 0 is the program itself.
    pub functions: BTreeMap<usize, Callable>,
    /// The bytes of stack that a call takes, by the first instruction of the *calling* function.
    pub frames: BTreeMap<usize, u64>,
    /// Whether calls may nest too deeply, so that they count.
    pub counts_depth: bool,
    /// Whether an instruction names the frame pointer.
    pub uses_stack: bool,
}

/// A function of the program.
#[derive(Clone, Default, Debug)]
pub struct Callable {
    /// The reachable instructions, without those of its callees.
    pub body: BTreeSet<usize>,
    /// The registers that it or its callees read or write, as bits.
    pub uses: u16,
    /// The registers visible to the caller that the function or one of its callees writes.
    pub results: u16,
    /// Whether it or its callees access memory.
    pub accesses: bool,
    pub callees: BTreeSet<usize>,
    /// The registers live in front of each instruction.
    pub live: BTreeMap<usize, u16>,
}

fn bit(register: u8) -> u16 {
    1 << register
}

/// The instructions that may follow, within the function.
pub fn successors(insns: &[Insn], pc: usize) -> Vec<usize> {
    let jump = (pc as i64 + 1 + i64::from(insns[pc].off)) as usize;
    match op(insns[pc].opc) {
        Op::Wide => vec![pc + 2],
        Op::Jump => vec![jump],
        Op::Branch(_) => vec![pc + 1, jump],
        Op::Exit | Op::Unsupported => vec![],
        _ => vec![pc + 1],
    }
}

/// The first instruction of the local function that a call leads to.
pub fn callee(insns: &[Insn], pc: usize) -> Option<usize> {
    let insn = &insns[pc];
    let is_local = op(insn.opc) == Op::Call && insn.src == 1;
    is_local.then(|| (pc as i64 + 1 + i64::from(insn.imm)) as usize)
}

impl Program {
    /// Decodes a program that the verifier of the machine has accepted. `frame` gives the bytes of
    /// stack of a function.
    ///
    /// # Errors
    /// If control may leave the program.
    pub fn new(bytes: &[u8], frame: impl Fn(usize) -> u64) -> Result<Program, String> {
        let insns = (0..bytes.len() / ebpf::INSN_SIZE).map(|pc| ebpf::get_insn(bytes, pc));
        let insns: Vec<Insn> = insns.collect();
        let mut functions = BTreeMap::new();
        let mut left = vec![0];
        while let Some(entry) = left.pop() {
            if functions.contains_key(&entry) {
                continue;
            }
            let found = reach(&insns, entry)?;
            left.extend(&found.callees);
            functions.insert(entry, found);
        }
        let mut program = Program {
            frames: functions.keys().map(|entry| (*entry, frame(*entry))).collect(),
            counts_depth: true,
            uses_stack: insns.iter().any(|insn| insn.src == 10 || insn.dst == 10),
            insns,
            functions,
        };
        program.close();
        program.counts_depth = program.nests_too_deeply();
        let entries: Vec<usize> = program.functions.keys().copied().collect();
        for entry in entries {
            let live = program.liveness(entry);
            program.functions.entry(entry).or_default().live = live;
        }
        Ok(program)
    }

    /// Adds the uses and results of callees, to a fixpoint.
    fn close(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            let before = self.functions.clone();
            for function in self.functions.values_mut() {
                let old = (function.uses, function.results, function.accesses);
                for callee in &function.callees {
                    function.uses |= before[callee].uses;
                    function.results |= before[callee].results;
                    function.accesses |= before[callee].accesses;
                }
                changed |= old != (function.uses, function.results, function.accesses);
            }
        }
    }

    /// Whether calls may nest more deeply than the machine allows. Cost: the calls of the program
    /// for each level. There are far more ways than calls (`many_ways_to_nest_take_no_time`).
    fn nests_too_deeply(&self) -> bool {
        let mut reached = BTreeSet::from([0]);
        for _ in 0..=ebpf::MAX_CALL_DEPTH {
            let callees = reached.iter().flat_map(|entry| &self.functions[entry].callees);
            reached = callees.copied().collect();
        }
        !reached.is_empty()
    }

    /// The registers that an instruction reads and writes.
    fn effect(&self, entry: usize, pc: usize) -> (u16, u16) {
        let insn = &self.insns[pc];
        let (dst, src) = (bit(insn.dst), bit(insn.src));
        let by_register = if insn.opc & ebpf::BPF_X != 0 { src } else { 0 };
        match op(insn.opc) {
            Op::Wide => (0, dst),
            Op::Packet(_, by) => (if by { src } else { 0 }, 1),
            Op::Load(_) => (src, dst),
            Op::Store(_, by) => (if by { dst | src } else { dst }, 0),
            Op::Alu(_) if insn.opc & ebpf::BPF_ALU_OP_MASK == ebpf::BPF_MOV => (by_register, dst),
            Op::Alu(_) => (dst | by_register, dst),
            Op::End(_) => (dst, dst),
            Op::Branch(_) => (dst | by_register, 0),
            // A local function may return what it was given.
            Op::Call => match callee(&self.insns, pc) {
                Some(callee) => (self.functions[&callee].uses & 0x3ff | bit(10), 0),
                None => (SHARED & !1, 1),
            },
            Op::Exit if entry == 0 => (1, 0),
            Op::Exit => (self.functions[&entry].results, 0),
            Op::Jump | Op::Unsupported => (0, 0),
        }
    }

    fn liveness(&self, entry: usize) -> BTreeMap<usize, u16> {
        let function = &self.functions[&entry];
        let mut live: BTreeMap<usize, u16> = function.body.iter().map(|pc| (*pc, 0)).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for pc in function.body.iter().rev() {
                let out = successors(&self.insns, *pc).iter().fold(0, |all, next| all | live[next]);
                let (reads, writes) = self.effect(entry, *pc);
                let now = reads | out & !writes;
                changed |= live.insert(*pc, now) != Some(now);
            }
        }
        live
    }
}

/// The instructions of a function, and its own uses.
fn reach(insns: &[Insn], entry: usize) -> Result<Callable, String> {
    let mut found = Callable::default();
    let mut left = vec![entry];
    while let Some(pc) = left.pop() {
        if pc >= insns.len() {
            return Err(format!("control leaves the program at insn #{pc}"));
        }
        if !found.body.insert(pc) {
            continue;
        }
        left.extend(successors(insns, pc));
        found.callees.extend(callee(insns, pc));
        let insn = &insns[pc];
        let (dst, src) = (bit(insn.dst), bit(insn.src));
        found.uses |= match op(insn.opc) {
            Op::Call => {
                if insn.src == 0 {
                    SHARED
                } else {
                    0
                }
            }
            Op::Packet(..) => src | 1,
            Op::Exit | Op::Jump | Op::Unsupported => 0,
            _ => dst | src,
        };
        found.results |= SHARED
            & match op(insn.opc) {
                Op::Wide | Op::Load(_) | Op::Alu(_) | Op::End(_) => dst,
                Op::Packet(..) => 1,
                Op::Call if insn.src == 0 => 1,
                _ => 0,
            };
        let accesses = matches!(op(insn.opc), Op::Packet(..) | Op::Load(_) | Op::Store(..));
        found.accesses |= accesses;
    }
    Ok(found)
}
