//! The events of native code that profilers and debuggers receive.

use super::support::{Pair, SUM, engine, invoke, sum, vm};
use osier::interp::Outcome;
use osier::ir::{FrameState, FrameStates, Func, Inst, Point};
use osier::jit::gdb::GdbInterface;
use osier::jit::perf::{JitDump, PerfMap};
use osier::jit::{Action, CodeObserver, Condition, Config, Engine, Piece, PieceKind, SourcePlace};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The pieces of code that exist, by address: symbol and bytes.
#[derive(Default)]
struct Known {
    now: Mutex<BTreeMap<usize, (String, Vec<u8>)>>,
    /// All symbols so far, in order.
    symbols: Mutex<Vec<String>>,
}

impl CodeObserver for Known {
    fn added(&self, piece: &Piece<'_>) {
        let mut now = self.now.lock().expect("nobody panics with it");
        let before = now.insert(piece.address, (piece.to_string(), piece.bytes.to_vec()));
        assert_eq!(before, None, "code at this address was freed before");
        self.symbols.lock().expect("nobody panics with it").push(piece.to_string());
        assert_eq!(matches!(piece.kind, PieceKind::Stub), piece.name.starts_with("stub."));
    }

    fn freed(&self, address: usize) {
        let known = self.now.lock().expect("nobody panics with it").remove(&address);
        assert!(known.is_some(), "it was added");
    }
}

/// A file in memory, which may refuse to be written.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>, bool);

impl Memory {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("nobody panics with it").clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 {
            return Err(io::Error::other("full"));
        }
        self.0.lock().expect("nobody panics with it").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a loop that goes up in the middle, with code that the observers get to know. Drops all.
fn up_in_the_middle(engine: &Engine) {
    let pair = Pair::new(SUM);
    let mut vm = vm(engine, &pair.module);
    let slow = pair.at_head(engine, false, Condition::Countdown(5));
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    vm.install(&slow, vec![pair.leading(engine, true, &fast)]).expect("it fits");
    assert_eq!(invoke(&mut vm, pair.func, &[9, 7]), Ok(Outcome::Returned(vec![sum(9, 7)])));
}

fn observed(observers: Vec<Arc<dyn CodeObserver>>) -> Engine {
    Engine::observed(Config::default(), observers).expect("the tests run where native code does")
}

#[test]
fn pieces_of_code_have_names_of_their_own_until_they_are_freed() {
    let known = Arc::new(Known::default());
    let engine = observed(vec![known.clone()]);
    up_in_the_middle(&engine);
    let symbols = known.symbols.lock().expect("nobody panics with it").clone();
    let is_version = |s: &&String| s.starts_with("sum [version ") && s.ends_with(']');
    let versions: Vec<&String> = symbols.iter().filter(is_version).collect();
    assert!(versions.len() == 2 && versions[0] != versions[1], "{symbols:?}");
    let target = versions[1].strip_prefix("sum [version ").expect("a version");
    let rest = format!("[continuation {target}");
    let is_rest = |s: &&String| s.starts_with("sum@inst") && s.ends_with(&rest);
    assert_eq!(symbols.iter().filter(is_rest).count(), 1, "{symbols:?}");
    let stubs = ["stub.leave.0.1", "stub.enter.2.1"];
    assert!(stubs.iter().all(|stub| symbols.iter().any(|s| s == stub)), "{symbols:?}");
    // The machine is gone. The engine keeps its stubs.
    let left = known.now.lock().expect("nobody panics with it").clone();
    assert!(left.values().all(|(symbol, _)| symbol.starts_with("stub.")), "{left:?}");
    assert_eq!(left.len(), symbols.len() - 3);
    drop(engine);
    assert_eq!(known.now.lock().expect("nobody panics with it").len(), 0);
}

/// The same symbols name the same code in another engine: profiles of two runs can be compared.
#[test]
fn symbols_are_those_of_another_run() {
    let symbols = || {
        let known = Arc::new(Known::default());
        up_in_the_middle(&observed(vec![known.clone()]));
        known.symbols.lock().expect("nobody panics with it").clone()
    };
    assert_eq!(symbols(), symbols());
}

#[test]
fn a_perf_map_has_a_line_for_each_piece() {
    let (known, file) = (Arc::new(Known::default()), Memory::default());
    let map = Arc::new(PerfMap::new(file.clone()));
    let engine = observed(vec![known.clone(), map.clone()]);
    let pair = Pair::new(SUM);
    let _version = pair.at_head(&engine, true, Condition::Flag);
    map.check().expect("memory can be written");
    let text = String::from_utf8(file.bytes()).expect("text");
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let mut number = || usize::from_str_radix(words.next().expect("a number"), 16);
        let (address, size) = (number().expect("hex"), number().expect("hex"));
        lines.insert(address, (words.next().expect("a symbol").to_owned(), size));
    }
    let now = known.now.lock().expect("nobody panics with it").clone();
    let expected = now.into_iter().map(|(at, (symbol, bytes))| (at, (symbol, bytes.len())));
    assert_eq!(lines, expected.collect());
}

