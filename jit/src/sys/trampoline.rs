//! The entry trampoline: the code that Rust calls to enter native code, one for each signature.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, ExceptionTableData, ExceptionTableItem, Function,
    InstBuilder, MemFlagsData, Signature, Type, Value,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::activation::{ENTRY_FP, ENTRY_PC, ENTRY_SP};

/// The size in bytes of a word of the array that holds arguments and results.
const WORD: i32 = 8;

/// The signature of every trampoline: `extern "C" fn(context, code, args, results) -> u64`, the
/// type [`super::enter::Trampoline`].
pub(crate) fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend([AbiParam::new(I64); 4]);
    signature.returns.push(AbiParam::new(I64));
    signature
}

/// Builds into `func` the trampoline for functions with the signature `callee`, and sets the
/// signature of `func` to [`signature`].
///
/// `callee` has the calling convention `CallConv::Tail`, and its first parameter is the context.
/// All other parameters and the results are floats or integers of at most 64 bits. Each takes one
/// word, in the low bytes; the upper bytes of a result's word are zero. A signature
/// with more results than there are registers needs Cranelift's setting
/// `enable_multi_ret_implicit_sret`.
///
/// # Panics
///
/// If `callee` is no such signature, or `func` already has blocks.
pub(crate) fn build(
    func: &mut Function,
    builder_context: &mut FunctionBuilderContext,
    frontend: TargetFrontendConfig,
    callee: &Signature,
) {
    assert_eq!(callee.call_conv, CallConv::Tail, "native functions must have CallConv::Tail");
    assert_eq!(
        callee.params.first().map(|param| param.value_type),
        Some(I64),
        "the first parameter is the context"
    );
    func.signature = signature();
    let mut b = FunctionBuilder::new(func, builder_context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let &[context, code, args, words] = b.block_params(entry) else {
        unreachable!("the signature above has four parameters")
    };
    // Cranelift names the exception edge by the block that ends with the call. The entry block
    // cannot be named, so the call stands in a second block.
    let call = b.create_block();
    b.ins().jump(call, &[]);
    b.switch_to_block(call);
    let around = save_entry_state(&mut b, context);
    let mut arguments = vec![context];
    for (word, param) in (0..).zip(&callee.params[1..]) {
        arguments.push(load_word(&mut b, param.value_type, args, word * WORD));
    }
    let (returned, raised) = (b.create_block(), b.create_block());
    write_entry_state(&mut b, context, call);
    try_call(&mut b, callee, code, &arguments, returned, raised);

    b.switch_to_block(returned);
    let results: Vec<Value> = callee
        .returns
        .iter()
        .map(|result| b.append_block_param(returned, result.value_type))
        .collect();
    for (word, &result) in (0..).zip(&results) {
        store_word(&mut b, result, words, word * WORD);
    }
    leave(&mut b, context, around, 0);
    b.switch_to_block(raised);
    b.set_cold_block(raised);
    leave(&mut b, context, around, 1);
    b.seal_all_blocks();
    b.finalize(frontend);
}

/// The status that a typed trampoline returns after a return of the native code. Another status
/// comes with a result that means nothing.
pub(crate) const RETURNED: u64 = 0;
/// The status after a jump to the exception edge.
pub(crate) const RAISED: u64 = 1;
/// The status where the stack has no room for the call, or is not the thread's own. The call was
/// not made.
pub(crate) const NO_ROOM: u64 = 2;

/// Offsets from the context that a typed trampoline uses, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct TypedOffsets {
    /// The lowest stack pointer that code may have where it is entered.
    pub(crate) stack_limit: i32,
    /// The bytes of the stack above the limit.
    pub(crate) stack_room: i32,
    /// The word for the number of the called function.
    pub(crate) pending: i32,
    /// The code address of the first function.
    pub(crate) functions: i32,
}

