//! From eBPF to functions of the IR, with frame states.
//!
//! Each function of the program becomes a function. It takes the bounds of the regions that the
//! program may access, and the registers that it uses; it returns the registers that the caller
//! sees. An access tests these regions. An access outside of all regions traps, with the number of
//! its instruction.

use crate::memory::Region;
use crate::program::{Callable, Op, Program, REGISTERS, callee, op, successors};
use osier::ir::module::{FuncDecl, ImportName, MemoryDecl, MemoryKind};
use osier::ir::{
    Block, DeclaredEffect, FrameState, FrameStates, Func, Function, FunctionBuilder, Memory,
    Module, Opcode, Signature, TrapKind, Type, Value, Variable,
};
use rbpf::ebpf::{self, Insn};
use std::collections::{BTreeMap, BTreeSet};

/// The first slot of frame states that is no register: the bounds of regions, and behind them the
/// numbers of places for accesses (`memory.rs`).
pub const BOUNDS: u32 = 16;

/// The choices of a translation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shape {
    /// Whether programs get a metadata buffer.
    pub has_buffer: bool,
    /// Whether more ranges may be accessed than the regions.
    pub has_more: bool,
    /// Whether to note frame states.
    pub states: bool,
}

/// A translated program.
#[derive(Debug)]
pub struct Translated {
    pub module: Module,
    /// By the first instruction of each function.
    pub funcs: BTreeMap<usize, Func>,
    /// Likewise, with the frame states.
    pub states: BTreeMap<Func, FrameStates>,
    /// The imported functions, by number of the helper.
    pub helpers: BTreeMap<u32, Func>,
    /// The imported function that knows of more ranges: `(address, bytes) -> allowed`.
    pub more: Option<Func>,
}

/// Translates a program that may call these helpers.
///
/// # Errors
/// A message if a function could not be built.
pub fn translate(program: &Program, helpers: &[u32], shape: Shape) -> Result<Translated, String> {
    let mut module = Module::new();
    let bytes = module.memories.push(MemoryDecl {
        name: "bytes".to_owned(),
        min_pages: 0,
        max_pages: None,
        import: None,
        kind: MemoryKind::Host,
    });
    let mut made = Translated {
        helpers: helpers.iter().map(|n| (*n, import(&mut module, &format!("h{n}"), 5))).collect(),
        more: shape.has_more.then(|| import(&mut module, "more", 2)),
        funcs: BTreeMap::new(),
        states: BTreeMap::new(),
        module,
    };
    // All names first: calls may lead forward.
    let next = made.module.funcs.len() as u32;
    let entries = program.functions.keys();
    made.funcs = entries.zip(next..).map(|(entry, n)| (*entry, Func::from_u32(n))).collect();
    for (entry, callable) in &program.functions {
        let (function, states) = Translation::of(program, &made, shape, bytes, *entry, callable)?;
        let func = made.module.add(function);
        made.states.insert(func, states);
    }
    Ok(made)
}

fn import(module: &mut Module, name: &str, params: usize) -> Func {
    let sig = module.sig(&Signature::new(&vec![Type::I64; params], &[Type::I64]));
    let import = Some(ImportName { module: "ebpf".to_owned(), field: name.to_owned() });
    let effect = DeclaredEffect::Any;
    module.funcs.push(FuncDecl { name: name.to_owned(), sig, import, effect })
}

/// The registers of a set, ascending.
pub fn registers(set: u16) -> impl Iterator<Item = usize> {
    (0..REGISTERS).filter(move |register| set & 1 << register != 0)
}

/// The registers that a function takes as arguments. The program gets r1 alone, and r2.
pub fn taken(entry: usize, callable: &Callable) -> Vec<usize> {
    if entry == 0 { vec![1, 2] } else { registers(callable.uses & 0x3ff | 1 << 10).collect() }
}

