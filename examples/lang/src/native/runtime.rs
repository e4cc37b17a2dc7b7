//! The functions that native code calls: those on the heap directly, as C functions, and those that
//! need the interpreter through Osier.

use crate::bytecode::{Arith, Compare};
use crate::heap::{Builtin, EXCEPTION, Heap, OPERANDS, Runtime, THROWN, Thrown};
use crate::value::{NIL, Word, boolean, reference, tag};
use osier::ir::module::{FuncDecl, ImportName};
use osier::ir::{DeclaredEffect, Func, Module, Signature, Type};
use osier::jit::{DirectFunction, DirectMemory};
use std::sync::Arc;

/// The imported functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Imports {
    /// `(operation, a, b)`
    pub(super) arith: Func,
    /// `(comparison, a, b)`
    pub(super) compare: Func,
    /// `(object, name)`
    pub(super) get_field: Func,
    /// `(object, value, name)`
    pub(super) set_field: Func,
    /// `(array, index, value)`
    pub(super) set_index: Func,
    /// `(function, count)`, with operands in memory.
    pub(super) builtin: Func,
    /// `(shape, slots)`
    pub(super) object: Func,
    /// `(count)`, with operands in memory.
    pub(super) array: Func,
    /// `(function, count)`, with cells in memory.
    pub(super) closure: Func,
    /// `(word)`
    pub(super) cell: Func,
    /// `(closure, depth, count)`, with operands in memory. Asks the interpreter.
    pub(super) call: Func,
    /// `()`: runs the outermost level. Asks the interpreter.
    pub(super) main: Func,
}

/// The operations, by their numbers.
pub(super) const ARITH: [Arith; 11] = [
    Arith::Add,
    Arith::Sub,
    Arith::Mul,
    Arith::Div,
    Arith::FloorDiv,
    Arith::Mod,
    Arith::And,
    Arith::Or,
    Arith::Xor,
    Arith::Shl,
    Arith::Shr,
];
/// The comparisons, by their numbers.
pub(super) const COMPARE: [Compare; 3] = [Compare::Eq, Compare::Lt, Compare::Le];

/// Declares the imported functions.
pub(super) fn declare(module: &mut Module) -> Imports {
    let mut import = |name: &str, params: &[Type]| {
        let sig = module.sig(&Signature::new(params, &[Type::I64]));
        let import = Some(ImportName { module: "wicker".to_owned(), field: name.to_owned() });
        module.funcs.push(FuncDecl {
            name: name.to_owned(),
            sig,
            import,
            effect: Default::default(),
        })
    };
    let (n, w) = (Type::I32, Type::I64);
    Imports {
        arith: import("arith", &[n, w, w]),
        compare: import("compare", &[n, w, w]),
        get_field: import("get_field", &[w, n]),
        set_field: import("set_field", &[w, w, n]),
        set_index: import("set_index", &[w, w, w]),
        builtin: import("builtin", &[n, n]),
        object: import("object", &[n, n]),
        array: import("array", &[n]),
        closure: import("closure", &[n, n]),
        cell: import("cell", &[w]),
        call: import("call", &[w, n, n]),
        main: import("main", &[]),
    }
}

/// The functions on the heap.
pub(super) fn direct(imports: &Imports, runtime: &Arc<Runtime>) -> Vec<(Func, DirectFunction)> {
    /// Gives a function the runtime and the memory.
    macro_rules! direct {
        ($function:ident: $($argument:ty),*) => {{
            let code = $function as extern "C" fn(&Runtime, DirectMemory<'_>, $($argument),*) -> Word;
            (imports.$function, DirectFunction::with_memory(
                Arc::clone(runtime),
                code,
                DeclaredEffect::Any,
            ))
        }};
    }
    vec![
        direct!(arith: u32, u64, u64),
        direct!(compare: u32, u64, u64),
        direct!(get_field: u64, u32),
        direct!(set_field: u64, u64, u32),
        direct!(set_index: u64, u64, u64),
        direct!(builtin: u32, u32),
        direct!(object: u32, u32),
        direct!(array: u32),
        direct!(closure: u32, u32),
        direct!(cell: u64),
    ]
}

/// Runs a function on the heap. An exception becomes [`THROWN`].
fn on_heap(
    mut memory: DirectMemory<'_>,
    body: impl FnOnce(&mut Heap<'_>) -> Result<Word, Thrown>,
) -> Word {
    let mut heap = Heap(memory.bytes_mut());
    thrown(body(&mut heap), &mut heap)
}

/// The result of native code that returns or throws.
pub(super) fn thrown(ended: Result<Word, Thrown>, heap: &mut Heap<'_>) -> Word {
    ended.unwrap_or_else(|Thrown(exception)| {
        heap.set_word(EXCEPTION, exception);
        THROWN
    })
}

/// The operands in memory.
pub(super) fn operands(heap: &Heap<'_>, count: u32) -> Vec<Word> {
    (0..count).map(|index| heap.word(OPERANDS + index * 8)).collect()
}

extern "C" fn arith(_: &Runtime, memory: DirectMemory<'_>, op: u32, a: Word, b: Word) -> Word {
    on_heap(memory, |heap| heap.arith(ARITH[op as usize], a, b))
}

extern "C" fn compare(_: &Runtime, memory: DirectMemory<'_>, op: u32, a: Word, b: Word) -> Word {
    on_heap(memory, |heap| heap.compare(COMPARE[op as usize], a, b).map(boolean))
}

extern "C" fn get_field(runtime: &Runtime, memory: DirectMemory<'_>, of: Word, name: u32) -> Word {
    on_heap(memory, |heap| runtime.field(heap, of, name))
}

extern "C" fn set_field(
    runtime: &Runtime,
    memory: DirectMemory<'_>,
    of: Word,
    value: Word,
    name: u32,
) -> Word {
    on_heap(memory, |heap| runtime.set_field(heap, (of, name), value).map(|()| NIL))
}

extern "C" fn set_index(
    _: &Runtime,
    memory: DirectMemory<'_>,
    array: Word,
    index: Word,
    value: Word,
) -> Word {
    on_heap(memory, |heap| heap.set_index(array, index, value).map(|()| NIL))
}

extern "C" fn builtin(runtime: &Runtime, memory: DirectMemory<'_>, which: u32, count: u32) -> Word {
    on_heap(memory, |heap| {
        let operands = operands(heap, count);
        runtime.builtin(heap, Builtin::ALL[which as usize].1, &operands)
    })
}

extern "C" fn object(_: &Runtime, memory: DirectMemory<'_>, shape: u32, slots: u32) -> Word {
    on_heap(memory, |heap| heap.object(shape, slots))
}

extern "C" fn array(_: &Runtime, memory: DirectMemory<'_>, count: u32) -> Word {
    on_heap(memory, |heap| {
        let operands = operands(heap, count);
        heap.array(&operands)
    })
}

extern "C" fn closure(_: &Runtime, memory: DirectMemory<'_>, number: u32, count: u32) -> Word {
    on_heap(memory, |heap| {
        let operands = operands(heap, count);
        heap.closure(number, &operands)
    })
}

extern "C" fn cell(_: &Runtime, memory: DirectMemory<'_>, word: Word) -> Word {
    on_heap(memory, |heap| {
        let cell = heap.allocate(8)?;
        heap.set_word(cell, word);
        Ok(reference(tag::CELL, cell))
    })
}
