//! Random programs, compared with the runtime's own interpreter in every mode.
#![allow(unsafe_code, reason = "running a program takes promises about its memory")]

use crate::interpreter::{Profile, profile};
use crate::program::Program;
use crate::runtime::{Mode, Native};
use osier::inlining::PassPlan;
use osier::passes::{Pipeline, parse};
use rbpf::ebpf;
use rbpf::ebpf::Insn;
use std::collections::HashMap;
use std::sync::Arc;

/// The bytes of a packet.
const PACKET: usize = 64;
/// The bytes on either side of it that belong to no run; wild accesses are closer.
const MARGIN: usize = 2048;

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// r6 is the packet, r9 counts turns, r10 is the frame; the rest is free.
const FREE: [u8; 8] = [0, 1, 2, 3, 4, 5, 7, 8];

struct Generator {
    random: Random,
    insns: Vec<Insn>,
    /// Calls of local functions, with the number of the function.
    calls: Vec<(usize, usize)>,
    functions: usize,
}

fn insn(opc: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
    Insn { opc, dst, src, off, imm }
}

impl Generator {
    fn free(&mut self) -> u8 {
        FREE[self.random.below(FREE.len())]
    }

    fn push(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    fn literal(&mut self) -> i32 {
        match self.random.below(4) {
            0 => self.random.below(9) as i32 - 4,
            1 => 1 << self.random.below(31),
            _ => self.random.next() as i32,
        }
    }

    fn alu(&mut self) {
        let (dst, src, imm) = (self.free(), self.free(), self.literal());
        let class = [ebpf::BPF_ALU, ebpf::BPF_ALU64][self.random.below(2)];
        if self.random.one_in(12) {
            let opc = [ebpf::LE, ebpf::BE][self.random.below(2)];
            let bits = [16, 32, 64][self.random.below(3)];
            return self.push(insn(opc, dst, 0, 0, bits));
        }
        let operation = (self.random.below(13) as u8) << 4;
        let (opc, imm) = match operation {
            ebpf::BPF_NEG => (class | operation, 0),
            _ if self.random.one_in(2) => (class | operation | ebpf::BPF_X, 0),
            _ => (class | operation, imm),
        };
        let imm = match operation {
            // The verifier of the runtime refuses these divisors.
            ebpf::BPF_DIV | ebpf::BPF_MOD if opc & ebpf::BPF_X == 0 && imm == 0 => 3,
            _ => imm,
        };
        self.push(insn(opc, dst, src, 0, imm));
    }

    fn access(&mut self) {
        let size = [ebpf::BPF_B, ebpf::BPF_H, ebpf::BPF_W, ebpf::BPF_DW][self.random.below(4)];
        let free = self.free();
        let wild = self.random.one_in(60);
        let (base, off) = match self.random.below(2) {
            0 => (6, self.random.below(if wild { PACKET + 9 } else { PACKET - 7 }) as i16),
            _ => (10, -8 - self.random.below(if wild { 520 } else { 240 }) as i16),
        };
        let imm = self.literal();
        let access = match self.random.below(4) {
            0 => insn(ebpf::BPF_STX | ebpf::BPF_MEM | size, base, free, off, 0),
            1 => insn(ebpf::BPF_ST | ebpf::BPF_MEM | size, base, 0, off, imm),
            2 if base == 6 => {
                let at = self.random.below(PACKET - 7 + usize::from(wild) * 9) as i32;
                insn(ebpf::BPF_LD | ebpf::BPF_ABS | size, 0, 0, 0, at)
            }
            _ => insn(ebpf::BPF_LDX | ebpf::BPF_MEM | size, free, base, off, 0),
        };
        self.push(access);
    }

    fn branch(&mut self, over: i16) -> Insn {
        const KINDS: [u8; 11] = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0];
        let class = [ebpf::BPF_JMP, ebpf::BPF_JMP32][self.random.below(2)];
        let kind = KINDS[self.random.below(KINDS.len())];
        let (dst, src, imm) = (self.free(), self.free(), self.literal());
        match self.random.below(2) {
            0 => insn(class | kind | ebpf::BPF_X, dst, src, over, 0),
            _ => insn(class | kind, dst, 0, over, imm),
        }
    }