pub(crate) struct Translation<'a> {
    pub(crate) program: &'a Program,
    pub(crate) made: &'a Translated,
    pub(crate) shape: Shape,
    pub(crate) bytes: Memory,
    pub(crate) entry: usize,
    pub(crate) callable: &'a Callable,
    pub(crate) builder: FunctionBuilder,
    pub(crate) registers: Vec<Variable>,
    /// The packet, the metadata buffer if there is one, and the stack.
    pub(crate) regions: Vec<Region>,
    /// The bounds as the function takes them, and the numbers of places.
    pub(crate) bounds: Vec<Value>,
    /// How many the function takes.
    pub(crate) taken: usize,
    /// The targets of jumps back.
    pub(crate) headers: BTreeSet<usize>,
    pub(crate) depth: Option<Value>,
    pub(crate) blocks: BTreeMap<usize, Block>,
    /// The blocks that end the run at an instruction, placed last.
    /// By instruction: the block that ends the run, and the address that the error names.
    pub(crate) traps: BTreeMap<usize, (Block, Option<Value>)>,
    /// The registers that hold addresses of the stack, as far as a glance tells.
    pub(crate) stackish: u16,
    pub(crate) in_loop: BTreeSet<usize>,
}

impl<'a> Translation<'a> {
    fn of(
        program: &'a Program,
        made: &'a Translated,
        shape: Shape,
        bytes: Memory,
        entry: usize,
        callable: &'a Callable,
    ) -> Result<(Function, FrameStates), String> {
        let bounds = bounds(program, callable, shape);
        let taken = taken(entry, callable);
        let results = if entry == 0 { 1 } else { registers(callable.results).count() };
        let signature =
            Signature::new(&vec![Type::I64; bounds + taken.len()], &vec![Type::I64; results]);
        let mut builder = FunctionBuilder::new(&format!("f{entry}"), signature);
        let first = builder.create_block();
        builder.switch_to(first);
        let bounds: Vec<Value> =
            (0..bounds).map(|_| builder.append_param(first, Type::I64)).collect();
        let registers = (0..REGISTERS).map(|_| builder.declare_var(Type::I64)).collect();
        let mut t = Translation {
            program,
            made,
            shape,
            bytes,
            entry,
            callable,
            builder,
            registers,
            regions: Vec::new(),
            taken: bounds.len(),
            bounds,
            headers: headers(program, callable),
            depth: None,
            blocks: BTreeMap::new(),
            traps: BTreeMap::new(),
            stackish: stackish(program, callable),
            in_loop: in_loop(program, callable),
        };
        for register in taken {
            let value = t.builder.append_param(first, Type::I64);
            t.set(register as u8, value);
        }
        t.begin();
        t.body();
        let finished = t.builder.finish().map_err(|error| error.to_string())?;
        Ok((finished.function, finished.states))
    }

    pub(crate) fn constant(&mut self, bits: i64) -> Value {
        self.builder.constant(Type::I64, bits as u64)
    }

    pub(crate) fn binary(&mut self, opcode: Opcode, a: Value, b: Value) -> Value {
        self.builder.op(opcode, Type::I64, &[a, b])
    }

    pub(crate) fn get(&mut self, register: u8) -> Value {
        self.builder.use_var(self.registers[usize::from(register)])
    }

    pub(crate) fn set(&mut self, register: u8, value: Value) {
        self.builder.def_var(self.registers[usize::from(register)], value);
    }

    fn body(&mut self) {
        let insns = &self.program.insns;
        let mut starts: BTreeSet<usize> = BTreeSet::from([self.entry]);
        for pc in &self.callable.body {
            if matches!(op(insns[*pc].opc), Op::Jump | Op::Branch(_)) {
                starts.extend(successors(insns, *pc));
            }
        }
        self.blocks = starts.iter().map(|pc| (*pc, self.builder.reserve_block())).collect();
        self.builder.jump(self.blocks[&self.entry], &[]);
        for pc in self.callable.body.iter().copied() {
            if let Some(block) = self.blocks.get(&pc).copied() {
                if self.builder.current().is_some() {
                    self.builder.jump(block, &[]);
                }
                self.builder.place_block(block);
                self.builder.switch_to(block);
            }
            if self.builder.current().is_none() {
                // Behind an instruction that ends every run.
                continue;
            }
            self.note(pc);
            self.instruction(pc, &insns[pc]);
            // The next instruction of the body may not be the next one of the program.
            let next = successors(insns, pc);
            if self.builder.current().is_some()
                && self.callable.body.range(pc + 1..).next().is_none_or(|n| *n != next[0])
            {
                self.builder.jump(self.blocks[&next[0]], &[]);
            }
        }
        for (pc, (block, at)) in std::mem::take(&mut self.traps) {
            self.builder.place_block(block);
            self.builder.switch_to(block);
            let kind = TrapKind::User(pc as u32);
            match at {
                Some(at) => self.builder.trap_with(kind, at),
                None => self.builder.trap(kind),
            };
        }
    }

