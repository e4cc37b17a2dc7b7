//! Translates function bodies: a stack machine with structured control becomes a graph of blocks.
//!
//! The operand stack is symbolic: it holds the IR values that operators produce. Locals are
//! variables of the builder. The results of a structure are variables too if several branches carry
//! them. Unreachable operators produce nothing.
//!
//! Only control flow creates blocks: a loop header, a target of a conditional branch, and the code
//! after a structure that some branch leaves. If that branch is the only exit, its block simply
//! continues instead. In the end, blocks that contain only a jump are skipped, because each of
//! several structures that end together creates one.

mod control;
mod locals;
mod size;
mod storage;

use crate::budget::{ImportBudget, cost};
use crate::error::ImportError;
use crate::index::Index;
use crate::offsets::{BodyOffsets, OffsetNotes};
use crate::operators;
use crate::unsupported::{Placeholders, feature_of};
use ir::{
    Block, BuildError, FinishedFunction, Func, Function, FunctionBuilder, Imm, Inst, InstSpec,
    Module, Opcode, Sig, Signature, Table, Type, TypeList, Value, Variable, reference,
};
use locals::LocalMap;
use size::TableSizes;
use std::collections::BTreeSet;
use wasmparser::{FuncValidator, FunctionBody, HeapType, Operator, ValidatorResources};

/// The parts of a module that the translation of a body reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModuleContext<'a> {
    pub(crate) module: &'a Module,
    /// The signature for each type index. Several types may share one signature.
    pub(crate) types: &'a [Sig],
    pub(crate) index: &'a Index,
    /// The offset at which the contents of the code section start, if offsets are to be noted.
    pub(crate) notes_from: Option<u64>,
    /// The declarations with placeholders, if functions may be left out.
    pub(crate) unsupported: Option<&'a Placeholders>,
}

impl ModuleContext<'_> {
    /// Fails if an immediate names a declaration with a placeholder.
    fn check_imm(&self, imm: Imm, offset: u64) -> Result<()> {
        let feature = self.unsupported.and_then(|unsupported| unsupported.of(imm, self.module));
        feature.map_or(Ok(()), |feature| Err(ImportError::of_feature(feature, offset)))
    }

    /// Fails if a signature is a placeholder.
    fn check_sig(&self, sig: Sig, offset: u64) -> Result<()> {
        self.unsupported.map_or(Ok(()), |unsupported| unsupported.check_sig(sig, offset))
    }
}

/// The way in which control reaches the code after the `end` of a structure.
#[derive(Clone, Copy, Debug)]
enum FrameExit {
    /// So far only by falling through.
    Unused,
    /// Only by the branch that ends this block. The block has no terminator yet.
    Open(Block),
    /// By jumps to this block, which is reserved but not placed.
    Made(Block),
}

#[derive(Clone, Copy, Debug)]
enum FrameKind {
    /// A block, the arm after an `else`, or the function itself.
    Block,
    /// A loop with this header.
    Loop(Block),
    /// The first arm of an `if`: its branch, and the block that the branch goes to on zero.
    If(Inst, Block),
}

#[derive(Debug)]
struct ControlFrame {
    kind: FrameKind,
    exit: FrameExit,
    /// The height of the operand stack below the structure and its parameters.
    height: u32,
    /// The parameters of the structure. Both arms of an `if` receive them.
    params: Vec<Value>,
    results: TypeList,
    /// The variables for the values that a branch carries: the parameters of a loop, or the results
    /// of any other structure.
    variables: Vec<Variable>,
}

/// The locals of a function. The builder learns of a local on its first use, because each function
/// may declare 50,000 locals with a few bytes.
#[derive(Debug, Default)]
struct Locals {
    /// For each sequence of locals of one type, the first index after it.
    runs: Vec<(u32, Type)>,
    variables: LocalMap<Variable>,
}

pub(crate) struct Translator<'a> {
    context: ModuleContext<'a>,
    budget: &'a mut ImportBudget,
    builder: FunctionBuilder,
    locals: Locals,
    stack: Vec<Value>,
    frames: Vec<ControlFrame>,
    /// The headers of loops to which some branch returns.
    loop_heads: BTreeSet<Block>,
    /// In unreachable code, the number of structures opened within it.
    unreachable: Option<u32>,
    offset: u64,
    built: Built,
    notes: Option<OffsetNotes>,
}

