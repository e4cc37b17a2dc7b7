//! `run` lines: calls before and after optimization, with a comparison of everything observable.

use crate::both::{self, Share, Twins};
use crate::file::{Ending, RunLine};
use interp::{Effect, Limits, Options, Outcome};
use ir::entity::Func;
use ir::text::parse_module;
use ir::{Module, TrapKind, Type};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use verify::generate::CountingHost;

/// The number of native runs compared with the interpreter, over all files.
pub(crate) static NATIVE_RUNS: AtomicUsize = AtomicUsize::new(0);

/// Enough for every file, so that running out of fuel fails a test.
const FUEL: u64 = 1 << 22;

/// The call of a `run` line, with names and literals resolved.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) func: Func,
    pub(crate) args: Vec<u64>,
    ending: Expected,
    shown: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Expected {
    Returns(Vec<u64>),
    /// A trap of this kind, with the bits of its operand.
    Traps(TrapKind, Option<u64>),
    Leaves(u32, Vec<u64>),
    /// An assumption fails, for this reason.
    Fails(u32),
}

/// The observable behavior of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    ending: Expected,
    effects: Vec<(Effect, u64)>,
    memory: u64,
    globals: Vec<u64>,
}

/// Resolves a `run` line against a module.
pub(crate) fn resolve(module: &Module, run: &RunLine) -> Result<Call, String> {
    let at = |message: String| format!("line {}: {message}", run.line);
    let func = module
        .lookup(&run.function)
        .ok_or_else(|| at(format!("there is no function @{}", run.function)))?;
    let signature = module.signature(func);
    let args = bits(&run.args, &signature.params).map_err(at)?;
    let ending = match &run.ending {
        Ending::Returns(results) => {
            Expected::Returns(bits(results, &signature.results).map_err(at)?)
        }
        Ending::Traps(kind, operand) => Expected::Traps(
            TrapKind::from_name(kind).ok_or_else(|| at(format!("there is no trap `{kind}`")))?,
            *operand,
        ),
        Ending::Leaves(point, values) => Expected::Leaves(*point, values.clone()),
        Ending::Fails(reason) => Expected::Fails(*reason),
    };
    let shown = format!("line {}: @{}({})", run.line, run.function, run.args.join(", "));
    Ok(Call { func, args, ending, shown })
}

fn bits(literals: &[String], types: &[Type]) -> Result<Vec<u64>, String> {
    if literals.len() != types.len() {
        return Err(format!("{} values where the signature has {}", literals.len(), types.len()));
    }
    literals.iter().zip(types).map(|(text, ty)| literal(text, *ty)).collect()
}

/// The bits of a literal, as the parser of the text form reads them.
fn literal(text: &str, ty: Type) -> Result<u64, String> {
    let module = format!("func @x() -> {ty} {{\nb:\n  %v = const.{ty} {text}\n  return %v\n}}\n");
    let module = parse_module(&module).map_err(|errors| errors[0].message().to_owned())?;
    let (_, function) = module.defined().next().expect("the one function");
    let value = function.inst(function.terminator(function.entry())).args[0];
    Ok(function.constant(value).expect("the constant"))
}

/// Runs a call in the interpreter, with every check on, and natively in every setting. Returns the
/// observable behavior, and counts the native runs.
fn observe(module: &Arc<Module>, call: &Call) -> Result<Seen, String> {
    let limits = Limits { fuel: FUEL, ..Limits::default() };
    let mut seen = None;
    for setting in both::settings() {
        for share in Share::EVERY {
            let mut twins = Twins::new(module, limits, Options::checked(), setting, share)?;
            seen = Some(observe_both(module, call, &mut twins)?);
            NATIVE_RUNS.fetch_add(1, Ordering::Relaxed);
        }
    }
    seen.ok_or_else(|| "native code has no settings".to_owned())
}

fn observe_both(module: &Module, call: &Call, twins: &mut Twins<'_>) -> Result<Seen, String> {
    let [mut host, mut native] = [CountingHost::default(), CountingHost::default()];
    if let Some(start) = module.start {
        let outcome = twins.call(start, &[], [&mut host, &mut native])?;
        outcome
            .returned()
            .ok_or_else(|| format!("the start function does not return: {outcome}"))?;
    }
    let outcome = twins.call(call.func, &call.args, [&mut host, &mut native])?;
    let ending = match outcome {
        Outcome::Returned(results) => Expected::Returns(results),
        Outcome::Trapped { kind, operand, .. } => Expected::Traps(kind, operand),
        Outcome::Left { point, values, .. } => Expected::Leaves(point.as_u32(), values),
        Outcome::Failed { reason, .. } => Expected::Fails(reason),
        other => return Err(other.to_string()),
    };
    twins.compare()?;
    let machine = twins.machine();
    let (effects, globals) = (machine.trace().effects().to_vec(), machine.globals().to_vec());
    Ok(Seen { ending, effects, memory: machine.memory_digest(), globals })
}

/// Runs a call on the module before and the module after. Both runs must end as the line says, with
/// the same observable behavior.
pub(crate) fn check(
    before: &Arc<Module>,
    after: Option<&Arc<Module>>,
    call: &Call,
    failures: &mut Vec<String>,
) {
    let mut seen = Vec::new();
    for (which, module) in [("before", Some(before)), ("after", after)] {
        let Some(module) = module else { continue };
        match observe(module, call) {
            Ok(run) => {
                if run.ending != call.ending {
                    let (wanted, found) = (&call.ending, &run.ending);
                    failures.push(format!(
                        "{}: expected {wanted:x?}, {which} optimization {found:x?}",
                        call.shown
                    ));
                }
                seen.push(run);
            }
            Err(message) => {
                failures.push(format!("{}, {which} optimization: {message}", call.shown))
            }
        }
    }
    if let [before, after] = seen.as_slice()
        && before != after
    {
        failures.push(format!(
            "{}: seen before optimization {before:x?}\nand after {after:x?}",
            call.shown
        ));
    }
}
