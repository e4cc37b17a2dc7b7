//! Writes mappings with their certificates in the format of `docs/certificates.md`.

use super::{DIRECTIONS, MAGIC, SIDES};
use ir::module::PAGE_BYTES;
use ir::ranges::Interval;
use ir::rules::RULES;
use ir::{Func, Function, Imm, Memory, Module, Point, Value};
use std::fmt::{Display, Write};
use std::ops::Range;
use transition::certificate::{
    By, Certificate, EntryFacts, MappingFacts, NO_TERM, RangeBy, RangeClaim, Term, TermId, TermKind,
};
use transition::mapping::{Entry, Mapping, Operand, Replay, Step};

/// The lines before the first function. `functions` is the number of functions that follow. In a
/// file with [`landing`]s, the line of [`landings_header`] comes next.
pub fn header(pipeline: &str, level: &str, functions: usize) -> String {
    format!("{MAGIC}\npipeline {pipeline}\nlevel {level}\nfunctions {functions}\n")
}

/// The line between the header and the first of some landings.
pub fn landings_header(landings: usize) -> String {
    format!("landings {landings}\n")
}

/// The lines with the least pages of a module's memories, which follow [`header`] and
/// [`landings_header`]. Certificates rely on these sizes ([`Module::least_bytes`]). A reader knows
/// no size of a memory without a line.
pub fn least_sizes(module: &Module) -> String {
    let pages = |memory: Memory| module.least_bytes(memory) / PAGE_BYTES;
    let sized = module.memories.keys().filter(|memory| pages(*memory) > 0);
    sized.map(|memory| format!("least {} {}\n", memory.as_u32(), pages(memory))).collect()
}

/// Writes a landing for frames in the base of the function `func`: the base, and the certificate
/// that the base corresponds to itself. Cost: linear in the output.
pub fn landing(out: &mut String, func: Func, base: &Function, certificate: &Certificate) {
    let mut writer = MappingWriter { out };
    writer.line(format_args!("landing {}", escaped(base.name())));
    writer.line(format_args!("number {}", func.as_u32()));
    writer.version("base", base);
    writer.certificate(certificate);
    writer.line("end");
}

/// The name of a function on one line. Other characters than printable ASCII become Rust escapes.
pub fn escaped(name: &str) -> String {
    name.escape_default().to_string()
}

/// Writes one function: both versions, the certificate, and the mappings with their facts, forward
/// and backward. `left_out` are the numbers of the rewrites given up
/// ([`derive::driver::GivenUp::numbers`]). Facts are in the order of entries. Cost: linear in the
/// output.
pub fn write(
    out: &mut String,
    versions: [&Function; 2],
    left_out: &[Range<u64>],
    certificate: &Certificate,
    mappings: [(&Mapping, &MappingFacts); 2],
) {
    let mut writer = MappingWriter { out };
    writer.line(format_args!("function {}", escaped(versions[0].name())));
    for Range { start, end } in left_out {
        writer.line(format_args!("left-out {start} {end}"));
    }
    for (side, f) in SIDES.iter().zip(versions) {
        writer.version(side, f);
    }
    writer.pair(certificate, mappings);
    writer.line("end");
}

/// The lines of one version: its blocks and instructions, with their ids.
pub(super) fn version(f: &Function) -> String {
    let mut out = String::new();
    let mut writer = MappingWriter { out: &mut out };
    for block in f.blocks() {
        let params =
            f.block_params(block).iter().map(|v| format!(" {}:{}", v.as_u32(), f.value_type(*v)));
        writer.line(format_args!("block {}{}", block.as_u32(), params.collect::<String>()));
        for inst in f.block_insts(block) {
            let data = f.inst(inst);
            let imm = immediate(&data.imm);
            let args = list(data.args.iter().map(|v| v.as_u32()));
            let results =
                list(data.results.iter().map(|v| format!("{}:{}", v.as_u32(), f.value_type(*v))));
            let target = |t: &ir::Target| {
                format!("{}({})", t.block.as_u32(), list(t.args.iter().map(|v| v.as_u32())))
            };
            let targets = list(data.targets.iter().map(target));
            let (id, opcode, ty) = (inst.as_u32(), data.opcode.name(), data.ty);
            writer.line(format_args!("inst {id} {opcode} {ty} {imm} {args} {results} {targets}"));
        }
    }
    out
}

/// Items separated by commas, or `-` for none, so that every field of a line is a word.
pub(super) fn list(items: impl Iterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    if items.is_empty() { "-".to_owned() } else { items.join(",") }
}

