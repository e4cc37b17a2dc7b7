//! Reads exported mappings. Input is untrusted: errors name the line and the cause, and memory
//! grows with the input only, never with a number that it claims.

use super::{DIRECTIONS, MAGIC, SIDES, write};
use cranelift_entity::EntityRef;
use ir::rules::RULES;
use ir::{Block, Function, Global, Imm, Memory, Opcode, Point, Table, Type, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use transition::VersionKey;
use transition::certificate::{
    By, Certificate, EntryFacts, MappingFacts, NO_TERM, Term, TermId, TermKind,
};
use transition::mapping::{Assign, Entry, Mapping, Operand, Replay, Step};

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
    /// The functions. [`ExportedFunction::parts`] parses each with its versions.
    pub functions: Vec<ExportedFunction<'t>>,
}

/// The lines of one function.
#[derive(Clone, Debug)]
pub struct ExportedFunction<'t> {
    /// The escaped name of the function.
    pub name: &'t str,
    /// The numbers of the rewrites that the version after lacks
    /// ([`crate::driver::derive_without`]).
    pub left_out: Vec<Range<u64>>,
    /// The number of the last line before `lines`.
    first: usize,
    lines: Vec<&'t str>,
}

/// The contents of one function: the certificate, and the mappings with their facts, forward and
/// backward.
pub type ExportedParts = (Certificate, [(Mapping, MappingFacts); 2]);

/// Divides a file into its functions. Cost: linear in the text.
///
/// # Errors
/// If the header is malformed, a function occurs twice or does not end, or the count of functions
/// is wrong.
pub fn read(text: &str) -> Result<Exported<'_>, ReadError> {
    let error = |line: usize, what: &str| ReadError { line, what: shortened(what) };
    let mut lines = text.lines().zip(1..);
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
    let mut functions: Vec<ExportedFunction<'_>> = Vec::new();
    let mut open = false;
    let mut names = BTreeSet::new();
    for (line, number) in lines {
        match (line.strip_prefix("function "), open) {
            (Some(name), false) if !names.insert(name) => {
                return Err(error(number, "the file lists the function twice"));
            }
            (Some(name), false) => {
                let (left_out, lines) = (Vec::new(), Vec::new());
                functions.push(ExportedFunction { name, left_out, first: number, lines });
                open = true;
            }
            (Some(_), true) => {
                return Err(error(number, "a function begins before the previous one ends"));
            }
            (None, true) if line == "end" => open = false,
            (None, true) => {
                let function = functions.last_mut().expect("one is open");
                match line.strip_prefix("left-out ") {
                    Some(rewrite) if function.lines.is_empty() => {
                        let wrong = || error(number, "expected two numbers of rewrites");
                        function.left_out.push(range(rewrite).ok_or_else(wrong)?);
                        function.first = number;
                    }
                    _ => function.lines.push(line),
                }
            }
            (None, false) => return Err(error(number, "expected `function NAME`")),
        }
    }
    match functions.last() {
        Some(last) if open => {
            Err(error(last.first + last.lines.len(), "the file ends within a function"))
        }
        _ if announced != functions.len().to_string() => Err(error(
            4,
            &format!(
                "the header announces {announced} functions; the file has {}",
                functions.len()
            ),
        )),
        _ => Ok(Exported { pipeline, level, functions }),
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
        let mut reader = MappingReader {
            opcodes: Opcode::ALL.iter().map(|o| (o.name(), *o)).collect(),
            listed: 0,
            at: 0,
            function: self,
        };
        for (side, f) in SIDES.iter().zip(versions) {
            reader.version(side, f)?;
        }
        let keys = versions.map(VersionKey::of);
        let mut certificate = Certificate {
            versions: keys,
            terms: Vec::new(),
            sides: Default::default(),
            anchors: Vec::new(),
            passed: Vec::new(),
        };
        reader.certificate(&mut certificate)?;
        let forward = reader.mapping(DIRECTIONS[0], versions[0], versions[1])?;
        let backward = reader.mapping(DIRECTIONS[1], versions[1], versions[0])?;
        match reader.peek() {
            None => Ok((certificate, [forward, backward])),
            Some(_) => Err(reader.error("expected `end`")),
        }
    }
}

/// The number of values that the entries of a function may assign to themselves together. A file
/// lists such values once for many entries, so a short one may stand for very many.
const MAX_LISTED: usize = 1 << 25;

struct MappingReader<'t> {
    opcodes: BTreeMap<&'static str, Opcode>,
    /// The number of such values so far.
    listed: usize,
    at: usize,
    function: &'t ExportedFunction<'t>,
}

type Read<T> = Result<T, ReadError>;

/// The longest error message, in characters. Messages quote the input, which may have any length.
const MAX_MESSAGE: usize = 200;

/// A message, truncated at [`MAX_MESSAGE`] characters.
fn shortened(what: impl fmt::Display) -> String {
    let mut what = what.to_string();
    if let Some((end, _)) = what.char_indices().nth(MAX_MESSAGE) {
        what.truncate(end);
        what.push_str("...");
    }
    what
}