/// The size of the function so far, for the budget.
#[derive(Clone, Copy, Default, Debug)]
struct Built {
    insts: u64,
    operands: u64,
    /// Results of instructions beyond their first.
    more_results: u64,
    blocks: u64,
    targets: u64,
    accesses: usize,
    /// The bytes that are released when the function is finished.
    working: u64,
    /// The room that was reserved in the tables; zero without a reservation.
    reserved: TableSizes,
    deepest: usize,
    highest: usize,
}

/// The number of instructions from which the bound on a function's size is close enough to reserve
/// memory for it.
const LONG: usize = 1000;

type Result<T> = std::result::Result<T, ImportError>;

/// Validates and translates the body of a function.
pub(crate) fn translate(
    context: ModuleContext<'_>,
    func: Func,
    body: &FunctionBody<'_>,
    validator: &mut FuncValidator<ValidatorResources>,
    budget: &mut ImportBudget,
) -> Result<(Function, Option<BodyOffsets>)> {
    context.check_sig(context.module.funcs[func].sig, body.range().start)?;
    let signature = context.module.signature(func).clone();
    let name = &context.module.funcs[func].name;
    let mut translator = Translator {
        builder: FunctionBuilder::new(name, signature.clone()),
        context,
        budget,
        locals: Locals::default(),
        stack: Vec::new(),
        frames: Vec::new(),
        loop_heads: BTreeSet::new(),
        unreachable: None,
        offset: body.range().start,
        built: Built::default(),
        notes: context.notes_from.map(|start| OffsetNotes::new(start, body.range())),
    };
    translator.reserve(body)?;
    translator.start(&signature)?;
    translator.declare_locals(signature.params.len(), body, validator)?;
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        let (operator, offset) = operators.read_with_offset()?;
        translator.offset = offset;
        check_supported(&operator, offset)?;
        validator.op(offset, &operator)?;
        translator.operator(&operator)?;
    }
    operators.finish()?;
    translator.finish()
}

/// Rejects an operator of an unsupported proposal, by name.
pub(crate) fn check_supported(operator: &Operator<'_>, offset: u64) -> Result<()> {
    let proposal = operators::proposal(operator);
    match operators::is_supported(proposal) {
        true => Ok(()),
        false => {
            let (title, name) = (operators::title(proposal), operators::name(operator));
            let what = format!("this module uses {title} ({name}), which is not supported");
            Err(ImportError::unsupported(what, offset).with_feature(title))
        }
    }
}

/// The IR type of a WebAssembly type. The validator has rejected most unsupported types before.
pub(crate) fn value_type(ty: wasmparser::ValType, offset: u64) -> Result<Type> {
    match ty {
        wasmparser::ValType::I32 => Ok(Type::I32),
        wasmparser::ValType::I64 => Ok(Type::I64),
        wasmparser::ValType::F32 => Ok(Type::F32),
        wasmparser::ValType::F64 => Ok(Type::F64),
        wasmparser::ValType::FUNCREF => Ok(Type::FuncRef),
        wasmparser::ValType::EXTERNREF => Ok(Type::ExternRef),
        other => {
            let error = ImportError::unsupported(format!("type {other}"), offset);
            Err(error.with_feature(feature_of(other)))
        }
    }
}

impl<'a> Translator<'a> {
    /// Reserves tables of the size that the function needs. Without enough memory for that, the
    /// tables grow: much of the body may be unreachable code, which needs none.
    fn reserve(&mut self, body: &FunctionBody<'_>) -> Result<()> {
        let sizes = TableSizes::of(body, &self.context);
        let tables = FunctionBuilder::table_bytes(sizes.insts, sizes.values);
        let meanwhile = FunctionBuilder::finish_bytes(sizes.insts, sizes.values);
        if sizes.insts >= LONG && tables + meanwhile <= self.budget.left() {
            self.budget.charge(tables, self.offset)?;
            self.work(meanwhile)?;
            self.builder.reserve(sizes.insts, sizes.values);
            self.built.reserved = sizes;
        }
        Ok(())
    }

    /// Creates the entry block, which no edge may target, and opens the structure of the function
    /// itself.
    fn start(&mut self, signature: &Signature) -> Result<()> {
        let entry = self.builder.create_block();
        self.builder.switch_to(entry);
        for (index, ty) in signature.params.iter().enumerate() {
            let value = self.builder.append_param(entry, *ty);
            let variable = self.builder.declare_var(*ty);
            self.builder.def_var(variable, value);
            self.locals.variables.insert(index as u32, variable);
        }
        self.push_frame(FrameKind::Block, 0, signature.results.clone())
    }