    /// Notes where an interpreter would continue, and the live registers there; at the header of a
    /// loop also the bounds, since native code is entered with them.
    fn note(&mut self, pc: usize) {
        if !self.shape.states {
            return;
        }
        // A loop may be entered, and code behind its header reads the frame pointer.
        let is_header = self.headers.contains(&pc);
        let also = if is_header { 1 << 10 } else { 0 };
        let live: Vec<usize> = registers(self.callable.live[&pc] | also).collect();
        let mut slots: Vec<(u32, Value)> =
            live.into_iter().map(|register| (register as u32, self.get(register as u8))).collect();
        let named = match (is_header, self.depth) {
            (true, _) => self.bounds.len(),
            (false, depth) => usize::from(depth.is_some()),
        };
        slots.extend((BOUNDS..).zip(&self.bounds[..named]).map(|(slot, value)| (slot, *value)));
        self.builder.frame_state(FrameState::of_values(self.entry as u32, pc as u32, slots));
    }

    pub(crate) fn trap(&mut self, pc: usize, at: Option<Value>) -> Block {
        let builder = &mut self.builder;
        self.traps.entry(pc).or_insert_with(|| (builder.reserve_block(), at)).0
    }

    fn instruction(&mut self, pc: usize, insn: &Insn) {
        match op(insn.opc) {
            Op::Wide => {
                let high = self.program.insns[pc + 1].imm as u64;
                let value = self.constant((u64::from(insn.imm as u32) + (high << 32)) as i64);
                self.set(insn.dst, value);
            }
            Op::Packet(bytes, by) => self.packet(pc, insn, bytes, by),
            Op::Load(bytes) => {
                let at = self.place(pc, insn.src, insn.off, bytes);
                let value = self.load(at, bytes);
                self.set(insn.dst, value);
            }
            Op::Store(bytes, by) => {
                let at = self.place(pc, insn.dst, insn.off, bytes);
                let value = if by { self.get(insn.src) } else { self.constant(insn.imm.into()) };
                let opcode = match bytes {
                    1 => Opcode::Store8,
                    2 => Opcode::Store16,
                    4 => Opcode::Store32,
                    _ => Opcode::Store,
                };
                self.builder.store(opcode, self.bytes, at, 0, value);
            }
            Op::Alu(true) => self.alu(insn, Type::I64),
            Op::Alu(false) => self.alu(insn, Type::I32),
            Op::End(swaps) => self.end(insn, swaps),
            Op::Jump => {
                _ = self.builder.jump(self.blocks[&successors(&self.program.insns, pc)[0]], &[])
            }
            Op::Branch(wide) => self.branch(pc, insn, wide),
            Op::Call => self.call(pc, insn),
            Op::Exit => {
                let results = if self.entry == 0 { 1 } else { self.callable.results };
                let values: Vec<Value> =
                    registers(results).map(|register| self.get(register as u8)).collect();
                self.builder.ret(&values);
            }
            Op::Unsupported => self.stop(pc),
        }
    }

    /// Ends the run at an instruction.
    fn stop(&mut self, pc: usize) {
        let trap = self.trap(pc, None);
        self.builder.jump(trap, &[]);
    }

    /// The second operand of an operation.
    fn operand(&mut self, insn: &Insn, ty: Type) -> Value {
        if insn.opc & ebpf::BPF_X != 0 {
            let value = self.get(insn.src);
            return self.narrow(value, ty);
        }
        let bits = if ty == Type::I64 { insn.imm as u64 } else { u64::from(insn.imm as u32) };
        self.builder.constant(ty, bits)
    }

    fn narrow(&mut self, value: Value, ty: Type) -> Value {
        if ty == Type::I64 { value } else { self.builder.op(Opcode::Wrap, ty, &[value]) }
    }

