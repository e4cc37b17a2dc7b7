//! Guesses about registers of a bytecode: those that hold must have an exit.
//!
//! A front end in the style of a register machine compiles random programs, with a frame state in
//! front of each bytecode and nowhere else, and guesses about the values that an interpreter of its
//! own has seen. Loads, stores and calls end the stretches in which an exit may land, and labels
//! make jumps that fall through.

use interp::{Limits, Machine, NoHost, NoObserver, Outcome};
use ir::text::parse_module;
use ir::{
    Block, FinishedFunction, FrameState, Func, FunctionBuilder, Imm, InstSpec, Memory, Opcode,
    Point, Signature, Type, Value, Variable,
};
use osier_derive::speculate::{Assumption, Dropped, Expected, Plan, speculate};
use osr::VersionTree;
use passes::Pipeline;
use std::collections::BTreeMap;

const REGISTERS: usize = 6;
/// The words of memory that programs use.
const WORDS: u64 = 16;

/// SplitMix64. The generator of programs belongs to the judges, on which this crate must not
/// depend.
struct Prng(u64);

impl Prng {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }
}

/// A bytecode; operands are registers, targets are positions.
#[derive(Clone, Copy, Debug)]
enum Bytecode {
    Const(usize, u64),
    Copy(usize, usize),
    Binary(Opcode, usize, usize, usize),
    Load(usize, usize),
    Store(usize, usize),
    /// A call that does nothing, as far as the front end knows.
    Call,
    UnlessLess(usize, usize, usize),
    /// Counts a register down, and goes back while it is not 0.
    Again(usize, usize),
    Return(usize),
}
use Bytecode::*;

/// A random program: straight code with forward branches, and a loop around some of it.
fn program(prng: &mut Prng) -> Vec<Bytecode> {
    // The last register counts turns.
    let register = |prng: &mut Prng| prng.below(REGISTERS - 1);
    let count = 12 + prng.below(29);
    let (first, last) = (2 + prng.below(4), count - 1 - prng.below(4));
    let mut code = vec![Const(REGISTERS - 1, 3)];
    while code.len() < count {
        let (a, b, c) = (register(prng), register(prng), register(prng));
        let at = code.len();
        code.push(match prng.below(12) {
            _ if at == last => Again(REGISTERS - 1, first),
            0 => Const(a, prng.below(20) as u64),
            1 => Copy(a, b),
            2 => Binary(Opcode::Mul, a, b, c),
            3 => Binary(Opcode::Sub, a, b, c),
            4 | 5 => Binary(Opcode::Add, a, b, c),
            6 | 7 => Load(a, b),
            8 => Store(a, b),
            9 => Call,
            // Neither into the loop nor out of it, so that each program ends.
            _ => {
                let end = if at < first {
                    first
                } else if at < last {
                    last
                } else {
                    count
                };
                UnlessLess((at + 1 + prng.below(6)).min(end), a, b)
            }
        });
    }
    code.push(Return(0));
    code
}

/// A guess of a bytecode: about the number of a word of memory (0), the lowest bit of an operand as
/// if it were a tag (1), the register that the bytecode sets, or the result of a test (2).
type Site = (usize, u8);

/// The values seen at each site.
type Seen = BTreeMap<Site, Vec<u64>>;

fn interpret(code: &[Bytecode], arguments: [u64; 2], seen: &mut Seen) -> u64 {
    let mut r = [0; REGISTERS];
    r[..2].copy_from_slice(&arguments);
    let mut memory = [0; WORDS as usize];
    let mut pc = 0;
    loop {
        let at = pc;
        pc += 1;
        if let Binary(_, _, operand, _) = code[at] {
            seen.entry((at, 1)).or_default().push(r[operand] & 1);
        }
        let (to, value) = match code[at] {
            Const(to, bits) => (to, bits),
            Copy(to, from) => (to, r[from]),
            Binary(Opcode::Mul, to, a, b) => (to, r[a].wrapping_mul(r[b])),
            Binary(Opcode::Sub, to, a, b) => (to, r[a].wrapping_sub(r[b])),
            Binary(_, to, a, b) => (to, r[a].wrapping_add(r[b])),
            Load(to, address) => {
                seen.entry((at, 0)).or_default().push(r[address] % WORDS);
                (to, memory[(r[address] % WORDS) as usize])
            }
            Store(address, from) => {
                seen.entry((at, 1)).or_default().push(r[from] & 1);
                seen.entry((at, 0)).or_default().push(r[address] % WORDS);
                memory[(r[address] % WORDS) as usize] = r[from];
                continue;
            }
            Call => continue,
            UnlessLess(to, a, b) => {
                seen.entry((at, 2)).or_default().push(u64::from(r[a] < r[b]));
                pc = if r[a] < r[b] { pc } else { to };
                continue;
            }
            Again(counter, to) => {
                r[counter] -= 1;
                pc = if r[counter] == 0 { pc } else { to };
                continue;
            }
            Return(from) => return r[from],
        };
        r[to] = value;
        if matches!(code[at], Load(..) | Binary(..)) {
            seen.entry((at, 2)).or_default().push(value);
        }
    }
}

