//! Runs pipelines over the functions of a file, with verification and replay after every step.

use super::names::Names;
use ir::edit::{Action, ActionLog, Fuel, Pass, Replayer, apply, check_replay};
use ir::verifier::verify_function;
use ir::{Func, Function, Module};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A module after a pipeline, with the log of every function.
pub(crate) struct Optimized {
    pub(crate) module: Module,
    pub(crate) logs: BTreeMap<Func, ActionLog>,
}

/// Runs passes in order over every function. All functions share the fuel, in declaration order.
pub(crate) fn optimize(
    module: &Module,
    passes: &[&'static dyn Pass],
    fuel: Option<u64>,
    failures: &mut Vec<String>,
) -> Optimized {
    let mut fuel = fuel.map_or(Fuel::UNLIMITED, Fuel::rewrites);
    let mut optimized = Optimized { module: module.clone(), logs: BTreeMap::new() };
    for (func, base) in module.defined() {
        let mut version = base.clone();
        let mut log = ActionLog::empty_for(base);
        for pass in passes {
            let (function, actions) = apply(&version, *pass, &mut fuel).into_parts();
            let place = format!("{} on @{}", pass.name(), base.name());
            if let Err(error) = check_replay(&version, &actions, &function) {
                failures.push(format!("{place}: {error}"));
            }
            if actions.is_empty() && version.same_as(&function).is_err() {
                failures.push(format!("{place}: changed without a log"));
            }
            failures
                .extend(verify_function(module, &function).iter().map(|f| format!("{place}: {f}")));
            log.extend(actions);
            version = function;
        }
        if let Err(error) = check_replay(base, &log, &version) {
            failures.push(format!("the whole log of @{}: {error}", base.name()));
        }
        optimized.module.define(func, version);
        optimized.logs.insert(func, log);
    }
    optimized
}

/// The logs of a module as a block shows them. Entities have their names in the version to which
/// the action applies; instructions without a result have block and position as their names.
pub(crate) fn actions_text(before: &Module, optimized: &Optimized) -> String {
    let mut out = String::new();
    for (func, log) in optimized.logs.iter().filter(|(_, log)| !log.is_empty()) {
        let base = before.body(*func).expect("a body");
        writeln!(out, "@{}", base.name()).expect("writing to a string");
        let mut replayer = Replayer::new(base, log);
        while let Some(action) = replayer.peek() {
            let standing = replayer.function().clone();
            replayer.step().expect("the log was replayed before");
            let line = action_line(before, &standing, replayer.function(), action);
            writeln!(out, "  {line}").expect("writing to a string");
        }
    }
    out
}

/// One action, with ids replaced by names: names before the action, and for new entities, names
/// after the action.
fn action_line(module: &Module, standing: &Function, after: &Function, action: &Action) -> String {
    let (standing, after) = (Names::new(module, standing), Names::new(module, after));
    let (shown, mut line) = (action.to_string(), String::new());
    let mut word = String::new();
    for c in shown.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        let name = standing.name(&word).or_else(|| after.name(&word));
        line.push_str(name.as_deref().unwrap_or(&word));
        word.clear();
        line.push(c);
    }
    line.truncate(line.trim_end().len());
    line
}
