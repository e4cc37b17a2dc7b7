//! Runs one `.oir` test file.
//!
//! A file's directives select some checks. The runner always checks the following. Parsing and
//! printing the text reach a fixpoint. The module and every version of it are well-formed. Every
//! log replays. Every `run` line holds before and after optimization, with equal effects, memories
//! and globals.

pub(crate) mod calls;
mod mapping;
mod module;
mod names;
mod optimize;
pub(crate) mod strict;
mod transitions;

use crate::file::{self, BlockKind, TestFile};
use calls::Call;
use ir::Module;
use ir::edit::Pass;
use ir::text::print_module;
use optimize::Optimized;
use std::sync::Arc;

/// The result of a file.
#[derive(Debug)]
pub(crate) struct Report {
    /// The reasons why it fails; empty if it passes.
    pub(crate) failures: Vec<String>,
    /// The file with rewritten blocks; `None` without a request to write them, and for a file
    /// without blocks.
    pub(crate) blessed: Option<String>,
}

/// Runs a file. With `bless`, the runner writes blocks instead of comparing them.
pub(crate) fn run(text: &str, bless: bool) -> Report {
    let file = match file::read(text, bless) {
        Ok(file) => file,
        Err(faults) => {
            return Report {
                failures: faults.iter().map(ToString::to_string).collect(),
                blessed: None,
            };
        }
    };
    let mut failures = Vec::new();
    let blessed = check(&file, bless, &mut failures);
    match &file.xfail {
        Some(reason) if failures.is_empty() => {
            failures = vec![format!("it passes, and is marked as failing because of: {reason}")];
        }
        Some(_) => failures.clear(),
        None => {}
    }
    Report { failures, blessed }
}

fn check(file: &TestFile, bless: bool, failures: &mut Vec<String>) -> Option<String> {
    let module = match module::check(&file.body, &file.errors) {
        Ok(Some(module)) => module,
        Ok(None) => return None,
        Err(found) => {
            failures.extend(found);
            return None;
        }
    };
    module::check_round_trip(&module, "the module", failures);
    let optimized = optimized(file, &module, failures)?;
    check_forbidden(file, &optimized, failures);
    let calls = check_calls(file, &module, &optimized, failures);
    if let Some(directions) = file.osr {
        let unproved = file.unproved.as_deref().unwrap_or_default();
        transitions::check(&module, &optimized, &calls, directions, unproved, failures);
    }
    check_blocks(file, &module, &optimized, bless, failures)
}

/// The module after the pipeline; without a pipeline, the module itself.
fn optimized(file: &TestFile, module: &Module, failures: &mut Vec<String>) -> Option<Optimized> {
    let passes = match passes(file.pipeline.as_deref().unwrap_or("")) {
        Ok(passes) => passes,
        Err(message) => {
            failures.push(message);
            return None;
        }
    };
    let optimized = optimize::optimize(module, &passes, file.fuel, failures);
    if !passes.is_empty() {
        module::check_round_trip(&optimized.module, "the optimized module", failures);
    }
    Some(optimized)
}

fn passes(names: &str) -> Result<Vec<&'static dyn Pass>, String> {
    let pipeline = passes::registry::parse(names).map_err(|e| e.to_string())?;
    Ok(pipeline.passes().iter().map(|pass| *pass as &dyn Pass).collect())
}

/// Runs every `run` line. Returns the calls whose names and literals could be resolved.
fn check_calls(
    file: &TestFile,
    module: &Module,
    optimized: &Optimized,
    failures: &mut Vec<String>,
) -> Vec<Call> {
    let before = Arc::new(module.clone());
    let after = file.pipeline.as_ref().map(|_| Arc::new(optimized.module.clone()));
    let mut calls = Vec::new();
    for run in &file.runs {
        match calls::resolve(module, run) {
            Ok(call) => {
                calls::check(&before, after.as_ref(), &call, failures);
                calls.push(call);
            }
            Err(message) => failures.push(message),
        }
    }
    calls
}

fn check_forbidden(file: &TestFile, optimized: &Optimized, failures: &mut Vec<String>) {
    for action in optimized.logs.values().flat_map(|log| log.actions()) {
        if file.forbid.iter().any(|name| name == action.kind().name()) {
            failures.push(format!("forbidden: {action}"));
        }
    }
}

/// Compares every block with the actual output. With `bless`, returns the file with new blocks
/// instead.
fn check_blocks(
    file: &TestFile,
    module: &Module,
    optimized: &Optimized,
    bless: bool,
    failures: &mut Vec<String>,
) -> Option<String> {
    let mut blessed = format!("{}\n", file.body.trim_end());
    for kind in BlockKind::ALL.into_iter().filter(|kind| file.expects.contains(kind)) {
        let found = match kind {
            BlockKind::Text => print_module(&optimized.module),
            BlockKind::Actions => optimize::actions_text(module, optimized),
            BlockKind::Mapping => mapping::text(module, optimized),
        };
        let block = file.blocks.iter().find(|block| block.kind == kind);
        if let (false, Some(block)) = (bless, block)
            && let Some(difference) = module::first_difference(&block.text, &found)
        {
            failures.push(format!(
                "block `{}` of line {}: {difference}\nfound:\n{found}",
                kind.name(),
                block.line
            ));
        }
        blessed.push_str(&format!(";= {}\n{found}", kind.name()));
    }
    (bless && !file.expects.is_empty()).then_some(blessed)
}