    fn alu(&mut self, insn: &Insn, ty: Type) {
        let b = self.operand(insn, ty);
        let a = self.get(insn.dst);
        let a = self.narrow(a, ty);
        let made = match insn.opc & ebpf::BPF_ALU_OP_MASK {
            ebpf::BPF_MOV => b,
            ebpf::BPF_NEG => {
                let zero = self.builder.constant(ty, 0);
                self.builder.op(Opcode::Sub, ty, &[zero, a])
            }
            ebpf::BPF_DIV => return self.divide(Opcode::Udiv, ty, a, b, insn),
            ebpf::BPF_MOD => return self.divide(Opcode::Urem, ty, a, b, insn),
            operation => {
                let opcode = match operation {
                    ebpf::BPF_ADD => Opcode::Add,
                    ebpf::BPF_SUB => Opcode::Sub,
                    ebpf::BPF_MUL => Opcode::Mul,
                    ebpf::BPF_OR => Opcode::Or,
                    ebpf::BPF_AND => Opcode::And,
                    ebpf::BPF_XOR => Opcode::Xor,
                    ebpf::BPF_LSH => Opcode::Shl,
                    ebpf::BPF_RSH => Opcode::Ushr,
                    _ => Opcode::Sshr,
                };
                self.builder.op(opcode, ty, &[a, b])
            }
        };
        self.set_wide(insn.dst, made, ty);
    }

    fn widened(&mut self, value: Value, ty: Type) -> Value {
        match ty {
            Type::I64 => value,
            _ => self.builder.op(Opcode::Uextend, Type::I64, &[value]),
        }
    }

    fn set_wide(&mut self, register: u8, value: Value, ty: Type) {
        let wide = self.widened(value, ty);
        self.set(register, wide);
    }

    /// A division by zero is 0. The remainder by zero leaves the register as it is, with the upper
    /// half.
    fn divide(&mut self, opcode: Opcode, ty: Type, a: Value, b: Value, insn: &Insn) {
        let without = match opcode {
            Opcode::Udiv => self.constant(0),
            _ => self.get(insn.dst),
        };
        if insn.opc & ebpf::BPF_X == 0 && insn.imm == 0 {
            return self.set(insn.dst, without);
        }
        let (one, is_zero) = (self.builder.constant(ty, 1), self.builder.op(Opcode::Eqz, ty, &[b]));
        let by = self.builder.op(Opcode::Select, ty, &[is_zero, one, b]);
        let made = self.builder.op(opcode, ty, &[a, by]);
        let made = self.widened(made, ty);
        let made = self.builder.op(Opcode::Select, Type::I64, &[is_zero, without, made]);
        self.set(insn.dst, made);
    }

    fn end(&mut self, insn: &Insn, swaps: bool) {
        let ty = match insn.imm {
            16 => Type::I16,
            32 => Type::I32,
            _ => Type::I64,
        };
        let value = self.get(insn.dst);
        let mut value = self.narrow(value, ty);
        if swaps {
            value = self.swapped(value, ty);
        }
        self.set_wide(insn.dst, value, ty);
    }

    fn swapped(&mut self, value: Value, ty: Type) -> Value {
        if ty != Type::I16 {
            return self.builder.op(Opcode::Bswap, ty, &[value]);
        }
        let byte = self.builder.constant(ty, 8);
        self.builder.op(Opcode::Rotl, ty, &[value, byte])
    }

    fn branch(&mut self, pc: usize, insn: &Insn, wide: bool) {
        let ty = if wide { Type::I64 } else { Type::I32 };
        let operation = insn.opc & ebpf::BPF_ALU_OP_MASK;
        let opcode = match operation {
            ebpf::BPF_JEQ => Opcode::Eq,
            ebpf::BPF_JNE | ebpf::BPF_JSET => Opcode::Ne,
            ebpf::BPF_JGT => Opcode::Ugt,
            ebpf::BPF_JGE => Opcode::Uge,
            ebpf::BPF_JLT => Opcode::Ult,
            ebpf::BPF_JLE => Opcode::Ule,
            ebpf::BPF_JSGT => Opcode::Sgt,
            ebpf::BPF_JSGE => Opcode::Sge,
            ebpf::BPF_JSLT => Opcode::Slt,
            _ => Opcode::Sle,
        };
        let is_signed = matches!(opcode, Opcode::Sgt | Opcode::Sge | Opcode::Slt | Opcode::Sle);
        let mut b = self.operand(insn, ty);
        if wide && insn.opc & ebpf::BPF_X == 0 && !is_signed && operation != ebpf::BPF_JSET {
            // The interpreter of the machine extends this literal with zeros.
            b = self.constant(i64::from(insn.imm as u32));
        }
        let a = self.get(insn.dst);
        let mut a = self.narrow(a, ty);
        if operation == ebpf::BPF_JSET {
            (a, b) = (self.builder.op(Opcode::And, ty, &[a, b]), self.builder.constant(ty, 0));
        }
        let holds = self.builder.op(opcode, ty, &[a, b]);
        let next = successors(&self.program.insns, pc);
        self.builder.br_if(holds, self.blocks[&next[1]], self.blocks[&next[0]]);
    }

