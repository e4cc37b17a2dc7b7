//! The functions that native code calls: a C function for work on the heap, called directly, and
//! functions that need the interpreter, called through Osier.

use super::emit::UNTYPED;
use crate::bytecode::{Arith, Compare};
use crate::heap::{EXCEPTION, FULL, Heap, OPERANDS, THROWN, Thrown, header};
use crate::library::{Builtin, Runtime};
use crate::value::{FIRST_TAGGED, NIL, Word, boolean};
use osier::interp::{Allocator, Memories};
use osier::ir::module::{FuncDecl, ImportName};
use osier::ir::{
    DeclaredEffect, Func, Function, FunctionBuilder, Imm, InstSpec, Module, Opcode, Signature,
    Target, Type, Value,
};
use osier::jit::{DirectFunction, DirectMemory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The functions of the module in addition to the functions of the language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Imports {
    /// `(helper, a, b, c)`: executes a [`Helper`], directly.
    pub(super) on_heap: Func,
    /// `(helper)`: collects behind a helper that has found no space.
    pub(super) collect: Func,
    /// `(helper, a, b, c)`: a function of the IR that does both, if need be.
    pub(super) runtime: Func,
    /// `(bytes, word, shape, slots)`: a function of the IR that makes an object. It is declared so
    /// ([`DeclaredEffect::Allocates`]), and Osier leaves it out where nothing needs the object.
    pub(super) new: Func,
    /// `(closure, depth, count)`, with operands in memory. Calls the interpreter.
    pub(super) call: Func,
    /// `(closure, depth, function, pc)`, with registers in memory. The interpreter continues there.
    pub(super) go_on: Func,
    /// `()`: runs the outermost level. Calls the interpreter.
    pub(super) main: Func,
}

/// The functions on the heap. Numbers are words of int32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Helper {
    /// `(operation, a, b)`
    Arith,
    /// `(a, b)`: two strings joined.
    Concat,
    /// `(comparison, a, b)`
    Compare,
    /// `(object, name)`
    GetField,
    /// `(object, name, value)`
    SetField,
    /// `(array, index, value)`
    SetIndex,
    /// `(function)`, with operands in memory.
    Builtin,
    /// `(shape, slots)`
    Object,
    /// `()`, with operands in memory.
    Array,
    /// `(function)`, with cells in memory.
    Closure,
    /// `(word)`
    Cell,
}

const HELPERS: [Helper; 11] = [
    Helper::Arith,
    Helper::Concat,
    Helper::Compare,
    Helper::GetField,
    Helper::SetField,
    Helper::SetIndex,
    Helper::Builtin,
    Helper::Object,
    Helper::Array,
    Helper::Closure,
    Helper::Cell,
];
/// The comparisons, by their numbers.
const COMPARE: [Compare; 3] = [Compare::Eq, Compare::Lt, Compare::Le];

/// The number of a helper, and how many operands are in memory.
pub(super) fn number(helper: Helper, operands: usize) -> u32 {
    (operands as u32) << 8 | helper as u32
}

/// The operands in memory that go with a number of a helper.
pub(super) fn operands_of(number: u32) -> u32 {
    number >> 8
}

/// Declares the functions.
pub(super) fn declare(module: &mut Module) -> Imports {
    let mut declare = |name: &str, params: &[Type], result: Type, is_import: bool| {
        let is_allocator = name == "new";
        let sig = module.sig(&Signature::new(params, &[result]));
        let (unit, field) = ("wicker".to_owned(), name.to_owned());
        let import = is_import.then_some(ImportName { module: unit, field });
        module.funcs.push(FuncDecl {
            name: name.to_owned(),
            sig,
            import,
            effect: if is_allocator { DeclaredEffect::Allocates } else { DeclaredEffect::Any },
        })
    };
    let (n, w, r) = (Type::I32, Type::I64, Type::Ref);
    let imports = Imports {
        on_heap: declare("on_heap", &[n, w, w, w], w, true),
        collect: declare("collect", &[n], w, true),
        runtime: declare("runtime", &[n, r, r, r], r, false),
        new: declare("new", &[n, w, n, n], r, false),
        call: declare("call", &[r, n, n], r, true),
        go_on: declare("go_on", &[r, n, n, n], r, true),
        main: declare("main", &[], r, true),
    };
    module.define(imports.runtime, collecting(&imports));
    module.define(imports.new, new_object(&imports));
    imports
}

