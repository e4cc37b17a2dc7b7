//! One script: its directives in order, in one machine for each engine.

use crate::engines::{ENGINES, Engine, Instance};
use crate::judge;
use interp::{InstantiateError, Outcome};
use ir::module::External;
use ir::{Memory, Module, Table, TrapKind, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use wasm::{ErrorKind, ImportError, ImportLimits, Linker, Location, import, import_linked};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::token::Id;
use wast::{QuoteWat, QuoteWatTest, Wast, WastDirective, WastExecute, WastInvoke, Wat};

/// The module that every script may import.
const SPECTEST: &str = r#"(module
    (func (export "print") (import "spectest" "print"))
    (func (export "print_i32") (import "spectest" "print_i32") (param i32))
    (func (export "print_i64") (import "spectest" "print_i64") (param i64))
    (func (export "print_f32") (import "spectest" "print_f32") (param f32))
    (func (export "print_f64") (import "spectest" "print_f64") (param f64))
    (func (export "print_i32_f32") (import "spectest" "print_i32_f32") (param i32 f32))
    (func (export "print_f64_f64") (import "spectest" "print_f64_f64") (param f64 f64))
    (global (export "global_i32") i32 (i32.const 666)) (global (export "global_i64") i64 (i64.const 666))
    (global (export "global_f32") f32 (f32.const 666.6)) (global (export "global_f64") f64 (f64.const 666.6))
    (table (export "table") 10 20 funcref) (memory (export "memory") 1 2))"#;

/// The numbers of directives of a script that hold, by kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    modules: usize,
    results: usize,
    traps: usize,
    refusals: usize,
    skipped: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.modules += other.modules;
        self.results += other.results;
        self.traps += other.traps;
        self.refusals += other.refusals;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { modules, results, traps, refusals, skipped } = self;
        let assertions = results + traps + refusals;
        write!(
            f,
            "{assertions} assertions ({results} results, {traps} traps, {refusals} rejected modules), {modules} modules, {skipped} skipped"
        )
    }
}

/// The kind of a directive that holds.
enum Held {
    Nothing,
    Module,
    Result,
    Trap,
    Refusal,
}

/// The reason why a module is absent.
enum Absent {
    Refused(ImportError),
    /// The text is not a module; the message gives the place.
    NotParsed(String),
    NotInstantiated(InstantiateError),
    NotStarted(Outcome),
    /// The start function ended otherwise than a program can.
    NotRun(String),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Refused(error) => error.fmt(f),
            Absent::NotParsed(message) | Absent::NotRun(message) => f.write_str(message),
            Absent::NotInstantiated(error) => error.fmt(f),
            Absent::NotStarted(outcome) => outcome.fmt(f),
        }
    }
}

type Exports = BTreeMap<String, External>;

/// The state of a script.
pub(crate) struct Script {
    /// All modules so far, as one.
    modules: Arc<Module>,
    engine: &'static Engine,
    instance: Instance,
    /// The outcomes of all actions.
    ends: Vec<Outcome>,
    /// By the name under which other modules import a module.
    registered: BTreeMap<String, Exports>,
    /// By the name that directives use.
    named: BTreeMap<String, Exports>,
    last: Exports,
    definitions: BTreeMap<Option<String>, Vec<u8>>,
}

/// The results of a script.
struct Ran {
    tally: Tally,
    wrong: Vec<String>,
    /// The outcomes of all actions, with the lines of their directives.
    ends: Vec<(usize, Outcome)>,
    /// The digest of memories, tables and globals at the end.
    digest: u64,
}

impl Script {
    /// Runs a script in every engine. Returns the counts, and the directives that failed.
    pub(crate) fn run(text: &str, skipped: &[usize]) -> Result<(Tally, Vec<String>), String> {
        let [first, others @ ..] = &*ENGINES;
        let wanted = Script::run_by(first, text, skipped)?;
        let mut wrong = wanted.wrong.clone();
        for engine in others {
            let found = Script::run_by(engine, text, skipped)?;
            wrong.extend(
                found
                    .wrong
                    .iter()
                    .chain(&found.differences(&wanted, engine))
                    .map(|what| format!("{}: {what}", engine.name)),
            );
        }
        Ok((wanted.tally, wrong))
    }

