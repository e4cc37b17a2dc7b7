//! Reads the names of functions.
//!
//! `.debug_info` is a list of units, each a list of entries. An abbreviation gives an entry its
//! attributes; some take no bytes, and units may share or overlap abbreviations. So attributes and
//! bytes of abbreviations are counted, and reading ends when there are more than debug info of this
//! size has.

use super::Notes;
use super::sections::{DebugSections, LONGEST, string_at};
use crate::offsets::CodeOffsets;
use gimli::{
    Abbreviation, Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugInfo,
    EndianSlice, EntriesRaw, Format, LittleEndian, Reader as _, UnitHeader, UnitOffset,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Value<'a> = AttributeValue<Reader<'a>>;

const SECTION: &str = ".debug_info";

/// Attributes for each byte of entries. Compilers write less than one.
const ATTRIBUTES: usize = 4;

/// The longest table of abbreviations that is read, in bytes. Large units have a few thousand.
const LONGEST_TABLE: usize = 1 << 20;

/// The number of entries in which a name is looked for: a copy leads to its origin, a definition in
/// front of its class to the declaration in the class.
const HOPS: usize = 4;

/// Names by the offset at which the body of the function starts.
#[derive(Debug)]
pub(super) struct FunctionNames {
    names: BTreeMap<u32, Box<str>>,
    pub(super) notes: Notes,
}

impl FunctionNames {
    pub(super) fn read(sections: &DebugSections, offsets: &CodeOffsets) -> FunctionNames {
        let bodies = offsets.funcs().filter_map(|func| offsets.body(func));
        let mut walk = Walk {
            sections,
            starts: bodies.map(|body| body.start).collect(),
            attributes: ATTRIBUTES * sections.info.len() + 1,
            abbreviation_bytes: 4 * sections.abbrev.len() + 1,
            name_bytes: 4 * sections.len() + LONGEST,
            names: FunctionNames { names: BTreeMap::new(), notes: Notes::default() },
        };
        walk.units();
        walk.names
    }

    /// The name of the function whose body starts at an offset.
    pub(super) fn at(&self, start: u32) -> Option<&str> {
        self.names.get(&start).map(|name| &**name)
    }
}

struct Walk<'a> {
    sections: &'a DebugSections,
    starts: BTreeSet<u32>,
    /// The attributes that may still be read.
    attributes: usize,
    /// The bytes of abbreviations that may still be read.
    abbreviation_bytes: usize,
    /// The bytes of names that may still be made.
    name_bytes: usize,
    names: FunctionNames,
}

/// The parts of an entry that names are made of.
#[derive(Default)]
struct DebugEntry<'a> {
    start: Option<Value<'a>>,
    name: Option<Value<'a>>,
    linkage_name: Option<Value<'a>>,
    /// The entry that this entry copies or defines.
    origin: Option<Value<'a>>,
    addr_base: Option<Value<'a>>,
    str_offsets_base: Option<Value<'a>>,
}

/// A unit and the tables that its entries refer to.
struct DebugUnit<'a, 'u> {
    header: &'u UnitHeader<Reader<'a>>,
    abbreviations: &'u Abbreviations,
    /// The offsets of its parts of `.debug_addr` and `.debug_str_offsets`: behind a header, if the
    /// unit does not tell.
    addr_base: usize,
    str_offsets_base: usize,
}

impl<'a> Walk<'a> {
    /// Reads the units one after another, up to one whose length is wrong.
    fn units(&mut self) {
        const SPENT: &str = "the units from here on are left out";
        let section = DebugInfo::new(&self.sections.info, LittleEndian);
        let (mut headers, mut next) = (section.units(), 0);
        // Units of one object share a table.
        let mut last: Option<(usize, Abbreviations)> = None;
        loop {
            let header = match headers.next() {
                Ok(Some(header)) => header,
                Ok(None) => return,
                Err(error) => return self.names.notes.add(SECTION, next, error),
            };
            let at = header.offset().0;
            next = at + header.length_including_self();
            if [self.attributes, self.abbreviation_bytes, self.name_bytes].contains(&0) {
                return self.names.notes.add(SECTION, at, SPENT);
            }
            let table = header.debug_abbrev_offset().0;
            if last.as_ref().is_none_or(|(offset, _)| *offset != table) {
                last = match self.abbreviations(table) {
                    Ok(abbreviations) => Some((table, abbreviations)),
                    Err(cause) => {
                        self.names.notes.add(SECTION, at, cause);
                        continue;
                    }
                };
            }
            if let Some((_, abbreviations)) = &last
                && let Err(cause) = self.unit(&header, abbreviations)
            {
                self.names.notes.add(SECTION, at, cause);
            }
        }
    }