/// Builds into `func` the typed trampoline for functions with the signature `callee`:
/// `extern "C" fn(context, function, arguments..) -> (status, result)`. It enters the code to which
/// the context leads for a function number: the newest version, or the stub that asks for code.
///
/// Unlike [`build`]'s, the trampoline keeps no entry state of an enclosing entry with the same
/// context: there is none.
///
/// # Panics
///
/// As [`build`], or if `callee` has several results.
pub(crate) fn build_typed(
    func: &mut Function,
    builder_context: &mut FunctionBuilderContext,
    frontend: TargetFrontendConfig,
    callee: &Signature,
    offsets: TypedOffsets,
) {
    assert_eq!(callee.call_conv, CallConv::Tail, "native functions must have CallConv::Tail");
    assert!(callee.returns.len() <= 1, "a typed entry has at most one result");
    func.signature = Signature::new(CallConv::SystemV);
    func.signature.params.extend([AbiParam::new(I64); 2]);
    func.signature.params.extend(callee.params[1..].iter().map(|p| AbiParam::new(p.value_type)));
    func.signature.returns.push(AbiParam::new(I64));
    func.signature.returns.extend(callee.returns.iter().map(|r| AbiParam::new(r.value_type)));
    let mut b = FunctionBuilder::new(func, builder_context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let params = b.block_params(entry).to_vec();
    let (context, function) = (params[0], params[1]);
    let flags = MemFlagsData::trusted();
    // A leaf checks no stack of its own (`lower::LEAF_FRAME`).
    let limit = b.ins().load(I64, flags, context, offsets.stack_limit);
    let sp = b.ins().get_stack_pointer(I64);
    // A caller on a foreign stack, such as a coroutine's, is outside in one direction or the other
    // (`a_call_on_a_foreign_stack_is_refused`).
    let above = b.ins().isub(sp, limit);
    let room = b.ins().load(I64, flags, context, offsets.stack_room);
    let is_outside = b.ins().icmp(IntCC::UnsignedGreaterThan, above, room);
    let [call, full] = [(); 2].map(|()| b.create_block());
    b.ins().brif(is_outside, full, &[], call, &[]);
    b.switch_to_block(call);
    b.ins().store(flags, function, context, offsets.pending);
    let word = b.ins().ishl_imm_u(function, 3);
    let word = b.ins().iadd(context, word);
    let code = b.ins().load(I64, flags, word, offsets.functions);
    let arguments: Vec<Value> =
        std::iter::once(context).chain(params[2..].iter().copied()).collect();
    let (returned, raised) = (b.create_block(), b.create_block());
    write_entry_state(&mut b, context, call);
    try_call(&mut b, callee, code, &arguments, returned, raised);
    b.switch_to_block(returned);
    let result = callee.returns.first().map(|r| b.append_block_param(returned, r.value_type));
    let status = b.ins().iconst(I64, RETURNED.cast_signed());
    let results: Vec<Value> = std::iter::once(status).chain(result).collect();
    b.ins().return_(&results);
    for (block, status) in [(raised, RAISED), (full, NO_ROOM)] {
        b.switch_to_block(block);
        b.set_cold_block(block);
        let status = b.ins().iconst(I64, status.cast_signed());
        let result = callee.returns.first().map(|r| zero(&mut b, r.value_type));
        let results: Vec<Value> = std::iter::once(status).chain(result).collect();
        b.ins().return_(&results);
    }
    b.seal_all_blocks();
    b.finalize(frontend);
}

/// The zero of a type.
fn zero(b: &mut FunctionBuilder<'_>, ty: Type) -> Value {
    match ty {
        F32 => b.ins().f32const(0.0),
        F64 => b.ins().f64const(0.0),
        _ => b.ins().iconst(ty, 0),
    }
}

/// Loads the entry state of the enclosing entry. The trampoline's frame keeps it across the call.
fn save_entry_state(b: &mut FunctionBuilder<'_>, context: Value) -> [(i32, Value); 3] {
    [ENTRY_SP, ENTRY_FP, ENTRY_PC]
        .map(|offset| (offset, b.ins().load(I64, MemFlagsData::trusted(), context, offset)))
}

/// Makes the exception edge of `call` the innermost one.
fn write_entry_state(b: &mut FunctionBuilder<'_>, context: Value, call: Block) {
    let sp = b.ins().get_stack_pointer(I64);
    let fp = b.ins().get_frame_pointer(I64);
    let pc = b.ins().get_exception_handler_address(I64, call, 0);
    for (offset, value) in [(ENTRY_SP, sp), (ENTRY_FP, fp), (ENTRY_PC, pc)] {
        b.ins().store(MemFlagsData::trusted(), value, context, offset);
    }
}

/// Ends the block with the call of `code`: control continues in `returned` after a return, and in
/// `raised` after a jump to the exception edge.
fn try_call(
    b: &mut FunctionBuilder<'_>,
    callee: &Signature,
    code: Value,
    arguments: &[Value],
    returned: Block,
    raised: Block,
) {
    let signature = b.import_signature(callee.clone());
    let count =
        u32::try_from(callee.returns.len()).expect("the results of a function fit a signature");
    let pool = &mut b.func.dfg.value_lists;
    let normal = BlockCall::new(returned, (0..count).map(BlockArg::TryCallRet), pool);
    let edge = BlockCall::new(raised, std::iter::empty(), pool);
    let table = ExceptionTableData::new(signature, normal, [ExceptionTableItem::Default(edge)]);
    let table = b.func.dfg.exception_tables.push(table);
    b.ins().try_call_indirect(code, arguments, table);
}

/// Restores the entry state of the enclosing entry, and returns `status`.
fn leave(b: &mut FunctionBuilder<'_>, context: Value, around: [(i32, Value); 3], status: i64) {
    for (offset, value) in around {
        b.ins().store(MemFlagsData::trusted(), value, context, offset);
    }
    let status = b.ins().iconst(I64, status);
    b.ins().return_(&[status]);
}

fn load_word(b: &mut FunctionBuilder<'_>, ty: Type, words: Value, offset: i32) -> Value {
    assert!(ty.bits() <= 64, "{ty} has more than 64 bits");
    b.ins().load(ty, MemFlagsData::trusted(), words, offset)
}

/// Stores a value as a whole word, zero-extended. A narrow store would leave upper bytes of the
/// argument that occupied the word before.
fn store_word(b: &mut FunctionBuilder<'_>, value: Value, words: Value, offset: i32) {
    let ty = b.func.dfg.value_type(value);
    assert!(ty.bits() <= 64, "{ty} has more than 64 bits");
    let bits = if ty.is_float() {
        b.ins().bitcast(ty.as_int(), MemFlagsData::new(), value)
    } else {
        value
    };
    let word = if ty.bits() < 64 { b.ins().uextend(I64, bits) } else { bits };
    b.ins().store(MemFlagsData::trusted(), word, words, offset);
}
