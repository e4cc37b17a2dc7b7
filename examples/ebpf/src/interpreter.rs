//! An interpreter that continues anywhere: where native code leaves, and before it is entered.
#![allow(unsafe_code, reason = "programs access memory of the process")]

use crate::program::{Op, Program, REGISTERS, callee, op, successors};
use rbpf::ebpf::{self, Insn};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// What a run of the interpreter has counted.
#[derive(Clone, Default, Debug)]
pub struct Profile {
    /// By branch: how often control fell through, and how often it jumped.
    pub branches: BTreeMap<usize, [u64; 2]>,
    /// By call of a helper: the result, while all were equal.
    pub results: BTreeMap<usize, Option<u64>>,
}

/// The registers of an activation.
pub type Registers = [u64; REGISTERS];

/// Why a run ended, with the instruction at fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub pc: usize,
    /// The address of an access, if it is known.
    pub at: Option<u64>,
}

/// A place where the caller may continue in native code: the instruction, the registers, the depth
/// of calls. It returns the registers at the end of the function, if it has.
pub type Enter<'e, E> = &'e mut dyn FnMut(usize, &Registers, u64) -> Result<Option<Registers>, E>;

/// The interpreter of a program.
#[derive(Debug)]
pub struct Interpreter<'a> {
    pub program: &'a Program,
    pub space: &'a Space,
    pub helpers: &'a HashMap<u32, ebpf::Helper>,
    pub profile: Option<&'a mut Profile>,
}

impl Interpreter<'_> {
    /// Runs an activation of the function with this entry to its end, from an instruction on.
    /// Returns its registers then.
    ///
    /// # Errors
    /// The fault that ends the run, or the error of `enter`, which is asked at each jump back.
    pub fn run<E: From<Fault>>(
        &mut self,
        entry: usize,
        mut pc: usize,
        mut r: Registers,
        depth: u64,
        enter: Enter<'_, E>,
    ) -> Result<Registers, E> {
        loop {
            let insn = &self.program.insns[pc];
            let fault = |at| E::from(Fault { pc, at });
            let next = successors(&self.program.insns, pc);
            let (dst, src) = (usize::from(insn.dst), usize::from(insn.src));
            let mut to = next.first().copied().unwrap_or(pc);
            match op(insn.opc) {
                Op::Wide => {
                    let high = self.program.insns[pc + 1].imm as u64;
                    r[dst] = u64::from(insn.imm as u32) + (high << 32);
                }
                Op::Packet(bytes, by) => {
                    let index =
                        u64::from(insn.imm as u32).wrapping_add(if by { r[src] } else { 0 });
                    let at = self.space.packet().wrapping_add(index);
                    // The machine checks 8 bytes.
                    self.space.load(at, 8).ok_or_else(|| fault(Some(at)))?;
                    r[0] = self.space.load(at, bytes).ok_or_else(|| fault(Some(at)))?;
                }
                Op::Load(bytes) => {
                    let at = r[src].wrapping_add_signed(insn.off.into());
                    r[dst] = self.space.load(at, bytes).ok_or_else(|| fault(Some(at)))?;
                }
                Op::Store(bytes, by) => {
                    let at = r[dst].wrapping_add_signed(insn.off.into());
                    let value = if by { r[src] } else { insn.imm as u64 };
                    self.space.store(at, bytes, value).ok_or_else(|| fault(Some(at)))?;
                }
                Op::Alu(wide) => r[dst] = alu(insn, wide, r[dst], r[src]),
                Op::End(swaps) => r[dst] = end(insn, swaps, r[dst]),
                Op::Jump => {}
                Op::Branch(wide) => {
                    let jumps = branches(insn, wide, r[dst], r[src]);
                    to = next[usize::from(jumps)];
                    if let Some(profile) = &mut self.profile {
                        profile.branches.entry(pc).or_default()[usize::from(jumps)] += 1;
                    }
                }
                Op::Call => match callee(&self.program.insns, pc) {
                    Some(_) if depth >= ebpf::MAX_CALL_DEPTH as u64 => return Err(fault(None)),
                    Some(callee) => {
                        let frame = self.program.frames[&entry];
                        let mut given = r;
                        given[10] = r[10].wrapping_sub(frame);
                        let back = self.run(callee, callee, given, depth + 1, enter)?;
                        r[..6].copy_from_slice(&back[..6]);
                    }
                    None => {
                        let helper = self.helpers.get(&(insn.imm as u32)).filter(|_| insn.src == 0);
                        let helper = helper.ok_or_else(|| fault(None))?;
                        r[0] = helper(r[1], r[2], r[3], r[4], r[5]);
                        if let Some(profile) = &mut self.profile {
                            let seen = profile.results.entry(pc).or_insert(Some(r[0]));
                            *seen = seen.filter(|seen| *seen == r[0]);
                        }
                    }
                },
                Op::Exit => return Ok(r),
                Op::Unsupported => return Err(fault(None)),
            }
            if to <= pc
                && let Some(end) = enter(to, &r, depth)?
            {
                return Ok(end);
            }
            pc = to;
        }
    }
}