    fn statements(&mut self, count: usize, depth: usize, callable: std::ops::Range<usize>) {
        for _ in 0..count {
            match self.random.below(14) {
                0..=5 => self.alu(),
                6..=8 => self.access(),
                9 => {
                    let at = self.insns.len();
                    self.push(insn(ebpf::JA, 0, 0, 0, 0));
                    let inner = 1 + self.random.below(4);
                    if depth < 3 {
                        self.statements(inner, depth + 1, callable.clone());
                    }
                    let over = (self.insns.len() - at - 1) as i16;
                    self.insns[at] = self.branch(over);
                }
                10 if depth == 0 => self.turns(callable.clone()),
                11 => {
                    let helper = 1 + self.random.below(2) as i32;
                    self.push(insn(ebpf::CALL, 0, 0, 0, helper));
                }
                12 if !callable.is_empty() => {
                    let to = callable.start + self.random.below(callable.len());
                    self.calls.push((self.insns.len(), to));
                    self.push(insn(ebpf::CALL, 0, 1, 0, 0));
                }
                _ => {
                    let (low, high) = (self.random.next() as i32, self.random.next() as i32);
                    let dst = self.free();
                    self.push(insn(ebpf::LD_DW_IMM, dst, 0, 0, low));
                    self.push(insn(0, 0, 0, 0, high));
                }
            }
        }
    }

    /// A loop of a few turns.
    fn turns(&mut self, callable: std::ops::Range<usize>) {
        let turns = 2 + self.random.below(6) as i32;
        self.push(insn(ebpf::MOV64_IMM, 9, 0, 0, turns));
        let head = self.insns.len();
        let inner = 2 + self.random.below(5);
        self.statements(inner, 1, callable);
        self.push(insn(ebpf::SUB64_IMM, 9, 0, 0, 1));
        let back = -((self.insns.len() - head) as i16) - 1;
        self.push(insn(ebpf::JNE_IMM, 9, 0, back, 0));
    }

    /// The bytes of a program: a body, and local functions that call later ones alone.
    fn program(seed: u64) -> Vec<u8> {
        let mut random = Random(seed);
        let functions = random.below(3);
        let mut g = Generator { random, insns: Vec::new(), calls: Vec::new(), functions };
        g.push(insn(ebpf::MOV64_REG, 6, 1, 0, 0));
        for register in FREE {
            let imm = g.literal();
            g.push(insn(ebpf::MOV64_IMM, register, 0, 0, imm));
        }
        let mut starts = Vec::new();
        for function in 0..=g.functions {
            starts.push(g.insns.len());
            let count = 4 + g.random.below(20);
            g.statements(count, 0, function + 1..g.functions + 1);
            g.push(insn(ebpf::EXIT, 0, 0, 0, 0));
        }
        for (at, to) in std::mem::take(&mut g.calls) {
            g.insns[at].imm = starts[to] as i32 - at as i32 - 1;
        }
        g.insns.iter().flat_map(Insn::to_array).collect()
    }
}

fn sum(a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    a.wrapping_mul(31).wrapping_add(b ^ c).wrapping_add(d.wrapping_mul(e))
}

fn few(a: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    a & 1
}

/// The counts of a campaign.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub programs: u64,
    pub runs: u64,
    pub faults: u64,
    pub assumptions: usize,
    pub dropped: usize,
    pub exits: u64,
    pub entries: u64,
    /// Rows of landing tables, and the exits that lead to rows.
    pub rows: u64,
    pub linked: u64,
}

/// The end of a run: the result or the beginning of the message, and the packet.
type End = (Result<u64, String>, Vec<u8>);

