//! Tables of rows that an embedder fills: the contexts in its own words, and what a table demands.
//!
//! Example: an embedder knows that `%scale` is 3 and that the global `@mode` is 1 when its loop
//! runs. A [`RowTable`] turns both facts into assumptions about the base ([`RowTable::context`]),
//! takes a row that makes them ([`RowTable::push`]), then one that makes none, and is complete
//! ([`RowTable::close`]). Each misuse is a [`TableError`], and leaves the table as it was.
//!
//! A fact about a value holds at the landing. A fact about a global becomes an assumption at each
//! of its reads in the base: code behind the landing may write it.

use crate::landing::{LandingCode, LandingRow};
use crate::speculate::{Assumption, Expected};
use ir::{Function, Global, Imm, Module, Opcode, Point, Value};
use std::fmt;
use transition::VersionKey;

/// What a fact of a context is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FactSubject {
    /// A value of the base, live at the landing.
    Value(Value),
    /// A global of the module.
    Global(Global),
}

/// A fact of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextFact {
    /// What it is about.
    pub of: FactSubject,
    /// What holds of it.
    pub expected: Expected,
}

/// Why a table does not take a context or a row, or is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableError {
    /// The value is not available at the landing, or no code behind it reads the value.
    NotAvailable(Value),
    /// The module declares no such global.
    NoSuchGlobal(Global),
    /// The row is entered from another version, or at another point, than the table's, or a
    /// context is about another version.
    OtherVersion,
    /// The table has no row, or its last row makes an assumption.
    LastAssumes,
    /// No run comes to a row behind a row without assumptions.
    AfterLast,
    /// With the row, the machine code of the table would have so many bytes, more than it may have.
    TooManyBytes {
        /// The bytes with the row.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::NotAvailable(value) => write!(f, "{value} is not live at the landing"),
            TableError::NoSuchGlobal(global) => write!(f, "the module declares no {global}"),
            TableError::OtherVersion => {
                f.write_str("the row or context is not of this point of the base")
            }
            TableError::LastAssumes => f.write_str("the last row of the table assumes something"),
            TableError::AfterLast => f.write_str("a row that assumes nothing is the last"),
            TableError::TooManyBytes { bytes, limit } => {
                write!(f, "the table would have {bytes} bytes of code, and may have {limit}")
            }
        }
    }
}

impl std::error::Error for TableError {}

/// The rows behind a point of a base, in the order in which runs try them.
#[derive(Clone, Debug)]
pub struct RowTable {
    code: LandingCode,
    base: VersionKey,
    rows: Vec<LandingRow>,
    bytes: usize,
    limit: usize,
}

impl RowTable {
    /// A table without rows for the code behind a point of `base`, whose machine code may have so
    /// many bytes.
    pub fn new(code: LandingCode, base: &Function, limit: usize) -> RowTable {
        RowTable { code, base: VersionKey::of(base), rows: Vec::new(), bytes: 0, limit }
    }

    /// The code behind the point, of which rows are made ([`LandingCode::row`]).
    pub fn code(&self) -> &LandingCode {
        &self.code
    }

    /// The assumptions about the base that a row in this context makes. Linear in the base for each
    /// global.
    ///
    /// # Errors
    /// [`TableError::OtherVersion`] if `base` is another version than the base of the table.
    /// [`TableError::NotAvailable`] and [`TableError::NoSuchGlobal`]: the first fact at fault.
    pub fn context(
        &self,
        module: &Module,
        base: &Function,
        facts: &[ContextFact],
    ) -> Result<Vec<Assumption>, TableError> {
        if VersionKey::of(base) != self.base {
            return Err(TableError::OtherVersion);
        }
        let live = &self.code.stay().entry().requires;
        let mut all = Vec::new();
        for ContextFact { of, expected } in facts {
            let expected = *expected;
            match of {
                FactSubject::Value(value) if !live.contains(value) => {
                    return Err(TableError::NotAvailable(*value));
                }
                FactSubject::Value(value) => {
                    let at = self.code.at();
                    all.push(Assumption { at, value: *value, expected, reason: 0 });
                }
                FactSubject::Global(global) if !module.globals.is_valid(*global) => {
                    return Err(TableError::NoSuchGlobal(*global));
                }
                FactSubject::Global(global) => {
                    let reads = base.all_insts().filter(|inst| {
                        let data = base.inst(*inst);
                        data.opcode == Opcode::GlobalGet && data.imm == Imm::Global(*global)
                    });
                    all.extend(reads.filter_map(|read| {
                        let at = Point::before(base.next_inst(read)?);
                        let value = base.inst(read).result()?;
                        Some(Assumption { at, value, expected, reason: 0 })
                    }));
                }
            }
        }
        Ok(all)
    }

    /// Appends a row, whose machine code has so many bytes.
    ///
    /// # Errors
    /// [`TableError::OtherVersion`], [`TableError::AfterLast`], and [`TableError::TooManyBytes`].
    pub fn push(&mut self, row: LandingRow, bytes: usize) -> Result<(), TableError> {
        if row.enter.source() != self.base || !row.enter.has_entry(self.code.at()) {
            return Err(TableError::OtherVersion);
        }
        if self.rows.last().is_some_and(|last| last.exits.is_empty()) {
            return Err(TableError::AfterLast);
        }
        let bytes = self.bytes.saturating_add(bytes);
        if bytes > self.limit {
            return Err(TableError::TooManyBytes { bytes, limit: self.limit });
        }
        self.bytes = bytes;
        self.rows.push(row);
        Ok(())
    }

    /// The rows of a complete table: the last assumes nothing, so it takes every run.
    ///
    /// # Errors
    /// [`TableError::LastAssumes`].
    pub fn close(&self) -> Result<&[LandingRow], TableError> {
        match self.rows.last() {
            Some(last) if last.exits.is_empty() => Ok(&self.rows),
            _ => Err(TableError::LastAssumes),
        }
    }

    /// The rows so far, complete or not.
    pub fn rows(&self) -> &[LandingRow] {
        &self.rows
    }

    /// The bytes of machine code of the rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
