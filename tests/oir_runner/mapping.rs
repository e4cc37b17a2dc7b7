//! The text of `mapping` blocks: the mappings between the version before and the version after.

use super::names::Names;
use super::optimize::Optimized;
use ir::{Function, Module, Opcode};
use osr::{Level, SynthesizedMapping, VersionPair, synthesize};
use std::fmt::Write;
use transition::mapping::{Entry, Operand, Step};

/// The mappings of every function that a pass changed, at the level `avail`.
pub(crate) fn text(before: &Module, optimized: &Optimized) -> String {
    let mut out = String::new();
    for (func, log) in optimized.logs.iter().filter(|(_, log)| !log.is_empty()) {
        let base = before.body(*func).expect("a body");
        let version = optimized.module.body(*func).expect("a body");
        let pair = VersionPair::new(base, version, log).expect("the log was replayed before");
        let synthesis = synthesize(&pair, Level::Avail);
        let names = [Names::new(before, base), Names::new(before, version)];
        write_direction(&mut out, "forward", base, [&names[0], &names[1]], &synthesis.forward);
        write_direction(&mut out, "backward", version, [&names[1], &names[0]], &synthesis.backward);
    }
    out
}

/// Writes one direction: figures, then in layout order every point without an entry, with another
/// landing point, or with compensation code. A point that is not shown lands before the same
/// instruction with no code.
fn write_direction(
    out: &mut String,
    heading: &str,
    source: &Function,
    names: [&Names; 2],
    direction: &SynthesizedMapping,
) {
    let (points, entries) = (direction.points, direction.mapping.len());
    let empty = direction.mapping.entries().filter(|(_, e)| e.is_empty()).count();
    writeln!(
        out,
        "@{} {heading}: {points} points, {} unreachable, {entries} entries, {empty} of them empty",
        source.name(),
        direction.unreachable
    )
    .expect("writing to a string");
    for inst in source.all_insts() {
        let point = ir::Point::before(inst);
        if let Some(entry) = direction.mapping.entry(point) {
            if entry.target != point || !entry.is_empty() {
                let line = entry_line(entry, names);
                writeln!(out, "  {} -> {line}", names[0].point(point))
                    .expect("writing to a string");
            }
        } else if let Some(missing) = direction.missing.iter().find(|one| one.point == point) {
            let value =
                missing.why.value.map_or(String::new(), |v| format!(" {}", names[1].value(v)));
            let blame = missing
                .why
                .blame
                .map_or(String::new(), |blame| format!(" (action {})", blame.action));
            let reason = missing.why.reason.name();
            writeln!(out, "  {} has none: {reason}{value}{blame}", names[0].point(point))
                .expect("writing to a string");
        }
    }
}

fn entry_line(entry: &Entry, names: [&Names; 2]) -> String {
    let operand = |operand: Operand| match operand {
        Operand::Source(value) => names[0].value(value).to_owned(),
        Operand::Step(index) => format!("${index}"),
    };
    let mut line = names[1].point(entry.target).to_owned();
    for (index, step) in entry.steps.iter().enumerate() {
        write!(line, "; ${index} = {}", step_text(step, operand)).expect("writing to a string");
    }
    for assign in entry.assigns.iter().filter(|assign| !assign.is_identity()) {
        write!(line, "; {} = {}", names[1].value(assign.value), operand(assign.from))
            .expect("writing to a string");
    }
    for value in &entry.kept {
        write!(line, "; keeps {}", names[0].value(*value)).expect("writing to a string");
    }
    line
}

fn step_text(step: &Step, operand: impl Fn(Operand) -> String) -> String {
    let operation = format!("{}.{}", step.opcode.name(), step.ty);
    if step.opcode == Opcode::Const {
        return format!("{operation} {:#x}", step.bits);
    }
    let args: Vec<String> = step.args.iter().map(|arg| operand(*arg)).collect();
    format!("{operation} {}", args.join(", "))
}
