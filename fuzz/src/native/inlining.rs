//! Native code that leaves inlined code: after each exit, the run continues in several activations,
//! in the interpreter or in one piece of native code. The run must end like the interpreter's run
//! of the bases. A trap behind an exit must be at the same place.
//!
//! Every second program runs once more under a policy that counts, and compiles hot functions and
//! loops of the interpreter at once. After an exit into several activations of the interpreter, the
//! run then continues in native code in one activation, while the others wait.

use super::bases::BaseTwins;
use super::clock::Clock;
use super::counting::CountingPolicy;
use super::plan::config;
use super::trial::Trial;
use crate::case::Case;
use crate::figures::{Figures, InlinedFigures, NativeFigures};
use crate::inlining::versions;
use crate::oracle::FuzzFinding;
use ir::{Func, Inst, Opcode, Point};
use jit::{Action, Condition, PointSpec, TransitionKind, Version, VersionSpec, Vm};
use osier::inlining::Inlined;
use std::collections::BTreeMap;
use std::sync::Arc;
use verify::prng::Prng;

/// The most points in a version. Each costs a continuation.
const POINTS: usize = 6;
/// Passes over the inputs, with other points armed in each.
const ROUNDS: usize = 6;
/// The most continuations of a program; further exits go to the interpreter.
const CONTINUATIONS: usize = 24;
/// The largest threshold of a policy that counts. Loops of generated programs go around a few
/// times only.
const MOST_VISITS: usize = 4;

/// The event that takes a run from the interpreter back to native code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Return {
    /// The next call.
    Calls,
    /// A policy that counts visits, too.
    Counts,
}

impl Return {
    fn tag(self) -> u64 {
        match self {
            Return::Calls => 0x696e_6c69,
            Return::Counts => 0x636f_756e,
        }
    }

    /// The share of exits that continue in native code, and the share of other functions that are
    /// compiled, in percent. A policy that counts needs work in the interpreter.
    fn native_shares(self) -> [u32; 2] {
        match self {
            Return::Calls => [60, 70],
            Return::Counts => [15, 25],
        }
    }
}

/// A compiled version with inlined code, and its points.
struct LeavingVersion {
    func: Func,
    version: Arc<Version>,
    points: Vec<Inst>,
    /// By point: the activations that its entry leads to.
    frames: BTreeMap<Inst, usize>,
}

/// Judges exits out of the versions with inlined code of a program.
///
/// # Errors
/// A difference between native code and the interpreter.
pub(super) fn judge(
    case: &Case,
    clock: &Clock,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    // These counts are the interpreter's.
    let made = versions(case, &mut InlinedFigures::default())?;
    if made.is_empty() {
        return Ok(());
    }
    for by in [Return::Calls, Return::Counts] {
        if by == Return::Counts && !Prng::new(case.seed).fork(!by.tag()).chance(50) {
            continue;
        }
        let all = Trial::new(case, [0, case.steps.len()], clock);
        let mut trial = Trial { tag: by.tag(), ..all };
        let ended = run(&mut trial, &made, by);
        trial.finish(ended, figures)?;
    }
    Ok(())
}

fn run(trial: &mut Trial<'_>, made: &[(Func, Inlined)], by: Return) -> Result<(), String> {
    let case = trial.case;
    let mut prng = Prng::new(case.seed).fork(trial.tag);
    let module = Arc::new(case.module.clone());
    let mut vm = trial.instance(&module, config(case.options.nans, &mut prng))?;
    let begun = (trial.clock)();
    let leaving = compiled(trial, &mut vm, made, by, &mut prng)?;
    if by == Return::Counts {
        let threshold = 1 + prng.index(MOST_VISITS) as u32;
        vm.set_tiering(Box::new(CountingPolicy::new(threshold)));
    }
    trial.figures.compile_time += (trial.clock)().saturating_sub(begun);
    let mut arm = |_: &mut Vm, _: Func, _: usize| {
        for one in &leaving {
            for number in 0..one.points.len() {
                match prng.chance(35) {
                    true => one.version.arm(number),
                    false => one.version.disarm(number),
                }
            }
        }
        Ok(())
    };
    let twins = BaseTwins::new(trial, &mut vm, "native code with exits")?;
    let ended = twins.leaving_inlined_code().runs(trial, ROUNDS, &mut arm);
    count(&mut vm, &leaving, &mut trial.figures);
    ended
}

