//! Lowers one version of a function to Cranelift's IR.
//!
//! Both IRs give parameters to blocks, so blocks and values translate one to one. Operations that
//! need several instructions are in the modules below: [`value`] (operations on values),
//! [`overflow`] (arithmetic that reports overflow), [`memory`] (accesses, globals), [`call`] (calls
//! and helpers), [`flow`] (terminators), [`cold`] (cold blocks and their calls), [`trap`] (branches
//! to traps), [`osr`] (OSR points), [`ways`] (edges past blocks), and [`nan`] (floats that may hold
//! a NaN that is not canonical).
//!
//! Every instruction carries its id as source location. A trap thereby identifies the instruction
//! that trapped.

pub(crate) mod call;
mod chance;
pub(crate) mod cold;
pub(crate) mod counting;
mod flow;
mod memory;
mod nan;
mod osr;
mod overflow;
mod trap;
mod value;
mod ways;

use crate::abi::{self, POINTER};
use crate::calls::ContextCode;
use crate::code::MachineCode;
use crate::config::{Bounds, Config, Interruption, Nans};
use crate::context::{SIGNALS, offset};
use crate::direct::DirectFunction;
use crate::points::Cell;
use crate::traps;
use counting::Counting;
use cranelift_codegen::ir::{
    self as clif, AliasRegion, AliasRegionData, InstBuilder, MemFlagsData, SigRef, SourceLoc,
    condcodes::IntCC, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::loops::LoopForest;
use ir::{Block, Func, Function, Inst, InstData, Module, Opcode, Signature, Type, Value};
use overflow::Overflows;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The source of a function's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CodeKind {
    /// The arguments of a call.
    Called,
    /// The buffer, to which an OSR point stored them.
    Resumed,
}

/// The input of the lowering.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    pub(crate) module: &'a Module,
    pub(crate) function: &'a Function,
    pub(crate) kind: CodeKind,
    pub(crate) config: &'a Config,
    /// The cells of the function's OSR points. They must outlive the code, which holds their
    /// addresses.
    pub(crate) cells: &'a [Cell],
    /// The counters of a version that counts. They must outlive the code, too.
    pub(crate) counting: Option<Counting<'a>>,
    /// Whether the prologue compares the stack with its limit. See [`LEAF_FRAME`].
    pub(crate) checks_stack: bool,
    /// The stubs for calls in cold blocks, which must outlive the code.
    pub(crate) cold: &'a [(Signature, Arc<MachineCode>)],
    /// The functions of the embedder that the code calls at their addresses. Their data must
    /// outlive the code, too.
    pub(crate) bound: &'a BTreeMap<Func, DirectFunction>,
    /// The calls with cells, and the assumptions without tests, by instruction of the version.
    pub(crate) contexts: &'a ContextCode,
    /// Maps each instruction to the instruction of the version it is a copy of. `None` is the
    /// identity.
    pub(crate) origins: Option<&'a [Option<Inst>]>,
}

impl Unit<'_> {
    /// Whether the assumption holds in every run of the code.
    fn is_untested(&self, inst: Inst) -> bool {
        self.origin(inst).is_some_and(|inst| self.contexts.untested.contains(&inst))
    }

    /// The instruction of the version that an instruction is a copy of.
    fn origin(&self, inst: Inst) -> Option<Inst> {
        match self.origins {
            None => Some(inst),
            Some(origins) => origins.get(inst.as_u32() as usize).copied().flatten(),
        }
    }
}

/// The bytes of stack that code may use without a check of its own.
///
/// Where control enters the code of a function, the stack pointer is at the limit or above: a
/// native caller has checked this in its prologue, and Rust before it enters native code. Code that
/// calls functions makes room for its own frame and checks again. A leaf calls helpers alone, so
/// its frame is the last one above a helper or a signal handler. These use the bytes below the
/// limit, of which `vm::native` reserves this number for the leaf (`recursion_ends_in_no_leaf`).
pub(crate) const LEAF_FRAME: u32 = 1024;

/// The most instructions of a leaf without a check. A longer leaf would often have too large a
/// frame, and would be compiled twice; the check is a small part of its cost.
const LEAF_LENGTH: usize = 128;

