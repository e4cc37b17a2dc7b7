//! Reads exported mappings. Input is untrusted: errors name the line and the cause. Memory grows
//! with the length of the input, never with a number that the input claims.

use super::words::{ExportWords, Read, shortened};
use super::{DIRECTIONS, MAGIC, SIDES, write};
use ir::module::PAGE_BYTES;
use ir::{Block, Func, Function, Memory, Module, Opcode, Point, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use transition::certificate::{Certificate, EntryFacts, MappingFacts, NO_TERM, Term, TermKind};
use transition::mapping::{Assign, Entry, EntryStore, Mapping, Operand, Replay, SharedEntry, Step};
use transition::{Pair, VersionKey};

/// An error in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The line number, starting at 1.
    pub line: usize,
    /// The cause.
    pub what: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ReadError {}

/// A file divided into functions. The lines of functions are not parsed yet.
#[derive(Clone, Debug)]
pub struct Exported<'t> {
    /// The pipeline that made the versions.
    pub pipeline: &'t str,
    /// The name of the level of the mappings.
    pub level: &'t str,
    /// The least pages of memories, each with its line. [`Exported::check_sizes`] compares them
    /// with a module.
    least: Vec<(Memory, u64, usize)>,
    /// The functions in whose bases frames land. [`ExportedFunction::landing`] parses the
    /// certificate of each.
    pub landings: Vec<ExportedFunction<'t>>,
    /// The functions. [`ExportedFunction::copy`] parses the records of a function with inlined
    /// code, [`ExportedFunction::parts`] the records of any other.
    pub functions: Vec<ExportedFunction<'t>>,
}

/// The lines of one function.
#[derive(Clone, Debug)]
pub struct ExportedFunction<'t> {
    /// The escaped name of the function.
    pub name: &'t str,
    /// The numbers of the rewrites that the optimized version lacks
    /// ([`derive::driver::derive_without`]). In a function with inlined code, the rewrites that the
    /// cleaned version lacks.
    pub left_out: Vec<Range<u64>>,
    /// In a function with inlined code, the numbers of the rewrites that the optimized version
    /// lacks, counted among the passes behind the inlining.
    pub left_out_behind: Vec<Range<u64>>,
    /// The number of the function, if the file has it.
    number: Option<u32>,
    /// The number of the last line before `lines`.
    first: usize,
    lines: Vec<&'t str>,
}

/// The contents of one function: mappings in both directions, and their certificate. Nothing in
/// them is proved.
#[derive(Clone, Debug)]
pub struct ExportedParts {
    /// The certificate of the two versions.
    pub certificate: Certificate,
    /// The mappings by the version that their entries leave.
    pub mappings: Pair<Mapping>,
    /// The facts of the entries of each mapping, in the order of the entries.
    pub facts: Pair<MappingFacts>,
}

/// Divides a file into its functions. Cost: linear in the text.
///
/// # Errors
/// If the header is malformed, a function occurs twice or does not end, or the count of functions
/// or landings is wrong.
pub fn read(text: &str) -> Result<Exported<'_>, ReadError> {
    let error = |line: usize, what: &str| ReadError { line, what: shortened(what) };
    let mut lines = text.lines().zip(1..).peekable();
    let mut expect = |word: &'static str| match lines.next() {
        Some((line, _)) if line == word || (line.starts_with(word) && word.ends_with(' ')) => {
            Ok(&line[word.len()..])
        }
        Some((_, number)) => Err(error(number, &format!("expected `{word}`"))),
        None => {
            Err(error(text.lines().count(), &format!("the file ends where `{word}` is expected")))
        }
    };
    expect(MAGIC)?;
    let (pipeline, level) = (expect("pipeline ")?, expect("level ")?);
    let announced = expect("functions ")?;
    let landings = lines.next_if(|(line, _)| line.starts_with("landings "));
    let mut least = Vec::new();
    while let Some((line, number)) = lines.next_if(|(line, _)| line.starts_with("least ")) {
        let size = least_size(&line["least ".len()..]);
        let (memory, pages) =
            size.ok_or_else(|| error(number, "expected a memory and its pages"))?;
        least.push((memory, pages, number));
    }
    let mut sections = FileSections::default();
    for (line, number) in lines {
        sections.line(line, number)?;
    }
    let FileSections { functions, landings: found, open, .. } = sections;
    if let Some((last, _)) = open {
        return Err(error(last.first + last.lines.len(), "the file ends within a function"));
    }
    let counts = |line: usize, announced: &str, count: usize, what: &str| {
        let wrong = format!("the header announces {announced} {what}; the file has {count}");
        if announced == count.to_string() { Ok(()) } else { Err(error(line, &wrong)) }
    };
    counts(4, announced, functions.len(), "functions")?;
    let announced = landings.map_or("0", |(line, _)| &line["landings ".len()..]);
    counts(5, announced, found.len(), "landings")?;
    Ok(Exported { pipeline, level, least, landings: found, functions })
}

