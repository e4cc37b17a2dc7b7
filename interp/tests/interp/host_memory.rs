//! Host memories whose bytes the embedder provides.

use interp::{HostMemory, Limits, Machine, NoHost, NoObserver, Outcome};
use ir::text::parse_module;
use ir::{Func, Memory, Module, TrapKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A sparse memory of pages of 4 KiB. Its clones share the bytes.
#[derive(Clone, Default, Debug)]
struct Sparse(Arc<Mutex<BTreeMap<u64, Box<[u8; 4096]>>>>);

impl Sparse {
    fn map(&self, page: u64) {
        self.0.lock().expect("no test panics with it").insert(page, Box::new([0; 4096]));
    }

    /// Calls `visit` for each byte of a range; false if one is not mapped.
    fn each(&self, at: u64, count: usize, mut visit: impl FnMut(usize, &mut u8)) -> bool {
        let mut pages = self.0.lock().expect("no test panics with it");
        let addresses = (0..count as u64).map(|index| at.checked_add(index));
        let Some(addresses) = addresses.collect::<Option<Vec<u64>>>() else { return false };
        if addresses.iter().any(|address| !pages.contains_key(&(address / 4096))) {
            return false;
        }
        for (index, address) in addresses.iter().enumerate() {
            let page = pages.get_mut(&(address / 4096)).expect("it is mapped");
            visit(index, &mut page[(address % 4096) as usize]);
        }
        true
    }
}

impl HostMemory for Sparse {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.each(at, into.len(), |index, byte| into[index] = *byte)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        self.each(at, bytes.len(), |index, byte| *byte = bytes[index])
    }
}

fn the_heap() -> Memory {
    Memory::from_u32(0)
}

fn module() -> Module {
    let text = "
memory @heap host
func @swap(%at: i64, %value: i64) -> i64 {
entry:
  %old = load.i64 @heap[%at + 8]
  store.i64 @heap[%at + 8], %value
  return %old
}
";
    parse_module(text).expect("well-formed")
}

fn swap(machine: &mut Machine, at: u64, value: u64) -> Outcome {
    machine.invoke(Func::from_u32(0), &[at, value], &mut NoHost, &mut NoObserver)
}

fn is_out_of_bounds(outcome: &Outcome) -> bool {
    outcome.trap() == Some(TrapKind::MemoryOutOfBounds)
}

#[test]
fn accesses_reach_the_bytes_provided() {
    let heap = Sparse::default();
    let mut machine = Machine::new(&module(), Limits::default()).expect("it instantiates");
    assert!(is_out_of_bounds(&swap(&mut machine, 1 << 40, 1)), "nothing is provided");
    machine.memories_mut().provide(the_heap(), Box::new(heap.clone()));
    assert!(is_out_of_bounds(&swap(&mut machine, 1 << 40, 1)), "nothing is mapped");
    heap.map((1 << 40) / 4096);
    heap.map(u64::MAX / 4096);
    for at in [1 << 40, (1 << 40) + 4080, u64::MAX - 15] {
        assert_eq!(swap(&mut machine, at, 7), Outcome::Returned(vec![0]), "{at:#x}");
        assert_eq!(swap(&mut machine, at, 9), Outcome::Returned(vec![7]), "{at:#x}");
    }
    // Partly mapped, and around 2^64.
    for at in [(1 << 40) + 4081, (1 << 40) - 9, u64::MAX - 14, u64::MAX - 7, u64::MAX] {
        assert!(is_out_of_bounds(&swap(&mut machine, at, 7)), "{at:#x}");
    }
    let mut word = [0; 8];
    machine.memories().read_into(the_heap(), (1 << 40) + 8, &mut word).expect("mapped");
    assert_eq!(u64::from_le_bytes(word), 9);
    assert_eq!(machine.memories().read(the_heap(), 1 << 40, 8), None, "it has no ranges");
}

/// Two machines would else write one memory.
#[test]
fn a_clone_has_no_bytes_of_the_embedder() {
    let heap = Sparse::default();
    heap.map(1);
    let mut machine = Machine::new(&module(), Limits::default()).expect("it instantiates");
    machine.memories_mut().provide(the_heap(), Box::new(heap));
    let mut clone = machine.clone();
    assert!(is_out_of_bounds(&swap(&mut clone, 4096, 1)));
    assert_eq!(swap(&mut machine, 4096, 1), Outcome::Returned(vec![0]));
}
