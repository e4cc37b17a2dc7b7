//! `osr` directives: the checker judges every entry, and the state oracle fires every transition in
//! the calls of `run` lines, at every level.

use super::calls::Call;
use super::names::Names;
use super::optimize::Optimized;
use crate::file::Directions;
use ir::{Function, Inst, Module};
use osier::driver::{Derived, NoObserver, prove};
use osr::{Level, Synthesis, VersionPair, synthesize};
use std::collections::BTreeSet;
use verify::generate::CountingHost;
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions, Report};

/// The version pair of a changed function, with its common anchors.
struct Changed<'v> {
    func: ir::Func,
    pair: VersionPair<'v>,
    anchors: BTreeSet<Inst>,
}

/// Fires the transitions of every function that a pass changed. At least one must fire in each
/// requested direction, since otherwise the test would check nothing.
pub(crate) fn check(
    before: &Module,
    optimized: &Optimized,
    calls: &[Call],
    directions: Directions,
    unproved: &[String],
    failures: &mut Vec<String>,
) {
    let logs = optimized.logs.iter().filter(|(_, log)| !log.is_empty());
    let changed: Vec<Changed<'_>> = logs
        .map(|(func, log)| {
            let base = before.body(*func).expect("a body");
            let version = optimized.module.body(*func).expect("a body");
            let pair = VersionPair::new(base, version, log).expect("the log was replayed before");
            let anchors = pair.bounding_anchors().collect();
            Changed { func: *func, pair, anchors }
        })
        .collect();
    if changed.is_empty() {
        failures.push("osr: no pass changed anything, so there are no two versions".to_owned());
        return;
    }
    let mut failed: BTreeSet<&str> = BTreeSet::new();
    for (func, log) in optimized.logs.iter().filter(|(_, log)| !log.is_empty()) {
        let version = optimized.module.body(*func).expect("a body");
        let derived = Derived { function: version.clone(), log: log.clone() };
        for (check, message) in rejected(before, before.body(*func).expect("a body"), &derived) {
            failures.extend((!unproved.iter().any(|c| c == check)).then_some(message));
            failed.insert(check);
        }
    }
    let stale = unproved.iter().filter(|check| !failed.contains(check.as_str()));
    failures.extend(stale.map(|check| format!("unproved: every entry passes the check `{check}`")));
    for level in Level::ALL {
        match fire(before, optimized, &changed, calls, level) {
            Ok(report) => judge(&report, level, directions, failures),
            Err(message) => failures.push(format!("osr at {}: {message}", level.name())),
        }
    }
}

/// The entries that the checker does not accept: the check that fails, and a message.
fn rejected(module: &Module, base: &Function, derived: &Derived) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (level, made) in prove(module, base, derived, &Level::ALL, &mut NoObserver).levels {
        let level = level.name();
        for (way, source, mapping) in
            [("forward", base, &made.before), ("backward", &derived.function, &made.after)]
        {
            let names = Names::new(module, source);
            found.extend(mapping.missing.rejected().map(|(point, verdict)| {
                let check = verdict.finding().expect("a rejected entry fails a check").check.name();
                let from = names.point(point);
                (
                    check,
                    format!(
                        "osr at {level}: the entry {way} from {from} of @{}: {verdict}",
                        base.name()
                    ),
                )
            }));
        }
    }
    found
}

fn fire(
    before: &Module,
    optimized: &Optimized,
    changed: &[Changed<'_>],
    calls: &[Call],
    level: Level,
) -> Result<Report, String> {
    let mappings: Vec<Synthesis> = changed.iter().map(|c| synthesize(&c.pair, level)).collect();
    let pairs: Vec<FunctionPair<'_>> = changed
        .iter()
        .zip(&mappings)
        .map(|(c, made)| FunctionPair {
            func: c.func,
            before: before.body(c.func).expect("a body"),
            after: optimized.module.body(c.func).expect("a body"),
            anchors: &c.anchors,
            forward: &made.forward.mapping,
            backward: &made.backward.mapping,
            copies: None,
        })
        .collect();
    let options = OracleOptions { going_on: u32::MAX, ..OracleOptions::default() };
    let mut oracle = Oracle::new(before, &pairs, options).map_err(|e| e.to_string())?;
    for call in calls {
        oracle.run(call.func, &call.args, &CountingHost::default());
    }
    Ok(oracle.report().clone())
}

fn judge(report: &Report, level: Level, directions: Directions, failures: &mut Vec<String>) {
    let name = level.name();
    failures.extend(report.divergences.iter().map(|d| format!("osr at {name}: {d}")));
    if report.divergence_count > 0 && report.divergences.is_empty() {
        failures.push(format!("osr at {name}: {} divergences", report.divergence_count));
    }
    if report.exhausted > 0 {
        failures.push(format!("osr at {name}: {} runs ended by a limit", report.exhausted));
    }
    let (forward, backward) = match directions {
        Directions::Forward => (true, false),
        Directions::Backward => (false, true),
        Directions::Both => (true, true),
    };
    // Below `avail` a small function may have no entry at all.
    for (asked, counts, way) in
        [(forward, report.forward, "forward"), (backward, report.backward, "backward")]
    {
        if asked && level == Level::Avail && counts.transitions == 0 {
            failures.push(format!("osr at {name}: no transition fired {way}"));
        }
    }
}