/// A memory and its pages, with a blank between.
fn least_size(words: &str) -> Option<(Memory, u64)> {
    let (memory, pages) = words.split_once(' ')?;
    let memory: u32 = memory.parse().ok().filter(|index| *index < u32::MAX)?;
    Some((Memory::from_u32(memory), pages.parse().ok()?))
}

impl Exported<'_> {
    /// Checks the sizes that the file gives memories. The checker uses the sizes of the module;
    /// other readers rely on the file.
    ///
    /// # Errors
    /// If the least size of a memory in the module differs.
    pub fn check_sizes(&self, module: &Module) -> Result<(), ReadError> {
        for &(memory, said, line) in &self.least {
            let pages = module.least_bytes(memory) / PAGE_BYTES;
            if said != pages {
                let what = format!("{memory} has {pages} pages at least, not {said}");
                return Err(ReadError { line, what });
            }
        }
        Ok(())
    }
}

/// The parts of a file so far.
#[derive(Default)]
struct FileSections<'t> {
    functions: Vec<ExportedFunction<'t>>,
    landings: Vec<ExportedFunction<'t>>,
    /// The function whose `end` is still to come, and whether it is a landing.
    open: Option<(ExportedFunction<'t>, bool)>,
    /// The functions, and the landings.
    names: [BTreeSet<&'t str>; 2],
}

impl<'t> FileSections<'t> {
    fn line(&mut self, line: &'t str, number: usize) -> Read<()> {
        let error = |what: &str| Err(ReadError { line: number, what: what.to_owned() });
        let landing = line.strip_prefix("landing ");
        let begins = landing.or_else(|| line.strip_prefix("function "));
        match (begins, &mut self.open) {
            (Some(_), Some(_)) => error("a function begins before the previous one ends"),
            (Some(name), None) => {
                if !self.names[usize::from(landing.is_some())].insert(name) {
                    return error("the file lists the function twice");
                }
                let function = ExportedFunction {
                    name,
                    left_out: Vec::new(),
                    left_out_behind: Vec::new(),
                    number: None,
                    first: number,
                    lines: Vec::new(),
                };
                self.open = Some((function, landing.is_some()));
                Ok(())
            }
            (None, None) => error("expected `function NAME`"),
            (None, open @ Some(_)) if line == "end" => {
                match open.take() {
                    Some((function, true)) => self.landings.push(function),
                    ended => self.functions.extend(ended.map(|(function, _)| function)),
                }
                Ok(())
            }
            (None, Some((function, _))) => {
                let is_first = function.lines.is_empty() && function.first == function.line();
                if let Some(word) = line.strip_prefix("number ").filter(|_| is_first) {
                    let Ok(func) = word.parse() else {
                        return error("expected the number of a function");
                    };
                    (function.number, function.first) = (Some(func), number);
                    return Ok(());
                }
                let behind = line.strip_prefix("left-out-behind ");
                match behind.or_else(|| line.strip_prefix("left-out ")) {
                    Some(rewrite) if function.lines.is_empty() => {
                        let Some(rewrite) = range(rewrite) else {
                            return error("expected two numbers of rewrites");
                        };
                        match behind {
                            Some(_) => function.left_out_behind.push(rewrite),
                            None => function.left_out.push(rewrite),
                        }
                        function.first = number;
                    }
                    _ => function.lines.push(line),
                }
                Ok(())
            }
        }
    }
}

/// The range of two numbers with a blank between.
fn range(words: &str) -> Option<Range<u64>> {
    let (start, end) = words.split_once(' ')?;
    Some(start.parse().ok()?..end.parse().ok()?)
}

impl ExportedFunction<'_> {
    /// Parses the lines of the function, given its two versions.
    ///
    /// # Errors
    /// If the lines describe other versions, or a record is malformed.
    pub fn parts(&self, versions: [&Function; 2]) -> Result<ExportedParts, ReadError> {
        let error = |what: &str| ReadError { line: self.line(), what: what.to_owned() };
        if self.number.is_some() {
            return Err(error("only landings and functions with inlined code tell a number"));
        }
        if !self.left_out_behind.is_empty() {
            return Err(error("only functions with inlined code have passes behind the inlining"));
        }
        let mut reader = MappingReader::new(self);
        for (side, f) in SIDES.iter().zip(versions) {
            reader.version(side, f)?;
        }
        let parts = reader.pair(versions)?;
        reader.end()?;
        Ok(parts)
    }

    /// Parses the certificate that the base of the function `func` corresponds to itself.
    ///
    /// # Errors
    /// If the lines describe another base or another number, or a record is malformed.
    pub fn landing(&self, func: Func, base: &Function) -> Result<Certificate, ReadError> {
        self.is_numbered(func)?;
        let mut reader = MappingReader::new(self);
        reader.version("base", base)?;
        let certificate = reader.certificate([base, base])?;
        reader.end()?;
        Ok(certificate)
    }

    /// The number of the line of the record that names the function.
    pub fn line(&self) -> usize {
        let left_out = self.left_out.len() + self.left_out_behind.len();
        self.first - left_out - usize::from(self.number.is_some())
    }

    /// Checks the number of the function. Older files have no number, and pass.
    pub(super) fn is_numbered(&self, func: Func) -> Read<()> {
        let wrong = self.number.filter(|number| *number != func.as_u32());
        wrong.map_or(Ok(()), |number| {
            let what = format!("the function has the number {}, not {number}", func.as_u32());
            Err(ReadError { line: self.line() + 1, what })
        })
    }
}

