//! Tests of the WASI host with small programs that pass it valid and invalid arguments.

use interp::{Limits, Machine, NoObserver, Outcome};
use osier_wasm::wasi::{Process, Wasi};
use osier_wasm::{ImportLimits, import_wat};
use std::io::{self, Read, Write};

/// Runs a function of type `() -> i32` with this body. Its module has one page of memory and
/// imports the WASI functions of these tests. Returns the outcome and the memory.
fn run(body: &str, wasi: &mut Wasi<'_>) -> (Outcome, Vec<u8>) {
    let import = |name: &str, ty: &str| {
        format!("(import \"wasi_snapshot_preview1\" \"{name}\" (func ${name} {ty}))")
    };
    let mut text = "(module ".to_owned();
    for name in [
        "args_get",
        "args_sizes_get",
        "environ_get",
        "environ_sizes_get",
        "fd_fdstat_get",
        "fd_prestat_get",
        "random_get",
    ] {
        text += &import(name, "(param i32 i32) (result i32)");
    }
    for name in ["fd_write", "fd_read"] {
        text += &import(name, "(param i32 i32 i32 i32) (result i32)");
    }
    text += &import("fd_seek", "(param i32 i64 i32 i32) (result i32)");
    text += &import("fd_close", "(param i32) (result i32)");
    text += &import("proc_exit", "(param i32)");
    text += "(import \"env\" \"magic\" (func $magic))";
    text += "(import \"wasi_snapshot_preview1\" \"clock_time_get\" (func $odd_clock (param i32 i64 i32) (result i32)))";
    text += "(import \"wasi_snapshot_preview1\" \"fd_close\" (func $odd_close (param i32 i32) (result i32)))";
    text += "(memory 1) (data (i32.const 64) \"hello\\n\")";
    text += &format!("(func (export \"f\") (result i32) {body}))");
    let module =
        import_wat(&text, &ImportLimits::default()).unwrap_or_else(|e| panic!("{e}: {text}"));
    let mut machine = Machine::new(&module, Limits::default()).expect("instantiable");
    let func = module.lookup("f").expect("exported");
    let outcome = machine.invoke(func, &[], wasi, &mut NoObserver);
    (outcome, machine.memories().bytes(ir::Memory::from_u32(0)).to_vec())
}

fn errno(body: &str) -> u64 {
    let mut wasi = Wasi::new(vec!["p".to_owned()], io::empty(), io::sink(), io::sink());
    match run(body, &mut wasi).0 {
        Outcome::Returned(values) => values[0],
        other => panic!("{body}: {other}"),
    }
}

const HELLO: &str =
    "(i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 6))";

#[test]
fn output_reaches_its_stream_and_its_length_is_reported() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut wasi = Wasi::new(Vec::new(), io::empty(), &mut out, &mut err);
    let body = format!(
        "{HELLO} (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
         (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 12))"
    );
    let (outcome, memory) = run(&body, &mut wasi);
    drop(wasi);
    assert_eq!(outcome, Outcome::Returned(vec![0]));
    assert_eq!((out.as_slice(), err.as_slice()), (b"hello\n".as_slice(), b"hello\n".as_slice()));
    assert_eq!((memory[8], memory[12]), (6, 6));
}

#[test]
fn addresses_and_counts_are_not_trusted() {
    let write = |list: &str, count: &str, told: &str| {
        errno(&format!(
            "{HELLO} (call $fd_write (i32.const 1) (i32.const {list}) (i32.const {count}) (i32.const {told}))"
        ))
    };
    assert_eq!(write("0", "1", "8"), 0);
    assert_eq!(write("0", "1", "65533"), 21);
    assert_eq!(write("65532", "1", "8"), 21);
    assert_eq!(write("-1", "1", "8"), 21);
    assert_eq!(write("0", "-1", "8"), 28);
    assert_eq!(write("0", "1025", "8"), 28);
    // A buffer that is out of bounds.
    let beyond =
        "(i32.store (i32.const 0) (i32.const 65530)) (i32.store (i32.const 4) (i32.const -1))";
    assert_eq!(
        errno(&format!(
            "{beyond} (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))"
        )),
        21
    );
    assert_eq!(errno("(call $args_get (i32.const 65533) (i32.const 0))"), 21);
    assert_eq!(errno("(call $args_get (i32.const 0) (i32.const -2))"), 21);
    assert_eq!(errno("(call $args_sizes_get (i32.const 0) (i32.const 65533))"), 21);
    assert_eq!(errno("(call $environ_sizes_get (i32.const -4) (i32.const 0))"), 21);
    assert_eq!(errno("(call $fd_fdstat_get (i32.const 1) (i32.const 65520))"), 21);
}