/// The records of a file, behind its header: kind, time and body.
fn records(mut file: &[u8]) -> Vec<(u32, u64, &[u8])> {
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    };
    let mut records = Vec::new();
    while !file.is_empty() {
        let (kind, size) = (word(file, 0), word(file, 4) as usize);
        let time = u64::from_le_bytes(file[8..16].try_into().expect("eight bytes"));
        records.push((kind, time, &file[16..size]));
        file = &file[size..];
    }
    records
}

#[test]
fn a_jitdump_has_each_piece_with_its_code_and_time() {
    let (known, file, clock) = (Arc::new(Known::default()), Memory::default(), AtomicU64::new(7));
    let now = move || clock.fetch_add(1, Ordering::Relaxed);
    let dump = Arc::new(JitDump::new(file.clone(), 1234, now));
    let engine = observed(vec![known.clone(), dump.clone()]);
    let pair = Pair::new(SUM);
    let _version = pair.at_head(&engine, true, Condition::Flag);
    dump.close().expect("memory can be written");
    let bytes = file.bytes();
    let header: Vec<u32> =
        bytes[..40].chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("4"))).collect();
    // Magic, version, size, x86-64, padding, process, time, flags.
    assert_eq!(header, [0x4a69_5444, 1, 40, 62, 0, 1234, 7, 0, 0, 0]);
    let records = records(&bytes[40..]);
    let (last, loads) = records.split_last().expect("there are records");
    assert_eq!((last.0, last.2), (3, &[][..]), "the record at the end");
    let now = known.now.lock().expect("nobody panics with it").clone();
    assert_eq!(loads.len(), now.len());
    for (number, (kind, time, body)) in loads.iter().enumerate() {
        assert_eq!((*kind, *time), (0, 8 + number as u64));
        let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().expect("eight"));
        assert_eq!(word(0), (1234 << 32) | 1234, "process and thread");
        let (address, size) = (word(8), word(24) as usize);
        assert_eq!((word(16), word(32)), (address, number as u64));
        let name = body[40..].split(|byte| *byte == 0).next().expect("a name");
        let code = &body[40 + name.len() + 1..];
        let (symbol, bytes) = &now[&(address as usize)];
        assert_eq!((name, code, size), (symbol.as_bytes(), &bytes[..], bytes.len()));
    }
}