/// Whether a function may go without a check if its frame has at most [`LEAF_FRAME`] bytes.
pub(crate) fn is_short_leaf(function: &Function) -> bool {
    let calls = |inst: Inst| function.inst(inst).opcode.is_call();
    function.inst_count() <= LEAF_LENGTH && !function.all_insts().any(calls)
}

/// The values of one exit, before code generation.
#[derive(Clone, Debug)]
pub(crate) struct ExitShape {
    /// The number of the OSR point.
    pub(crate) number: u32,
    /// The values in order: each type, and the bits if the value is a constant. The exit needs no
    /// code for constants.
    pub(crate) values: Vec<(Type, Option<u64>)>,
}

/// Data that the code refers to. It must live as long as the code.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    /// Instructions that helpers perform. The code holds their addresses.
    #[expect(
        clippy::vec_box,
        reason = "the code has their addresses, which a longer list must not change"
    )]
    pub(crate) performed: Vec<Box<InstData>>,
    /// The function of each direct call, by instruction.
    pub(crate) callees: BTreeMap<Inst, Func>,
    /// The number of words of the buffer that the code uses.
    pub(crate) buffer: usize,
    /// The values of each described exit, by instruction.
    pub(crate) exits: BTreeMap<Inst, ExitShape>,
    /// The number of each `userN` trap, by instruction.
    pub(crate) numbers: BTreeMap<Inst, u32>,
    /// The loads, in the order of lowering. Their number gives each its trap code
    /// ([`traps::load_code`]).
    pub(crate) loads: Vec<Inst>,
    /// For each instruction, the number of loads lowered before it.
    pub(crate) loads_before: SecondaryMap<Inst, u32>,
}

/// The alias regions: memory of different regions never overlaps, and Cranelift may reorder
/// accesses accordingly.
#[derive(Clone, Copy)]
struct Regions {
    heap: AliasRegion,
    /// Host memories of the embedder.
    host: AliasRegion,
    globals: AliasRegion,
    tables: AliasRegion,
    context: AliasRegion,
}

struct Lowering<'a, 'b> {
    unit: Unit<'a>,
    builder: FunctionBuilder<'b>,
    values: SecondaryMap<Value, PackedOption<clif::Value>>,
    blocks: SecondaryMap<Block, PackedOption<clif::Block>>,
    /// The floats that may hold a NaN that is not canonical.
    raw: FixedBitSet,
    /// For raw floats, the canonical value computed earlier in the current block.
    canonical: BTreeMap<Value, clif::Value>,
    /// The operations whose overflow the function tests.
    overflows: Overflows,
    regions: Regions,
    signatures: BTreeMap<Vec<u32>, SigRef>,
    context: clif::Value,
    /// The number of signal words handed out.
    signals: usize,
    /// Whether some test of a flag covers an interrupt, too.
    polling: bool,
    /// The counters of countdown points, by number of the point.
    counters: BTreeMap<u32, Variable>,
    /// The blocks that edges may pass.
    passable: FixedBitSet,
    /// The cold blocks, by index.
    cold: FixedBitSet,
    /// The blocks that only trap, and that an edge still leads to ([`trap`]).
    trapping: BTreeSet<Block>,
    /// The block that is lowered next.
    next: PackedOption<Block>,
    /// Whether the next block goes on in the current one of Cranelift.
    continues: bool,
    /// The instruction that is being lowered.
    inst: PackedOption<Inst>,
    /// The block that all exits jump to, once an exit exists.
    way_out: PackedOption<clif::Block>,
    lowered: Lowered,
}