/// The result of an operation in one width.
macro_rules! operate {
    ($operation:expr, $a:expr, $b:expr, $signed:ty) => {
        match $operation {
            ebpf::BPF_ADD => $a.wrapping_add($b),
            ebpf::BPF_SUB => $a.wrapping_sub($b),
            ebpf::BPF_MUL => $a.wrapping_mul($b),
            ebpf::BPF_DIV => $a.checked_div($b).unwrap_or(0),
            ebpf::BPF_MOD => $a.checked_rem($b).unwrap_or($a),
            ebpf::BPF_OR => $a | $b,
            ebpf::BPF_AND => $a & $b,
            ebpf::BPF_XOR => $a ^ $b,
            ebpf::BPF_LSH => $a.wrapping_shl($b as u32),
            ebpf::BPF_RSH => $a.wrapping_shr($b as u32),
            ebpf::BPF_NEG => $a.wrapping_neg(),
            ebpf::BPF_MOV => $b,
            _ => ($a as $signed).wrapping_shr($b as u32) as _,
        }
    };
}

/// The result of an operation.
pub fn alu(insn: &Insn, wide: bool, a: u64, b: u64) -> u64 {
    let b = if insn.opc & ebpf::BPF_X != 0 { b } else { insn.imm as u64 };
    let operation = insn.opc & ebpf::BPF_ALU_OP_MASK;
    if wide {
        return operate!(operation, a, b, i64);
    }
    if operation == ebpf::BPF_MOD && b as u32 == 0 {
        // The upper half stays, too.
        return a;
    }
    let (a, b) = (a as u32, b as u32);
    let narrow: u32 = operate!(operation, a, b, i32);
    narrow.into()
}

fn end(insn: &Insn, swaps: bool, value: u64) -> u64 {
    match (insn.imm, swaps) {
        (16, true) => u64::from((value as u16).swap_bytes()),
        (32, true) => u64::from((value as u32).swap_bytes()),
        (_, true) => value.swap_bytes(),
        (16, false) => u64::from(value as u16),
        (32, false) => u64::from(value as u32),
        (_, false) => value,
    }
}

/// Whether a branch jumps.
fn branches(insn: &Insn, wide: bool, a: u64, b: u64) -> bool {
    let by_register = insn.opc & ebpf::BPF_X != 0;
    let literal = insn.imm as u64;
    let cut = |value: u64| if wide { value } else { u64::from(value as u32) };
    let signed = |value: u64| if wide { value as i64 } else { i64::from(value as i32) };
    let s = (signed(a), signed(if by_register { b } else { literal }));
    let unsigned = if by_register { cut(b) } else { u64::from(insn.imm as u32) };
    let (a, b) = (cut(a), unsigned);
    match insn.opc & ebpf::BPF_ALU_OP_MASK {
        ebpf::BPF_JEQ => a == b,
        ebpf::BPF_JNE => a != b,
        ebpf::BPF_JSET => a & (if by_register { b } else { cut(literal) }) != 0,
        ebpf::BPF_JGT => a > b,
        ebpf::BPF_JGE => a >= b,
        ebpf::BPF_JLT => a < b,
        ebpf::BPF_JLE => a <= b,
        ebpf::BPF_JSGT => s.0 > s.1,
        ebpf::BPF_JSGE => s.0 >= s.1,
        ebpf::BPF_JSLT => s.0 < s.1,
        _ => s.0 <= s.1,
    }
}

/// Bytes of the process that a run may access.
#[derive(Clone, Copy, Default, Debug)]
pub struct ByteRegion {
    pub(crate) at: u64,
    pub(crate) length: u64,
}

impl ByteRegion {
    /// The bytes of a slice, which the caller keeps borrowed.
    pub fn of(bytes: &mut [u8]) -> ByteRegion {
        let at = bytes.as_mut_ptr().expose_provenance() as u64;
        ByteRegion { at, length: bytes.len() as u64 }
    }