/// The front end.
struct Compiler {
    builder: FunctionBuilder,
    registers: Vec<Variable>,
    blocks: BTreeMap<usize, Block>,
    callee: Func,
    memory: Memory,
    /// The value to guess about.
    sites: BTreeMap<Site, Value>,
}

impl Compiler {
    fn compile(
        code: &[Bytecode],
        callee: Func,
        memory: Memory,
    ) -> (FinishedFunction, BTreeMap<Site, Value>) {
        let signature = Signature::new(&[Type::I64, Type::I64], &[Type::I64]);
        let mut builder = FunctionBuilder::new("f", signature);
        let entry = builder.create_block();
        builder.switch_to(entry);
        let registers: Vec<Variable> =
            (0..REGISTERS).map(|_| builder.declare_var(Type::I64)).collect();
        for register in &registers[..2] {
            let value = builder.append_param(entry, Type::I64);
            builder.def_var(*register, value);
        }
        let starts = (0..).zip(code).flat_map(|(pc, bytecode)| match *bytecode {
            UnlessLess(to, ..) | Again(_, to) => vec![pc + 1, to],
            _ => vec![],
        });
        let mut blocks: BTreeMap<usize, Block> = BTreeMap::new();
        for pc in starts.collect::<Vec<usize>>() {
            blocks.entry(pc).or_insert_with(|| builder.reserve_block());
        }
        let sites = BTreeMap::new();
        let mut compiler = Compiler { builder, registers, blocks, callee, memory, sites };
        for (pc, bytecode) in code.iter().enumerate() {
            compiler.bytecode(pc, *bytecode);
        }
        (compiler.builder.finish().expect("complete"), compiler.sites)
    }

    fn get(&mut self, register: usize) -> Value {
        self.builder.use_var(self.registers[register])
    }

    fn set(&mut self, register: usize, value: Value) {
        self.builder.def_var(self.registers[register], value);
    }

    /// The address of a register's word, in the memory of the module.
    fn address(&mut self, pc: usize, register: usize) -> Value {
        let word = self.get(register);
        let word = self.builder.op(Opcode::Wrap, Type::I32, &[word]);
        let mask = self.builder.constant(Type::I32, WORDS - 1);
        let word = self.builder.op(Opcode::And, Type::I32, &[word, mask]);
        self.sites.insert((pc, 0), word);
        let three = self.builder.constant(Type::I32, 3);
        self.builder.op(Opcode::Shl, Type::I32, &[word, three])
    }

    fn tag(&mut self, pc: usize, operand: Value) {
        let one = self.builder.constant(Type::I64, 1);
        let tag = self.builder.op(Opcode::And, Type::I64, &[operand, one]);
        self.sites.insert((pc, 1), tag);
    }

    fn bytecode(&mut self, pc: usize, bytecode: Bytecode) {
        if let Some(block) = self.blocks.get(&pc).copied() {
            if self.builder.current().is_some() {
                self.builder.jump(block, &[]);
            }
            self.builder.place_block(block);
            self.builder.switch_to(block);
        }
        let values: Vec<Value> = (0..REGISTERS).map(|register| self.get(register)).collect();
        self.builder.frame_state(FrameState::of_values(0, pc as u32, (0..).zip(values)));
        match bytecode {
            Const(to, bits) => {
                let value = self.builder.constant(Type::I64, bits);
                self.set(to, value);
            }
            Copy(to, from) => {
                let value = self.get(from);
                self.set(to, value);
            }
            Binary(opcode, to, a, b) => {
                let args = [self.get(a), self.get(b)];
                self.tag(pc, args[0]);
                let value = self.builder.op(opcode, Type::I64, &args);
                self.set(to, value);
                self.sites.insert((pc, 2), value);
            }
            Load(to, address) => {
                let address = self.address(pc, address);
                let imm = Imm::Address(self.memory, 0);
                let spec = InstSpec::new(Opcode::Load, Type::I64, imm, &[address]);
                let value = self.builder.insert_value(spec);
                self.set(to, value);
                self.sites.insert((pc, 2), value);
            }
            Store(address, from) => {
                let args = [self.address(pc, address), self.get(from)];
                self.tag(pc, args[1]);
                let imm = Imm::Address(self.memory, 0);
                self.builder.insert(InstSpec::new(Opcode::Store, Type::I64, imm, &args));
            }
            Call => _ = self.builder.insert(InstSpec::call(self.callee, &[], &[])),
            UnlessLess(to, a, b) => {
                let args = [self.get(a), self.get(b)];
                let less = self.builder.op(Opcode::Ult, Type::I64, &args);
                self.sites.insert((pc, 2), less);
                self.builder.br_if(less, self.blocks[&(pc + 1)], self.blocks[&to]);
            }
            Again(counter, to) => {
                let (counted, one) = (self.get(counter), self.builder.constant(Type::I64, 1));
                let less = self.builder.op(Opcode::Sub, Type::I64, &[counted, one]);
                self.set(counter, less);
                let zero = self.builder.constant(Type::I64, 0);
                let goes_on = self.builder.op(Opcode::Ne, Type::I64, &[less, zero]);
                self.builder.br_if(goes_on, self.blocks[&to], self.blocks[&(pc + 1)]);
            }
            Return(from) => {
                let value = self.get(from);
                self.builder.ret(&[value]);
            }
        }
    }
}

