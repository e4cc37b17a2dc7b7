//! Writes a case as a test in the format of `tests/oir/`.

use super::case::{Case, World};
use super::oracle::FuzzFinding;
use interp::{Machine, NoObserver, Outcome};
use ir::text::{print_literal, print_module};
use ir::{Module, Type};
use std::fmt::Write;

/// The text of a test file for `tests/oir/`, which fails there until the bug is fixed. `origin` is
/// the command that reproduces the finding.
///
/// The runner of those tests judges mappings at every level, fires every transition of its calls,
/// and continues from each. It neither compares more than two versions nor supports stress
/// switches. A failure that needs these is only described in the text, and so is one of a WASI
/// program with imports, which that runner has no host for.
pub fn as_test(case: &Case, finding: &FuzzFinding, origin: &str) -> String {
    let (module, passes) = versions_apart(case, finding);
    let mut out = String::new();
    let first = finding.message.lines().next().unwrap_or_default().trim();
    let mut line = |text: String| out.push_str(&(text + "\n"));
    line(format!(";; The {} oracle found: {first}", finding.oracle));
    line(format!(";; Found by: {origin}"));
    if !passes.is_empty() {
        line(format!(";@ pipeline: {passes}"));
    }
    let mut runs = 0;
    let is_hosted = matches!(case.world, World::Counting(_)) || !has_imports(&module);
    for args in case.arguments.iter().filter(|_| is_hosted) {
        if let Some(run) = run_line(case, &module, args) {
            line(format!(";@ run: {run}"));
            runs += 1;
        }
    }
    if runs > 0 && !passes.is_empty() {
        line(";@ osr: every-point both".to_owned());
    }
    write!(out, "{}", print_module(&module)).expect("writing to a string");
    out
}

fn has_imports(module: &Module) -> bool {
    module.funcs.values().any(|func| func.import.is_some())
}

/// The program in the earlier version of a finding, and the passes from there to the later version.
fn versions_apart(case: &Case, finding: &FuzzFinding) -> (Module, String) {
    let [first, last] = finding.versions;
    let last = last.clamp(first, case.steps.len());
    let mut module = case.module.clone();
    for pass in case.steps[..first.min(last)].iter().flatten() {
        let funcs: Vec<_> = module.defined().map(|(func, _)| func).collect();
        for func in funcs {
            let body = module.body(func).expect("a function that is defined");
            let applied = ir::edit::apply(body, *pass, &mut ir::edit::Fuel::UNLIMITED.clone());
            module.define(func, applied.into_parts().0);
        }
    }
    let passes: Vec<&str> =
        case.steps[first.min(last)..last].iter().flatten().map(|p| p.name()).collect();
    (module, passes.join(","))
}

/// A call and its outcome. `None` if a limit ends the call, or the test format cannot express its
/// outcome.
fn run_line(case: &Case, module: &Module, args: &[u64]) -> Option<String> {
    let limits = interp::Limits { fuel: case.fuel, ..Default::default() };
    let mut machine = Machine::new(module, limits).ok()?;
    let outcome = machine.invoke(case.entry, args, &mut case.world.clone(), &mut NoObserver);
    let signature = module.signature(case.entry);
    let call = format!("@{}({})", module.funcs[case.entry].name, literals(&signature.params, args));
    match outcome {
        Outcome::Returned(values) => {
            let results = literals(&signature.results, &values);
            Some(if values.len() == 1 {
                format!("{call} == {results}")
            } else {
                format!("{call} == ({results})")
            })
        }
        Outcome::Trapped { kind, operand: None, .. } => Some(format!("{call} traps {kind}")),
        Outcome::Trapped { kind, operand: Some(bits), .. } => {
            Some(format!("{call} traps {kind} with {bits}"))
        }
        _ => None,
    }
}

fn literals(types: &[Type], bits: &[u64]) -> String {
    types
        .iter()
        .zip(bits)
        .map(|(ty, bits)| print_literal(*ty, *bits))
        .collect::<Vec<_>>()
        .join(", ")
}