impl<'t> MappingReader<'t> {
    fn peek(&self) -> Option<&'t str> {
        self.function.lines.get(self.at).copied()
    }

    fn error(&self, what: impl fmt::Display) -> ReadError {
        ReadError { line: self.function.first + 1 + self.at, what: shortened(what) }
    }

    /// The words of the line after its first word or words, if these are `kind`. Advances past the
    /// line on success only.
    fn take(&mut self, kind: &str) -> Option<ExportWords<'t>> {
        let rest = self.peek()?.strip_prefix(kind)?;
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        self.at += 1;
        let line = self.function.first + self.at;
        Some(ExportWords { words: rest.trim_start(), line })
    }

    fn expect(&mut self, kind: &str) -> Read<ExportWords<'t>> {
        self.take(kind).ok_or_else(|| match self.peek() {
            Some(_) => self.error(format_args!("expected `{kind}`")),
            None => self.error(format_args!("the function ends where `{kind}` is expected")),
        })
    }

    /// Compares the lines of a version with those of the derived version, written by the same code.
    fn version(&mut self, side: &str, f: &Function) -> Read<()> {
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

    fn certificate(&mut self, certificate: &mut Certificate) -> Read<()> {
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
        }
        while let Some(mut words) = self.take("anchor") {
            certificate.anchors.push(words.entity()?);
            words.end()?;
        }
        while let Some(mut words) = self.take("passed") {
            certificate.passed.push(words.entity()?);
            words.end()?;
        }
        Ok(())
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

    fn mapping(
        &mut self,
        direction: &str,
        source: &Function,
        target: &Function,
    ) -> Read<(Mapping, MappingFacts)> {
        let mut words = self.expect(&format!("mapping {direction}"))?;
        let claimed: usize = words.number()?;
        words.end()?;
        let (mut mapping, mut facts) = (Mapping::new(source, target), MappingFacts::new());
        let (mut last, mut same) = (None, BTreeSet::new());
        loop {
            self.same(&mut same)?;
            let Some(mut words) = self.take("entry") else { break };
            let point = Point::before(words.entity()?);
            if last.replace(point).is_some_and(|l| l >= point) {
                return Err(words.error("source points must ascend, each once"));
            }
            let target = Point::before(words.entity()?);
            let kept = words.list(|w, item| w.parse_entity(item))?;
            words.end()?;
            let (entry, of_entry) = self.entry(target, kept, &same)?;
            facts.push(of_entry);
            mapping.insert(point, entry);
        }
        match mapping.len() == claimed {
            true => Ok((mapping, facts)),
            false => Err(self.error(format_args!(
                "the mapping announces {claimed} entries; it has {}",
                mapping.len()
            ))),
        }
    }

    /// Reads the change to the values that entries assign to themselves, if there is one.
    fn same(&mut self, same: &mut BTreeSet<Value>) -> Read<()> {
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

    /// Reads the rest of an entry, which assigns the values `same` to themselves.
    fn entry(
        &mut self,
        target: Point,
        kept: Vec<Value>,
        same: &BTreeSet<Value>,
    ) -> Read<(Entry, EntryFacts)> {
        self.listed += same.len();
        if self.listed > MAX_LISTED {
            let what = format!("the entries assign more than {MAX_LISTED} values to themselves");
            return Err(self.error(what));
        }
        let claimed = match self.take("requires") {
            Some(mut words) => {
                let values = words.list(|w, item| w.parse_entity(item))?;
                words.end()?;
                Some(values)
            }
            None => None,
        };
        let (steps, replays, requires) = (Vec::new(), Vec::new(), Vec::new());
        let assigns = same.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) });
        let assigns = assigns.collect();
        let mut entry = Entry { target, steps, replays, assigns, requires, kept };
        let facts = self.steps(&mut entry)?;
        // A stable sort: two assignments to one value keep their order, and the checker finds them.
        entry.assigns.sort_by_key(|assign| assign.value);
        entry.requires = claimed.unwrap_or_else(|| entry.reads());
        Ok((entry, facts))
    }

    fn steps(&mut self, entry: &mut Entry) -> Read<EntryFacts> {
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

/// The words of a line that are not read yet.
struct ExportWords<'t> {
    words: &'t str,
    line: usize,
}

impl<'t> ExportWords<'t> {
    fn error(&self, what: impl fmt::Display) -> ReadError {
        ReadError { line: self.line, what: shortened(what) }
    }