    /// Notes the types of the locals behind the `params` parameters.
    fn declare_locals(
        &mut self,
        params: usize,
        body: &FunctionBody<'_>,
        validator: &mut FuncValidator<ValidatorResources>,
    ) -> Result<()> {
        let mut reader = body.get_locals_reader()?;
        let mut end = params as u32; // at most 1,000, which the validator checked
        for _ in 0..reader.get_count() {
            let offset = reader.original_position();
            let (count, ty) = reader.read()?;
            validator.define_locals(offset, count, ty)?;
            end += count; // at most 50,000, which the validator checked
            self.locals.runs.push((end, value_type(ty, offset)?));
        }
        Ok(())
    }

    /// The variable of a local. A local that was never set is zero, and so is a variable of the
    /// builder.
    fn local(&mut self, index: u32) -> Variable {
        if let Some(variable) = self.locals.variables.get(index) {
            return variable;
        }
        let run = self.locals.runs.partition_point(|(end, _)| *end <= index);
        let variable = self.builder.declare_var(self.locals.runs[run].1);
        self.locals.variables.insert(index, variable);
        variable
    }

    fn operator(&mut self, operator: &Operator<'_>) -> Result<()> {
        match self.unreachable {
            Some(depth) => self.skip(operator, depth),
            None => self.reachable(operator),
        }
    }

    /// Skips an unreachable operator, and tracks nesting to find the end of the unreachable code.
    fn skip(&mut self, operator: &Operator<'_>, depth: u32) -> Result<()> {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                self.unreachable = Some(depth + 1)
            }
            Operator::End if depth > 0 => self.unreachable = Some(depth - 1),
            Operator::End => self.end()?,
            Operator::Else if depth == 0 => self.otherwise()?,
            _ => {}
        }
        Ok(())
    }

    fn reachable(&mut self, operator: &Operator<'_>) -> Result<()> {
        if let Some((opcode, ty)) = operators::plain(operator) {
            return self.plain(opcode, ty);
        }
        if let Some((opcode, ty, index, offset)) = operators::memory_access(operator) {
            return self.memory_access(opcode, ty, index, offset);
        }
        if let Some((ty, bits)) = operators::constant(operator) {
            return self.push_inst(InstSpec::constant(ty, bits));
        }
        if let Some((opcode, imm, count)) = storage::operation(operator, self.context.index) {
            return self.storage(opcode, imm, count);
        }
        match *operator {
            Operator::Nop => {}
            Operator::Drop => drop(self.pop()),
            Operator::Select => self.select()?,
            Operator::LocalGet { local_index } => self.get_local(local_index)?,
            Operator::LocalSet { local_index } => self.set_local(local_index, true)?,
            Operator::LocalTee { local_index } => self.set_local(local_index, false)?,
            Operator::GlobalGet { global_index } => self.get_global(global_index)?,
            Operator::GlobalSet { global_index } => self.set_global(global_index)?,
            Operator::TypedSelect { .. } => self.select()?,
            Operator::RefNull { hty } => self.ref_null(hty)?,
            Operator::RefIsNull => {
                let value = self.pop();
                let ty = self.builder.function().value_type(value);
                self.push_inst(InstSpec::new(Opcode::RefIsNull, ty, Imm::None, &[value]))?;
            }
            Operator::RefFunc { function_index } => {
                let bits = reference::of_func(Some(self.context.index.func(function_index)));
                self.push_inst(InstSpec::constant(Type::FuncRef, bits))?;
            }
            Operator::Call { function_index } => {
                self.call(self.context.index.func(function_index))?
            }
            Operator::CallIndirect { type_index, table_index } => {
                let sig = self.context.types[type_index as usize];
                self.context.check_sig(sig, self.offset)?;
                self.call_indirect(sig, self.context.index.table(table_index))?;
            }
            Operator::Block { blockty } => self.open(blockty)?,
            Operator::Loop { blockty } => self.open_loop(blockty)?,
            Operator::If { blockty } => self.open_if(blockty)?,
            Operator::Else => self.otherwise()?,
            Operator::End => self.end()?,
            Operator::Br { relative_depth } => self.branch(relative_depth)?,
            Operator::BrIf { relative_depth } => self.branch_if(relative_depth)?,
            Operator::BrTable { ref targets } => self.branch_table(targets)?,
            Operator::Return => self.return_from_function()?,
            Operator::Unreachable => self.trap()?,
            ref other => {
                unreachable!("importer: {} passed the check of proposals", operators::name(other))
            }
        }
        Ok(())
    }
}

