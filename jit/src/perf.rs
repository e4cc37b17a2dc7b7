//! Files that the profiler `perf` of Linux reads. An embedder opens the files; see `osier run
//! --perf` for an example.
//!
//! - [`PerfMap`]: a list of symbols, `/tmp/perf-PID.map`. `perf report` and `perf top` read it when
//!   they print. The list cannot express that code was freed, so an address may have two symbols.
//! - [`JitDump`]: a log with times and machine code, `jit-PID.dump`. From this log,
//!   `perf inject --jit` makes symbols, and code to annotate. Each address has the symbol that it
//!   had at the time. The format: `tools/perf/Documentation/jitdump-specification.txt` of Linux.

use crate::observe::{CodeObserver, CodeSource, Piece, SourcePlace};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An output of records. After the first error it writes nothing more, and keeps the error for
/// `check`.
#[derive(Debug)]
struct RecordSink<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: Write> RecordSink<W> {
    fn new(out: W) -> Mutex<RecordSink<W>> {
        Mutex::new(RecordSink { out, error: None })
    }

    /// Writes one record in a single call, so that the file is whole after each record.
    fn write(&mut self, record: &[u8]) {
        if self.error.is_none() {
            let written = self.out.write_all(record).and_then(|()| self.out.flush());
            self.error = written.err();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the writer leaves no half-done state that later records rely on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the symbol of each piece of code as a line: address, size, name. With a source, each
/// place in the source has a separate symbol: `sum [version 5d1f09aa] sum.lang:12`.
pub struct PerfMap<W> {
    sink: Mutex<RecordSink<W>>,
    source: Option<Arc<dyn CodeSource>>,
}

impl<W> std::fmt::Debug for PerfMap<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerfMap").field("by_source", &self.source.is_some()).finish_non_exhaustive()
    }
}

impl<W: Write> PerfMap<W> {
    /// A map that is written to `out`, which needs no buffer.
    pub fn new(out: W) -> PerfMap<W> {
        PerfMap { sink: RecordSink::new(out), source: None }
    }

    /// The same map with a symbol for each place in the source. `perf report` then tells how much
    /// time each line or program counter takes.
    pub fn by_source(self, source: Arc<dyn CodeSource>) -> PerfMap<W> {
        PerfMap { source: Some(source), ..self }
    }

    /// Whether all lines were written.
    ///
    /// # Errors
    /// The first error of writing. Later calls return no error again.
    pub fn check(&self) -> io::Result<()> {
        lock(&self.sink).error.take().map_or(Ok(()), Err)
    }
}

impl<W: Write + Send> CodeObserver for PerfMap<W> {
    fn added(&self, piece: &Piece<'_>) {
        let ranges = self.source.as_ref().map(|source| piece.by_source(&**source));
        let ranges = ranges.unwrap_or_default();
        // In front of the first place: the prologue, or the whole piece.
        let end =
            ranges.first().map_or(piece.bytes.len(), |(range, _)| range.start - piece.address);
        let mut lines = String::new();
        let mut line = |start: usize, bytes: usize, symbol: std::fmt::Arguments<'_>| {
            if bytes > 0 {
                lines.push_str(&format!("{start:x} {bytes:x} {symbol}\n"));
            }
        };
        line(piece.address, end, format_args!("{piece}"));
        for (range, SourcePlace { file, line: at }) in ranges {
            let file = file.replace(char::is_control, "?");
            line(range.start, range.len(), format_args!("{piece} {file}:{at}"));
        }
        lock(&self.sink).write(lines.as_bytes());
    }
}

/// The record of a piece of code.
const LOAD: u32 = 0;
/// The record of the places in the source, which precedes the record of the code.
const LINES: u32 = 2;
/// The record at the end.
const CLOSE: u32 = 3;
/// The bytes of a record's header: kind, size of the record, time.
const RECORD_HEADER: usize = 16;

