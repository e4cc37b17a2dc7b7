//! Host memories whose bytes the embedder has: the process itself.

use super::VmError;
use super::state::VmState;
use interp::HostMemory;
use ir::module::MemoryKind;
use ir::{Memory, Module};
use std::ptr;

/// The bytes that no process maps on purpose: an access near the null pointer is a mistake.
const NULL_PAGE: u64 = 4096;

/// Rejects a module with a host memory of the embedder, unless the embedder has given the promises
/// of [`super::Vm::with_host_memory`].
pub(super) fn require(module: &Module, has_host_memory: bool) -> Result<(), VmError> {
    match module.memories.values().find(|decl| decl.kind == MemoryKind::Host) {
        Some(decl) if !has_host_memory => Err(VmError::HostMemory { memory: decl.name.clone() }),
        _ => Ok(()),
    }
}

impl VmState {
    /// Lets the interpreter use the bytes of the process for the host memories of the embedder.
    /// Linear in the memories.
    pub(super) fn provide_host_memory(&mut self, module: &Module) {
        let hosted = module.memories.iter().filter(|(_, decl)| decl.kind == MemoryKind::Host);
        for memory in hosted.map(|(memory, _)| memory).collect::<Vec<Memory>>() {
            self.machine.memories_mut().provide(memory, Box::new(ProcessMemory(())));
        }
    }
}

/// All bytes of the process. Only [`VmState::provide_host_memory`] makes this value. The embedder
/// of its machine has promised that runs access existing bytes alone.
#[derive(Debug)]
struct ProcessMemory(());

impl ProcessMemory {
    /// Whether `length` bytes from an address on may belong to the process at all.
    fn is_possible(at: u64, length: usize) -> bool {
        at >= NULL_PAGE && at.checked_add(length as u64).is_some()
    }
}

impl HostMemory for ProcessMemory {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        if !ProcessMemory::is_possible(at, into.len()) {
            return false;
        }
        let from = ptr::with_exposed_provenance::<u8>(at as usize);
        // SAFETY: the embedder has promised that the bytes accessed in a run are readable, and do
        // not belong to the machine (`Vm::with_host_memory`), which owns `into`. A copy of bytes
        // needs no alignment.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        true
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        if !ProcessMemory::is_possible(at, bytes.len()) {
            return false;
        }
        let to = ptr::with_exposed_provenance_mut::<u8>(at as usize);
        // SAFETY: the argument of `read` holds, for writable bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Callback, CallbackEnd, Config, Effort, Embedder, Engine, Vm, VmError};
    use interp::{Limits, Options, Outcome};
    use ir::{Func, Module, TrapKind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Reads and writes a field of an object through a reference, around calls that may move it.
    const PROGRAM: &str = "
import func @collect \"env\" \"collect\" () -> ()
memory @header host
memory @fields host
func @work(%word: i64, %n: i64) -> i64 {
entry:
  %object = ref_of %word
  %zero = const.i64 0
  %one = const.i64 1
  jump head(%zero, %zero)
head(%i: i64, %sum: i64):
  %at = ref_bits %object
  %field = load.i64 @fields[%at + 8]
  %kind = load.i64 @header[%at]
  %x = add.i64 %field, %kind
  %next = add.i64 %sum, %x
  store.i64 @fields[%at + 8], %next
  call @collect()
  %now = ref_bits %object
  %again = load.i64 @fields[%now + 8]
  %total = add.i64 %next, %again
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %n
  br_if %more, head(%j, %total), done
done:
  return %total
}
";

    /// What [`PROGRAM`] computes for an object of kind 3, whose field is 5.
    fn expected(n: u64) -> u64 {
        (0..n)
            .fold((5u64, 0u64), |(field, sum), _| {
                let next = sum.wrapping_add(field + 3);
                (next, next.wrapping_add(next))
            })
            .1
    }

    /// Two places for one object of two words. It is in one of them, and the other is poisoned.
    struct Heap {
        words: Box<[AtomicU64; 4]>,
        moves: u64,
    }

    impl Heap {
        fn new() -> Heap {
            let words = Box::new([3, 5, u64::MAX, u64::MAX].map(AtomicU64::new));
            Heap { words, moves: 0 }
        }

        /// The address of the place with this number.
        fn address(&self, place: usize) -> u64 {
            self.words[2 * place..].as_ptr().expose_provenance() as u64
        }
    }

    impl Embedder for Heap {
        fn call(
            &mut self,
            back: &mut Callback<'_>,
            _: Func,
            _: &[u64],
            _: &mut [u64],
        ) -> Result<(), CallbackEnd> {
            let places = [self.address(0), self.address(1)];
            let from = usize::from(self.moves % 2 == 1);
            back.roots(&mut |word| {
                assert_eq!(*word, places[from], "a root leads to the object");
                *word = places[1 - from];
            });
            for index in 0..2 {
                let contents = self.words[2 * from + index].swap(u64::MAX, Relaxed);
                self.words[2 * (1 - from) + index].store(contents, Relaxed);
            }
            self.moves += 1;
            Ok(())
        }
    }

    fn module() -> Arc<Module> {
        Arc::new(ir::text::parse_module(PROGRAM).expect("well-formed"))
    }

    fn vm(engine: &Engine, module: &Arc<Module>) -> Vm {
        let (limits, options) = (Limits::default(), Options::default());
        // SAFETY: the tests give the program the addresses of objects of their heap, which outlives
        // the runs. The heap consists of atomic words, which the other side may change. The null
        // pointer is read in the interpreter alone, which rejects it.
        unsafe { Vm::with_host_memory(engine, module, limits, options) }.expect("it is promised")
    }

    #[test]
    fn fields_of_objects_that_move() {
        let module = module();
        let work = module.func_named("work").expect("the text has it");
        for effort in [Effort::Least, Effort::Most] {
            let engine = Engine::new(Config { effort, ..Config::default() }).expect("native code");
            for native in [false, true] {
                let mut vm = vm(&engine, &module);
                if native {
                    let body = module.body(work).expect("a body");
                    let version = engine.version(&module, work, body, &[]).expect("compiled");
                    vm.install(&version, vec![]).expect("it fits");
                }
                let mut heap = Heap::new();
                let word = heap.address(0);
                let outcome = vm.run(work, &[word, 9], &mut heap);
                assert_eq!(outcome, Ok(Outcome::Returned(vec![expected(9)])), "{native}");
                assert_eq!(heap.moves, 9);
            }
        }
    }

    #[test]
    fn the_interpreter_reads_no_null_pointer() {
        let engine = Engine::new(Config::default()).expect("native code");
        let module = module();
        let work = module.func_named("work").expect("the text has it");
        let outcome = vm(&engine, &module).run(work, &[0, 1], &mut Heap::new());
        assert!(
            matches!(outcome, Ok(Outcome::Trapped { kind: TrapKind::MemoryOutOfBounds, .. })),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_machine_without_a_promise_is_refused() {
        let engine = Engine::new(Config::default()).expect("native code");
        let module = module();
        let refused = VmError::HostMemory { memory: "header".to_owned() };
        let made = Vm::new(&engine, &module, Limits::default(), Options::default());
        assert_eq!(made.err(), Some(refused.clone()));
        let without = Arc::new(Module::new());
        let mut vm =
            Vm::new(&engine, &without, Limits::default(), Options::default()).expect("empty");
        assert_eq!(vm.extend(&module), Err(refused));
    }
}