/// Operators that compute or access state.
impl Translator<'_> {
    fn pop(&mut self) -> Value {
        self.stack.pop().expect("the validator keeps the stack from running empty")
    }

    fn push(&mut self, value: Value) -> Result<()> {
        self.stack.push(value);
        if self.stack.len() > self.built.highest {
            self.built.highest = self.stack.len();
            self.work(cost::STACK)?;
        }
        Ok(())
    }

    fn use_var(&mut self, variable: Variable) -> Result<Value> {
        let value = self.builder.use_var(variable);
        self.charge_accesses()?;
        Ok(value)
    }

    fn def_var(&mut self, variable: Variable, value: Value) -> Result<()> {
        self.builder.def_var(variable, value);
        self.charge_accesses()
    }

    fn charge_accesses(&mut self) -> Result<()> {
        let new = self.builder.accesses()
            - std::mem::replace(&mut self.built.accesses, self.builder.accesses());
        self.work(cost::ACCESS * new as u64)
    }

    /// Charges memory that is released when the function is finished.
    fn work(&mut self, bytes: u64) -> Result<()> {
        self.budget.charge(bytes, self.offset)?;
        self.built.working += bytes;
        Ok(())
    }

    fn insert(&mut self, spec: InstSpec) -> Result<Inst> {
        self.context.check_imm(spec.imm, self.offset)?;
        let (targets, operands) = (spec.targets.len() as u64, spec.args.len() as u64);
        // The cost of an instruction includes one result.
        let more_results = spec.result_types.len().saturating_sub(1) as u64;
        self.work(cost::OPERAND * operands)?;
        if self.built.reserved.insts == 0 {
            self.work(cost::BUILT_INST + cost::BUILT_RESULT * more_results)?;
        }
        self.built.insts += 1;
        self.built.operands += operands;
        self.built.more_results += more_results;
        self.built.targets += targets;
        let inst = self.builder.insert(spec);
        if let Some(notes) = &mut self.notes {
            notes.inserted(inst, self.offset);
            self.work(cost::BUILT_OFFSET)?;
        }
        Ok(inst)
    }

    /// Adds an instruction and pushes its results.
    fn push_inst(&mut self, spec: InstSpec) -> Result<()> {
        let inst = self.insert(spec)?;
        for index in 0..self.builder.function().inst(inst).results.len() {
            self.push(self.builder.function().inst(inst).results[index])?;
        }
        Ok(())
    }

    fn plain(&mut self, opcode: Opcode, ty: Type) -> Result<()> {
        use ir::Shape::{FloatBinary, FloatCompare, IntBinary, IntCompare};
        let last = self.pop();
        let spec = match opcode.shape() {
            IntBinary | IntCompare | FloatBinary | FloatCompare => {
                let first = self.pop();
                InstSpec::new(opcode, ty, Imm::None, &[first, last])
            }
            _ => InstSpec::new(opcode, ty, Imm::None, &[last]),
        };
        self.push_inst(spec)
    }

    fn memory_access(&mut self, opcode: Opcode, ty: Type, index: u32, offset: u64) -> Result<()> {
        let value = matches!(opcode.shape(), ir::Shape::Store(_)).then(|| self.pop());
        let address = self.pop();
        let operands: &[Value] = match value {
            Some(value) => &[address, value],
            None => &[address],
        };
        self.push_inst(InstSpec::new(
            opcode,
            ty,
            Imm::Address(self.context.index.memory(index), offset),
            operands,
        ))
    }

    fn select(&mut self) -> Result<()> {
        let (condition, otherwise, then) = (self.pop(), self.pop(), self.pop());
        let ty = self.builder.function().value_type(then);
        self.push_inst(InstSpec::new(Opcode::Select, ty, Imm::None, &[condition, then, otherwise]))
    }

    fn get_local(&mut self, index: u32) -> Result<()> {
        let variable = self.local(index);
        let value = self.use_var(variable)?;
        self.push(value)
    }

    fn set_local(&mut self, index: u32, pop: bool) -> Result<()> {
        let (variable, value) = (self.local(index), self.pop());
        self.def_var(variable, value)?;
        match pop {
            true => Ok(()),
            false => self.push(value),
        }
    }

    fn get_global(&mut self, index: u32) -> Result<()> {
        let global = self.context.index.global(index);
        let ty = self.context.module.globals[global].ty;
        self.push_inst(InstSpec::new(Opcode::GlobalGet, ty, Imm::Global(global), &[]))
    }

    fn set_global(&mut self, index: u32) -> Result<()> {
        let (global, value) = (self.context.index.global(index), self.pop());
        let ty = self.context.module.globals[global].ty;
        self.push_inst(InstSpec::new(Opcode::GlobalSet, ty, Imm::Global(global), &[value]))
    }

    fn call(&mut self, callee: Func) -> Result<()> {
        self.context.check_imm(Imm::Func(callee), self.offset)?;
        let signature = self.context.module.signature(callee);
        let first = self.stack.len() - signature.params.len();
        let spec = InstSpec::call(callee, &self.stack[first..], &signature.results);
        self.stack.truncate(first);
        self.push_inst(spec)
    }

    fn ref_null(&mut self, ty: HeapType) -> Result<()> {
        let ty = match ty {
            HeapType::FUNC => Type::FuncRef,
            HeapType::EXTERN => Type::ExternRef,
            _ => {
                let what = "a null reference of this type";
                return Err(ImportError::unsupported(what, self.offset).with_feature("GC"));
            }
        };
        self.push_inst(InstSpec::constant(ty, reference::NULL))
    }

    /// Translates an operation on memories, tables or segments as a whole. It takes the top `count`
    /// values of the stack.
    fn storage(&mut self, opcode: Opcode, imm: Imm, count: usize) -> Result<()> {
        let operands = self.stack.split_off(self.stack.len() - count);
        let ty = match imm {
            Imm::Table(table) if opcode.has_type_suffix() => self.context.module.tables[table].ty,
            _ => Type::I32,
        };
        self.push_inst(InstSpec::new(opcode, ty, imm, &operands))
    }

    fn call_indirect(&mut self, sig: Sig, table: Table) -> Result<()> {
        let signature = &self.context.module.sigs[sig];
        let first = self.stack.len() - signature.params.len() - 1;
        let spec = InstSpec::call_indirect(sig, table, &self.stack[first..], &signature.results);
        self.stack.truncate(first);
        self.push_inst(spec)
    }
}