/// The function on the heap.
pub(super) fn direct(runtime: &Arc<Runtime>) -> DirectFunction {
    let code = on_heap as extern "C" fn(&Runtime, DirectMemory<'_>, u32, Word, Word, Word) -> Word;
    DirectFunction::with_memory(Arc::clone(runtime), code, DeclaredEffect::Any)
}

/// The function that calls a helper, and once more behind a collection if there was no space.
/// Its parameters are roots meanwhile.
fn collecting(imports: &Imports) -> Function {
    let (n, w, r) = (Type::I32, Type::I64, Type::Ref);
    let mut b = FunctionBuilder::new("runtime", Signature::new(&[n, r, r, r], &[r]));
    let [entry, full, again, done] = [0; 4].map(|_| b.create_block());
    b.switch_to(entry);
    let helper = b.append_param(entry, n);
    let operands = [0; 3].map(|_| b.append_param(entry, r));
    let call = |b: &mut FunctionBuilder| {
        let mut args = vec![helper];
        args.extend(operands.map(|operand| b.op(Opcode::RefBits, UNTYPED, &[operand])));
        b.insert_value(InstSpec::call(imports.on_heap, &args, &[w]))
    };
    let is = |b: &mut FunctionBuilder, word: Value, other: Word| {
        let other = b.constant(w, other);
        b.op(Opcode::Eq, w, &[word, other])
    };
    let first = call(&mut b);
    let result = b.append_param(done, w);
    let is_full = is(&mut b, first, FULL);
    b.br_if(is_full, Target::new(full, &[]), Target::new(done, &[first]));
    b.switch_to(full);
    let ended = b.insert_value(InstSpec::call(imports.collect, &[helper], &[w]));
    let has_thrown = is(&mut b, ended, THROWN);
    b.br_if(has_thrown, Target::new(done, &[ended]), Target::new(again, &[]));
    b.switch_to(again);
    let second = call(&mut b);
    b.jump(done, &[second]);
    b.switch_to(done);
    let result = b.op(Opcode::RefOf, UNTYPED, &[result]);
    b.ret(&[result]);
    b.finish().expect("the runtime is well-formed").function
}

/// The function that takes the next free bytes for an object, and calls the runtime where too few
/// are left. The object has no contents yet.
fn new_object(imports: &Imports) -> Function {
    let (n, w, r) = (Type::I32, Type::I64, Type::Ref);
    let mut b = FunctionBuilder::new("new", Signature::new(&[n, w, n, n], &[r]));
    let [entry, easy, full] = [0; 3].map(|_| b.create_block());
    b.mark_cold(full);
    b.switch_to(entry);
    let bytes = b.append_param(entry, n);
    let word = b.append_param(entry, w);
    let numbers = [0; 2].map(|_| b.append_param(entry, n));
    let base = b.constant(n, 0);
    let at = |place: u32| Imm::Address(super::heap_memory(), place.into());
    let number = |b: &mut FunctionBuilder, place| {
        b.insert_value(InstSpec::new(Opcode::Load, n, at(place), &[base]))
    };
    let next = number(&mut b, header::NEXT);
    let behind = b.op(Opcode::Add, n, &[next, bytes]);
    let limit = number(&mut b, header::LIMIT);
    let fits = b.op(Opcode::Ule, n, &[behind, limit]);
    b.br_if(fits, Target::new(easy, &[]), Target::new(full, &[]));
    b.switch_to(easy);
    b.insert(InstSpec::new(Opcode::Store, n, at(header::NEXT), &[base, behind]));
    let wide = b.op(Opcode::Uextend, w, &[next]);
    let word = b.op(Opcode::Or, w, &[wide, word]);
    let made = b.op(Opcode::RefOf, UNTYPED, &[word]);
    b.ret(&[made]);
    b.switch_to(full);
    let helper = b.constant(n, number_of_object());
    let [shape, slots] = numbers.map(|number| {
        let wide = b.op(Opcode::Uextend, w, &[number]);
        let tag = b.constant(w, FIRST_TAGGED);
        let word = b.op(Opcode::Or, w, &[wide, tag]);
        b.op(Opcode::RefOf, UNTYPED, &[word])
    });
    let nil = b.constant(r, NIL);
    let made = b.insert_value(InstSpec::call(imports.runtime, &[helper, shape, slots, nil], &[r]));
    b.ret(&[made]);
    b.finish().expect("the allocator is well-formed").function
}

fn number_of_object() -> u64 {
    number(Helper::Object, 0).into()
}

/// Makes the objects of exits in the space behind the limit, since nothing may move there.
#[derive(Default, Debug)]
pub(super) struct ExitObjects {
    pub(super) made: AtomicU64,
}

impl Allocator for ExitObjects {
    fn allocate(&self, _: Func, args: &[u64], memories: &mut Memories) -> Option<u64> {
        let heap = &mut Heap(memories.bytes_mut(super::heap_memory())?);
        let at = heap.beyond_limit(*args.first()? as u32)?;
        self.made.fetch_add(1, Relaxed);
        Some(args.get(1)? | u64::from(at))
    }
}

/// The result of native code that returns or throws.
pub(super) fn thrown(ended: Result<Word, Thrown>, heap: &mut Heap<'_>) -> Word {
    match ended {
        Ok(word) | Err(Thrown(word @ FULL)) => word,
        Err(Thrown(exception)) => {
            heap.set_word(EXCEPTION, exception);
            THROWN
        }
    }
}

extern "C" fn on_heap(
    runtime: &Runtime,
    mut memory: DirectMemory<'_>,
    number: u32,
    a: Word,
    b: Word,
    c: Word,
) -> Word {
    let heap = &mut Heap(memory.bytes_mut());
    let ended = execute(runtime, heap, number, [a, b, c]);
    thrown(ended, heap)
}

fn execute(
    runtime: &Runtime,
    heap: &mut Heap<'_>,
    number: u32,
    [a, b, c]: [Word; 3],
) -> Result<Word, Thrown> {
    let (count, small) = (operands_of(number), |word: Word| word as u32 as usize);
    match HELPERS[number as usize & 0xff] {
        Helper::Arith => heap.arith(Arith::ALL[small(a)], b, c),
        Helper::Concat => heap.concat(a, b),
        Helper::Compare => heap.compare(COMPARE[small(a)], b, c).map(boolean),
        Helper::GetField => runtime.field(heap, a, b as u32),
        Helper::SetField => runtime.set_field(heap, a, b as u32, c).map(|()| NIL),
        Helper::SetIndex => heap.set_index(a, b, c).map(|_| NIL),
        Helper::Object => heap.object(a as u32, b as u32),
        Helper::Cell => heap.cell(a),
        with_operands => {
            // Most have few, which need no allocation.
            let (mut few, mut many) = ([NIL; 8], Vec::new());
            let operands = match few.get_mut(..count as usize) {
                Some(few) => few,
                None => {
                    many.resize(count as usize, NIL);
                    &mut many[..]
                }
            };
            for (index, operand) in (0..).zip(&mut *operands) {
                *operand = heap.word(OPERANDS + index * 8);
            }
            match with_operands {
                Helper::Builtin => runtime.builtin(heap, Builtin::ALL[small(a)].1, operands),
                Helper::Array => heap.array(operands),
                _ => heap.closure(a as u32, operands),
            }
        }
    }
}
