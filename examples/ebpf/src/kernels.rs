//! The programs that the table measures, in eBPF assembly.

use rbpf::ebpf;
use std::fmt::Write as _;
use std::ops::Range;

/// A program to measure, with the packet that it reads.
pub struct Kernel {
    pub name: String,
    pub text: String,
    pub packet: Vec<u8>,
    /// Whether its calls lead to functions of the program, not to helpers.
    pub has_local_calls: bool,
    /// Further ranges that it may access. The runtime's compilers ignore them.
    pub allowed: Vec<Range<u64>>,
}

impl Kernel {
    /// The bytes of the program.
    ///
    /// # Errors
    /// The message of the assembler.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let mut bytes = rbpf::assembler::assemble(&self.text)?;
        let calls = bytes.chunks_exact_mut(ebpf::INSN_SIZE).filter(|insn| insn[0] == ebpf::CALL);
        // The assembler has no word for calls of local functions.
        calls.filter(|_| self.has_local_calls).for_each(|insn| insn[1] |= 1 << 4);
        Ok(bytes)
    }
}

/// The helper that programs call.
pub fn mix(a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    a.wrapping_mul(31).wrapping_add(b ^ c).wrapping_add(d * e)
}

fn kernel(name: &str, text: &str, bytes: usize) -> Kernel {
    let packet = (0..bytes).map(|i| (i * 7 + i / 256 + 3) as u8).collect();
    Kernel {
        name: name.to_owned(),
        text: text.to_owned(),
        packet,
        has_local_calls: text == LOCAL,
        allowed: vec![],
    }
}

/// Blocks of a load, a branch that is never taken, and a sum.
pub fn straight(turns: usize) -> Kernel {
    let mut text = "mov r0, 0\n".to_owned();
    for turn in 0..turns {
        // The packet has no word of this value.
        let left = 2 * (turns - turn) - 1 + (turns - turn - 1);
        let _ =
            writeln!(text, "ldxdw r2, [r1+{}]\njeq r2, 0x11, +{left}\nadd r0, r2", 8 * (turn % 16));
    }
    text.push_str("mov r3, 1\nexit\n");
    let name = format!("straight, {} instructions", 3 * turns + 3);
    kernel(&name, &text, 128)
}

/// The program without instructions: what a call costs.
pub fn nothing() -> Kernel {
    kernel("nothing", "mov r0, 0\nexit", 64)
}

/// As [`straight`], with a further range: each access has a cold block that calls.
pub fn asking(turns: usize) -> Kernel {
    let mut kernel = straight(turns);
    kernel.name = format!("asking, {} instructions", 3 * turns + 3);
    kernel.allowed = Vec::from([Range { start: 1, end: 2 }]);
    kernel
}

/// The nine kernels.
pub fn kernels() -> Vec<Kernel> {
    vec![
        kernel("checksum", CHECKSUM, 1500),
        kernel("hash", HASH, 256),
        kernel("array", ARRAY, 64),
        kernel("spills", SPILLS, 64),
        kernel("primes", PRIMES, 64),
        kernel("helper loop", HELPER, 64),
        kernel("packet filter", FILTER, 64),
        kernel("alu", ALU, 64),
        kernel("local call", LOCAL, 64),
    ]
}

/// The sum of 16-bit words in ones' complement.
const CHECKSUM: &str = "
    mov r0, 0
    mov r2, r1
    add r2, 1500
    ldxh r3, [r1]
    add r0, r3
    add r1, 2
    jlt r1, r2, -4
    mov r3, r0
    rsh r3, 16
    and r0, 0xffff
    add r0, r3
    mov r3, r0
    rsh r3, 16
    add r0, r3
    and r0, 0xffff
    exit";
/// FNV-1a, byte by byte.
const HASH: &str = "
    lddw r0, 0xcbf29ce484222325
    lddw r4, 0x100000001b3
    mov r2, r1
    add r2, 256
    ldxb r3, [r1]
    xor r0, r3
    mul r0, r4
    add r1, 1
    jlt r1, r2, -5
    exit";
/// Fills an array on the stack and adds it, sixteen times.
const ARRAY: &str = "
    mov r0, 0
    mov r5, 0
    mov r2, r10
    add r2, -512
    mov r3, 0
    mov r4, r3
    xor r4, r5
    stxdw [r2], r4
    add r2, 8
    add r3, 1
    jlt r3, 64, -6
    mov r2, r10
    add r2, -512
    mov r3, 0
    ldxdw r4, [r2]
    add r0, r4
    add r2, 8
    add r3, 1
    jlt r3, 64, -5
    add r5, 1
    jlt r5, 16, -19
    exit";
/// Keeps ten values in use at once, most of them in the frame.
const SPILLS: &str = "
    mov r9, 0
    mov r0, 1
    stxdw [r10-8], r0
    stxdw [r10-16], r0
    stxdw [r10-24], r0
    stxdw [r10-32], r0
    ldxdw r2, [r10-8]
    ldxdw r3, [r10-16]
    ldxdw r4, [r10-24]
    ldxdw r5, [r10-32]
    add r2, r3
    xor r3, r4
    add r4, r5
    mul r5, 31
    xor r5, r2
    stxdw [r10-8], r2
    stxdw [r10-16], r3
    stxdw [r10-24], r4
    stxdw [r10-32], r5
    add r0, r5
    add r9, 1
    jlt r9, 500, -16
    exit";
/// Counts primes by trial division.
const PRIMES: &str = "
    mov r0, 0
    mov r2, 2
    mov r3, 2
    mov r4, r3
    mul r4, r3
    jgt r4, r2, +5
    mov r4, r2
    mod r4, r3
    jeq r4, 0, +3
    add r3, 1
    ja -8
    add r0, 1
    add r2, 1
    jlt r2, 400, -12
    exit";
/// Calls a helper that mixes its arguments.
const HELPER: &str = "
    mov r6, 0
    mov r7, 0
    mov r1, r6
    mov r2, r7
    mov r3, 3
    mov r4, 4
    mov r5, 5
    call 1
    mov r7, r0
    add r6, 1
    jlt r6, 200, -9
    mov r0, r7
    exit";
/// Looks for TCP packets to a port, over the words of a frame, a hundred times.
const FILTER: &str = "
    mov r0, 0
    mov r9, 0
    ldxh r2, [r1+12]
    be16 r2
    jeq r2, 0x800, +12
    ldxb r3, [r1+23]
    jeq r3, 6, +10
    ldxh r4, [r1+36]
    be16 r4
    jeq r4, 22, +7
    ldxw r5, [r1+26]
    be32 r5
    and r5, -256
    jeq r5, 0x0a000100, +3
    add r0, r2
    add r0, r3
    add r0, r5
    add r9, 1
    jlt r9, 100, -17
    exit";
/// Arithmetic alone.
const ALU: &str = "
    mov r0, 1
    mov r2, 0x1234
    mov r9, 0
    mul r0, 33
    add r0, r2
    xor r2, r0
    lsh r2, 3
    rsh r2, 1
    add32 r2, 7
    mov r3, r2
    div r3, 3
    xor r0, r3
    arsh r0, 1
    neg r2
    add r9, 1
    jlt r9, 500, -13
    exit";
/// Calls a function of the program.
const LOCAL: &str = "
    mov r6, 0
    mov r7, 1
    mov r1, r6
    mov r2, r7
    call 5
    mov r7, r0
    add r6, 1
    jlt r6, 300, -6
    mov r0, r7
    exit
    mov r0, r1
    mul r0, 31
    xor r0, r2
    mov r3, r0
    rsh r3, 7
    add r0, r3
    exit";