#[test]
fn nothing_is_written_when_a_later_buffer_is_bad() {
    let second = |address: &str, length: &str, errno: u64| {
        let mut out = Vec::new();
        let mut wasi = Wasi::new(Vec::new(), io::empty(), &mut out, io::sink());
        let body = format!(
            "{HELLO} (i32.store (i32.const 8) (i32.const {address})) (i32.store (i32.const 12) (i32.const {length}))
             (call $fd_write (i32.const 1) (i32.const 0) (i32.const 2) (i32.const 16))"
        );
        let (outcome, memory) = run(&body, &mut wasi);
        drop(wasi);
        assert_eq!(outcome, Outcome::Returned(vec![errno]));
        (out, memory[16])
    };
    assert_eq!(second("64", "3", 0), (b"hello\nhel".to_vec(), 9));
    assert_eq!(second("65530", "7", 21), (Vec::new(), 0)); // beyond the memory
    assert_eq!(second("64", "-1", 28), (Vec::new(), 0)); // more bytes than can be told
}

#[test]
fn descriptors_are_the_three_standard_ones() {
    assert_eq!(
        errno("(call $fd_seek (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 0))"),
        70
    );
    assert_eq!(errno("(call $fd_seek (i32.const 3) (i64.const 0) (i32.const 0) (i32.const 0))"), 8);
    assert_eq!(errno("(call $fd_prestat_get (i32.const 3) (i32.const 0))"), 8);
    assert_eq!(errno("(call $fd_fdstat_get (i32.const -1) (i32.const 0))"), 8);
    assert_eq!(
        errno("(call $fd_write (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))"),
        8
    );
    assert_eq!(errno("(call $fd_read (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))"), 8);
    assert_eq!(errno("(call $fd_close (i32.const 1))"), 0);
    let closed = "(drop (call $fd_close (i32.const 1)))";
    assert_eq!(
        errno(&format!(
            "{closed} (call $fd_write (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))"
        )),
        8
    );
}

#[test]
fn clocks_and_random_bytes_are_equal_in_equal_runs() {
    // Two readings of the time of day, and random bytes.
    let body = "(drop (call $odd_clock (i32.const 0) (i64.const 0) (i32.const 0)))
        (drop (call $odd_clock (i32.const 1) (i64.const 0) (i32.const 8)))
        (call $random_get (i32.const 16) (i32.const 12))";
    let bytes_with = |seed| {
        let process = Process::new(Vec::new()).with_seed(seed);
        let mut wasi = Wasi::with_process(process, io::empty(), io::sink(), io::sink());
        let (outcome, memory) = run(body, &mut wasi);
        assert_eq!(outcome, Outcome::Returned(vec![0]));
        memory[..32].to_vec()
    };
    let memory = bytes_with(7);
    assert_eq!(memory, bytes_with(7));
    let word = |at: usize| u64::from_le_bytes(memory[at..at + 8].try_into().expect("eight bytes"));
    // A reading moves all clocks by a millisecond; the day is 2020-01-01.
    assert_eq!((word(0), word(8)), (1_577_836_800_001_000_000, 2_000_000));
    assert_eq!(memory[..16], bytes_with(8)[..16]);
    assert_ne!(memory[16..], bytes_with(8)[16..]);
    assert_eq!(memory[28..], [0; 4], "no more bytes than asked for");
    // SplitMix64 with seed 0 begins with this word.
    let mut expected = 0xe220_a839_7b1d_cdaf_u64.to_le_bytes().to_vec();
    expected.truncate(8);
    assert_eq!(bytes_with(0)[16..24], expected);
}

#[test]
fn wrong_clocks_and_addresses_of_random_bytes_are_refused() {
    let clock = |id: &str, to: &str| {
        errno(&format!("(call $odd_clock (i32.const {id}) (i64.const 0) (i32.const {to}))"))
    };
    assert_eq!(clock("3", "0"), 0);
    assert_eq!(clock("4", "0"), 28);
    assert_eq!(clock("0", "65529"), 21);
    assert_eq!(errno("(call $random_get (i32.const 0) (i32.const -1))"), 21);
    assert_eq!(errno("(call $random_get (i32.const 65535) (i32.const 1))"), 0);
}