    fn run_by(engine: &'static Engine, text: &str, skipped: &[usize]) -> Result<Ran, String> {
        let mut lexer = Lexer::new(text);
        lexer.allow_confusing_unicode(true);
        let buffer = ParseBuffer::new_with_lexer(lexer).map_err(|e| e.to_string())?;
        let wast: Wast<'_> = parser::parse(&buffer).map_err(|e| e.to_string())?;
        let mut script = Script::new(engine)?;
        let (mut tally, mut wrong, mut met) = (Tally::default(), Vec::new(), BTreeSet::new());
        let mut ends = Vec::new();
        for directive in wast.directives {
            let line = directive.span().linecol_in(text).0 + 1;
            let skips = skipped.contains(&line);
            match (script.directive(directive), skips) {
                (Ok(_), true) => wrong.push(format!("line {line} is skipped, and holds")),
                (Err(_), true) => {
                    met.insert(line);
                    tally.skipped += 1;
                }
                (Err(message), false) => wrong.push(format!("line {line}: {message}")),
                (Ok(Held::Nothing), false) => {}
                (Ok(Held::Module), false) => tally.modules += 1,
                (Ok(Held::Result), false) => tally.results += 1,
                (Ok(Held::Trap), false) => tally.traps += 1,
                (Ok(Held::Refusal), false) => tally.refusals += 1,
            }
            ends.extend(script.ends.drain(..).map(|end| (line, end)));
        }
        let unmet = skipped.iter().filter(|line| !met.contains(line));
        wrong.extend(unmet.map(|line| {
            format!("no directive that fails begins on line {line}, which is skipped")
        }));
        let machine = script.instance.machine();
        let digest = machine.computed_memory_digest();
        if machine.memory_digest() != digest {
            wrong.push("the digest that was kept is not that of the memories".to_owned());
        }
        wrong.extend(
            script
                .instance
                .interpreted(script.engine)
                .map(|func| format!("{func} has no native code")),
        );
        Ok(Ran { tally, wrong, ends, digest })
    }

    fn new(engine: &'static Engine) -> Result<Script, String> {
        let mut script = Script {
            modules: Arc::new(Module::new()),
            engine,
            instance: Instance::new(engine)?,
            ends: Vec::new(),
            registered: BTreeMap::new(),
            named: BTreeMap::new(),
            last: Exports::new(),
            definitions: BTreeMap::new(),
        };
        let buffer = ParseBuffer::new(SPECTEST).map_err(|e| e.to_string())?;
        let bytes = parser::parse::<Wat<'_>>(&buffer)
            .and_then(|mut wat| wat.encode())
            .map_err(|e| e.to_string())?;
        let module = import(&bytes, &ImportLimits::default()).map_err(|e| e.to_string())?;
        script.take_up(module).map_err(|e| e.to_string())?;
        script.registered.insert("spectest".to_owned(), script.last.clone());
        Ok(script)
    }

    fn directive(&mut self, directive: WastDirective<'_>) -> Result<Held, String> {
        match directive {
            WastDirective::Module(mut module) => {
                let name = module.name().map(|id| id.name().to_owned());
                let bytes = encode(&mut module).map_err(|e| e.to_string())?;
                self.instantiate(&bytes).map_err(|e| e.to_string())?;
                self.named.extend(name.map(|name| (name, self.last.clone())));
                Ok(Held::Module)
            }
            WastDirective::ModuleDefinition(mut module) => {
                let name = module.name().map(|id| id.name().to_owned());
                let bytes = encode(&mut module).map_err(|e| e.to_string())?;
                self.definitions.insert(name, bytes);
                Ok(Held::Module)
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let definition = module.map(|id| id.name().to_owned());
                let bytes = self
                    .definitions
                    .get(&definition)
                    .cloned()
                    .ok_or("there is no such definition")?;
                self.instantiate(&bytes).map_err(|e| e.to_string())?;
                self.named.extend(instance.map(|id| (id.name().to_owned(), self.last.clone())));
                Ok(Held::Module)
            }
            WastDirective::Register { name, module, .. } => {
                let exports = self.exports(module)?.clone();
                self.registered.insert(name.to_owned(), exports);
                Ok(Held::Nothing)
            }
            WastDirective::Invoke(invoke) => match self.invoke(&invoke)? {
                (Outcome::Returned(_), _) => Ok(Held::Nothing),
                (outcome, _) => Err(outcome.to_string()),
            },
            WastDirective::AssertReturn { exec, results, .. } => {
                let (bits, types) = self.results(exec)?;
                let all = results.len() == bits.len();
                for ((expected, bits), ty) in results.iter().zip(&bits).zip(&types) {
                    if !judge::fits(expected, *bits, *ty)? {
                        return Err(format!("{bits:#x} of {ty} where {expected:?} is expected"));
                    }
                }
                if all { Ok(Held::Result) } else { Err(format!("{} results", bits.len())) }
            }
            WastDirective::AssertTrap { exec, message, .. } => self.assert_trap(exec, message),
            WastDirective::AssertExhaustion { call, .. } => match self.invoke(&call)?.0 {
                Outcome::StackOverflow(_) => Ok(Held::Trap),
                outcome => Err(outcome.to_string()),
            },
            WastDirective::AssertMalformed { mut module, .. } => match encode(&mut module) {
                Ok(bytes) => assert_refused(&bytes),
                // A malformed text has no bytes; the parser of `wast` has rejected it.
                Err(_) => Ok(Held::Refusal),
            },
            WastDirective::AssertInvalid { mut module, .. } => {
                assert_refused(&encode(&mut module).map_err(|error| error.to_string())?)
            }
            WastDirective::AssertUnlinkable { mut module, message, .. } => {
                let bytes = module.encode().map_err(|e| e.to_string())?;
                match self.instantiate(&bytes) {
                    Err(Absent::Refused(error)) if error.kind() == ErrorKind::Unlinkable => {
                        match error.message().starts_with(message) {
                            true => Ok(Held::Refusal),
                            false => Err(format!("{error}, not: {message}")),
                        }
                    }
                    Err(other) => Err(other.to_string()),
                    Ok(()) => Err("it was linked".to_owned()),
                }
            }
            other => Err(format!("a directive of another kind: {other:?}")),
        }
    }