impl Translator<'_> {
    /// Finishes the function, releases the working memory, and charges the finished size.
    fn finish(mut self) -> Result<(Function, Option<BodyOffsets>)> {
        // The table of values may move to make room for the block parameters.
        let moving = FunctionBuilder::table_bytes(0, self.built.reserved.values);
        let most = self.budget.left().saturating_sub(moving) / cost::BUILT_ARG;
        self.builder.limit_args(usize::try_from(most).unwrap_or(usize::MAX));
        self.builder.skip_empty_blocks(self.loop_heads);
        let finished = match self.notes {
            None => self.builder.finish().map(|finished| (finished.function, None)),
            Some(notes) => {
                self.builder.finish().map(|FinishedFunction { function, ids, .. }| {
                    let bound = function.inst_bound();
                    let offsets = notes.finish(&ids, bound);
                    (function, Some(offsets))
                })
            }
        };
        let (function, offsets) = finished.map_err(|error| match error {
            BuildError::TooLarge => ImportError::over_budget(
                "the locals need more block parameters than the memory limit allows",
                self.offset,
            ),
            other => unreachable!("importer: a validated body gives a complete function: {other}"),
        })?;
        let args: u64 = function
            .blocks()
            .map(|b| (function.block_params(b).len() * function.predecessors(b).len()) as u64)
            .sum();
        // The working memory is released before the finished size is charged, because the builder
        // is gone.
        self.budget.release(self.built.working);
        let Built { insts, operands, more_results, blocks, targets, reserved, .. } = self.built;
        let insts = match reserved.insts {
            0 => insts * cost::INST + more_results * cost::RESULT,
            // The tables are paid for.
            _ => operands * cost::USE,
        };
        let noted = offsets
            .as_ref()
            .map_or(0, |_| cost::OFFSETS + function.inst_bound() as u64 * cost::OFFSET);
        let kept = noted + insts + blocks * cost::BLOCK + targets * cost::TARGET + args * cost::ARG;
        self.budget.charge(kept, self.offset)?;
        Ok((function, offsets))
    }
}