    pub(crate) fn of_stack(at: u64) -> ByteRegion {
        ByteRegion { at, length: ebpf::STACK_SIZE as u64 }
    }
}

/// The memory that a run may access.
#[derive(Clone, Default, Debug)]
pub struct Space {
    /// The packet, the metadata buffer, the stack.
    pub(crate) regions: [ByteRegion; 3],
    pub(crate) more: Vec<Range<u64>>,
}

impl Space {
    /// The address of the packet.
    pub fn packet(&self) -> u64 {
        self.regions[0].at
    }

    fn allows(&self, at: u64, bytes: u64) -> bool {
        let is_in = |region: &ByteRegion| {
            at.checked_add(bytes)
                .is_some_and(|end| region.at <= at && end <= region.at + region.length)
        };
        self.regions.iter().any(is_in) || self.more.iter().any(|range| range.contains(&at))
    }

    /// Loads bytes, if the run may access them.
    pub fn load(&self, at: u64, bytes: u64) -> Option<u64> {
        let mut word = [0; 8];
        if !self.allows(at, bytes) {
            return None;
        }
        let from = std::ptr::with_exposed_provenance::<u8>(at as usize);
        // SAFETY: the caller of `Native::run` has lent these bytes for the run.
        unsafe { from.copy_to_nonoverlapping(word.as_mut_ptr(), bytes as usize) };
        Some(u64::from_le_bytes(word))
    }

    /// Stores bytes, if the run may access them.
    pub fn store(&self, at: u64, bytes: u64, value: u64) -> Option<()> {
        if !self.allows(at, bytes) {
            return None;
        }
        let to = std::ptr::with_exposed_provenance_mut::<u8>(at as usize);
        // SAFETY: as for loads; the regions are lent for writing.
        unsafe { to.copy_from_nonoverlapping(value.to_le_bytes().as_ptr(), bytes as usize) };
        Some(())
    }
}

/// The message of the machine for a fault.
pub fn text(program: &Program, fault: &Fault) -> String {
    let (pc, insn) = (fault.pc, &program.insns[fault.pc]);
    let access = |what: &str, bytes: u64| {
        let at = fault.at.map_or(String::new(), |at| format!(" addr {at:#x},"));
        format!("Error: out of bounds memory {what} (insn #{}),{at} size {bytes}", pc + 1)
    };
    match op(insn.opc) {
        Op::Packet(..) => access("load", 8),
        Op::Load(bytes) => access("load", bytes),
        Op::Store(bytes, _) => access("store", bytes),
        Op::Call if insn.src == 0 => {
            format!("Error: unknown helper function (id: {:#x})", insn.imm as u32)
        }
        Op::Call if insn.src == 1 => {
            format!("Error: too many nested calls (max: {})", ebpf::MAX_CALL_DEPTH)
        }
        Op::Call => format!("Error: unsupported call type #{} (insn #{pc})", insn.src),
        _ if insn.opc == ebpf::TAIL_CALL => {
            format!("Error: TAIL_CALL is not supported (insn #{pc})")
        }
        _ if matches!(insn.opc, ebpf::ST_W_XADD | ebpf::ST_DW_XADD) => {
            format!("Error: XADD instructions are not supported (insn #{pc})")
        }
        _ => format!("Error: unknown eBPF opcode {:#x} (insn #{pc})", insn.opc),
    }
}

/// Runs a program by the interpreter of this crate alone, and counts.
///
/// # Errors
/// The text of the machine for a fault.
pub fn profile(
    program: &Program,
    helpers: &HashMap<u32, ebpf::Helper>,
    packet: &mut [u8],
    into: &mut Profile,
) -> Result<u64, String> {
    let mut stack = vec![0_u64; ebpf::STACK_SIZE / 8];
    let stack_at = stack.as_mut_ptr().expose_provenance() as u64;
    let lent = ByteRegion::of(packet);
    let at = lent.at;
    let regions = [lent, ByteRegion::default(), ByteRegion::of_stack(stack_at)];
    let space = Space { regions, more: Vec::new() };
    let mut r = [0; 11];
    r[1] = if packet.is_empty() { 0 } else { at };
    r[10] = stack_at + ebpf::STACK_SIZE as u64;
    let mut interpreter = Interpreter { program, space: &space, helpers, profile: Some(into) };
    let end = interpreter.run::<Fault>(0, 0, r, 0, &mut |_, _, _| Ok(None));
    end.map(|r| r[0]).map_err(|fault| text(program, &fault))
}
