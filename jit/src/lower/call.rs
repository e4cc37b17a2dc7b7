//! Lowers calls, and the operations that Rust helpers perform.

use super::Lowering;
use crate::abi::{self, POINTER};
use crate::calls::CallCell;
use crate::context::{function_offset, offset};
use crate::stubs::to_word;
use crate::traps;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, SigRef, types};
use ir::{Func, Imm, Inst, InstData, Opcode, Shape, Sig, Signature, Type};
use std::collections::BTreeMap;
use std::mem::offset_of;

/// The code that a call leads to.
#[derive(Clone, Copy, Debug)]
enum CalledCode {
    /// The code at an address.
    At(clif::Value),
    /// The code of a function, by way of the stub at an address ([`super::cold`]).
    Cold { stub: usize, func: Func },
}

/// Whether a helper performs the operation.
pub(super) fn is_performed(opcode: Opcode) -> bool {
    matches!(
        opcode.shape(),
        Shape::MemoryGrow
            | Shape::MemoryCopy
            | Shape::MemoryFill
            | Shape::MemoryInit
            | Shape::DataDrop
            | Shape::TableGet
            | Shape::TableSet
            | Shape::TableSize
            | Shape::TableGrow
            | Shape::TableFill
            | Shape::TableCopy
            | Shape::TableInit
            | Shape::ElemDrop
    )
}

/// The lowest number of a signature equal to `sig`. Native code compares signatures by this number.
/// Linear in the signatures.
pub(crate) fn canonical_signature(module: &ir::Module, sig: Sig) -> u32 {
    let wanted = &module.sigs[sig];
    module
        .sigs
        .iter()
        .find(|(_, signature)| *signature == wanted)
        .map_or(sig, |(first, _)| first)
        .as_u32()
}

/// The canonical signatures of a module's functions, for a module that grows.
#[derive(Debug, Default)]
pub(crate) struct CanonicalSignatures {
    /// The first id of each signature, by content.
    lowest: BTreeMap<Signature, u32>,
    /// The number of signatures processed so far.
    known: usize,
    /// By function.
    of: Vec<u32>,
}

impl CanonicalSignatures {
    /// Adds the signatures of a module that begins like the last module. Costs the new signatures
    /// and functions, times a logarithm of the signatures.
    pub(crate) fn extend(&mut self, module: &ir::Module) {
        for (sig, signature) in module.sigs.iter().skip(self.known) {
            self.lowest.entry(signature.clone()).or_insert(sig.as_u32());
        }
        self.known = module.sigs.len();
        let new = module.funcs.iter_from(self.of.len());
        self.of.extend(new.map(|(_, decl)| self.lowest[&module.sigs[decl.sig]]));
    }

    /// By function.
    pub(crate) fn of_functions(&self) -> &[u32] {
        &self.of
    }
}

impl Lowering<'_, '_> {
    /// Lowers a call. The code keeps the function of each call by its instruction, for the stub of
    /// functions without code. Storing the number instead would cost each call a store.
    pub(super) fn call(&mut self, inst: Inst, data: &InstData) {
        let Imm::Func(func) = data.imm else { unreachable!("jit: a call names a function") };
        let signature = self.unit.module.signature(func).clone();
        let args = self.call_args(data, signature.params.len());
        let cold = self.cold_stub(inst, &signature);
        // A call at the address would tie values of hot code to registers
        // (`cold_blocks_use_the_stub_for_functions_that_hot_code_calls`).
        if let (None, Some(direct)) = (cold, self.unit.bound.get(&func)) {
            let results = direct.call(&mut self.builder, self.context, &args);
            return self.define(data, &results);
        }
        self.lowered.callees.insert(inst, func);
        let code = match (cold, self.known_call(inst)) {
            (Some(stub), _) => CalledCode::Cold { stub, func },
            (None, Some(code)) => CalledCode::At(code),
            (None, None) => {
                let flags = self.context_flags();
                let at = function_offset(func);
                CalledCode::At(self.builder.ins().load(POINTER, flags, self.context, at))
            }
        };
        if self.unit.config.trace {
            let number = self.builder.ins().iconst(types::I64, i64::from(func.as_u32()));
            return self.traced_call(data, code, number, &signature, &args);
        }
        let results = self.call_code(code, &signature, &args);
        self.define(data, &results);
    }

    /// The code that the cell of a call leads to, if the call has one. Counts the call.
    fn known_call(&mut self, inst: Inst) -> Option<clif::Value> {
        let contexts = self.unit.contexts;
        let cell = self.unit.origin(inst).and_then(|inst| contexts.cell(inst))?;
        let cell = self.builder.ins().iconst(POINTER, std::ptr::from_ref(cell).addr() as i64);
        let flags = self.context_flags();
        let at = offset_of!(CallCell, count) as i32;
        let count = self.builder.ins().load(types::I64, flags, cell, at);
        let count = self.builder.ins().iadd_imm_s(count, 1);
        self.builder.ins().store(flags, count, cell, at);
        Some(self.builder.ins().load(POINTER, flags, cell, offset_of!(CallCell, code) as i32))
    }

