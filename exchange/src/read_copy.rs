//! Reads functions with inlined code.

use super::read::{ExportedFunction, MappingReader, ReadError};
use super::words::{ExportWords, Read};
use super::{ExportedCopy, Listed, PAIRS, PLACES, VERSIONS};
use derive::inlining::LeftOut;
use ir::{Block, Func, Function, Inst, Module, Point, Value};
use std::collections::{BTreeMap, BTreeSet};
use transition::VersionKey;
use transition::certificate::{EntryFacts, NO_TERM};
use transition::copy::{CopyClaim, CopyInstance};
use transition::frames::{Frame, FramePlace};
use transition::mapping::{Assign, Entry};

impl ExportedFunction<'_> {
    /// The rewrites that the versions of a function with inlined code lack.
    pub fn left_out(&self) -> LeftOut {
        LeftOut { before: self.left_out.clone(), behind: self.left_out_behind.clone() }
    }

    /// Parses the lines of a function with inlined code, given its four versions: the base, the
    /// cleaned version, the copy and the optimized version.
    ///
    /// # Errors
    /// If the lines describe other versions or another number, or a record is malformed. Also if
    /// the claim about the copy has more instances than the copy has blocks, or gives two values
    /// one name.
    pub fn copy(
        &self,
        module: &Module,
        func: Func,
        versions: [&Function; 4],
    ) -> Result<ExportedCopy, ReadError> {
        self.is_numbered(func)?;
        let mut reader = MappingReader::new(self);
        for (name, f) in VERSIONS.iter().zip(versions) {
            reader.version(name, f)?;
        }
        let [base, cleaned, copy, optimized] = versions;
        reader.expect(&format!("pair {}", PAIRS[0]))?.end()?;
        let first = reader.pair([base, cleaned])?;
        reader.expect(&format!("pair {}", PAIRS[1]))?.end()?;
        let last = reader.pair([copy, optimized])?;
        let named = NamedVersions { module, func, cleaned };
        let line = reader.line();
        let claim = reader.claim(&named, copy)?;
        let (into, facts) = reader.mapping("into", base, optimized)?;
        let lines = std::mem::take(&mut reader.entry_lines);
        if let Some(at) = facts.iter().position(names_term) {
            let what = "entries across the copy name no terms".to_owned();
            return Err(ReadError { line: lines[at], what });
        }
        let into = into.shared_entries().zip(lines);
        let into = into.map(|((point, entry), line)| Listed {
            line,
            point,
            entry: entry.get().into_owned(),
        });
        let out = reader.out(&named)?;
        reader.end()?;
        Ok(ExportedCopy { pairs: [first, last], line, claim, into: into.collect(), out })
    }
}

/// The versions that records name.
struct NamedVersions<'a> {
    module: &'a Module,
    func: Func,
    cleaned: &'a Function,
}

impl NamedVersions<'_> {
    /// Reads a function and the word for its version.
    fn read(&self, words: &mut ExportWords<'_>) -> Read<(Func, VersionKey)> {
        let func: Func = words.entity()?;
        let Some(base) = self.module.body(func) else {
            return Err(words.error(format_args!("the module has no code of {func}")));
        };
        let word = words.next()?;
        match VERSIONS.iter().position(|name| *name == word) {
            Some(0) => Ok((func, VersionKey::of(base))),
            Some(1) if func == self.func => Ok((func, VersionKey::of(self.cleaned))),
            _ => Err(words.error(format_args!("{func} has no version `{word}` here"))),
        }
    }
}

