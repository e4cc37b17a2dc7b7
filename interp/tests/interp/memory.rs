//! Tests of loads, stores, growth, segments and globals, and of the digest over them.

use super::support::{add_memory, define, i32_const, import, load, machine, returned, run, store};
use interp::{Host, HostError, Limits, Machine, Memories, NoHost, NoObserver, Options, Program};
use ir::module::{DataSegment, GlobalDecl, ImportName};
use ir::{Func, Imm, InstSpec, Memory, Module, Opcode, Shape, TrapKind, Type};

const PAGE: u64 = 65_536;

/// All loads and stores at all types, with their width in bytes and whether they sign-extend.
fn accesses() -> impl Iterator<Item = (Opcode, Type, u32, bool)> {
    let signed = |op| matches!(op, Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32);
    Opcode::ALL.iter().flat_map(move |op| {
        Type::ALL.into_iter().filter(|ty| op.allows_type(*ty)).filter_map(move |ty| {
            match op.shape() {
                Shape::Load(0) | Shape::Store(0) => Some((*op, ty, ty.bytes(), false)),
                Shape::Load(n) | Shape::Store(n) => Some((*op, ty, n.into(), signed(*op))),
                _ => None,
            }
        })
    })
}

fn is_load(op: Opcode) -> bool {
    matches!(op.shape(), Shape::Load(_))
}

/// Memory 0 has one page and memory 1 two pages. Byte `i` holds `0x80 + 7 i` and `0x90 + 5 i`
/// respectively, modulo 256.
fn patterned() -> Module {
    let mut module = Module::new();
    for (name, pages, base, step) in [("first", 1, 0x80, 7), ("second", 2, 0x90, 5)] {
        let memory = add_memory(&mut module, name, pages, None);
        let bytes = (0..u64::from(pages) * PAGE).map(|i| (base + step * i) as u8).collect();
        module.data.push(DataSegment::active(memory, 0, bytes));
    }
    module
}

fn pattern(memory: Memory, at: u64) -> u8 {
    if memory == Memory::from_u32(0) { (0x80 + 7 * at) as u8 } else { (0x90 + 5 * at) as u8 }
}

/// Tests every load on both memories, with small and large offsets, up to the last byte and beyond.
#[test]
fn loads_of_every_width() {
    for (op, ty, bytes, signed) in accesses().filter(|a| is_load(a.0)) {
        for (memory, size) in [(Memory::from_u32(0), PAGE), (Memory::from_u32(1), 2 * PAGE)] {
            for offset in [0, 5, size - 1, size, 1 << 32, u64::MAX] {
                let mut module = patterned();
                let func = define(&mut module, "f", &[Type::I32], &[ty], |b, args| {
                    let value = b.insert_value(load(op, ty, memory, offset, args[0]));
                    b.ret(&[value]);
                });
                let last = (size - u64::from(bytes)).saturating_sub(offset);
                for address in [0, 3, last, last + 1, 0xffff_ffff] {
                    let outcome = run(&module, func, &[address]);
                    let at = u128::from(address) + u128::from(offset);
                    if at + u128::from(bytes) > u128::from(size) {
                        let trap = Some(TrapKind::MemoryOutOfBounds);
                        assert_eq!(outcome.trap(), trap, "{}.{ty} {address}+{offset}", op.name());
                        continue;
                    }
                    let at = at as u64;
                    let raw = (0..u64::from(bytes))
                        .map(|i| u64::from(pattern(memory, at + i)) << (8 * i))
                        .sum::<u64>();
                    let negative = signed && raw >> (8 * bytes - 1) == 1;
                    let value =
                        if negative { (raw | u64::MAX << (8 * bytes)) & ty.mask() } else { raw };
                    assert_eq!(
                        outcome,
                        returned(&[value]),
                        "{}.{ty} {address}+{offset}",
                        op.name()
                    );
                }
            }
        }
    }
}