/// Writes each piece of code as a record, with its time, its symbol and its bytes.
pub struct JitDump<W> {
    state: Mutex<DumpState<W>>,
    /// Nanoseconds of the clock that `perf record` uses.
    now: Box<dyn Fn() -> u64 + Send + Sync>,
    process: u32,
    source: Option<Arc<dyn CodeSource>>,
}

#[derive(Debug)]
struct DumpState<W> {
    sink: RecordSink<W>,
    /// The records of code so far. Each has another number.
    count: u64,
}

impl<W> std::fmt::Debug for JitDump<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JitDump").field("process", &self.process).finish_non_exhaustive()
    }
}

impl<W: Write> JitDump<W> {
    /// Writes the header of the file. `process` is the number of this process. `now` returns
    /// nanoseconds of the clock `CLOCK_MONOTONIC`, and the user gives `perf record` the option
    /// `-k mono`. `perf` finds the file if it is mapped ([`crate::process::ExecutableView`]).
    pub fn new(out: W, process: u32, now: impl Fn() -> u64 + Send + Sync + 'static) -> JitDump<W> {
        // Magic, version, size of this header, architecture (EM_X86_64), padding.
        let words = [0x4a69_5444, 1, 40, 62, 0, process];
        let mut header: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        // Time, flags.
        header.extend([now(), 0].into_iter().flat_map(u64::to_le_bytes));
        let mut sink = RecordSink { out, error: None };
        sink.write(&header);
        let state = Mutex::new(DumpState { sink, count: 0 });
        JitDump { state, now: Box::new(now), process, source: None }
    }

    /// The same file with the places in the source, which `perf annotate` shows beside the code.
    pub fn by_source(self, source: Arc<dyn CodeSource>) -> JitDump<W> {
        JitDump { source: Some(source), ..self }
    }

    /// The places of a piece, as the body of a record. `None` without places.
    fn lines(&self, piece: &Piece<'_>) -> Option<Vec<u8>> {
        let ranges = piece.by_source(&**self.source.as_ref()?);
        if ranges.is_empty() {
            return None;
        }
        let words = [piece.address as u64, ranges.len() as u64];
        let mut body: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        for (range, SourcePlace { file, line }) in ranges {
            body.extend((range.start as u64).to_le_bytes());
            // The discriminator distinguishes several places of a line.
            body.extend([line, 0].into_iter().flat_map(u32::to_le_bytes));
            body.extend(file.bytes().filter(|byte| *byte != 0).chain([0]));
        }
        Some(body)
    }

    /// Writes the record that ends the file.
    ///
    /// # Errors
    /// The first error of writing. Later calls return no error again.
    pub fn close(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        let record = self.record(CLOSE, &[]);
        state.sink.write(&record);
        state.sink.error.take().map_or(Ok(()), Err)
    }

    /// A record that ends with these bytes.
    fn record(&self, kind: u32, body: &[u8]) -> Vec<u8> {
        let size = (RECORD_HEADER + body.len()) as u32;
        let mut record: Vec<u8> = [kind, size].into_iter().flat_map(u32::to_le_bytes).collect();
        record.extend((self.now)().to_le_bytes());
        record.extend(body);
        record
    }
}

impl<W: Write + Send> CodeObserver for JitDump<W> {
    fn added(&self, piece: &Piece<'_>) {
        let lines = self.lines(piece);
        let mut state = lock(&self.state);
        if let Some(body) = lines {
            let record = self.record(LINES, &body);
            state.sink.write(&record);
        }
        // The thread is for people alone, and stands for the process here.
        let mut body: Vec<u8> = [self.process; 2].into_iter().flat_map(u32::to_le_bytes).collect();
        let (address, size) = (piece.address as u64, piece.bytes.len() as u64);
        body.extend([address, address, size, state.count].into_iter().flat_map(u64::to_le_bytes));
        body.extend(piece.to_string().bytes());
        body.push(0);
        body.extend(piece.bytes);
        // The time is taken under the lock, so times ascend.
        let record = self.record(LOAD, &body);
        state.sink.write(&record);
        state.count += 1;
    }
}
