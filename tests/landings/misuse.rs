//! Tables that an embedder fills wrongly: each misuse is an error by name, and the table stays as
//! it was.

use super::directed::{SCALED, head};
use crate::speculation::support::{first, parsed, value};
use ir::{Function, Global, Module, Point};
use osier::landing::{LandingCode, LandingRow};
use osier::speculate::{Assumption, Expected, Plan};
use osier::tables::{ContextFact, FactSubject, RowTable, TableError};
use passes::parse;

/// The limit of the table, in bytes.
const LIMIT: usize = 1000;

/// A table of the loop header of [`SCALED`], with one row.
struct Filled {
    module: Module,
    table: RowTable,
}

impl Filled {
    fn new() -> Filled {
        let module = parsed(SCALED);
        let (_, base) = first(&module);
        let code = LandingCode::new(&module, base, head(base)).expect("a loop header is a landing");
        let mut table = RowTable::new(code, base, LIMIT);
        let row = row_of(&module, table.code(), base, &[fact(base, "scale", 3)]);
        table.push(row, 400).expect("it fits");
        Filled { module, table }
    }

    fn base(&self) -> &Function {
        first(&self.module).1
    }

    /// A row of the table in a context.
    fn row(&self, facts: &[ContextFact]) -> LandingRow {
        row_of(&self.module, self.table.code(), self.base(), facts)
    }

    /// Demands that a step fails in this way, and that the table is as it was.
    fn refuses(&mut self, error: TableError, step: impl FnOnce(&mut Filled) -> TableError) {
        let before = (self.table.rows().len(), self.table.bytes());
        assert_eq!(step(self), error);
        assert_eq!((self.table.rows().len(), self.table.bytes()), before);
    }
}

fn fact(base: &Function, name: &str, bits: u64) -> ContextFact {
    ContextFact { of: FactSubject::Value(value(base, name)), expected: Expected::Is(bits) }
}

fn row_of(
    module: &Module,
    code: &LandingCode,
    base: &Function,
    facts: &[ContextFact],
) -> LandingRow {
    let table = RowTable::new(code.clone(), base, LIMIT);
    let assume: Vec<Assumption> = table.context(module, base, facts).expect("it is a context");
    let pipeline = parse("O2").expect("it is a pipeline");
    code.row(module, base, &Plan::new(&assume, &pipeline)).expect("it is legal")
}

#[test]
fn a_table_whose_last_row_assumes_nothing_is_complete() {
    let mut filled = Filled::new();
    let last = filled.row(&[]);
    filled.table.push(last, 600).expect("it fits");
    let rows = filled.table.close().expect("it is complete");
    assert_eq!(rows.iter().map(|row| row.exits.len()).collect::<Vec<_>>(), [1, 0]);
    let again = filled.row(&[]);
    filled.refuses(TableError::AfterLast, |filled| {
        filled.table.push(again, 0).expect_err("a row behind the last")
    });
}

/// `%tag` is computed behind the landing.
#[test]
fn a_context_over_a_value_that_is_not_available_is_refused() {
    let mut filled = Filled::new();
    let tag = fact(filled.base(), "tag", 0);
    let error = TableError::NotAvailable(value(filled.base(), "tag"));
    filled.refuses(error, |filled| {
        let context = filled.table.context(&filled.module, filled.base(), &[tag]);
        context.expect_err("it is not available")
    });
}

#[test]
fn a_context_over_a_global_that_is_not_declared_is_refused() {
    let mut filled = Filled::new();
    let global = Global::from_u32(7);
    let mode = ContextFact { of: FactSubject::Global(global), expected: Expected::Is(1) };
    filled.refuses(TableError::NoSuchGlobal(global), |filled| {
        let context = filled.table.context(&filled.module, filled.base(), &[mode]);
        context.expect_err("the module declares none")
    });
}

/// The row of another function, and the row of another point of the same function.
#[test]
fn a_row_of_another_version_is_refused() {
    let mut filled = Filled::new();
    let other = parsed(&SCALED.replace("%m = mul", "%m = add"));
    let (_, base) = first(&other);
    let code = LandingCode::new(&other, base, head(base)).expect("a loop header is a landing");
    let row = row_of(&other, &code, base, &[]);
    filled.refuses(TableError::OtherVersion, |filled| {
        filled.table.push(row, 0).expect_err("another function")
    });
    let base = filled.base();
    let start = Point::before(base.first_inst(base.entry()));
    let code = LandingCode::new(&filled.module, base, start).expect("the start is a landing");
    let row = row_of(&filled.module, &code, base, &[]);
    filled.refuses(TableError::OtherVersion, |filled| {
        filled.table.push(row, 0).expect_err("another point")
    });
}

/// The value is live there, too, but other code computes it.
#[test]
fn a_context_of_another_version_is_refused() {
    let mut filled = Filled::new();
    let other = parsed(&SCALED.replace("%m = mul", "%m = add"));
    let (_, base) = first(&other);
    filled.refuses(TableError::OtherVersion, |filled| {
        let context = filled.table.context(&filled.module, base, &[fact(base, "scale", 3)]);
        context.expect_err("another function")
    });
}

#[test]
fn a_table_whose_last_row_assumes_is_not_complete() {
    let mut filled = Filled::new();
    filled.refuses(TableError::LastAssumes, |filled| {
        filled.table.close().expect_err("the last row assumes")
    });
}

#[test]
fn a_table_of_more_bytes_than_allowed_is_refused() {
    let mut filled = Filled::new();
    let row = filled.row(&[]);
    filled.refuses(TableError::TooManyBytes { bytes: 1001, limit: LIMIT }, |filled| {
        filled.table.push(row, 601).expect_err("too many bytes")
    });
}

/// A fact about a global is assumed at each read.
#[test]
fn a_fact_about_a_global_is_assumed_where_the_code_reads_it() {
    let text = "\
global @mode: mut i32 = 1
func @f(%x: i32) -> i32 {
entry:
  %m = global_get.i32 @mode
  br_if %m, fast, slow
fast:
  %y = add.i32 %x, %m
  return %y
slow:
  return %x
}
";
    let module = parsed(text);
    let (_, base) = first(&module);
    let at = Point::before(base.first_inst(base.entry()));
    let code = LandingCode::new(&module, base, at).expect("the start is a landing");
    let table = RowTable::new(code, base, LIMIT);
    let global = module.globals.keys().next().expect("it declares one");
    let mode = ContextFact { of: FactSubject::Global(global), expected: Expected::Is(1) };
    let assume = table.context(&module, base, &[mode]).expect("it is declared");
    assert_eq!(assume.iter().map(|of| of.value).collect::<Vec<_>>(), [value(base, "m")]);
    let row = row_of(&module, table.code(), base, &[mode]);
    assert_eq!((row.exits.len(), row.function.blocks().count()), (1, 1), "one side is gone");
}