    fn call(&mut self, pc: usize, insn: &Insn) {
        if let Some(to) = callee(&self.program.insns, pc) {
            return self.local_call(pc, to);
        }
        let helper = self.made.helpers.get(&(insn.imm as u32)).filter(|_| insn.src == 0);
        let Some(helper) = helper.copied() else { return self.stop(pc) };
        let args = [1, 2, 3, 4, 5].map(|register| self.get(register));
        let result = self.builder.call(helper, &args, &[Type::I64])[0];
        self.set(0, result);
    }

    fn local_call(&mut self, pc: usize, to: usize) {
        let target = &self.program.functions[&to];
        let mut args = self.bounds[..self.taken].to_vec();
        if let Some(depth) = self.depth {
            let [on, trap] = [self.builder.reserve_block(), self.trap(pc, None)];
            let (most, one) = (self.constant(ebpf::MAX_CALL_DEPTH as i64), self.constant(1));
            let fits = self.builder.op(Opcode::Ult, Type::I64, &[depth, most]);
            self.builder.br_if(fits, on, trap);
            self.builder.place_block(on);
            self.builder.switch_to(on);
            args[0] = self.binary(Opcode::Add, depth, one);
        }
        if !target.accesses {
            args.truncate(usize::from(self.program.counts_depth));
        }
        for register in taken(to, target) {
            let mut value = self.get(register as u8);
            if register == 10 {
                let frame = self.constant(self.program.frames[&self.entry] as i64);
                value = self.binary(Opcode::Sub, value, frame);
            }
            args.push(value);
        }
        let types = vec![Type::I64; registers(target.results).count()];
        let results = self.builder.call(self.made.funcs[&to], &args, &types).to_vec();
        for (register, value) in registers(target.results).zip(results) {
            self.set(register as u8, value);
        }
    }
}

/// The number of bounds that a function takes: the depth, and a pair for each region; the length of
/// the stack is known.
pub fn bounds(program: &Program, callable: &Callable, shape: Shape) -> usize {
    let is_program = program.functions.get(&0).is_some_and(|main| std::ptr::eq(main, callable));
    let regions = if shape.has_buffer { 5 } else { 3 };
    usize::from(program.counts_depth) + if callable.accesses || is_program { regions } else { 0 }
}

/// The registers that somewhere hold a copy of the frame pointer.
fn stackish(program: &Program, callable: &Callable) -> u16 {
    let copies = ebpf::MOV64_REG;
    let insns = callable.body.iter().map(|pc| &program.insns[*pc]);
    let copies: Vec<&Insn> = insns.filter(|insn| insn.opc == copies).collect();
    let mut found = 1 << 10;
    for _ in 0..REGISTERS {
        for insn in copies.iter().filter(|insn| found & 1 << insn.src != 0).collect::<Vec<_>>() {
            found |= 1 << insn.dst;
        }
    }
    found
}

/// The jumps back, each with its target.
fn jumps_back<'a>(
    program: &'a Program,
    callable: &'a Callable,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let all = callable
        .body
        .iter()
        .flat_map(|pc| successors(&program.insns, *pc).into_iter().map(move |to| (*pc, to)));
    all.filter(|(pc, to)| to <= pc)
}

fn headers(program: &Program, callable: &Callable) -> BTreeSet<usize> {
    jumps_back(program, callable).map(|(_, to)| to).collect()
}

/// The instructions between the target of a jump back and the jump.
fn in_loop(program: &Program, callable: &Callable) -> BTreeSet<usize> {
    jumps_back(program, callable).flat_map(|(pc, to)| to..=pc).collect()
}