impl MappingReader<'_> {
    fn claim(&mut self, named: &NamedVersions<'_>, copy: &Function) -> Read<CopyClaim> {
        let mut claim = CopyClaim::default();
        // If a name could stand for several values, entries would cost the product of both numbers.
        let mut names: BTreeSet<Value> = BTreeSet::new();
        let most = copy.blocks().count();
        while let Some(mut words) = self.take("instance") {
            if words.number::<usize>()? != claim.instances.len() {
                let what = format!("instance {} is expected", claim.instances.len());
                return Err(words.error(what));
            }
            if claim.instances.len() >= most {
                return Err(
                    words.error(format_args!("a copy of {most} blocks has fewer instances"))
                );
            }
            let instance = self.instance(&mut words, named)?;
            if let Some(name) = instance.values.values().find(|name| !names.insert(**name)) {
                return Err(words.error(format_args!("%{name} is the name of two values")));
            }
            claim.instances.push(instance);
        }
        while let Some(mut words) = self.take("begins") {
            let (block, instance) = (words.entity::<Block>()?, words.number()?);
            let inst: Inst = words.entity()?;
            words.end()?;
            if claim.blocks.insert(block, (instance, inst)).is_some() {
                return Err(words.error(format_args!("{block} begins twice")));
            }
        }
        Ok(claim)
    }

    fn instance(
        &self,
        words: &mut ExportWords<'_>,
        named: &NamedVersions<'_>,
    ) -> Read<CopyInstance> {
        let (func, version) = named.read(words)?;
        let caller = match (words.next()?, words.next()?) {
            ("-", "-") => None,
            (caller, call) => Some((words.parse(caller)?, words.parse_entity(call)?)),
        };
        let pairs = words.list(|w, item| {
            let (of, name) = w.halves(item)?;
            Ok((w.parse_entity::<Value>(of)?, w.parse_entity::<Value>(name)?))
        })?;
        words.end()?;
        let mut values = BTreeMap::new();
        for (of, name) in pairs {
            if values.insert(of, name).is_some() {
                return Err(words.error(format_args!("%{of} has two names")));
            }
        }
        Ok(CopyInstance { func, version, caller, values })
    }

    fn out(&mut self, named: &NamedVersions<'_>) -> Read<Vec<Listed>> {
        let claimed = self.mapping_named("out")?;
        let mut entries: Vec<Listed> = Vec::new();
        while let Some(mut words) = self.take("frames") {
            let point = Point::before(words.entity()?);
            if entries.last().is_some_and(|last| last.point >= point) {
                return Err(words.error("source points must ascend, each once"));
            }
            let kept = words.list(|w, item| w.parse_entity(item))?;
            words.end()?;
            let entry = self.frame_entry(point, kept, named)?;
            entries.push(Listed { line: words.line, point, entry });
        }
        self.announced(claimed, entries.len())?;
        Ok(entries)
    }

    /// Reads the rest of an entry out of the optimized version.
    fn frame_entry(
        &mut self,
        point: Point,
        kept: Vec<Value>,
        named: &NamedVersions<'_>,
    ) -> Read<Entry> {
        let line = self.line();
        let claimed = self.requires()?;
        let (steps, replays, assigns, requires) = Default::default();
        let inner = Box::default();
        let mut entry = Entry { target: point, steps, replays, assigns, requires, kept, inner };
        let facts = self.steps(&mut entry)?;
        if names_term(&facts) || !entry.assigns.is_empty() {
            let what = "entries across the copy name no terms, and frames have the assignments";
            return Err(ReadError { line, what: what.to_owned() });
        }
        let mut frames = Vec::new();
        while let Some(mut words) = self.take("frame") {
            let (func, version) = named.read(&mut words)?;
            let at = match words.next()? {
                place if place == PLACES[0] => FramePlace::Before(Point::before(words.entity()?)),
                place if place == PLACES[1] => FramePlace::Within(words.entity()?),
                other => return Err(words.error(format_args!("`{other}` is no place of a frame"))),
            };
            let assigns = words.list(|w, item| {
                let (value, from) = w.halves(item)?;
                Ok(Assign { value: w.parse_entity(value)?, from: w.operand(from)? })
            })?;
            words.end()?;
            frames.push(Frame { func, version, at, assigns });
        }
        entry.inner = frames.into();
        entry.requires = claimed.unwrap_or_else(|| entry.reads());
        Ok(entry)
    }
}

/// Whether the facts of an entry name a term. Entries across the copy are proved by composition.
fn names_term(facts: &EntryFacts) -> bool {
    let mut terms = facts.here.iter().chain(&*facts.far).chain(&*facts.replays);
    terms.any(|term| *term != NO_TERM)
}