fn immediate(imm: &Imm) -> String {
    match imm {
        Imm::None => "-".to_owned(),
        Imm::Bits(bits) => format!("bits:{bits}"),
        Imm::Address(memory, offset) => format!("address:{}:{offset}", memory.as_u32()),
        Imm::HostAddress(memory, offset) => format!("host:{}:{offset}", memory.as_u32()),
        Imm::Memory(memory) => format!("memory:{}", memory.as_u32()),
        Imm::Global(global) => format!("global:{}", global.as_u32()),
        Imm::Func(func) => format!("func:{}", func.as_u32()),
        Imm::Indirect(sig, table) => format!("indirect:{}:{}", sig.as_u32(), table.as_u32()),
        Imm::Trap(kind) => format!("trap:{kind}"),
        Imm::Memories(to, from) => format!("memories:{}:{}", to.as_u32(), from.as_u32()),
        Imm::MemoryData(memory, data) => {
            format!("memory_data:{}:{}", memory.as_u32(), data.as_u32())
        }
        Imm::Data(data) => format!("data:{}", data.as_u32()),
        Imm::Table(table) => format!("table:{}", table.as_u32()),
        Imm::Tables(to, from) => format!("tables:{}:{}", to.as_u32(), from.as_u32()),
        Imm::TableElem(table, elem) => format!("table_elem:{}:{}", table.as_u32(), elem.as_u32()),
        Imm::Elem(elem) => format!("elem:{}", elem.as_u32()),
        Imm::Exit(point) => format!("exit:{}", point.as_u32()),
        Imm::Assumed(bits, reason) => format!("assumed:{bits}:{reason}"),
    }
}

pub(super) struct MappingWriter<'o> {
    pub(super) out: &'o mut String,
}

impl MappingWriter<'_> {
    pub(super) fn line(&mut self, line: impl Display) {
        writeln!(self.out, "{line}").expect("writing to a string cannot fail");
    }

    pub(super) fn version(&mut self, name: &str, f: &Function) {
        self.line(format_args!("version {name}"));
        self.out.push_str(&version(f));
    }

    /// Writes a certificate, and the mappings in both directions with their facts.
    pub(super) fn pair(
        &mut self,
        certificate: &Certificate,
        mappings: [(&Mapping, &MappingFacts); 2],
    ) {
        self.certificate(certificate);
        for (direction, (mapping, facts)) in DIRECTIONS.iter().zip(mappings) {
            self.mapping(direction, mapping, facts);
        }
    }

    /// Writes the entries of a mapping. Entries without facts are written without terms.
    pub(super) fn mapping(&mut self, name: &str, mapping: &Mapping, facts: &[EntryFacts]) {
        self.line(format_args!("mapping {name} {}", mapping.len()));
        let (mut same, none) = (Vec::new(), EntryFacts::default());
        for (index, (point, entry)) in mapping.shared_entries().enumerate() {
            let entry = entry.get();
            self.same(&mut same, &entry);
            self.entry(point, &entry, facts.get(index).unwrap_or(&none));
        }
    }

    fn certificate(&mut self, certificate: &Certificate) {
        for (id, term) in certificate.terms.iter().enumerate() {
            self.term(id, term);
        }
        for (side, terms) in SIDES.iter().zip(&certificate.sides) {
            for (value, term) in &terms.values {
                self.line(format_args!("value {side} {} {term}", value.as_u32()));
            }
            for (block, term) in &terms.memory {
                self.line(format_args!("memory {side} {} {term}", block.as_u32()));
            }
            for (inst, term) in &terms.writes {
                self.line(format_args!("write {side} {} {term}", inst.as_u32()));
            }
            for RangeClaim { block, term, within, by } in &terms.ranges {
                let by = match by {
                    RangeBy::Above(block) => format!("above:{}", block.as_u32()),
                    RangeBy::Edges => "edges".to_owned(),
                    RangeBy::Operation => "operation".to_owned(),
                    RangeBy::Compared(block) => format!("compared:{}", block.as_u32()),
                };
                let (block, Interval { low, high }) = (block.as_u32(), within);
                self.line(format_args!("range {side} {block} {term} {low} {high} {by}"));
            }
        }
        for anchor in &certificate.anchors {
            self.line(format_args!("anchor {}", anchor.as_u32()));
        }
    }

    fn term(&mut self, id: usize, term: &Term) {
        let ty = term.ty.map_or("memory".to_owned(), |ty| ty.to_string());
        let by = match &term.by {
            By::Itself => "itself".to_owned(),
            By::Folding => "folding".to_owned(),
            By::Sum { result } => format!("sum:{result}"),
            By::Rule { rule, swapped, inner, result } => {
                // A rule of the embedder has its number in the table, from 0 on.
                let name = match RULES.get(*rule as usize) {
                    Some(rule) => rule.name.to_owned(),
                    None => format!("declared.{}", *rule as usize - RULES.len()),
                };
                format!("rule:{name}:{swapped}:{}:{}", list(inner.iter()), named(*result))
            }
            By::Apart { via, result } => {
                format!("apart:{}:{}:{result}", named(via[0]), named(via[1]))
            }
            By::Stored { via } => format!("stored:{}:{}", named(via[0]), named(via[1])),
            By::Swaps { via, inner, result } => {
                format!("swaps:{}:{}:{inner}:{result}", named(via[0]), named(via[1]))
            }
            By::Covers { result } => format!("covers:{result}"),
            By::Merged { reads } => format!("merged:{}", list(reads.iter())),
        };
        let kind = match &term.kind {
            TermKind::Argument(index) => format!("argument {index}"),
            TermKind::Param => "param".to_owned(),
            TermKind::Result(inst, index) => format!("result {} {index}", inst.as_u32()),
            TermKind::MemoryAtEntry => "memory-at-entry".to_owned(),
            TermKind::MemoryParam => "memory-param".to_owned(),
            TermKind::MemoryAfter(inst) => format!("memory-after {}", inst.as_u32()),
            TermKind::Op { opcode, ty, imm, args } => {
                format!("op {} {ty} {} {}", opcode.name(), immediate(imm), list(args.iter()))
            }
        };
        self.line(format_args!("term {id} {ty} {} {by} {kind}", term.class));
    }

    /// Writes the identity assignments of an entry as a difference from the previous entry, whose
    /// values `same` holds. Most entries have many such values and differ from their neighbor in
    /// few.
    fn same(&mut self, same: &mut Vec<Value>, entry: &Entry) {
        let own: Vec<Value> = unchanged(entry).collect();
        let missing = |from: &[Value], of: &[Value]| {
            let rest = of.iter().filter(|v| from.binary_search(v).is_err());
            list(rest.map(|v| v.as_u32()))
        };
        if own != *same {
            self.line(format_args!("same {} {}", missing(same, &own), missing(&own, same)));
            *same = own;
        }
    }

    fn entry(&mut self, point: Point, entry: &Entry, facts: &EntryFacts) {
        let (from, to) = (point.inst().as_u32(), entry.target.inst().as_u32());
        let kept = list(entry.kept.iter().map(|v| v.as_u32()));
        self.line(format_args!("entry {from} {to} {kept}"));
        // Any mapping can be written, forged ones included.
        let requires = (entry.requires != entry.reads()).then_some(&entry.requires[..]);
        self.code(requires, &entry.steps, &entry.replays, facts);
        let mut same = unchanged(entry).peekable();
        for assign in &entry.assigns {
            if assign.is_identity() && same.next_if_eq(&assign.value).is_some() {
                continue;
            }
            self.line(format_args!("assign {} {}", assign.value.as_u32(), operand(assign.from)));
        }
    }
}