    fn next(&mut self) -> Read<&'t str> {
        let (word, rest) = self.words.split_once(' ').unwrap_or((self.words, ""));
        self.words = rest;
        if word.is_empty() { Err(self.error("the line ends too early")) } else { Ok(word) }
    }

    fn end(&self) -> Read<()> {
        if self.words.is_empty() {
            Ok(())
        } else {
            Err(self.error(format_args!("unexpected `{}` at the end of the line", self.words)))
        }
    }

    fn parse<T: std::str::FromStr>(&self, word: &str) -> Read<T> {
        word.parse().map_err(|_| self.error(format_args!("`{word}` is not a valid number here")))
    }

    fn number<T: std::str::FromStr>(&mut self) -> Read<T> {
        let word = self.next()?;
        self.parse(word)
    }

    fn parse_entity<T: EntityRef>(&self, word: &str) -> Read<T> {
        let index: u32 = self.parse(word)?;
        // The largest number is the reserved index of packed options; an entity must not have it.
        if index == u32::MAX {
            Err(self.error(format_args!("`{word}` is not an id")))
        } else {
            Ok(T::new(index as usize))
        }
    }

    fn entity<T: EntityRef>(&mut self) -> Read<T> {
        let word = self.next()?;
        self.parse_entity(word)
    }

    fn list<T>(&mut self, item: impl Fn(&Self, &'t str) -> Read<T>) -> Read<Vec<T>> {
        match self.next()? {
            "-" => Ok(Vec::new()),
            word => word.split(',').map(|i| item(self, i)).collect(),
        }
    }

    fn opcode(&mut self, opcodes: &BTreeMap<&'static str, Opcode>) -> Read<Opcode> {
        let word = self.next()?;
        opcodes
            .get(word)
            .copied()
            .ok_or_else(|| self.error(format_args!("unknown operation `{word}`")))
    }

    fn type_named(&self, name: &str) -> Read<Type> {
        Type::from_name(name).ok_or_else(|| self.error(format_args!("unknown type `{name}`")))
    }

    fn ty(&mut self) -> Read<Type> {
        let word = self.next()?;
        self.type_named(word)
    }

    fn operand(&self, word: &str) -> Read<Operand> {
        if let Some(value) = word.strip_prefix('v') {
            return Ok(Operand::Source(self.parse_entity(value)?));
        }
        match word.strip_prefix('s') {
            Some(step) => Ok(Operand::Step(self.parse(step)?)),
            None => Err(self.error(format_args!("`{word}` is not an operand"))),
        }
    }

    fn term_named(&mut self) -> Read<TermId> {
        match self.next()? {
            "-" => Ok(NO_TERM),
            word => self.parse(word),
        }
    }

    /// The words of a list inside one word of this line.
    fn inside(&self, words: &'t str) -> ExportWords<'t> {
        ExportWords { words, line: self.line }
    }

    fn by(&mut self) -> Read<By> {
        let word = self.next()?;
        let parts: Vec<&str> = word.split(':').collect();
        match parts.as_slice() {
            ["itself"] => Ok(By::Itself),
            ["folding"] => Ok(By::Folding),
            ["sum", result] => Ok(By::Sum { result: self.parse(result)? }),
            ["rule", name, swapped, inner, result] => {
                let rule = RULES.iter().position(|r| r.name == *name);
                let rule =
                    rule.ok_or_else(|| self.error(format_args!("unknown rule `{name}`")))? as u32;
                let inner = self.inside(inner).list(|w, item| w.parse(item))?.into();
                let result = self.inside(result).term_named()?;
                Ok(By::Rule { rule, swapped: self.parse(swapped)?, inner, result })
            }
            ["apart", one, other, result] => {
                let via = [self.inside(one).term_named()?, self.inside(other).term_named()?];
                Ok(By::Apart { via, result: self.parse(result)? })
            }
            ["stored", one, other] => Ok(By::Stored {
                via: [self.inside(one).term_named()?, self.inside(other).term_named()?],
            }),
            ["swaps", one, other, inner, result] => Ok(By::Swaps {
                via: [self.inside(one).term_named()?, self.inside(other).term_named()?],
                inner: self.parse(inner)?,
                result: self.parse(result)?,
            }),
            ["covers", result] => Ok(By::Covers { result: self.parse(result)? }),
            ["merged", reads] => {
                Ok(By::Merged { reads: self.inside(reads).list(|w, item| w.parse(item))?.into() })
            }
            _ => Err(self.error(format_args!("`{word}` does not justify a class"))),
        }
    }

    fn immediate(&mut self) -> Read<Imm> {
        let word = self.next()?;
        let parts: Vec<&str> = word.split(':').collect();
        match parts.as_slice() {
            ["-"] => Ok(Imm::None),
            ["bits", bits] => Ok(Imm::Bits(self.parse(bits)?)),
            ["address", memory, offset] => {
                Ok(Imm::Address(self.parse_entity::<Memory>(memory)?, self.parse(offset)?))
            }
            ["memory", memory] => Ok(Imm::Memory(self.parse_entity(memory)?)),
            ["global", global] => Ok(Imm::Global(self.parse_entity::<Global>(global)?)),
            ["table", table] => Ok(Imm::Table(self.parse_entity::<Table>(table)?)),
            // Calls and traps cannot be terms, so their immediates are errors.
            _ => Err(self.error(format_args!("`{word}` is not an immediate of a term"))),
        }
    }
}