/// The guesses of many programs.
#[derive(Debug, Default)]
struct Count {
    guesses: usize,
    /// Passes proved these, or found them in unreachable code.
    settled: usize,
    exits: usize,
    lost: BTreeMap<String, usize>,
}

impl Count {
    fn program(&mut self, seed: u64) {
        let prng = &mut Prng(seed);
        let code = program(prng);
        let text = "memory @mem 1 1\nfunc @callee() {\nentry:\n  %z = const.i32 0\n  \
                    store.i32 @mem[%z + 4096], %z\n  return\n}";
        let mut module = parse_module(text).expect("it is well-formed");
        let callee = module.defined().next().expect("the callee").0;
        let memory = Memory::from_u32(0);
        let (finished, sites) = Compiler::compile(&code, callee, memory);
        let FinishedFunction { function, states, ids, .. } = finished;
        assert_eq!(states.check(&function), Ok(()));
        let func = module.add(function);
        let base = module.body(func).expect("it was added");
        let arguments = [prng.next_u64() % 50, prng.next_u64() % 50];
        let mut seen = Seen::new();
        let wanted = interpret(&code, arguments, &mut seen);
        let mut machine = Machine::new(&module, Limits::default()).expect("instantiated");
        let ended = machine.invoke(func, &arguments, &mut NoHost, &mut NoObserver);
        assert_eq!(ended, Outcome::Returned(vec![wanted]), "seed {seed}");

        let noted: BTreeMap<Point, &FrameState> = states.noted().collect();
        // A copy makes no instruction, so the state behind a result may already be the one behind
        // the copy, which has overwritten the register. No register has the result then.
        let is_gone = |one: &Assumption| {
            noted.get(&one.at).is_some_and(|state| state.all_values().all(|v| v != one.value))
        };
        let right = sites.iter().filter_map(|(site, value)| {
            let seen = seen.get(site)?;
            let (value, bits) = (ids.value(*value)?, seen[0]);
            let at = Point::before(base.next_inst(base.defining_inst(value)?)?);
            let expected = Expected::Is(bits);
            let is_right = seen.iter().all(|one| *one == bits);
            is_right.then_some(Assumption { at, value, expected, reason: site.0 as u32 })
        });
        let assume: Vec<Assumption> = right.filter(|one| !is_gone(one)).collect();
        let mut tree = VersionTree::new(base.clone());
        tree.arm_states(VersionTree::BASE, &states).expect("they fit");
        let pipeline = Pipeline::default();
        // No other right guess is refused.
        let plan = Plan { states: Some(&states), ..Plan::new(&assume, &pipeline) };
        let made = speculate(&module, &mut tree, VersionTree::BASE, &plan).expect("they fit");
        self.guesses += assume.len();
        self.settled += made.settled.len();
        self.exits += made.exits.len();
        for (_, why) in &made.dropped {
            *self.lost.entry(name(why)).or_default() += 1;
        }
    }
}

fn name(why: &Dropped) -> String {
    match why.no_exit() {
        Some(lost) => format!("{}: {}", why.name(), lost),
        None => why.name().to_owned(),
    }
}

#[test]
fn right_guesses_have_exits() {
    let mut count = Count::default();
    for seed in 0..1000 {
        count.program(seed);
    }
    let Count { guesses, settled, exits, lost } = &count;
    assert!(*guesses > 20_000 && *exits > 8_000, "{count:#?}");
    assert_eq!(guesses - settled - exits, lost.values().sum::<usize>());
    assert!((settled + exits) * 1000 >= guesses * 995, "{count:#?}");
    // The builder repeats states in front of jumps. Without that, one of sixty right guesses finds
    // no state to land at.
    assert!(!lost.keys().any(|why| why.contains("no_landing")), "{count:#?}");
}
