//! Unique names of declarations. Functions and globals are named by the name section, where it is
//! valid.

use std::collections::{HashMap, HashSet};
use wasmparser::{
    BinaryReader, CustomSectionReader, KnownCustom, Name, NameMap, NameSectionReader,
};

/// A name section that is not parsed yet. Errors in it are ignored, because names do not affect the
/// meaning of a program.
#[derive(Clone, Debug)]
pub(crate) struct NameSection<'a>(BinaryReader<'a>);

impl<'a> NameSection<'a> {
    /// The custom section as a name section, if it is one.
    pub(crate) fn of(section: &CustomSectionReader<'a>) -> Option<NameSection<'a>> {
        match section.as_known() {
            KnownCustom::Name(_) => {
                Some(NameSection(BinaryReader::new(section.data(), section.data_offset())))
            }
            _ => None,
        }
    }

    /// The length of the section in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.bytes_remaining()
    }

    /// The names of the first `count` functions. Cost: linear in the section and `count`.
    pub(crate) fn funcs(&self, count: usize) -> Vec<Option<&'a str>> {
        self.names(count, |name| match name {
            Name::Function(map) => Some(map),
            _ => None,
        })
    }

    /// The names of the first `count` globals. Cost: linear in the section and `count`.
    pub(crate) fn globals(&self, count: usize) -> Vec<Option<&'a str>> {
        self.names(count, |name| match name {
            Name::Global(map) => Some(map),
            _ => None,
        })
    }

    fn names(
        &self,
        count: usize,
        select: impl Fn(Name<'a>) -> Option<NameMap<'a>>,
    ) -> Vec<Option<&'a str>> {
        let mut names = vec![None; count];
        // A malformed entry ends the list; the names before it are kept.
        let subsections = NameSectionReader::new(self.0.clone()).map_while(Result::ok);
        for naming in subsections.filter_map(select).flat_map(|map| map.map_while(Result::ok)) {
            if let Some(name) = names.get_mut(naming.index as usize)
                && !naming.name.is_empty()
            {
                *name = Some(naming.name);
            }
        }
        names
    }
}

/// Makes names unique.
#[derive(Debug, Default)]
pub(crate) struct UniqueNames {
    taken: HashSet<String>,
    /// For each name, the next suffix to try. Without it, `n` equal names would cost `n * n`.
    next_suffix: HashMap<String, u32>,
}

impl UniqueNames {
    /// The name itself, or the first of `name.1`, `name.2` and so on that is not taken.
    pub(crate) fn unique(&mut self, name: &str) -> String {
        if self.taken.insert(name.to_owned()) {
            return name.to_owned();
        }
        let suffix = self.next_suffix.entry(name.to_owned()).or_insert(1);
        loop {
            let candidate = format!("{name}.{suffix}");
            *suffix += 1;
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}