    pub(super) fn call_indirect(&mut self, inst: Inst, data: &InstData) {
        let Imm::Indirect(sig, table) = data.imm else {
            unreachable!("jit: an indirect call names signature and table")
        };
        let signature = self.unit.module.sigs[sig].clone();
        let args = self.call_args(data, signature.params.len());
        let index = self.value(*data.args.last().expect("jit: an indirect call has an index"));
        let index = self.builder.ins().uextend(types::I64, index);
        let func = self.table_function(table, index);
        self.check_signature(func, sig);
        self.count_target(inst, index, func);
        let place = self.builder.ins().ishl_imm_u(func, 3);
        let place = self.builder.ins().iadd(self.context, place);
        let flags = self.context_flags();
        let at = function_offset(Func::from_u32(0));
        let code = CalledCode::At(self.builder.ins().load(POINTER, flags, place, at));
        self.builder.ins().store(flags, func, self.context, offset!(pending));
        if self.unit.config.trace {
            return self.traced_call(data, code, func, &signature, &args);
        }
        let results = self.call_code(code, &signature, &args);
        self.define(data, &results);
    }

    /// Loads the table entry at `index`, and returns the number of its function. Emits the traps
    /// for an index out of bounds and for a null entry.
    fn table_function(&mut self, table: ir::Table, index: clif::Value) -> clif::Value {
        let views = self.fixed(offset!(tables));
        let view = 16 * table.as_u32() as i32;
        let flags = MemFlagsData::trusted().with_alias_region(Some(self.regions.tables));
        let count = self.builder.ins().load(types::I64, flags, views, view + 8);
        let outside = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, count);
        self.builder.ins().trapnz(outside, traps::TABLE);
        let entries = self.builder.ins().load(POINTER, flags, views, view);
        let place = self.builder.ins().ishl_imm_u(index, 3);
        let place = self.builder.ins().iadd(entries, place);
        let entry = self.builder.ins().load(types::I64, flags, place, 0);
        let func = self.builder.ins().iadd_imm_s(entry, -1);
        // One unsigned comparison catches both null, which wraps around, and bits that are no
        // function. The embedder may store such bits. The bound comes from the context, not from
        // the module: a table may hold functions of modules that the machine took up later
        // (`functions_of_later_modules_are_called_through_tables`).
        let functions = self.fixed(offset!(functions));
        let none = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, func, functions);
        self.builder.ins().trapnz(none, traps::NULL);
        func
    }

    fn check_signature(&mut self, func: clif::Value, sig: Sig) {
        let found = self.fixed(offset!(signatures));
        let place = self.builder.ins().ishl_imm_u(func, 2);
        let place = self.builder.ins().iadd(found, place);
        // The word never changes while native code runs, but it exists only for a valid function.
        // The load may therefore not move above the check, so the flags lack `can_move`.
        let flags = MemFlagsData::trusted().with_readonly();
        let found = self.builder.ins().load(types::I32, flags, place, 0);
        let wanted = i64::from(canonical_signature(self.unit.module, sig));
        let other = self.builder.ins().icmp_imm_u(IntCC::NotEqual, found, wanted);
        self.builder.ins().trapnz(other, traps::SIGNATURE);
    }

    fn call_args(&mut self, data: &InstData, count: usize) -> Vec<clif::Value> {
        data.args[..count].iter().map(|arg| self.observed(*arg)).collect()
    }

    /// Calls code, and records the call and the return in the trace.
    fn traced_call(
        &mut self,
        data: &InstData,
        code: CalledCode,
        number: clif::Value,
        signature: &Signature,
        args: &[clif::Value],
    ) {
        self.store_buffer(&signature.params, args);
        self.helper(offset!(helpers.trace_call), &[number], true);
        let results = self.call_code(code, signature, args);
        self.trace_return(number, &signature.results, &results);
        self.define(data, &results);
    }

    /// Calls code, and returns its results.
    fn call_code(
        &mut self,
        code: CalledCode,
        signature: &Signature,
        args: &[clif::Value],
    ) -> Vec<clif::Value> {
        let code = match code {
            CalledCode::At(code) => code,
            CalledCode::Cold { stub, func } => return self.cold_call(stub, func, signature, args),
        };
        self.reserve_buffer(signature.params.len().max(signature.results.len()));
        let sig = self.called_signature(signature);
        let mut given = Vec::with_capacity(args.len() + 1);
        given.push(self.context);
        given.extend_from_slice(args);
        let call = self.builder.ins().call_indirect(sig, code, &given);
        if abi::in_registers(&signature.results) {
            self.builder.inst_results(call).to_vec()
        } else {
            self.load_buffer(&signature.results)
        }
    }

    /// Calls a helper that performs the instruction. The code holds the address of a copy, which
    /// `lowered` keeps.
    pub(super) fn perform(&mut self, data: &InstData) {
        let args: Vec<clif::Value> = data.args.iter().map(|arg| self.observed(*arg)).collect();
        let types: Vec<Type> = data.args.iter().map(|arg| self.type_of(*arg)).collect();
        self.store_buffer(&types, &args);
        let kept = Box::new(data.clone());
        let address = self.builder.ins().iconst(POINTER, std::ptr::from_ref(&*kept).addr() as i64);
        self.lowered.performed.push(kept);
        self.helper(offset!(helpers.perform), &[address], true);
        let types: Vec<Type> = data.results.iter().map(|result| self.type_of(*result)).collect();
        let results = self.load_buffer(&types);
        self.define(data, &results);
    }

    /// Records a return in the trace. The helper skips functions of the host, whose calls record
    /// themselves.
    fn trace_return(&mut self, number: clif::Value, types: &[Type], results: &[clif::Value]) {
        self.store_buffer(types, results);
        self.helper(offset!(helpers.trace_return), &[number], true);
    }

    /// Calls a helper. If it returns a status, a status other than 0 ends the run.
    pub(super) fn helper(&mut self, at: i32, words: &[clif::Value], status: bool) -> clif::Value {
        let code = self.fixed(at);
        let sig = self.builder.import_signature(abi::helper(words.len()));
        let mut given = vec![self.context];
        given.extend_from_slice(words);
        let call = self.builder.ins().call_indirect(sig, code, &given);
        let result = self.builder.inst_results(call)[0];
        if status {
            self.builder.ins().trapnz(result, traps::HELPER);
        }
        result
    }

    fn called_signature(&mut self, signature: &Signature) -> SigRef {
        // The separator is no type, so signatures that split the same types differently have
        // different keys.
        let key = signature.params.iter().map(|ty| *ty as u32).chain([u32::MAX]);
        let key: Vec<u32> = key.chain(signature.results.iter().map(|ty| *ty as u32)).collect();
        if let Some(known) = self.signatures.get(&key) {
            return *known;
        }
        let made = self.builder.import_signature(abi::called(signature));
        self.signatures.insert(key, made);
        made
    }

    /// Stores values to the buffer, one zero-extended word each.
    pub(super) fn store_buffer(&mut self, types: &[Type], values: &[clif::Value]) {
        self.reserve_buffer(values.len());
        if values.is_empty() {
            return;
        }
        let buffer = self.buffer();
        let flags = self.context_flags();
        for (at, (value, ty)) in values.iter().zip(types).enumerate() {
            let word = to_word(&mut self.builder, *value, *ty);
            self.builder.ins().store(flags, word, buffer, 8 * at as i32);
        }
    }

    /// Stores values to the buffer, one word each, and leaves the upper bits of a narrow value's
    /// word unspecified. The reader knows the types and masks the words.
    pub(super) fn store_narrow(&mut self, values: &[clif::Value]) {
        self.reserve_buffer(values.len());
        if values.is_empty() {
            return;
        }
        let buffer = self.buffer();
        let flags = self.context_flags();
        for (at, value) in values.iter().enumerate() {
            self.builder.ins().store(flags, *value, buffer, 8 * at as i32);
        }
    }

    /// Loads values from the buffer.
    pub(super) fn load_buffer(&mut self, types: &[Type]) -> Vec<clif::Value> {
        if types.is_empty() {
            return Vec::new();
        }
        let buffer = self.buffer();
        self.load_words(types, buffer)
    }

    /// Loads values from the buffer, given its address.
    pub(super) fn load_words(&mut self, types: &[Type], buffer: clif::Value) -> Vec<clif::Value> {
        self.reserve_buffer(types.len());
        let flags = self.context_flags();
        let load = |(at, ty): (usize, &Type)| {
            self.builder.ins().load(abi::held(*ty), flags, buffer, 8 * at as i32)
        };
        types.iter().enumerate().map(load).collect()
    }

    /// Loads the address of the buffer. Not a word that never changes: a helper may move the buffer
    /// (`NativeView::reserve`).
    fn buffer(&mut self) -> clif::Value {
        let flags = self.context_flags();
        self.builder.ins().load(POINTER, flags, self.context, offset!(buffer))
    }

    pub(super) fn reserve_buffer(&mut self, words: usize) {
        self.lowered.buffer = self.lowered.buffer.max(words);
    }
}
