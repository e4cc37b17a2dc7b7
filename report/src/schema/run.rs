//! The document of `osier run --stats`.

/// The document that `osier run --stats` writes.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct RunStats {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// Whether Ctrl-C or SIGTERM ended the run. The figures are those up to that moment.
    pub interrupted: bool,
    /// The compiled pieces of code, in order. `null` if the interpreter ran the program.
    pub compiled: Option<Vec<CompiledCode>>,
    /// The transitions made. `null` if the interpreter ran the program.
    pub transitions: Option<Vec<MadeTransition>>,
    /// The assumptions that native code made. `null` without `--speculate`.
    pub speculation: Option<RunSpeculation>,
    /// What the tiers did. `null` unless the engine is `tiered`.
    pub tiering: Option<RunTiering>,
    /// The number of executed instructions, terminators included. `null` if native code ran: it
    /// counts instructions only with `--fuel`.
    pub instructions: Option<u64>,
    /// The times of the run.
    pub seconds: RunSeconds,
}

/// A compiled piece of native code.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct CompiledCode {
    /// The name of the function.
    pub function: String,
    /// `version`, or `continuation` for code that a transition enters.
    pub kind: &'static str,
    /// The number of instructions of the compiled function.
    pub instructions: usize,
    /// The size of the machine code in bytes.
    pub bytes: usize,
    /// The time at which compiling began, in seconds after the start of the run.
    pub at: f64,
    /// The duration of compiling, in seconds.
    pub seconds: f64,
}

/// What the tiers of a run did. Times are seconds after the start of the run.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct RunTiering {
    /// The requested code, in the order of the requests.
    pub orders: Vec<TierOrder>,
    /// How often the run has waited for the policy.
    pub pauses: u64,
    /// The total time of these pauses, in seconds.
    pub paused: f64,
    /// The longest of these pauses, in seconds.
    pub longest_pause: f64,
    /// The visits that the interpreter has counted, by function.
    pub visits: Vec<VisitedFunction>,
}

/// Code that a run requested.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct TierOrder {
    /// The name of the function.
    pub function: String,
    /// The loop header, in the notation of listings; `null` for calls of the function.
    pub point: Option<String>,
    /// `base` or `optimized`.
    pub tier: &'static str,
    /// The reason: `calls`, `loop`, or `follow-up` for code that the policy compiles without a
    /// request.
    pub why: &'static str,
    /// The calls or visits until the request.
    pub visits: u64,
    /// When the run requested the code.
    pub asked: f64,
    /// When the compiler began. `null` if it did not.
    pub begun: Option<f64>,
    /// When the compiler had ended.
    pub made: Option<f64>,
    /// When calls of the function began to run the version.
    pub installed: Option<f64>,
    /// When the run entered the loop in the middle.
    pub entered: Option<f64>,
    /// Why the request was dropped: `superseded`, `queue full` or `code full`.
    pub dropped: Option<&'static str>,
}

/// The visits of a function in the interpreter.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct VisitedFunction {
    /// The name of the function.
    pub function: String,
    /// Its instructions.
    pub instructions: usize,
    /// The counted places: the entry of the function, then its loop headers.
    pub places: Vec<VisitCount>,
}

/// The visits of a place in the interpreter.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct VisitCount {
    /// The loop header, in the notation of listings; `null` for the entry of the function.
    pub point: Option<String>,
    /// The instructions that a visit executes outside of inner loops, as the policy estimates them.
    pub instructions: usize,
    /// The visits.
    pub visits: u64,
}

/// A transition that a run made, with its count.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MadeTransition {
    /// The name of the function.
    pub function: String,
    /// The source point, in the notation of listings.
    pub point: String,
    /// The executor of the source version: `interpreter` or `native`.
    pub from: &'static str,
    /// The executor of the target version: `interpreter`, `native` or `embedder`.
    pub to: &'static str,
    /// The number of times that the run made the transition.
    pub count: u64,
}

/// The times of a run, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct RunSeconds {
    /// The time to read the file and build the module.
    pub import: f64,
    /// The time to run the passes before the run. In the tiered engine it also includes the time
    /// within `execute` to optimize hot functions and to make and check the mappings to them.
    /// `null` in other engines without a pipeline.
    pub optimize: Option<f64>,
    /// The time to verify each version and replay each log before the run. `null` without a
    /// pipeline.
    pub replay: Option<f64>,
    /// The time to compile native code, part of `execute`. `null` if the interpreter ran the
    /// program.
    pub compile: Option<f64>,
    /// The time to run the program.
    pub execute: f64,
}

/// The assumptions of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct RunSpeculation {
    /// The number of versions made with assumptions.
    pub versions: u64,
    /// The assumptions in these versions.
    pub assumptions: u64,
    /// The assumptions that pin a value.
    pub pinned: u64,
    /// The assumptions that a pass proved, or removed with code that never runs.
    pub settled: u64,
    /// The assumptions that were left out, for lack of an exit.
    pub dropped: u64,
    /// The functions whose list of assumptions was refused as a whole, each with the reason.
    pub refused: Vec<String>,
    /// How often an assumption failed.
    pub failures: u64,
    /// The assumptions that failed, by function and in the order of their first failure.
    pub failed: Vec<FailingAssumption>,
    /// The landing tables with rows, in the order in which they were made.
    pub tables: Vec<RunTable>,
    /// The rows of functions for calls with constant arguments, in the order in which they were
    /// made.
    pub contexts: Vec<RunContext>,
    /// The bytes of machine code of versions and rows that assume.
    pub bytes: u64,
    /// The exits at failing assumptions that led to an interpreter.
    pub exits: u64,
    /// The mean number of these in a second of the run: a storm has many.
    pub exits_per_second: u64,
    /// The exits at failing assumptions that led to rows.
    pub exits_to_rows: u64,
}

/// A row of a function for calls with constant arguments.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RunContext {
    /// The name of the function.
    pub function: String,
    /// What is known of its arguments. Example: `%k is 3`.
    pub facts: Vec<String>,
    /// Whether it has gone, since other rows of the function are called more often.
    pub is_gone: bool,
}

/// A row that has taken over where an assumption failed.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct TakenOver {
    /// The point of the table, in the base.
    pub at: String,
    /// The index of the row there.
    pub row: usize,
    /// The time from the failure until the exit led to the row: the making of the row, if it is
    /// new, and of the way there.
    pub microseconds: u64,
}

/// A landing table: code behind a point of a function, under different assumptions.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RunTable {
    /// The name of the function.
    pub function: String,
    /// The point of its base. Example: `head:0`.
    pub at: String,
    /// The rows, in the order in which runs try them.
    pub rows: Vec<RunRow>,
}

/// A row of a landing table.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RunRow {
    /// The facts that the row tests at its start. Example: `%far is 0`.
    pub context: Vec<String>,
    /// The assumptions that it makes elsewhere, with their places.
    pub assumptions: Vec<String>,
    /// The exits that lead to the row. Runs that take them no longer count as failures.
    pub exits: u64,
    /// The bytes of its machine code.
    pub bytes: u64,
}

/// An assumption that failed in a run.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct FailingAssumption {
    /// The name of the function.
    pub function: String,
    /// The place and the fact. Example: `head:2: %far is 0`.
    pub assumption: String,
    /// The observation behind the assumption, such as `branch side never taken`.
    pub observed: &'static str,
    /// How often it failed.
    pub failures: u64,
    /// Whether later versions of the function omit the assumption because it failed too often.
    pub given_up: bool,
    /// The rows that have taken over at its exits, in the order in which they did.
    pub taken_over: Vec<TakenOver>,
}
