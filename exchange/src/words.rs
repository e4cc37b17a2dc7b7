//! The words of the lines of an exported file.

use super::read::ReadError;
use cranelift_entity::EntityRef;
use ir::ranges::Interval;
use ir::rules::RULES;
use ir::{Func, Global, Imm, Memory, Opcode, Table, Type};
use std::collections::BTreeMap;
use std::fmt;
use transition::certificate::{By, NO_TERM, RangeBy, RangeClaim, TermId};
use transition::mapping::Operand;

pub(super) type Read<T> = Result<T, ReadError>;

/// The longest error message, in characters. Messages quote the input, which may have any length.
const MAX_MESSAGE: usize = 200;

/// A message, truncated at [`MAX_MESSAGE`] characters.
pub(super) fn shortened(what: impl fmt::Display) -> String {
    let mut what = what.to_string();
    if let Some((end, _)) = what.char_indices().nth(MAX_MESSAGE) {
        what.truncate(end);
        what.push_str("...");
    }
    what
}

/// The words of a line that are not read yet.
pub(super) struct ExportWords<'t> {
    pub(super) words: &'t str,
    pub(super) line: usize,
}

impl<'t> ExportWords<'t> {
    pub(super) fn error(&self, what: impl fmt::Display) -> ReadError {
        ReadError { line: self.line, what: shortened(what) }
    }

    pub(super) fn next(&mut self) -> Read<&'t str> {
        let (word, rest) = self.words.split_once(' ').unwrap_or((self.words, ""));
        self.words = rest;
        if word.is_empty() { Err(self.error("the line ends too early")) } else { Ok(word) }
    }

    pub(super) fn end(&self) -> Read<()> {
        if self.words.is_empty() {
            Ok(())
        } else {
            Err(self.error(format_args!("unexpected `{}` at the end of the line", self.words)))
        }
    }

    pub(super) fn parse<T: std::str::FromStr>(&self, word: &str) -> Read<T> {
        word.parse().map_err(|_| self.error(format_args!("`{word}` is not a valid number here")))
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Read<T> {
        let word = self.next()?;
        self.parse(word)
    }

    pub(super) fn parse_entity<T: EntityRef>(&self, word: &str) -> Read<T> {
        let index: u32 = self.parse(word)?;
        // The largest number is the reserved index of packed options; an entity must not have it.
        if index == u32::MAX {
            Err(self.error(format_args!("`{word}` is not an id")))
        } else {
            Ok(T::new(index as usize))
        }
    }

    pub(super) fn entity<T: EntityRef>(&mut self) -> Read<T> {
        let word = self.next()?;
        self.parse_entity(word)
    }

    pub(super) fn list<T>(&mut self, item: impl Fn(&Self, &'t str) -> Read<T>) -> Read<Vec<T>> {
        match self.next()? {
            "-" => Ok(Vec::new()),
            word => word.split(',').map(|i| item(self, i)).collect(),
        }
    }

    /// The two sides of an item `A=B`.
    pub(super) fn halves(&self, item: &'t str) -> Read<(&'t str, &'t str)> {
        item.split_once('=').ok_or_else(|| self.error(format_args!("`{item}` has no `=`")))
    }

    pub(super) fn opcode(&mut self, opcodes: &BTreeMap<&'static str, Opcode>) -> Read<Opcode> {
        let word = self.next()?;
        opcodes
            .get(word)
            .copied()
            .ok_or_else(|| self.error(format_args!("unknown operation `{word}`")))
    }

    pub(super) fn type_named(&self, name: &str) -> Read<Type> {
        Type::from_name(name).ok_or_else(|| self.error(format_args!("unknown type `{name}`")))
    }

    pub(super) fn ty(&mut self) -> Read<Type> {
        let word = self.next()?;
        self.type_named(word)
    }

    pub(super) fn operand(&self, word: &str) -> Read<Operand> {
        if let Some(value) = word.strip_prefix('v') {
            return Ok(Operand::Source(self.parse_entity(value)?));
        }
        match word.strip_prefix('s') {
            Some(step) => Ok(Operand::Step(self.parse(step)?)),
            None => Err(self.error(format_args!("`{word}` is not an operand"))),
        }
    }

    pub(super) fn term_named(&mut self) -> Read<TermId> {
        match self.next()? {
            "-" => Ok(NO_TERM),
            word => self.parse(word),
        }
    }

    /// The words of a list inside one word of this line.
    fn inside(&self, words: &'t str) -> ExportWords<'t> {
        ExportWords { words, line: self.line }
    }

    pub(super) fn by(&mut self) -> Read<By> {
        let word = self.next()?;
        let parts: Vec<&str> = word.split(':').collect();
        match parts.as_slice() {
            ["itself"] => Ok(By::Itself),
            ["folding"] => Ok(By::Folding),
            ["sum", result] => Ok(By::Sum { result: self.parse(result)? }),
            ["rule", name, swapped, inner, result] => {
                let declared = |number: u32| number.checked_add(RULES.len() as u32);
                let rule = match name.strip_prefix("declared.") {
                    Some(number) => declared(self.parse(number)?),
                    None => RULES.iter().position(|r| r.name == *name).map(|at| at as u32),
                };
                let rule = rule.ok_or_else(|| self.error(format_args!("unknown rule `{name}`")))?;
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

    /// The fields of a claim about integers.
    pub(super) fn range(&mut self) -> Read<RangeClaim> {
        let (block, term) = (self.entity()?, self.number()?);
        let within = Interval { low: self.number()?, high: self.number()? };
        let word = self.next()?;
        let by = match word.split_once(':') {
            None if word == "edges" => RangeBy::Edges,
            None if word == "operation" => RangeBy::Operation,
            Some(("above", block)) => RangeBy::Above(self.parse_entity(block)?),
            Some(("compared", block)) => RangeBy::Compared(self.parse_entity(block)?),
            _ => return Err(self.error(format_args!("`{word}` does not justify a range"))),
        };
        Ok(RangeClaim { block, term, within, by })
    }

    pub(super) fn immediate(&mut self) -> Read<Imm> {
        let word = self.next()?;
        let parts: Vec<&str> = word.split(':').collect();
        match parts.as_slice() {
            ["-"] => Ok(Imm::None),
            ["bits", bits] => Ok(Imm::Bits(self.parse(bits)?)),
            ["address", memory, offset] => {
                Ok(Imm::Address(self.parse_entity::<Memory>(memory)?, self.parse(offset)?))
            }
            ["host", memory, offset] => {
                Ok(Imm::HostAddress(self.parse_entity::<Memory>(memory)?, self.parse(offset)?))
            }
            ["memory", memory] => Ok(Imm::Memory(self.parse_entity(memory)?)),
            ["global", global] => Ok(Imm::Global(self.parse_entity::<Global>(global)?)),
            ["table", table] => Ok(Imm::Table(self.parse_entity::<Table>(table)?)),
            ["func", func] => Ok(Imm::Func(self.parse_entity::<Func>(func)?)),
            // Indirect calls and traps cannot be terms, so their immediates are errors.
            _ => Err(self.error(format_args!("`{word}` is not an immediate of a term"))),
        }
    }
}