/// Every store writes exactly its bytes, or traps and writes nothing. The digest follows.
#[test]
fn stores_of_every_width() {
    let value = 0x1122_3344_5566_7788u64;
    for (op, ty, bytes, _) in accesses().filter(|a| !is_load(a.0)) {
        for (memory, size) in [(Memory::from_u32(0), PAGE), (Memory::from_u32(1), 2 * PAGE)] {
            for offset in [0, 5, size, 1 << 32] {
                let mut module = patterned();
                let func = define(&mut module, "f", &[Type::I32, ty], &[], |b, args| {
                    b.insert(store(op, ty, memory, offset, args[0], args[1]));
                    b.ret(&[]);
                });
                let last = (size - u64::from(bytes)).saturating_sub(offset);
                for address in [0, 3, last, last + 1] {
                    let mut machine = machine(&module, Limits::default());
                    let mut expected = machine.memories().bytes(memory).to_vec();
                    let outcome =
                        machine.invoke(func, &[address, value], &mut NoHost, &mut NoObserver);
                    let at = (address + offset) as usize;
                    if at as u64 + u64::from(bytes) > size {
                        assert_eq!(outcome.trap(), Some(TrapKind::MemoryOutOfBounds));
                    } else {
                        assert_eq!(outcome, returned(&[]));
                        expected[at..][..bytes as usize]
                            .copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
                    }
                    assert!(
                        machine.memories().bytes(memory) == expected,
                        "{}.{ty} {address}+{offset}",
                        op.name()
                    );
                    assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
                }
            }
        }
    }
}

/// An untracked machine stores the same bytes, and computes the same digest on request.
#[test]
fn the_digest_is_the_same_tracked_or_not() {
    let mut module = patterned();
    let func = define(&mut module, "f", &[Type::I32, Type::I64], &[], |b, args| {
        b.insert(store(Opcode::Store, Type::I64, Memory::from_u32(0), 3, args[0], args[1]));
        b.ret(&[]);
    });
    let mut tracked = machine(&module, Limits::default());
    let mut plain = Machine::new(&module, Limits::default()).expect("it instantiates");
    assert_eq!(tracked.memory_digest(), plain.memory_digest());
    let mut digests = vec![plain.memory_digest()];
    for (address, value) in [(0, 1), (8, 1), (0, 0), (65_525, 7), (8, 0)] {
        for machine in [&mut tracked, &mut plain] {
            assert_eq!(
                machine.invoke(func, &[address, value], &mut NoHost, &mut NoObserver),
                returned(&[])
            );
        }
        assert!(tracked.same_memory(&plain));
        assert_eq!(tracked.memory_digest(), plain.memory_digest());
        digests.push(plain.memory_digest());
    }
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 6, "different contents have different digests");
}

/// The digest changes if two words are exchanged, or if a word moves to another memory or a byte
/// within its word. Restoring the old contents restores the digest, and the order of writes does
/// not matter.
#[test]
fn a_memory_is_given_as_bytes_unless_its_writes_are_tracked() {
    let mut module = Module::new();
    add_memory(&mut module, "memory", 1, None);
    let first = Memory::from_u32(0);
    for track_memory in [false, true] {
        let options = Options { track_memory, ..Options::default() };
        let program = Program::new(&module);
        let machine = Machine::with_regions(&program, Limits::default(), options, &mut |_| None);
        let mut machine = machine.expect("it instantiates");
        let memories = machine.memories_mut();
        let bytes = memories.bytes_mut(first);
        assert_eq!(bytes.is_none(), track_memory);
        if let Some(bytes) = bytes {
            bytes[7] = 9;
            assert_eq!(memories.read(first, 7, 1), Some(&[9][..]));
        }
    }
}