impl MappingWriter<'_> {
    /// Writes steps and replays, and the required values if they differ from the values read.
    pub(super) fn code(
        &mut self,
        requires: Option<&[Value]>,
        steps: &[Step],
        replays: &[Replay],
        facts: &EntryFacts,
    ) {
        if let Some(requires) = requires {
            self.line(format_args!("requires {}", list(requires.iter().map(|v| v.as_u32()))));
        }
        for (index, step) in steps.iter().enumerate() {
            let at = |facts: &[TermId]| named(facts.get(index).copied().unwrap_or(NO_TERM));
            let args = list(step.args.iter().map(|a| operand(*a)));
            let (opcode, ty, operand_ty, bits) =
                (step.opcode.name(), step.ty, step.operand_ty, step.bits);
            let (here, far) = (at(&facts.here), at(&facts.far));
            self.line(format_args!("step {opcode} {ty} {operand_ty} {bits} {args} {here} {far}"));
        }
        for (index, replay) in replays.iter().enumerate() {
            let args = list(replay.args.iter().map(|a| operand(*a)));
            let (inst, opcode, ty) = (replay.inst.as_u32(), replay.opcode.name(), replay.ty);
            let (imm, term) = (
                immediate(&replay.imm),
                named(facts.replays.get(index).copied().unwrap_or(NO_TERM)),
            );
            self.line(format_args!("replay {inst} {opcode} {ty} {imm} {args} {term}"));
        }
    }
}

/// The values of an entry's identity assignments, ascending. A forged entry may repeat values or
/// list them in another order. These are omitted here, and written like other assignments.
fn unchanged(entry: &Entry) -> impl Iterator<Item = Value> + '_ {
    let mut last = None;
    let values = entry.assigns.iter().filter(|assign| assign.is_identity()).map(|a| a.value);
    values.filter(move |value| {
        let ascends = last.is_none_or(|last| last < *value);
        last = last.max(Some(*value));
        ascends
    })
}

fn named(term: TermId) -> String {
    if term == NO_TERM { "-".to_owned() } else { term.to_string() }
}

pub(super) fn operand(operand: Operand) -> String {
    match operand {
        Operand::Source(value) => format!("v{}", value.as_u32()),
        Operand::Step(index) => format!("s{index}"),
    }
}