    fn assert_trap(&mut self, exec: WastExecute<'_>, message: &str) -> Result<Held, String> {
        let wanted = judge::trap(message)?;
        let found = match exec {
            WastExecute::Wat(mut module) => {
                let bytes = module.encode().map_err(|e| e.to_string())?;
                match self.instantiate(&bytes) {
                    Err(Absent::NotInstantiated(InstantiateError::DataOutOfBounds { .. })) => {
                        TrapKind::MemoryOutOfBounds
                    }
                    Err(Absent::NotInstantiated(InstantiateError::ElementsOutOfBounds {
                        ..
                    })) => TrapKind::TableOutOfBounds,
                    Err(Absent::NotStarted(outcome)) => {
                        outcome.trap().ok_or_else(|| outcome.to_string())?
                    }
                    Err(other) => return Err(other.to_string()),
                    Ok(()) => return Err("it was instantiated".to_owned()),
                }
            }
            WastExecute::Invoke(invoke) => {
                let outcome = self.invoke(&invoke)?.0;
                outcome.trap().ok_or_else(|| outcome.to_string())?
            }
            WastExecute::Get { .. } => return Err("a global does not trap".to_owned()),
        };
        if found == wanted { Ok(Held::Trap) } else { Err(format!("trap {found}, not: {message}")) }
    }

    /// The results of an action, with their types.
    fn results(&mut self, exec: WastExecute<'_>) -> Result<(Vec<u64>, Vec<Type>), String> {
        match exec {
            WastExecute::Invoke(invoke) => match self.invoke(&invoke)? {
                (Outcome::Returned(bits), types) => Ok((bits, types)),
                (outcome, _) => Err(outcome.to_string()),
            },
            WastExecute::Get { module, global, .. } => match self.exports(module)?.get(global) {
                Some(External::Global(global)) => {
                    let bits = self.instance.machine().globals()[global.as_u32() as usize];
                    Ok((vec![bits], vec![self.modules.globals[*global].ty]))
                }
                _ => Err(format!("no global {global} is exported")),
            },
            WastExecute::Wat(_) => Err("a module has no result".to_owned()),
        }
    }

    fn exports(&self, module: Option<Id<'_>>) -> Result<&Exports, String> {
        match module {
            Some(id) => {
                self.named.get(id.name()).ok_or_else(|| format!("no module is named {}", id.name()))
            }
            None => Ok(&self.last),
        }
    }

    fn invoke(&mut self, invoke: &WastInvoke<'_>) -> Result<(Outcome, Vec<Type>), String> {
        let Some(External::Func(func)) = self.exports(invoke.module)?.get(invoke.name).copied()
        else {
            return Err(format!("no function {} is exported", invoke.name));
        };
        let args = invoke.args.iter().map(judge::argument).collect::<Result<Vec<u64>, String>>()?;
        let types = self.modules.signature(func).results.to_vec();
        let outcome = self.instance.invoke(func, &args)?;
        self.ends.push(outcome.clone());
        Ok((outcome, types))
    }