/// Compiles the versions with inlined code, and most other functions.
fn compiled(
    trial: &mut Trial<'_>,
    vm: &mut Vm,
    made: &[(Func, Inlined)],
    by: Return,
    prng: &mut Prng,
) -> Result<Vec<LeavingVersion>, String> {
    let (module, figures) = (&Arc::clone(vm.module()), &mut trial.figures);
    let [exits, others] = by.native_shares();
    let mut leaving: Vec<LeavingVersion> = Vec::new();
    let mut continuations = 0;
    for (func, one) in made {
        let optimized = one.tree.function(one.optimized);
        let mut points: Vec<Point> = one.down.entries().map(|(point, _)| point).collect();
        let is_assumption = |point: &Point| optimized.inst(point.inst()).opcode == Opcode::Assume;
        let most = POINTS + points.iter().filter(|point| is_assumption(point)).count();
        while points.len() > most {
            // Prefer entries into several activations, and keep all exits of assumptions.
            let at = prng.index(points.len());
            let is_plain = one.down.entry(points[at]).is_some_and(|e| e.inner.is_empty());
            if !is_assumption(&points[at]) && (is_plain || prng.chance(20)) {
                points.swap_remove(at);
            }
        }
        points.sort_unstable();
        let mapping = Arc::new(one.down.clone());
        let (mut specs, mut actions) = (Vec::new(), Vec::new());
        for point in &points {
            let entry = mapping.checked_entry(*point).expect("it was listed");
            let values = entry.entry().requires.clone();
            let condition = if is_assumption(point) { Condition::Failing } else { Condition::Flag };
            specs.push(PointSpec { at: *point, condition, values });
            let goes_on = continuations < CONTINUATIONS && prng.chance(exits);
            actions.push(if goes_on {
                continuations += 1;
                let landings = entry.landings(*func);
                let bases: Option<Vec<&ir::Function>> =
                    landings.map(|landing| module.body(landing.func)).collect();
                let bases = bases.expect("frames are in bases");
                let made = vm.engine().lone_continuation(module, *func, optimized, entry, &bases);
                Action::Continue(made.map_err(|error| error.to_string())?)
            } else {
                Action::Interpret(Arc::clone(&mapping))
            });
        }
        let sites = Arc::new(one.copies.sites());
        let spec = VersionSpec::from(&specs).with_sites(sites);
        let version = vm.engine().version(module, *func, optimized, spec);
        let version = version.map_err(|error| error.to_string())?;
        vm.install(&version, actions).map_err(|error| error.to_string())?;
        figures.compiled_functions += 1;
        figures.points += points.len() as u64;
        let frames = points.iter().map(|point| {
            (point.inst(), mapping.entry(*point).map_or(0, |entry| entry.activations()))
        });
        let frames = frames.collect();
        let points = points.iter().map(|point| point.inst()).collect();
        leaving.push(LeavingVersion { func: *func, version, points, frames });
    }
    for (func, body) in module.defined() {
        if leaving.iter().all(|one| one.func != func) && prng.chance(others) {
            let version = vm.engine().version(module, func, body, &[]);
            let version = version.map_err(|error| error.to_string())?;
            vm.install(&version, Vec::new()).map_err(|error| error.to_string())?;
            figures.compiled_functions += 1;
        }
    }
    Ok(leaving)
}

/// Counts the exits, by the activations that they led to.
fn count(vm: &mut Vm, leaving: &[LeavingVersion], figures: &mut NativeFigures) {
    let mut fired = 0;
    for made in vm.transitions() {
        // Only this judge of inlined code has a policy that takes runs up.
        if made.kind == TransitionKind::Up {
            figures.resumed_inlined += made.count;
        }
        let of = leaving.iter().find(|one| one.func == made.func && one.version.key() == made.from);
        let Some(frames) = of.and_then(|one| one.frames.get(&made.at)) else { continue };
        fired += u64::from(made.count > 0);
        figures.left_inlined += made.count;
        figures.framed += if *frames > 1 { made.count } else { 0 };
        let optimized = of.map(|one| one.version.function());
        let is_exit = optimized.is_some_and(|f| f.inst(made.at).opcode == Opcode::Assume);
        figures.failed_inlined += if is_exit { made.count } else { 0 };
    }
    figures.points_fired += fired;
}
