//! Tests of memories in regions that an engine provides.

use super::support::returned;
use interp::{
    InstantiateError, Limits, Machine, NoHost, NoObserver, Options, Outcome, Program, Region,
};
use ir::text::parse_module;
use ir::{Memory, Module};

const PAGE: usize = 65_536;

/// A region with a fixed capacity, in an allocation that never moves.
#[derive(Debug)]
struct Fixed {
    bytes: Box<[u8]>,
    length: usize,
}

impl Fixed {
    fn new(pages: usize) -> Fixed {
        Fixed { bytes: vec![0; pages * PAGE].into_boxed_slice(), length: 0 }
    }
}

impl Region for Fixed {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    fn grow(&mut self, length: usize) -> bool {
        assert!(length > self.length, "a memory only grows");
        let fits = length <= self.bytes.len();
        if fits {
            self.length = length;
        }
        fits
    }
}

/// A module with two memories, and functions that store, load, grow, copy and fill within and
/// between them.
fn module() -> Module {
    let text = r#"
memory @mem 1
memory @far 2 6
data @mem 4 "near"
data @far 65536 "far"
func @store(%at: i32, %x: i64) -> (i64, i64) {
entry:
  store.i64 @mem[%at], %x
  store.i64 @far[%at + 8], %x
  %y = load.i64 @mem[%at]
  %z = load.i64 @far[%at + 6]
  return %y, %z
}
func @grow(%pages: i32) -> (i32, i32, i32, i32) {
entry:
  %a = memory_grow @mem, %pages
  %b = memory_grow @far, %pages
  %c = memory_size @mem
  %d = memory_size @far
  return %a, %b, %c, %d
}
func @move(%to: i32, %from: i32, %count: i32) {
entry:
  memory_copy @far @mem, %to, %from, %count
  memory_copy @mem @mem, %to, %from, %count
  memory_copy @mem @far, %from, %to, %count
  memory_fill @far, %to, %count, %count
  return
}
"#;
    parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Options for both tiers, with and without tracked memory.
fn options() -> [Options; 3] {
    let off = interp::TraceLevel::Off;
    [Options::checked(), Options::traced(), Options { trace: off, ..Options::traced() }]
}

/// A machine whose two memories lie in regions of these capacities in pages.
fn in_regions(
    program: &Program,
    options: Options,
    pages: [usize; 2],
) -> Result<Machine, InstantiateError> {
    let mut pages = pages.into_iter();
    Machine::with_regions(program, Limits::default(), options, &mut |decl| {
        let pages = pages.next().expect("there are two");
        assert!(!decl.name.is_empty());
        Some(Box::new(Fixed::new(pages)))
    })
}

fn call(machine: &mut Machine, name: &str, args: &[u64]) -> Outcome {
    let func = machine.declarations().lookup(name).expect("the text has it");
    machine.invoke(func, args, &mut NoHost, &mut NoObserver)
}

const CALLS: [(&str, &[u64]); 12] = [
    ("store", &[0, 0x1122_3344_5566_7788]),
    ("store", &[65_528, 7]),
    ("store", &[65_529, 7]),
    ("move", &[100, 0, 80]),
    ("move", &[0, 100, 80]),
    ("grow", &[0]),
    ("grow", &[2]),
    ("store", &[65_529, u64::MAX]),
    ("move", &[65_530, 65_000, 5_000]),
    ("grow", &[3]),
    ("grow", &[0xffff_ffff]),
    ("move", &[131_000, 3, 90]),
];

/// A program cannot observe where its memories lie.
#[test]
fn regions_are_memories_like_others() {
    let program = Program::new(&module());
    for options in options() {
        let mut plain =
            Machine::with_options(&program, Limits::default(), options).expect("it instantiates");
        let mut mapped = in_regions(&program, options, [16, 16]).expect("it instantiates");
        let (mut returned, mut trapped) = (0, 0);
        for (name, args) in CALLS {
            let expected = call(&mut plain, name, args);
            assert_eq!(call(&mut mapped, name, args), expected, "{name}{args:?}");
            assert!(mapped.same_memory(&plain), "{name}{args:?}");
            assert_eq!(mapped.memory_digest(), plain.memory_digest());
            assert_eq!(mapped.memory_digest(), mapped.computed_memory_digest());
            assert_eq!(mapped.trace(), plain.trace());
            returned += u64::from(expected.returned().is_some());
            trapped += u64::from(expected.trap().is_some());
        }
        assert!(returned > 6 && trapped > 0, "{returned} returned, {trapped} trapped");
    }
}

/// Growth beyond the capacity of the region fails like any other, and changes nothing.
#[test]
fn a_full_region_does_not_grow() {
    let program = Program::new(&module());
    let failed = 0xffff_ffff;
    for options in options() {
        let mut machine = in_regions(&program, options, [2, 4]).expect("it instantiates");
        assert_eq!(call(&mut machine, "grow", &[2]), returned(&[failed, 2, 1, 4]));
        assert_eq!(call(&mut machine, "grow", &[0]), returned(&[1, 4, 1, 4]));
        assert_eq!(call(&mut machine, "grow", &[1]), returned(&[1, failed, 2, 4]));
        assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
        // A failed growth does not count toward the limit of the machine.
        let pages = Limits { memory_pages: 5, ..Limits::default() };
        let mut regions = [2usize, 16].into_iter();
        let mut limited = Machine::with_regions(&program, pages, options, &mut |_| {
            Some(Box::new(Fixed::new(regions.next().expect("there are two"))))
        })
        .expect("it instantiates");
        assert_eq!(call(&mut limited, "grow", &[2]), returned(&[failed, 2, 1, 4]));
    }
}

#[test]
fn a_region_too_small_for_the_start_is_refused() {
    let program = Program::new(&module());
    let error = in_regions(&program, Options::traced(), [1, 1]).expect_err("two pages are needed");
    assert_eq!(error, InstantiateError::MemoryTooLarge { memory: "far".to_owned(), pages: 2 });
}

/// Machines are `Send` and `Sync`, even with memories in regions.
#[test]
fn machines_go_to_other_threads() {
    let mut machine =
        in_regions(&Program::new(&module()), Options::traced(), [2, 6]).expect("it instantiates");
    let shared = &machine;
    let read = || shared.memories().bytes(Memory::from_u32(0))[4];
    assert_eq!(std::thread::scope(|scope| scope.spawn(read).join()).ok(), Some(b'n'));
    let outcome =
        std::thread::scope(|scope| scope.spawn(|| call(&mut machine, "grow", &[1])).join()).ok();
    assert_eq!(outcome, Some(returned(&[1, 2, 2, 3])));
}

/// A clone has its own contents, and may grow beyond the capacity of the region.
#[test]
fn copies_are_not_in_the_region() {
    let program = Program::new(&module());
    let mut machine = in_regions(&program, Options::checked(), [1, 2]).expect("it instantiates");
    let at = machine.memories().bytes(Memory::from_u32(0)).as_ptr();
    call(&mut machine, "store", &[0, 5]);
    let mut copy = machine.clone();
    assert!(copy.same_memory(&machine));
    assert_eq!(call(&mut copy, "grow", &[1]), returned(&[1, 2, 2, 3]));
    call(&mut copy, "store", &[0, 6]);
    assert_eq!(machine.memories().bytes(Memory::from_u32(0))[0], 5);
    // The memory did not move within its region.
    assert_eq!(machine.memory_bytes_mut(Memory::from_u32(0)).as_ptr(), at);
}

/// A memory of a later module may lie in a region too.
#[test]
fn regions_of_later_modules() {
    let mut first = Module::new();
    let decl = ir::module::MemoryDecl {
        name: "mem".to_owned(),
        min_pages: 1,
        max_pages: None,
        import: None,
        kind: Default::default(),
    };
    first.memories.push(decl.clone());
    let mut second = first.clone();
    second.memories.push(ir::module::MemoryDecl { name: "later".to_owned(), min_pages: 2, ..decl });
    let mut machine = Machine::new(&first, Limits::default()).expect("it instantiates");
    let mut asked = Vec::new();
    let extended = machine.extend_with_regions(&Program::new(&second), &mut |decl| {
        asked.push(decl.name.clone());
        Some(Box::new(Fixed::new(2)))
    });
    assert_eq!(extended, Ok(()));
    assert_eq!(asked, ["later"]);
    assert_eq!(machine.memories().pages(Memory::from_u32(1)), 2);
    let message = machine.memories_mut().write(Memory::from_u32(1), 2 * PAGE as u64 - 2, &[1, 2]);
    assert_eq!(message, Ok(()));
}

#[test]
#[should_panic(expected = "the region is not empty")]
fn regions_are_empty_at_first() {
    let program = Program::new(&module());
    let machine =
        Machine::with_regions(&program, Limits::default(), Options::traced(), &mut |_| {
            let mut region = Fixed::new(4);
            assert!(region.grow(PAGE));
            Some(Box::new(region))
        });
    assert!(machine.is_ok(), "not reached");
}