#[test]
fn the_digest_knows_where_a_word_is() {
    let module = {
        let mut module = Module::new();
        add_memory(&mut module, "first", 1, None);
        add_memory(&mut module, "second", 1, None);
        module
    };
    let digest = |writes: &[(u32, u64, u8)]| {
        let mut machine = machine(&module, Limits::default());
        for (memory, at, byte) in writes {
            machine
                .memories_mut()
                .write(Memory::from_u32(*memory), *at, &[*byte])
                .expect("it lies within");
        }
        assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
        machine.memory_digest()
    };
    assert_ne!(digest(&[(0, 0, 1), (0, 8, 2)]), digest(&[(0, 0, 2), (0, 8, 1)]));
    assert_ne!(digest(&[(0, 16, 1)]), digest(&[(1, 16, 1)]));
    assert_ne!(digest(&[(0, 0, 1)]), digest(&[(0, 1, 1)]));
    assert_eq!(digest(&[(0, 0, 1), (0, 0, 0)]), digest(&[]));
    assert_eq!(digest(&[(0, 0, 1), (0, 9, 2)]), digest(&[(0, 9, 2), (0, 0, 1)]));
}

fn grow_module(min: u32, max: Option<u32>) -> (Module, Func) {
    let mut module = Module::new();
    let memory = add_memory(&mut module, "memory", min, max);
    let func = define(&mut module, "grow", &[Type::I32], &[Type::I32, Type::I32], |b, args| {
        let before =
            b.insert_value(InstSpec::new(Opcode::MemoryGrow, Type::I32, Imm::Memory(memory), args));
        let after =
            b.insert_value(InstSpec::new(Opcode::MemorySize, Type::I32, Imm::Memory(memory), &[]));
        b.ret(&[before, after]);
    });
    (module, func)
}

#[test]
fn growth_stops_at_the_maximum_and_at_the_limit() {
    let failed = 0xffff_ffff;
    let (module, func) = grow_module(1, Some(3));
    let mut machine = machine(&module, Limits::default());
    for (pages, before, after) in
        [(0, 1, 1), (1, 1, 2), (2, failed, 2), (failed, failed, 2), (1, 2, 3), (1, failed, 3)]
    {
        assert_eq!(
            machine.invoke(func, &[pages], &mut NoHost, &mut NoObserver),
            returned(&[before, after])
        );
        assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
        assert_eq!(u64::from(machine.memories().pages(Memory::from_u32(0))), after);
    }

    let (mut module, func) = grow_module(1, None);
    add_memory(&mut module, "other", 2, None);
    let limits = Limits { memory_pages: 5, ..Limits::default() };
    let mut machine = Machine::new(&module, limits).expect("it instantiates");
    assert_eq!(machine.invoke(func, &[3], &mut NoHost, &mut NoObserver), returned(&[failed, 1]));
    assert_eq!(machine.invoke(func, &[2], &mut NoHost, &mut NoObserver), returned(&[1, 3]));
    assert_eq!(machine.invoke(func, &[1], &mut NoHost, &mut NoObserver), returned(&[failed, 3]));
}

/// Growth keeps the contents and adds zeros, whether the vector is extended or allocated anew.
#[test]
fn growth_keeps_contents() {
    let (mut module, func) = grow_module(1, None);
    module.data.push(DataSegment::active(Memory::from_u32(0), PAGE - 3, vec![1, 2, 3]));
    let mut machine = machine(&module, Limits::default());
    for pages in [1, 1, 1, 10, 1] {
        machine.invoke(func, &[pages], &mut NoHost, &mut NoObserver);
        let bytes = machine.memories().bytes(Memory::from_u32(0));
        assert_eq!(bytes[PAGE as usize - 3..][..3], [1, 2, 3]);
        assert_eq!(bytes.iter().map(|b| u64::from(*b)).sum::<u64>(), 6);
        assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
    }
}

/// A store directly after a growth reaches the new pages. The loop must derive its slice of memory
/// 0 again.
#[test]
fn new_pages_are_reachable_at_once() {
    let mut module = Module::new();
    let memory = add_memory(&mut module, "memory", 0, None);
    let func = define(&mut module, "f", &[], &[Type::I32], |b, _| {
        let (one, at) = (i32_const(b, 1), i32_const(b, 65_532));
        b.insert(InstSpec::new(Opcode::MemoryGrow, Type::I32, Imm::Memory(memory), &[one]));
        b.insert(store(Opcode::Store, Type::I32, memory, 0, at, at));
        let value = b.insert_value(load(Opcode::Load, Type::I32, memory, 0, at));
        b.ret(&[value]);
    });
    assert_eq!(run(&module, func, &[]), returned(&[65_532]));
    let mut plain = Machine::new(&module, Limits::default()).expect("it instantiates");
    assert_eq!(plain.invoke(func, &[], &mut NoHost, &mut NoObserver), returned(&[65_532]));
}

