//! Modules of test files: parsing, verification, and comparison with the expected errors.

use crate::file::ErrorLine;
use ir::Module;
use ir::text::{parse_module, parse_module_with_lines, print_module};
use ir::verifier::{Entity, verify_module};

/// An error found. Without a line, it concerns a declaration as a whole.
#[derive(Debug)]
struct Found {
    line: Option<usize>,
    rule: String,
    message: String,
}

/// The rule name of the parser's errors.
const PARSE: &str = "PARSE";

/// Reads and verifies a module.
fn load(text: &str) -> Result<Module, Vec<Found>> {
    let (module, lines) = parse_module_with_lines(text).map_err(|errors| {
        let found = errors.iter().map(|error| Found {
            line: Some(error.line() as usize),
            rule: PARSE.to_owned(),
            message: error.message().to_owned(),
        });
        found.collect::<Vec<_>>()
    })?;
    let findings = verify_module(&module);
    if findings.is_empty() {
        return Ok(module);
    }
    let found = findings.iter().map(|finding| {
        let func = finding.function().and_then(|name| module.func_named(name));
        let line = match (func, finding.entity()) {
            (Some(func), Entity::Inst(inst)) => lines.line(func, inst).map(|line| line as usize),
            (Some(_), _) => finding.function().and_then(|name| line_of_function(text, name)),
            (None, _) => None,
        };
        Found { line, rule: finding.rule().to_string(), message: finding.message().to_owned() }
    });
    Err(found.collect())
}

/// The line where a function begins, for findings about a block, a parameter or a whole body.
fn line_of_function(text: &str, name: &str) -> Option<usize> {
    text.lines().position(|line| line.starts_with(&format!("func @{name}("))).map(|at| at + 1)
}

/// Reads the module of a file. If the file expects errors, exactly those must be found.
pub(crate) fn check(text: &str, expected: &[ErrorLine]) -> Result<Option<Module>, Vec<String>> {
    match load(text) {
        Ok(module) if expected.is_empty() => Ok(Some(module)),
        Ok(_) => {
            Err(expected.iter().map(|e| format!("line {}: no {} here", e.line, e.rule)).collect())
        }
        Err(found) => match unmatched(found, expected) {
            failures if failures.is_empty() => Ok(None),
            failures => Err(failures),
        },
    }
}

/// Pairs every error found with an expected one. Errors left over on either side fail.
fn unmatched(found: Vec<Found>, expected: &[ErrorLine]) -> Vec<String> {
    let mut open: Vec<&ErrorLine> = expected.iter().collect();
    let mut failures = Vec::new();
    for error in found {
        let fits = |e: &&ErrorLine| {
            e.rule == error.rule
                && error.message.contains(&e.substring)
                && error.line.is_none_or(|l| l == e.line)
        };
        match open.iter().position(fits) {
            Some(at) => _ = open.remove(at),
            None => {
                let place =
                    error.line.map_or("in the module".to_owned(), |line| format!("line {line}"));
                failures.push(format!("{place}: {}: {}", error.rule, error.message));
            }
        }
    }
    failures.extend(
        open.iter().map(|e| format!("line {}: no {} with `{}` here", e.line, e.rule, e.substring)),
    );
    failures
}

/// Checks that printing and parsing again lose nothing.
pub(crate) fn check_round_trip(module: &Module, which: &str, failures: &mut Vec<String>) {
    let first = print_module(module);
    match parse_module(&first) {
        Ok(again) => {
            let second = print_module(&again);
            if let Some(difference) = first_difference(&first, &second) {
                failures.push(format!("{which} prints differently after parsing: {difference}"));
            }
        }
        Err(errors) => {
            failures
                .push(format!("{which} does not parse as it is printed: {}\n{first}", errors[0]));
        }
    }
}

/// The first line in which two texts differ, from both texts.
pub(crate) fn first_difference(expected: &str, found: &str) -> Option<String> {
    if expected == found {
        return None;
    }
    let (mut left, mut right) = (expected.lines(), found.lines());
    for number in 1.. {
        match (left.next(), right.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let show =
                    |line: Option<&str>| line.map_or("nothing".to_owned(), |l| format!("`{l}`"));
                return Some(format!("line {number}: expected {}, found {}", show(a), show(b)));
            }
        }
    }
    Some("they differ in their line ends".to_owned())
}