/// With a source, each place in it has a symbol, and a record in front of its piece. Here the place
/// of an instruction is its number, in a file for each function.
#[test]
fn profilers_get_to_know_places_in_the_source() {
    let pair = Pair::new(SUM);
    let place = |inst: Inst| SourcePlace { file: "sum.lang".into(), line: inst.as_u32() };
    let source: BTreeMap<(Func, Inst), SourcePlace> =
        pair.opt.all_insts().map(|inst| ((pair.func, inst), place(inst))).collect();
    let source = Arc::new(source);
    let (text, file) = (Memory::default(), Memory::default());
    let map = Arc::new(PerfMap::new(text.clone()).by_source(source.clone()));
    let dump = Arc::new(JitDump::new(file.clone(), 1, || 0).by_source(source.clone()));
    let engine = observed(vec![map.clone(), dump.clone()]);
    let version = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    map.check().expect("memory can be written");
    dump.close().expect("memory can be written");

    // The parts of the version, by address.
    let addresses = version.addresses();
    let text = String::from_utf8(text.bytes()).expect("text");
    let mut symbols = BTreeMap::new();
    let mut end = addresses.start;
    for line in text.lines().filter(|line| line.contains("sum [version")) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let number = |word| usize::from_str_radix(word, 16).expect("hex");
        assert_eq!(number(words[0]), end, "no gap, and no overlap");
        end += number(words[1]);
        symbols.insert(
            number(words[0]),
            words[2].rsplit_once("sum.lang:").map(|(_, line)| line.to_owned()),
        );
    }
    assert_eq!(end, addresses.end);
    let known: Vec<(usize, u32)> = symbols
        .iter()
        .filter_map(|(at, line)| Some((*at, line.as_ref()?.parse().expect("a number"))))
        .collect();
    assert!(known.len() > 5, "{symbols:?}");
    for (at, line) in &known {
        assert_eq!(version.inst_at(*at), Some((pair.func, Inst::from_u32(*line))));
    }
    assert_eq!(version.inst_at(addresses.end), None);

    // The record in front of the code says the same.
    let bytes = file.bytes();
    let records = records(&bytes[40..]);
    let at = records.iter().position(|record| record.0 == 2).expect("a record of places");
    assert_eq!(records[at + 1].0, 0, "the code follows");
    let body = records[at].2;
    let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().expect("eight"));
    assert_eq!((word(0), word(8)), (addresses.start as u64, known.len() as u64));
    let mut rest = 16;
    for (address, line) in known {
        let found = u32::from_le_bytes(body[rest + 8..rest + 12].try_into().expect("four"));
        assert_eq!((word(rest), found), (address as u64, line));
        assert_eq!(&body[rest + 16..rest + 25], b"sum.lang\0");
        rest += 25;
    }
    assert_eq!(rest, body.len());
}

/// The instructions behind a frame state have its program counter.
#[test]
fn frame_states_give_places_in_the_source() {
    let pair = Pair::new(SUM);
    let base = &pair.base;
    let head = base.blocks().nth(1).expect("the loop");
    let insts: Vec<Inst> = base.block_insts(head).collect();
    let mut states = FrameStates::new();
    states.set(Point::before(insts[0]), FrameState::new(7, 12, vec![]));
    states.set(Point::before(insts[1]), FrameState::new(7, 13, vec![]));
    let found: Vec<(Inst, u32)> =
        states.by_inst(base).map(|(inst, state)| (inst, state.pc)).collect();
    let behind = insts.iter().enumerate().map(|(at, inst)| (*inst, if at == 0 { 12 } else { 13 }));
    assert_eq!(found, behind.collect::<Vec<_>>());
}

/// An error of writing ends neither the compilation nor the program. The embedder gets it.
#[test]
fn files_that_cannot_be_written_are_told_once() {
    let full = Memory(Arc::default(), true);
    let map = Arc::new(PerfMap::new(full.clone()));
    let dump = Arc::new(JitDump::new(full, 1, || 0));
    up_in_the_middle(&observed(vec![map.clone(), dump.clone()]));
    assert_eq!(map.check().expect_err("full").to_string(), "full");
    assert_eq!(dump.close().expect_err("full").to_string(), "full");
    map.check().expect("it was told");
}

#[test]
fn a_debugger_knows_the_code_that_exists() {
    let (known, gdb) = (Arc::new(Known::default()), Arc::new(GdbInterface::new()));
    let engine = observed(vec![known.clone(), gdb.clone()]);
    up_in_the_middle(&engine);
    assert!(gdb.known() > 0);
    assert_eq!(gdb.known(), known.now.lock().expect("nobody panics with it").len());
    drop(engine);
    assert_eq!(gdb.known(), 0);
}

/// An engine without observers tells nobody.
#[test]
fn observers_belong_to_their_engine() {
    let known = Arc::new(Known::default());
    let _engine = observed(vec![known.clone()]);
    let other = engine(Config::default());
    let pair = Pair::new(SUM);
    let slow = pair.at_head(&other, false, Condition::Flag);
    let mut vm = vm(&other, &pair.module);
    vm.install(&slow, vec![Action::Ask]).expect("it fits");
    assert_eq!(known.symbols.lock().expect("nobody panics with it").len(), 0);
}