/// Lowers a verified function into `to`. Linear in the function.
pub(crate) fn lower(
    unit: Unit<'_>,
    to: &mut clif::Function,
    scratch: &mut FunctionBuilderContext,
    target: TargetFrontendConfig,
) -> Lowered {
    to.signature = match unit.kind {
        CodeKind::Called => abi::called(unit.function.signature()),
        CodeKind::Resumed => abi::resumed(&unit.function.signature().results),
    };
    if unit.checks_stack {
        limit_stack(to);
    }
    // Cranelift stores source locations relative to the first one it meets. Without this line, the
    // code before the first instruction would get no location
    // (`a_trap_before_the_first_instruction_has_its_place`).
    to.params.ensure_base_srcloc(SourceLoc::new(0));
    let mut region = |user_id, description: &'static str| {
        to.dfg.alias_regions.insert(AliasRegionData { user_id, description: description.into() })
    };
    let regions = Regions {
        heap: region(0, "memories"),
        globals: region(1, "globals"),
        tables: region(2, "tables"),
        context: region(3, "context"),
        host: region(4, "host memories"),
    };
    let cfg = Cfg::new(unit.function);
    let mut lowering = Lowering {
        unit,
        builder: FunctionBuilder::new(to, scratch),
        values: SecondaryMap::new(),
        blocks: SecondaryMap::new(),
        raw: match unit.config.nans {
            Nans::Canonical => nan::raw_floats(unit.function),
            // No NaN is replaced, whatever reads it.
            Nans::Platform => FixedBitSet::new(),
        },
        canonical: BTreeMap::new(),
        overflows: Overflows::new(unit.function, &cfg),
        regions,
        signatures: BTreeMap::new(),
        context: clif::Value::from_u32(0),
        signals: 0,
        polling: false,
        counters: BTreeMap::new(),
        passable: ways::passable(unit, &cfg),
        cold: cold::cold_blocks(unit.function, &cfg),
        trapping: BTreeSet::new(),
        next: None.into(),
        continues: false,
        inst: None.into(),
        way_out: None.into(),
        lowered: Lowered::default(),
    };
    lowering.make_blocks(&cfg);
    lowering.enter();
    let headers = lowering.headers(&cfg);
    let asks = |block: Block| headers.contains(block.as_u32() as usize);
    let blocks = cfg.rpo().iter().copied().filter(|block| !lowering.only_traps(*block));
    let blocks: Vec<Block> = blocks.collect();
    for (at, block) in blocks.iter().enumerate() {
        lowering.next = blocks.get(at + 1).copied().into();
        lowering.block(*block, asks(*block));
    }
    lowering.next = None.into();
    for block in std::mem::take(&mut lowering.trapping) {
        lowering.block(block, asks(block));
    }
    lowering.finish_way_out();
    lowering.builder.seal_all_blocks();
    let Lowering { builder, lowered, .. } = lowering;
    builder.finalize(target);
    lowered
}

/// Makes the prologue compare the stack pointer with the limit in the context.
fn limit_stack(function: &mut clif::Function) {
    let context = function.create_global_value(clif::GlobalValueData::VMContext);
    let flags = function.dfg.mem_flags.insert(MemFlagsData::trusted());
    let limit = function.create_global_value(clif::GlobalValueData::Load {
        base: context,
        offset: offset!(stack_limit).into(),
        global_type: POINTER,
        flags: flags.expect("the first flags of a function fit"),
    });
    function.stack_limit = Some(limit);
}