#[test]
fn data_segments_must_lie_within_their_memory() {
    let mut module = Module::new();
    let memory = add_memory(&mut module, "heap", 1, None);
    module.data.push(DataSegment::active(memory, PAGE, Vec::new()));
    assert!(Machine::new(&module, Limits::default()).is_ok());
    for offset in [PAGE - 1, PAGE, u64::MAX] {
        module.data[0] = DataSegment::active(memory, offset, vec![1, 2]);
        let error = Machine::new(&module, Limits::default()).expect_err("it is refused");
        assert_eq!(error.to_string(), "data segment 0 is out of bounds of memory heap");
    }
}

#[test]
fn globals_hold_their_type_and_count_in_the_digest() {
    let mut module = Module::new();
    let decl = |name: &str, ty, init| GlobalDecl {
        name: name.to_owned(),
        ty,
        mutable: true,
        init,
        import: None,
    };
    let narrow = module.globals.push(decl("narrow", Type::I8, 0x1ff.into()));
    let wide = module.globals.push(decl("wide", Type::F64, u64::MAX.into()));
    let func = define(&mut module, "f", &[Type::F64], &[Type::I8, Type::F64], |b, args| {
        let x =
            b.insert_value(InstSpec::new(Opcode::GlobalGet, Type::I8, Imm::Global(narrow), &[]));
        b.insert(InstSpec::new(Opcode::GlobalSet, Type::F64, Imm::Global(wide), args));
        let y = b.insert_value(InstSpec::new(Opcode::GlobalGet, Type::F64, Imm::Global(wide), &[]));
        b.ret(&[x, y]);
    });
    let mut machine = machine(&module, Limits::default());
    let before = machine.memory_digest();
    assert_eq!(machine.globals(), [0xff, u64::MAX]);
    assert_eq!(machine.invoke(func, &[5], &mut NoHost, &mut NoObserver), returned(&[0xff, 5]));
    assert_eq!(machine.globals(), [0xff, 5]);
    assert_ne!(machine.memory_digest(), before);
    assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
    assert_eq!(
        machine.invoke(func, &[u64::MAX], &mut NoHost, &mut NoObserver),
        returned(&[0xff, u64::MAX])
    );
    assert_eq!(machine.memory_digest(), before);
}

/// Writes its argument to address 12 of memory 0, through the functions that update the digest.
struct Writer;

impl Host for Writer {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        let memory = Memory::from_u32(0);
        let failed = |_| HostError::failed("out of bounds");
        memories.write(memory, 12, &args[0].to_le_bytes()).map_err(failed)?;
        assert!(memories.write(memory, PAGE - 1, &[1, 2]).is_err());
        assert!(memories.read(memory, u64::MAX, 2).is_none());
        results[0] = memories.read(memory, 12, 1).map_or(0, |bytes| bytes[0].into());
        Ok(())
    }
}

#[test]
fn host_writes_are_seen_and_tracked() {
    let mut module = Module::new();
    let memory = add_memory(&mut module, "memory", 1, None);
    let write = import(&mut module, "write", &[Type::I64], &[Type::I32]);
    let func = define(&mut module, "f", &[Type::I64], &[Type::I32, Type::I64], |b, args| {
        let low = b.insert_value(InstSpec::call(write, args, &[Type::I32]));
        let at = i32_const(b, 12);
        let value = b.insert_value(load(Opcode::Load, Type::I64, memory, 0, at));
        b.ret(&[low, value]);
    });
    let mut machine = machine(&module, Limits::default());
    let value = 0x0102_0304_0506_0708;
    assert_eq!(machine.invoke(func, &[value], &mut Writer, &mut NoObserver), returned(&[8, value]));
    assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
}