/// The part of a message that names no addresses.
fn cut(message: String) -> String {
    let end = message.find(')').map_or(message.len(), |at| at + 1);
    message[..end].to_owned()
}

fn reference(
    bytes: &[u8],
    packet: &mut [u8],
    helpers: &HashMap<u32, ebpf::Helper>,
) -> Result<u64, String> {
    let mut vm = rbpf::EbpfVmRaw::new(Some(bytes)).map_err(|error| error.to_string())?;
    for (number, helper) in helpers {
        vm.register_helper(*number, *helper).map_err(|error| error.to_string())?;
    }
    vm.execute_program(packet).map_err(|error| cut(error.to_string()))
}

fn packets(seed: u64) -> [Vec<u8>; 3] {
    let mut random = Random(seed ^ 0x5eed);
    std::array::from_fn(|_| (0..PACKET).map(|_| random.next() as u8).collect())
}

/// Compares one program in every mode.
///
/// # Errors
/// What differs.
pub fn compare(seed: u64, counts: &mut Counts) -> Result<(), String> {
    let bytes = Generator::program(seed);
    let program = Arc::new(Program::new(&bytes, |_| 256)?);
    let helpers: HashMap<u32, ebpf::Helper> =
        HashMap::from([(1, sum as ebpf::Helper), (2, few as ebpf::Helper)]);
    let helpers = Arc::new(helpers);
    let [first, others @ ..] = packets(seed);
    // One buffer for all runs: its address is the same for all.
    // Wild accesses reach no other memory of the run: it has wide margins.
    let mut buffer = [0; 2 * MARGIN + PACKET];
    let packet = &mut buffer[MARGIN..MARGIN + PACKET];
    let mut ends: Vec<End> = Vec::new();
    for start in [&first, &others[0], &others[1]] {
        packet.copy_from_slice(start);
        let end = reference(&bytes, packet, &helpers);
        counts.faults += u64::from(end.is_err());
        ends.push((end, packet.to_vec()));
    }
    let mut seen = Profile::default();
    packet.copy_from_slice(&first);
    let end = profile(&program, &helpers, packet, &mut seen).map_err(cut);
    if (&end, &*packet) != (&ends[0].0, &*ends[0].1) {
        return Err(format!("the interpreter: {end:x?}, not {:x?}", ends[0].0));
    }
    let passes = |name: &str| PassPlan::parse(name).expect("the name of a pipeline");
    let pipeline: Pipeline = parse("O1").expect("the name of a pipeline");
    let modes = [
        ("interpreted", Mode::Interpreted),
        ("O0", Mode::Native(passes("O0"))),
        ("O1", Mode::Native(passes("O1"))),
        ("O3", Mode::Native(passes("O3"))),
        ("assuming", Mode::Assuming(pipeline.clone(), seen.clone())),
        ("entering", Mode::Entering(pipeline.clone())),
        ("landing", Mode::Landing(pipeline, seen)),
    ];
    counts.programs += 1;
    for (name, mode) in modes {
        // SAFETY: no range is allowed, and the helper does not panic.
        let mut native = unsafe { Native::new(&program, &helpers, &[], false, &mode) }?;
        for (start, wanted) in [&first, &others[0], &others[1]].into_iter().zip(&ends) {
            packet.copy_from_slice(start);
            let end = native.run(packet, &mut []).map_err(cut);
            counts.runs += 1;
            if (&end, &*packet) != (&wanted.0, &*wanted.1) {
                return Err(format!("{name}: {end:x?}, not {:x?}", wanted.0));
            }
        }
        counts.assumptions += native.assumed.0;
        counts.dropped += native.assumed.1;
        counts.exits += native.counts().1;
        counts.entries += native.counts().2;
        let [rows, linked] = native.rows();
        counts.rows += rows;
        counts.linked += linked;
    }
    Ok(())
}