    /// The abbreviations at an offset, once their length is known.
    fn abbreviations(&mut self, offset: usize) -> Result<Abbreviations, String> {
        let rest = self.sections.abbrev.get(offset..).ok_or("its abbreviations are missing")?;
        let read = &rest[..rest.len().min(LONGEST_TABLE)];
        let length = table_length(EndianSlice::new(read, LittleEndian));
        // Bytes read in vain count, too: else a thousand broken units read all of it each.
        let bytes = *length.as_ref().unwrap_or(&read.len());
        take(&mut self.abbreviation_bytes, bytes, "its abbreviations overlap those of others")?;
        let length = length.map_err(|error| error.to_string())?;
        let table = DebugAbbrev::new(&rest[..length], LittleEndian);
        table.abbreviations(DebugAbbrevOffset(0)).map_err(|error| error.to_string())
    }

    /// Reads the entries of a unit.
    fn unit(
        &mut self,
        header: &UnitHeader<Reader<'a>>,
        abbreviations: &Abbreviations,
    ) -> Result<(), String> {
        let (addr_base, str_offsets_base) = match header.format() {
            Format::Dwarf32 => (8, 8),
            Format::Dwarf64 => (16, 16),
        };
        let mut unit = DebugUnit { header, abbreviations, addr_base, str_offsets_base };
        let entries = header.entries_raw(abbreviations, None);
        let mut entries = entries.map_err(|error| error.to_string())?;
        let root = entries.next_offset();
        while !entries.is_empty() {
            let at = entries.next_offset();
            let abbreviation = entries.read_abbreviation().map_err(|error| error.to_string())?;
            let Some(abbreviation) = abbreviation else { continue };
            let entry = self.entry(&mut entries, abbreviation)?;
            if at == root {
                let base = |value: &Option<Value<'_>>, default| match value {
                    Some(AttributeValue::DebugAddrBase(base)) => base.0,
                    Some(AttributeValue::DebugStrOffsetsBase(base)) => base.0,
                    _ => default,
                };
                unit.addr_base = base(&entry.addr_base, addr_base);
                unit.str_offsets_base = base(&entry.str_offsets_base, str_offsets_base);
            }
            let start = entry.start.as_ref().and_then(|start| self.address(start, &unit));
            let Some(start) = start.filter(|start| {
                abbreviation.tag() == gimli::DW_TAG_subprogram && self.starts.contains(start)
            }) else {
                continue;
            };
            // A second function with the same code adds no name.
            if !self.names.names.contains_key(&start)
                && let Some(name) = self.name(entry, &unit)?
            {
                self.names.names.insert(start, name.into());
            }
        }
        Ok(())
    }

    /// Reads the attributes of an entry.
    fn entry(
        &mut self,
        entries: &mut EntriesRaw<'_, Reader<'a>>,
        abbreviation: &Abbreviation,
    ) -> Result<DebugEntry<'a>, String> {
        let count = abbreviation.attributes().len();
        take(&mut self.attributes, count, "more attributes than entries of this size have")?;
        let mut entry = DebugEntry::default();
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification);
            let attribute = attribute.map_err(|error| error.to_string())?;
            let part = match attribute.name() {
                gimli::DW_AT_low_pc => &mut entry.start,
                gimli::DW_AT_name => &mut entry.name,
                gimli::DW_AT_linkage_name => &mut entry.linkage_name,
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => &mut entry.origin,
                gimli::DW_AT_addr_base => &mut entry.addr_base,
                gimli::DW_AT_str_offsets_base => &mut entry.str_offsets_base,
                _ => continue,
            };
            *part = Some(attribute.value());
        }
        Ok(entry)
    }

    fn address(&self, value: &Value<'_>, unit: &DebugUnit<'_, '_>) -> Option<u32> {
        match value {
            AttributeValue::Addr(address) => u32::try_from(*address).ok(),
            // Addresses of code have 32 bits, in a table for such addresses.
            AttributeValue::DebugAddrIndex(index) => {
                let address = word(&self.sections.addr, unit.addr_base, index.0, 4)?;
                u32::try_from(address).ok()
            }
            _ => None,
        }
    }

    /// The name of an entry: its own, or the name of the entry that it copies or defines.
    ///
    /// # Errors
    /// If a bound is exceeded, or an entry on the way cannot be read.
    fn name(
        &mut self,
        entry: DebugEntry<'a>,
        unit: &DebugUnit<'a, '_>,
    ) -> Result<Option<String>, String> {
        let (mut entry, mut linkage_name) = (entry, None);
        for hop in 0.. {
            if let Some(name) = &entry.name {
                return self.text(name, unit);
            }
            linkage_name = linkage_name.or(entry.linkage_name);
            let Some(AttributeValue::UnitRef(origin)) = entry.origin else { break };
            if hop == HOPS {
                let cause = format!("the origin of a function is {HOPS} entries away, or itself");
                self.names.notes.add(SECTION, unit.header.offset().0, cause);
                break;
            }
            entry = self.entry_at(origin, unit)?;
        }
        match linkage_name {
            Some(name) => self.text(&name, unit),
            None => Ok(None),
        }
    }

    fn entry_at(
        &mut self,
        offset: UnitOffset<usize>,
        unit: &DebugUnit<'a, '_>,
    ) -> Result<DebugEntry<'a>, String> {
        let entries = unit.header.entries_raw(unit.abbreviations, Some(offset));
        let mut entries = entries.map_err(|error| error.to_string())?;
        let abbreviation = entries.read_abbreviation().map_err(|error| error.to_string())?;
        match abbreviation {
            Some(abbreviation) => self.entry(&mut entries, abbreviation),
            None => Ok(DebugEntry::default()),
        }
    }

    /// A text of the debug info. `None` for one that is empty or cannot be found.
    ///
    /// # Errors
    /// If the names get longer than debug info of this size has them.
    fn text(
        &mut self,
        value: &Value<'a>,
        unit: &DebugUnit<'_, '_>,
    ) -> Result<Option<String>, String> {
        let sections = self.sections;
        let text = match value {
            AttributeValue::String(text) if text.len() <= LONGEST => Some(text.to_string_lossy()),
            AttributeValue::DebugStrRef(at) => string_at(&sections.str, at.0),
            AttributeValue::DebugLineStrRef(at) => string_at(&sections.line_str, at.0),
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let size = unit.header.format().word_size().into();
                let at = word(&sections.str_offsets, unit.str_offsets_base, index.0, size);
                let at = at.and_then(|at| usize::try_from(at).ok());
                at.and_then(|at| string_at(&sections.str, at))
            }
            _ => None,
        };
        let bytes = text.as_ref().map_or(LONGEST, |text| text.len());
        take(&mut self.name_bytes, bytes, "the names are longer than the debug info")?;
        Ok(text.filter(|text| !text.is_empty()).map(Cow::into_owned))
    }
}

/// Takes `count` from the rest of a bound. If the rest is too small, takes all of it and fails.
fn take(left: &mut usize, count: usize, cause: &str) -> Result<(), String> {
    let enough = left.checked_sub(count);
    *left = enough.unwrap_or(0);
    enough.map(|_| ()).ok_or_else(|| cause.to_owned())
}

/// An entry of a table of words of some bytes.
fn word(table: &[u8], base: usize, index: usize, bytes: usize) -> Option<u64> {
    let start = base.checked_add(index.checked_mul(bytes)?)?;
    let word = table.get(start..start.checked_add(bytes)?)?;
    Some(word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The bytes of a table of abbreviations, its end included.
fn table_length(table: Reader<'_>) -> gimli::Result<usize> {
    let mut rest = table;
    while !rest.is_empty() && rest.read_uleb128()? != 0 {
        rest.read_uleb128()?; // the tag
        rest.read_u8()?; // whether it has children
        loop {
            let (name, form) = (rest.read_uleb128()?, rest.read_uleb128()?);
            if u64::from(gimli::DW_FORM_implicit_const.0) == form {
                rest.read_sleb128()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    Ok(table.len() - rest.len())
}