impl<'a> Lowering<'a, '_> {
    /// Creates the reachable blocks with their parameters. The entry block gets the parameters of
    /// the function instead.
    fn make_blocks(&mut self, cfg: &Cfg) {
        let function = self.unit.function;
        for &block in cfg.rpo() {
            let made = self.builder.create_block();
            self.blocks[block] = made.into();
            if block == function.entry() {
                continue;
            }
            for &param in function.block_params(block) {
                let ty = abi::held(function.value_type(param));
                let value = self.builder.append_block_param(made, ty);
                self.bind(param, value);
            }
        }
    }

    /// Begins the entry block: binds the context, and the arguments from registers or from the
    /// buffer.
    fn enter(&mut self) {
        let function = self.unit.function;
        let entry = self.blocks[function.entry()].expect("the entry is reachable");
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        let given = self.builder.block_params(entry).to_vec();
        self.context = given[0];
        match self.unit.kind {
            CodeKind::Called => {
                for (argument, value) in function.arguments().iter().zip(&given[1..]) {
                    self.bind(*argument, *value);
                }
                self.count_call();
            }
            CodeKind::Resumed => {
                let types: Vec<Type> = function.signature().params.to_vec();
                // Exits load the address of the buffer anew. A shared load would hold a register
                // from here to the exits, through all loops.
                let flags = self.context_flags();
                let buffer = self.builder.ins().load(POINTER, flags, self.context, offset!(buffer));
                let loaded = self.load_words(&types, buffer);
                for (argument, value) in function.arguments().iter().zip(loaded) {
                    self.bind(*argument, value);
                }
            }
        }
        self.start_counters();
    }

    /// The blocks that test for an interrupt, by index: loop headers and the entry. Every endless
    /// run passes one of them. Empty without [`Interruption::Signal`].
    fn headers(&self, cfg: &Cfg) -> FixedBitSet {
        let mut headers = FixedBitSet::with_capacity(self.unit.function.block_bound());
        if self.unit.config.interruption == Interruption::Signal {
            let forest = LoopForest::new(self.unit.function, cfg);
            forest.loops().for_each(|l| headers.insert(forest.header(l).as_u32() as usize));
            headers.insert(self.unit.function.entry().as_u32() as usize);
        }
        headers
    }

    fn block(&mut self, block: Block, asks: bool) {
        let function = self.unit.function;
        let made = self.blocks[block].expect("the block is reachable");
        if block != function.entry() && !std::mem::take(&mut self.continues) {
            self.builder.switch_to_block(made);
            if self.is_in_cold_block(block) {
                self.builder.set_cold_block(made);
            }
        }
        // The canonical values of another block need not dominate this one.
        self.canonical.clear();
        self.builder.set_srcloc(SourceLoc::new(function.first_inst(block).as_u32()));
        if self.unit.config.interruption == Interruption::Fuel {
            self.burn(function.block_insts(block).count() as i64);
        }
        // A test of a flag at the beginning of the block covers interrupts, too.
        if asks && self.tested_word(function.first_inst(block)).is_none() {
            self.heed();
        }
        let mut fused = None;
        for inst in function.block_insts(block) {
            self.builder.set_srcloc(SourceLoc::new(inst.as_u32()));
            self.inst = inst.into();
            self.lowered.loads_before[inst] = self.lowered.loads.len() as u32;
            let data = function.inst(inst);
            // A test whose only user is the branch behind it becomes the condition of that branch:
            // no value is materialized.
            if self.is_fused_test(inst) {
                fused = Some(inst);
                continue;
            }
            match fused.filter(|_| data.opcode.is_terminator()) {
                Some(test) => self.branch_on_test(test),
                None => self.inst(inst, data),
            }
        }
    }

    /// Pays fuel for a block. If the fuel does not suffice, the run ends before the block, and
    /// nothing is paid.
    fn burn(&mut self, fuel: i64) {
        let flags = self.context_flags();
        let had = self.builder.ins().load(types::I64, flags, self.context, offset!(fuel));
        let left = self.builder.ins().iadd_imm_s(had, -fuel);
        let out = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, left, 0);
        self.builder.ins().trapnz(out, traps::FUEL);
        self.builder.ins().store(flags, left, self.context, offset!(fuel));
    }

    /// Ends the run if an interrupt was requested. The trap splits no block: Cranelift hoists
    /// nothing out of a loop from below a block that can leave it.
    pub(super) fn heed(&mut self) {
        if self.signals >= SIGNALS {
            // All words are in use. The fence keeps Cranelift from reusing the value of an earlier
            // load; see `Context::signals`.
            self.builder.ins().sequence_point();
        }
        let word = self.signals % SIGNALS;
        self.signals += 1;
        // Cranelift selects one instruction for this, which compares the word in memory with the
        // register of the context.
        let flags = self.context_flags();
        let quiet = self.builder.ins().ireduce(types::I32, self.context);
        let at = offset!(signals) + 4 * word as i32;
        let found = self.builder.ins().load(types::I32, flags, self.context, at);
        let asked = self.builder.ins().icmp(IntCC::NotEqual, quiet, found);
        self.builder.ins().trapnz(asked, traps::INTERRUPT);
    }

    fn inst(&mut self, inst: Inst, data: &'a InstData) {
        match data.opcode {
            Opcode::Call | Opcode::CallPure | Opcode::CallReads | Opcode::CallOutside => {
                self.call(inst, data);
            }
            Opcode::CallIndirect => self.call_indirect(inst, data),
            Opcode::Jump | Opcode::BrIf | Opcode::Switch | Opcode::Return | Opcode::Trap => {
                self.terminator(inst, data)
            }
            Opcode::OsrTest => self.osr_test(data),
            Opcode::OsrExit => self.osr_exit(inst, data),
            Opcode::Assume => self.assume(inst, data),
            Opcode::GlobalGet | Opcode::GlobalSet => {
                self.global(data);
                self.count_result(inst, data);
            }
            Opcode::RefBits | Opcode::RefOf => self.word_of_reference(data),
            Opcode::MemorySize => self.memory_size(data),
            opcode if memory::is_access(opcode) => {
                self.access(data);
                self.count_result(inst, data);
            }
            opcode if call::is_performed(opcode) => self.perform(data),
            _ => {
                let result = self.value_op(data);
                self.define(data, &[result]);
            }
        }
    }

    fn return_(&mut self, data: &InstData) {
        let mut results: Vec<clif::Value> = data.args.iter().map(|v| self.observed(*v)).collect();
        let types = &self.unit.function.signature().results;
        if !abi::in_registers(types) {
            self.store_buffer(types, &results);
            results.clear();
        }
        self.builder.ins().return_(&results);
    }

    fn define(&mut self, data: &InstData, results: &[clif::Value]) {
        debug_assert_eq!(
            data.results.len(),
            results.len(),
            "jit: results of {}",
            data.opcode.name()
        );
        for (result, value) in data.results.iter().zip(results) {
            match data.opcode {
                // No collector changes a constant.
                Opcode::Const | Opcode::Assume => self.values[*result] = (*value).into(),
                _ => self.bind(*result, *value),
            }
        }
    }

    /// Binds a value to a Cranelift value. The Cranelift value of a reference is a root at each
    /// call across which it is live: Cranelift keeps it in a word of the frame.
    fn bind(&mut self, value: Value, held: clif::Value) {
        if self.type_of(value) == Type::Ref {
            self.builder.declare_value_needs_stack_map(held);
        }
        self.values[value] = held.into();
    }

    /// Lowers `ref_bits` and `ref_of`. The result is a Cranelift value of its own: a collector
    /// changes the word of the reference, but not a word read from the reference
    /// (`a_word_read_before_a_collection_stays`).
    fn word_of_reference(&mut self, data: &InstData) {
        let held = self.value(data.args[0]);
        let copy = self.unshared(held);
        self.define(data, &[copy]);
    }

    /// A copy of a word. Cranelift merges both only after it has inserted the loads of roots.
    fn unshared(&mut self, word: clif::Value) -> clif::Value {
        self.builder.ins().iadd_imm_s(word, 0)
    }

    /// The value as native code holds it. A raw float may hold any NaN if the interpreter's value
    /// is the canonical NaN.
    fn value(&self, value: Value) -> clif::Value {
        self.values[value].expect("jit: a value is defined before it is used")
    }

    fn is_raw(&self, value: Value) -> bool {
        self.raw.contains(value.as_u32() as usize)
    }

    /// The value with the bits that the interpreter has.
    fn observed(&mut self, value: Value) -> clif::Value {
        let held = self.value(value);
        if !self.is_raw(value) {
            return held;
        }
        if let Some(known) = self.canonical.get(&value) {
            return *known;
        }
        let made = nan::canonical(&mut self.builder, held);
        self.canonical.insert(value, made);
        made
    }

    fn type_of(&self, value: Value) -> Type {
        self.unit.function.value_type(value)
    }

    fn context_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.regions.context))
    }

    /// The flags for loads of memory that never changes while native code runs.
    fn fixed_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_readonly().with_can_move()
    }

    /// Loads a word of the context that never changes while native code runs.
    fn fixed(&mut self, at: i32) -> clif::Value {
        let flags = self.fixed_flags();
        self.builder.ins().load(POINTER, flags, self.context, at)
    }

    fn guards(&self) -> bool {
        self.unit.config.bounds == Bounds::Guarded
    }
}

/// The instruction that a source location stands for. `None` for the default location.
pub(crate) fn inst_of(location: SourceLoc) -> Option<Inst> {
    (!location.is_default()).then(|| Inst::from_u32(location.bits()))
}
