//! Tests of the process-wide list of code: it changes while handlers read it, and its parts are
//! freed when no handler reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, TrapCode};

use super::harness::{Code, Context, native, trap_of};
use crate::sys::registry::{
    Batch, List, READERS, RegisteredCode, Registration, look_up, register, settled,
};
use crate::sys::traps::{FaultKind, TrapTable};
use proptest::collection::vec;
use proptest::prelude::*;

/// Addresses without code. Each test takes ranges of its own.
fn nowhere(n: usize) -> std::ops::Range<usize> {
    0x100 * n..0x100 * n + 0x80
}

#[test]
fn traps_are_found_while_other_threads_register_and_unregister() {
    let mut code = Code::new();
    let signature = native(&[], &[]);
    let function = code.function(&signature, |b, _, _| {
        b.ins().trap(TrapCode::unwrap_user(3));
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    let done = AtomicBool::new(false);
    let changes = thread::scope(|scope| {
        let changer = scope.spawn(|| {
            let mut changes = 0u64;
            let mut kept = Vec::new();
            while !done.load(Ordering::Relaxed) || changes < 100 {
                let n = changes as usize % 50;
                kept.push(
                    register([(nowhere(n), Arc::new(TrapTable::default()))])
                        .expect("installed already"),
                );
                if kept.len() == 50 {
                    kept.clear();
                }
                changes += 1;
            }
            changes
        });
        let mut context = Context::default();
        for _ in 0..20_000 {
            assert_eq!(
                trap_of(code.run(trampoline, function, &mut context, &mut [])).code,
                TrapCode::unwrap_user(3)
            );
        }
        done.store(true, Ordering::Relaxed);
        changer.join().expect("no range overlaps")
    });
    assert!(changes >= 100);
}

#[test]
fn code_compiled_while_native_code_runs_traps_too() {
    use super::harness::call_helper;
    use crate::sys::enter::{HelperStatus, guard};
    // A helper that compiles a function, enters it, sees its trap and frees it, while native code
    // waits.
    extern "C" fn compile_and_run(context: *mut Context) -> HelperStatus {
        guard(|| {
            let mut code = Code::new();
            let signature = native(&[], &[]);
            let function = code.function(&signature, |b, _, _| {
                b.ins().trap(TrapCode::unwrap_user(4));
            });
            let trampoline = code.trampoline(&signature);
            code.finish();
            let trap = trap_of(code.run(trampoline, function, context, &mut []));
            // SAFETY: native code passes the context that it was entered with. It is alive in the
            // test's frame, and the inner entry has ended.
            unsafe { (*context).data[0] = u64::from(trap.code.as_raw().get()) };
            HelperStatus::Continue
        })
    }
    let mut code = Code::new();
    let signature = native(&[], &[I64]);
    let function = code.function(&signature, |b, _, params| {
        call_helper(b, params[0], compile_and_run);
        b.ins().trap(TrapCode::unwrap_user(5));
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    let mut context = Context::default();
    for _ in 0..10 {
        context.data[0] = 0;
        assert_eq!(
            trap_of(code.run(trampoline, function, &mut context, &mut [0])).code,
            TrapCode::unwrap_user(5)
        );
        assert_eq!(context.data[0], 4);
    }
}

#[test]
fn a_retired_table_is_freed_by_a_change_that_meets_no_handler() {
    let table = Arc::new(TrapTable::new([(0, TrapCode::unwrap_user(1))]));
    let weak = Arc::downgrade(&table);
    let change = || {
        drop(register([(nowhere(61), Arc::new(TrapTable::default()))]).expect("installed already"))
    };
    // This thread takes the place of a handler in the middle of a look-up.
    READERS.fetch_add(1, Ordering::SeqCst);
    drop(register([(nowhere(60), table)]).expect("the handlers can be installed"));
    for _ in 0..3 {
        change();
        assert_eq!(weak.strong_count(), 1, "a handler may still read it");
    }
    READERS.fetch_sub(1, Ordering::SeqCst);
    // A handler of another test's thread may be reading during one change, but not during all of
    // them.
    for _ in 0..100_000 {
        if weak.strong_count() == 0 {
            return;
        }
        change();
        thread::yield_now();
    }
    panic!("the table is still there");
}

/// The pieces of batches that a list did not have before.
fn pieces_copied(before: &List, after: &List) -> usize {
    let is_new = |batch: &&Arc<Batch>| !before.iter().any(|other| Arc::ptr_eq(other, batch));
    after.iter().filter(is_new).map(|batch| batch.code.len()).sum()
}

#[test]
fn code_is_in_few_batches_and_copied_few_times() {
    const PIECES: usize = 3_000;
    let table = Arc::new(TrapTable::default());
    let (mut list, mut copied) = (List::new(), 0);
    let mut held = |list: &mut List, batch: Option<Arc<Batch>>| {
        let next = settled(list.iter().cloned().chain(batch));
        copied += pieces_copied(list, &next);
        assert!(next.windows(2).all(|pair| pair[0].live() >= 2 * pair[1].live()));
        *list = next;
        copied
    };
    // Ascending, descending and mixed addresses: engines get them from the system.
    for n in 0..PIECES {
        let at = [n, 3 * PIECES - n, 3 * PIECES + n * 7 % PIECES][n % 3];
        held(&mut list, Some(Batch::new(vec![RegisteredCode::new(&nowhere(at), &table)])));
    }
    assert!(list.len() <= 12, "{} batches", list.len());
    let starts: Vec<usize> =
        list.iter().flat_map(|batch| &batch.code).map(|piece| piece.start).collect();
    assert_eq!(starts.len(), PIECES);
    let mut left = PIECES;
    for n in 0..PIECES {
        let start = starts[n * 11 % PIECES];
        assert_eq!(list.iter().filter(|batch| batch.take_out(start)).count(), 1);
        if list.iter().any(|batch| batch.is_sparse()) {
            held(&mut list, None);
        }
        left -= 1;
        assert_eq!(list.iter().map(|batch| batch.live()).sum::<usize>(), left);
    }
    assert!(list.is_empty());
    let copied = held(&mut list, None);
    assert!(copied <= 16 * PIECES, "{copied} pieces copied");
}

/// Code registered where dropped code was is found, whichever batch has the dropped code.
#[test]
fn code_takes_the_place_of_code_that_was_dropped() {
    let first = nowhere(300).start;
    let table = |code| Arc::new(TrapTable::new([(0, TrapCode::unwrap_user(code))]));
    let mut held: Vec<Option<Registration>> = (0..64)
        .map(|n| {
            Some(register([(first + 8 * n..first + 8 * n + 8, table(1))]).expect("no overlap"))
        })
        .collect();
    let found = |n: usize| look_up(first + 8 * n, FaultKind::Undefined);
    let (old, new) = (Some(TrapCode::unwrap_user(1)), Some(TrapCode::unwrap_user(2)));
    // Few enough that the batches keep the places of dropped code.
    for n in (3..60).step_by(16) {
        held[n] = None;
        held[n + 1] = None;
        assert_eq!([found(n - 1), found(n), found(n + 1), found(n + 2)], [old, None, None, old]);
        let range = first + 8 * n..first + 8 * n + 16;
        held[n] = Some(register([(range, table(2))]).expect("the places are free"));
        assert_eq!([found(n - 1), found(n), found(n + 1), found(n + 2)], [old, new, None, old]);
    }
}

#[test]
#[should_panic(expected = "overlaps")]
fn a_range_that_overlaps_code_of_another_call_is_refused() {
    let table = Arc::new(TrapTable::default());
    let _first = register([(nowhere(80), Arc::clone(&table))]).expect("no overlap");
    drop(register([(nowhere(80).start - 1..nowhere(80).start + 1, table)]));
}

#[test]
#[should_panic(expected = "reaches beyond the code")]
fn a_table_that_reaches_behind_the_code_is_refused() {
    let range = nowhere(72);
    let behind = u32::try_from(range.len()).expect("it is short");
    drop(register([(range, Arc::new(TrapTable::new([(behind, TrapCode::unwrap_user(1))])))]));
}

#[test]
#[should_panic(expected = "overlaps")]
fn ranges_that_overlap_are_refused() {
    let table = Arc::new(TrapTable::default());
    let (first, second) = (nowhere(70), nowhere(70).end - 1..nowhere(71).start);
    drop(register([(first, Arc::clone(&table)), (second, table)]));
}

#[test]
fn a_fault_fits_the_codes_of_its_own_kind_alone() {
    let own = TrapCode::unwrap_user(1);
    let (zero, overflow) = (TrapCode::INTEGER_DIVISION_BY_ZERO, TrapCode::INTEGER_OVERFLOW);
    // The pairs are out of order. The division at offset 8 has its divisor in memory.
    let table =
        TrapTable::new([(8, zero), (2, own), (8, TrapCode::HEAP_OUT_OF_BOUNDS), (5, overflow)]);
    let codes = |offset| {
        [FaultKind::Undefined, FaultKind::Arithmetic, FaultKind::Memory]
            .map(|kind| table.code_at(offset, kind))
    };
    assert_eq!(codes(2), [Some(own), None, Some(own)]);
    assert_eq!(codes(5), [Some(overflow), Some(overflow), None]);
    assert_eq!(codes(8), [Some(zero), Some(zero), Some(TrapCode::HEAP_OUT_OF_BOUNDS)]);
    for offset in [0, 1, 3, 4, 6, 7, 9, u32::MAX] {
        assert_eq!(codes(offset), [None; 3]);
    }
}

/// A step of the model: registers some pieces of code at once, or drops a registration.
#[derive(Clone, Debug)]
enum RegistryStep {
    /// Each piece lies in a place of its own, has a length, and may trap at an offset.
    Register(Vec<(usize, usize, usize)>),
    /// The number is taken modulo the registrations there are.
    Drop(usize),
}

fn step() -> impl Strategy<Value = RegistryStep> {
    let pieces = vec((0..12usize, 1..=0x80usize, 0..0x80usize), 1..4);
    prop_oneof![pieces.prop_map(RegistryStep::Register), (0..8usize).prop_map(RegistryStep::Drop)]
}

/// A piece of code of the model: its addresses, and the address that may trap.
type ModelPiece = (std::ops::Range<usize>, usize);

/// The pieces of a step that lie in places where no code is registered.
fn pieces(
    wanted: Vec<(usize, usize, usize)>,
    held: &[(Registration, Vec<ModelPiece>)],
) -> Vec<ModelPiece> {
    let mut made: Vec<ModelPiece> = Vec::new();
    for (place, length, trap) in wanted {
        // Behind the places of the other tests.
        let start = nowhere(200 + place).start;
        let taken = held.iter().flat_map(|(_, pieces)| pieces).chain(&made);
        if taken.into_iter().all(|(range, _)| range.start != start) {
            made.push((start..start + length, start + trap.min(length - 1)));
        }
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The process-wide list answers as a list of all pieces that are registered.
    #[test]
    fn the_list_of_code_has_all_registered_pieces_and_no_other(steps in vec(step(), 0..12)) {
        let code = TrapCode::unwrap_user(9);
        let mut held: Vec<(Registration, Vec<ModelPiece>)> = Vec::new();
        for step in steps {
            match step {
                RegistryStep::Register(wanted) => {
                    let made = pieces(wanted, &held);
                    let tables = made.iter().map(|(range, trap)| {
                        let table = TrapTable::new([((trap - range.start) as u32, code)]);
                        (range.clone(), Arc::new(table))
                    });
                    held.push((register(tables).expect("no range overlaps"), made));
                }
                RegistryStep::Drop(number) if !held.is_empty() => {
                    let number = number % held.len();
                    drop(held.swap_remove(number));
                }
                RegistryStep::Drop(_) => {}
            }
            for pc in nowhere(200).start..nowhere(212).start {
                let mut traps = held.iter().flat_map(|(_, pieces)| pieces).map(|(_, trap)| *trap);
                let expected = traps.any(|trap| trap == pc);
                prop_assert_eq!(look_up(pc, FaultKind::Undefined), expected.then_some(code));
            }
        }
    }
}