/// A clone of a process has descriptors, clocks and random bytes of its own.
#[test]
fn a_clone_of_a_process_repeats_its_run() {
    let body = "(drop (call $fd_close (i32.const 2)))
        (drop (call $odd_clock (i32.const 1) (i64.const 0) (i32.const 0)))
        (drop (call $random_get (i32.const 8) (i32.const 8)))
        (call $fd_fdstat_get (i32.const 2) (i32.const 32))";
    let process = Process::new(Vec::new());
    let mut runs = Vec::new();
    for _ in 0..2 {
        let clone = process.clone();
        let mut wasi = Wasi::with_process(clone, io::empty(), io::sink(), io::sink());
        runs.push(run(body, &mut wasi));
    }
    assert_eq!(runs[0].0, Outcome::Returned(vec![8]), "closed");
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn arguments_are_handed_over_with_their_terminators() {
    let args = vec!["prog".to_owned(), "é x".to_owned()];
    let mut wasi = Wasi::new(args, io::empty(), io::sink(), io::sink());
    let body = "(drop (call $args_sizes_get (i32.const 0) (i32.const 4))) (call $args_get (i32.const 8) (i32.const 100))";
    let (outcome, memory) = run(body, &mut wasi);
    assert_eq!(outcome, Outcome::Returned(vec![0]));
    let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().expect("four bytes"));
    assert_eq!([word(0), word(4), word(8), word(12)], [2, 10, 100, 105]);
    assert_eq!(&memory[100..110], "prog\0é x\0".as_bytes());
}

#[test]
fn reads_fill_the_given_buffer() {
    let mut wasi = Wasi::new(Vec::new(), b"abcdef".as_slice(), io::sink(), io::sink());
    // The first call has an empty buffer before the buffer to fill. The second call reads the rest.
    let body = "(i32.store (i32.const 8) (i32.const 100)) (i32.store (i32.const 12) (i32.const 4))
        (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 16)))
        (i32.store (i32.const 8) (i32.const 200))
        (call $fd_read (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 20))";
    let (outcome, memory) = run(body, &mut wasi);
    assert_eq!(outcome, Outcome::Returned(vec![0]));
    assert_eq!((&memory[100..105], &memory[200..203]), (b"abcd\0".as_slice(), b"ef\0".as_slice()));
    assert_eq!((memory[16], memory[20]), (4, 2));
}

/// Fails like a closed pipe or a broken device.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
}

#[test]
fn stream_errors_reach_the_program() {
    for (kind, errno) in [(io::ErrorKind::BrokenPipe, 64), (io::ErrorKind::StorageFull, 29)] {
        let mut wasi = Wasi::new(Vec::new(), Broken(kind), Broken(kind), io::sink());
        let write = format!(
            "{HELLO} (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))"
        );
        assert_eq!(run(&write, &mut wasi).0, Outcome::Returned(vec![errno]));
        let read = format!(
            "{HELLO} (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))"
        );
        assert_eq!(run(&read, &mut wasi).0, Outcome::Returned(vec![errno]));
    }
    // An error that occurs only when a buffer is flushed is reported too.
    let mut wasi = Wasi::new(
        Vec::new(),
        io::empty(),
        io::BufWriter::new(Broken(io::ErrorKind::BrokenPipe)),
        io::sink(),
    );
    let write =
        format!("{HELLO} (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))");
    assert_eq!(run(&write, &mut wasi).0, Outcome::Returned(vec![64]));
}

#[test]
fn exits_and_unknown_imports_end_the_run() {
    let mut wasi = Wasi::new(Vec::new(), io::empty(), io::sink(), io::sink());
    assert_eq!(
        run("(call $proc_exit (i32.const -3)) (i32.const 0)", &mut wasi).0,
        Outcome::Exited(-3)
    );
    let failed = |body: &str, wasi: &mut Wasi<'_>| match run(body, wasi).0 {
        Outcome::HostFailed { error, .. } => error.to_string(),
        other => panic!("{other}"),
    };
    assert!(
        failed("(call $magic) (i32.const 0)", &mut wasi)
            .contains("no host module env, needed by the call of env.magic")
    );
    let message = failed("(call $odd_close (i32.const 0) (i32.const 0))", &mut wasi);
    assert!(message.contains("fd_close has 1 parameters"), "{message}");
}