    /// Links a module to the earlier modules, and extends the machine by it.
    fn instantiate(&mut self, bytes: &[u8]) -> Result<(), Absent> {
        // An imported memory or table has its current size.
        let (machine, mut modules) = (self.instance.machine(), Module::clone(&self.modules));
        for index in 0..modules.memories.len() {
            let memory = Memory::from_u32(index as u32);
            modules.memories[memory].min_pages = machine.memories().pages(memory);
        }
        for index in 0..modules.tables.len() {
            let table = Table::from_u32(index as u32);
            modules.tables[table].size = machine.table(table).len() as u32;
        }
        let registered = &self.registered;
        let provided = |module: &str, field: &str| registered.get(module)?.get(field).copied();
        let linker = Linker { modules: &modules, provided: &provided };
        let module =
            import_linked(bytes, &ImportLimits::default(), linker).map_err(Absent::Refused)?;
        self.take_up(module)
    }

    /// Extends the machine to all modules, including the last.
    fn take_up(&mut self, module: Module) -> Result<(), Absent> {
        for (func, body) in
            module.defined().skip_while(|(func, _)| self.modules.funcs.is_valid(*func))
        {
            let findings = ir::verifier::verify_function(&module, body);
            assert!(findings.is_empty(), "the importer made {func} ill-formed: {}", findings[0]);
        }
        let module = Arc::new(module);
        let extended = self.instance.extend(&module, self.engine);
        if extended.as_ref().is_err_and(|error| !error.is_of_segment()) {
            return extended.map_err(Absent::NotInstantiated);
        }
        self.last =
            module.exports.iter().map(|export| (export.name.clone(), export.item)).collect();
        let start = module.start;
        self.modules = module;
        extended.map_err(Absent::NotInstantiated)?;
        let Some(start) = start else { return Ok(()) };
        let outcome = self.instance.invoke(start, &[]).map_err(Absent::NotRun)?;
        self.ends.push(outcome.clone());
        if outcome.returned().is_some() { Ok(()) } else { Err(Absent::NotStarted(outcome)) }
    }
}

impl Ran {
    /// The differences between this engine's results and the expected results.
    fn differences(&self, wanted: &Ran, engine: &'static Engine) -> Vec<String> {
        let pairs = self.ends.iter().zip(&wanted.ends);
        let other = pairs.filter(|((_, found), (_, wanted))| !engine.may_end(found, wanted));
        let mut all: Vec<String> = other
            .map(|((line, found), (_, wanted))| format!("line {line}: {found}, expected {wanted}"))
            .collect();
        if self.ends.len() != wanted.ends.len() {
            all.push(format!(
                "{} actions ended, and wanted are {}",
                self.ends.len(),
                wanted.ends.len()
            ));
        }
        if self.tally != wanted.tally {
            all.push(format!("{}, expected {}", self.tally, wanted.tally));
        }
        if self.digest != wanted.digest {
            all.push("memories, tables or globals differ at the end".to_owned());
        }
        all
    }
}

/// The binary form of a module, or the place of an error in its text.
fn encode(module: &mut QuoteWat<'_>) -> Result<Vec<u8>, Absent> {
    let located = |error: wast::Error| Absent::NotParsed(error.to_string());
    match module.to_test().map_err(located)? {
        QuoteWatTest::Binary(bytes) => Ok(bytes),
        QuoteWatTest::Text(text) => {
            let not_utf8 = |e: std::str::Utf8Error| {
                Absent::NotParsed(format!("not UTF-8 from byte {}", e.valid_up_to()))
            };
            let text = std::str::from_utf8(&text).map_err(not_utf8)?;
            let buffer = ParseBuffer::new(text).map_err(located)?;
            parser::parse::<Wat<'_>>(&buffer).and_then(|mut wat| wat.encode()).map_err(located)
        }
    }
}

/// The importer must reject an invalid module as invalid, with a place.
fn assert_refused(bytes: &[u8]) -> Result<Held, String> {
    let Err(error) = import(bytes, &ImportLimits::default()) else {
        return Err("it was imported".to_owned());
    };
    match (error.kind(), error.location()) {
        (ErrorKind::Invalid, Location::Offset(offset)) if offset <= bytes.len() as u64 => {
            Ok(Held::Refusal)
        }
        _ => Err(format!("rejected for another reason: {error}")),
    }
}