/// The most identity assignments of all entries of a function together. A file lists such values
/// once for many entries, so a short file may stand for very many assignments. Mappings that Osier
/// makes stay within this limit ([`osr::MappingLimits`]).
const MAX_LISTED: usize = 1 << 28;

/// With more identity assignments than this, entries are packed: they share common parts.
const MAX_BEFORE_PACKING: usize = 1 << 21;

/// The most identity assignments in unpacked entries. The packed store rejects entries that no
/// maker makes, and a forged file may have many of these
/// (`a_short_file_of_entries_that_no_store_takes_is_refused`).
const MAX_WHOLE: usize = 1 << 25;

pub(super) struct MappingReader<'t> {
    opcodes: BTreeMap<&'static str, Opcode>,
    /// The number of identity assignments so far: in all entries, and in unpacked entries.
    listed: usize,
    whole: usize,
    /// The lines of the entries of the last mapping.
    pub(super) entry_lines: Vec<usize>,
    at: usize,
    function: &'t ExportedFunction<'t>,
}

impl<'t> MappingReader<'t> {
    pub(super) fn new(function: &'t ExportedFunction<'t>) -> MappingReader<'t> {
        let opcodes = Opcode::ALL.iter().map(|o| (o.name(), *o)).collect();
        MappingReader { opcodes, listed: 0, whole: 0, entry_lines: Vec::new(), at: 0, function }
    }

    /// The number of the line that is read next.
    pub(super) fn line(&self) -> usize {
        self.function.first + 1 + self.at
    }

    /// Checks that no line is left.
    pub(super) fn end(&self) -> Read<()> {
        self.peek().map_or(Ok(()), |_| Err(self.error("expected `end`")))
    }

    /// Reads a certificate, and the mappings in both directions.
    pub(super) fn pair(&mut self, versions: [&Function; 2]) -> Read<ExportedParts> {
        let certificate = self.certificate(versions)?;
        let (up, up_facts) = self.mapping(DIRECTIONS[0], versions[0], versions[1])?;
        let (down, down_facts) = self.mapping(DIRECTIONS[1], versions[1], versions[0])?;
        let (mappings, facts) = (Pair::new(up, down), Pair::new(up_facts, down_facts));
        Ok(ExportedParts { certificate, mappings, facts })
    }

    fn peek(&self) -> Option<&'t str> {
        self.function.lines.get(self.at).copied()
    }

    pub(super) fn error(&self, what: impl fmt::Display) -> ReadError {
        ReadError { line: self.line(), what: shortened(what) }
    }

    /// The words of the line after `kind`, if the line starts with `kind`. Advances past the line
    /// on success only.
    pub(super) fn take(&mut self, kind: &str) -> Option<ExportWords<'t>> {
        let rest = self.peek()?.strip_prefix(kind)?;
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        self.at += 1;
        let line = self.function.first + self.at;
        Some(ExportWords { words: rest.trim_start(), line })
    }

    pub(super) fn expect(&mut self, kind: &str) -> Read<ExportWords<'t>> {
        self.take(kind).ok_or_else(|| match self.peek() {
            Some(_) => self.error(format_args!("expected `{kind}`")),
            None => self.error(format_args!("the function ends where `{kind}` is expected")),
        })
    }

    /// Compares the lines of a version with the derived version, written by the same code.
    pub(super) fn version(&mut self, side: &str, f: &Function) -> Read<()> {
        self.expect(&format!("version {side}"))?;
        for line in write::version(f).lines() {
            if self.peek() != Some(line) {
                let what = format!(
                    "the file describes another version {side} of the function; expected `{line}`"
                );
                return Err(self.error(what));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn certificate(&mut self, versions: [&Function; 2]) -> Read<Certificate> {
        let mut certificate = Certificate {
            versions: versions.map(VersionKey::of),
            terms: Vec::new(),
            sides: Default::default(),
            anchors: Vec::new(),
        };
        while let Some(words) = self.take("term") {
            let term = self.term(words, certificate.terms.len())?;
            certificate.terms.push(term);
        }
        for (side, terms) in SIDES.iter().zip(&mut certificate.sides) {
            while let Some(mut words) = self.take(&format!("value {side}")) {
                terms.values.push((words.entity::<Value>()?, words.number()?));
                words.end()?;
            }
            while let Some(mut words) = self.take(&format!("memory {side}")) {
                terms.memory.push((words.entity::<Block>()?, words.number()?));
                words.end()?;
            }
            while let Some(mut words) = self.take(&format!("write {side}")) {
                terms.writes.push((words.entity::<ir::Inst>()?, words.number()?));
                words.end()?;
            }
            while let Some(mut words) = self.take(&format!("range {side}")) {
                terms.ranges.push(words.range()?);
                words.end()?;
            }
        }
        while let Some(mut words) = self.take("anchor") {
            certificate.anchors.push(words.entity()?);
            words.end()?;
        }
        Ok(certificate)
    }

    fn term(&self, mut words: ExportWords<'t>, index: usize) -> Read<Term> {
        if words.number::<usize>()? != index {
            return Err(words.error(format_args!("term {index} is expected")));
        }
        let ty = match words.next()? {
            "memory" => None,
            name => Some(words.type_named(name)?),
        };
        let class = words.number()?;
        let by = words.by()?;
        let kind = match words.next()? {
            "argument" => TermKind::Argument(words.number()?),
            "param" => TermKind::Param,
            "result" => TermKind::Result(words.entity()?, words.number()?),
            "memory-at-entry" => TermKind::MemoryAtEntry,
            "memory-param" => TermKind::MemoryParam,
            "memory-after" => TermKind::MemoryAfter(words.entity()?),
            "op" => {
                let opcode = words.opcode(&self.opcodes)?;
                let (ty, imm) = (words.ty()?, words.immediate()?);
                TermKind::Op { opcode, ty, imm, args: words.list(|w, item| w.parse(item))?.into() }
            }
            other => return Err(words.error(format_args!("unknown kind of term `{other}`"))),
        };
        words.end()?;
        Ok(Term { kind, ty, class, by })
    }

    pub(super) fn mapping(
        &mut self,
        direction: &str,
        source: &Function,
        target: &Function,
    ) -> Read<(Mapping, MappingFacts)> {
        let claimed = self.mapping_named(direction)?;
        let (mut mapping, mut facts) = (Mapping::new(source, target), MappingFacts::new());
        let (mut last, mut same, mut packs) = (None, BTreeSet::new(), false);
        self.entry_lines.clear();
        loop {
            self.same(&mut same)?;
            let Some(mut words) = self.take("entry") else { break };
            let point = Point::before(words.entity()?);
            self.entry_lines.push(words.line);
            if last.replace(point).is_some_and(|l| l >= point) {
                return Err(words.error("source points must ascend, each once"));
            }
            let target = Point::before(words.entity()?);
            let kept = words.list(|w, item| w.parse_entity(item))?;
            words.end()?;
            let (entry, of_entry) = self.entry(target, kept, &same)?;
            facts.push(of_entry);
            if self.listed > MAX_BEFORE_PACKING && !packs {
                (mapping, packs) = (mapping.packing(EntryStore::default()), true);
            }
            mapping.insert(point, entry);
            if !mapping.shared(point).is_some_and(SharedEntry::is_packed) {
                self.whole += same.len();
                self.at_most(self.whole, MAX_WHOLE)?;
            }
        }
        self.announced(claimed, mapping.len())?;
        Ok((mapping, facts))
    }

    /// The number of entries that a mapping announces in the line of its name.
    pub(super) fn mapping_named(&mut self, name: &str) -> Read<usize> {
        let mut words = self.expect(&format!("mapping {name}"))?;
        let claimed = words.number()?;
        words.end()?;
        Ok(claimed)
    }

    /// Checks the number of entries that a mapping announces.
    pub(super) fn announced(&self, claimed: usize, found: usize) -> Read<()> {
        let what = || format!("the mapping announces {claimed} entries; it has {found}");
        if claimed == found { Ok(()) } else { Err(self.error(what())) }
    }

    /// Reads the change to the values that entries assign to themselves, if there is one.
    pub(super) fn same(&mut self, same: &mut BTreeSet<Value>) -> Read<()> {
        let Some(mut words) = self.take("same") else { return Ok(()) };
        for value in words.list(|w, item| w.parse_entity::<Value>(item))? {
            if !same.insert(value) {
                return Err(words.error(format_args!("%{value} is among the values already")));
            }
        }
        for value in words.list(|w, item| w.parse_entity::<Value>(item))? {
            if !same.remove(&value) {
                return Err(words.error(format_args!("%{value} is not among the values")));
            }
        }
        words.end()
    }

    /// Fails if the number of identity assignments exceeds a limit.
    fn at_most(&self, listed: usize, limit: usize) -> Read<()> {
        let what = || format!("the entries assign more than {limit} values to themselves");
        if listed > limit { Err(self.error(what())) } else { Ok(()) }
    }

    /// Reads the rest of an entry, which assigns the values `same` to themselves.
    pub(super) fn entry(
        &mut self,
        target: Point,
        kept: Vec<Value>,
        same: &BTreeSet<Value>,
    ) -> Read<(Entry, EntryFacts)> {
        self.listed += same.len();
        self.at_most(self.listed, MAX_LISTED)?;
        let claimed = self.requires()?;
        let (steps, replays, requires) = (Vec::new(), Vec::new(), Vec::new());
        let assigns = same.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) });
        let assigns = assigns.collect();
        let inner = Box::default();
        let mut entry = Entry { target, steps, replays, assigns, requires, kept, inner };
        let facts = self.steps(&mut entry)?;
        // A stable sort: two assignments to one value keep their order, and the checker finds them.
        entry.assigns.sort_by_key(|assign| assign.value);
        entry.requires = claimed.unwrap_or_else(|| entry.reads());
        Ok((entry, facts))
    }

    /// Reads the values that an entry requires. `None` if the line is absent: the entry then
    /// requires the values that it reads.
    pub(super) fn requires(&mut self) -> Read<Option<Vec<Value>>> {
        let Some(mut words) = self.take("requires") else { return Ok(None) };
        let values = words.list(|w, item| w.parse_entity(item))?;
        words.end()?;
        Ok(Some(values))
    }

    /// Reads steps, replays and assignments into an entry.
    pub(super) fn steps(&mut self, entry: &mut Entry) -> Read<EntryFacts> {
        let (mut here, mut far) = (Vec::new(), Vec::new());
        while let Some(mut words) = self.take("step") {
            let opcode = words.opcode(&self.opcodes)?;
            let (ty, operand_ty, bits) = (words.ty()?, words.ty()?, words.number()?);
            let args = words.list(|w, item| w.operand(item))?.into();
            entry.steps.push(Step { opcode, ty, operand_ty, bits, args });
            here.push(words.term_named()?);
            far.push(words.term_named()?);
            words.end()?;
        }
        let mut replays = Vec::new();
        while let Some(mut words) = self.take("replay") {
            let (inst, opcode) = (words.entity()?, words.opcode(&self.opcodes)?);
            let (ty, imm) = (words.ty()?, words.immediate()?);
            let args = words.list(|w, item| w.operand(item))?.into();
            entry.replays.push(Replay { inst, opcode, ty, imm, args });
            replays.push(words.term_named()?);
            words.end()?;
        }
        while let Some(mut words) = self.take("assign") {
            let (value, from) = (words.entity()?, words.next()?);
            entry.assigns.push(Assign { value, from: words.operand(from)? });
            words.end()?;
        }
        // The writer pads `far` with `-`. Facts without far terms have an empty list.
        if far.iter().all(|t| *t == NO_TERM) {
            far.clear();
        }
        Ok(EntryFacts { here: here.into(), far: far.into(), replays: replays.into() })
    }
}
