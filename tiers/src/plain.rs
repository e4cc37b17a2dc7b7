//! Rows that assume nothing, at loops that no entry leads into.
//!
//! A loop of the base reads a global of the program. The optimized version reads it in front of the
//! loop, so no entry leads into the middle: the run has not executed that load. The code behind the
//! loop header is a function of its own, which executes the load. Runs enter it at its start.
//! `a_loop_without_an_entry_is_entered_in_a_row_of_its_own`

use super::Observer;
use super::tables::{RowError, RowMaker, TableKey, compile, is_out_of_memory};
use derive::landing::LandingCode;
use derive::speculate::Plan;
use ir::Func;
use jit::{Continuation, Tier};
use passes::Pipeline;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The code behind a loop header.
enum PlainLoop {
    /// The interpreter did not give the values that the code needs, at the last request.
    Lacking(Box<LandingCode>),
    /// The way into the row, and the bytes of its machine code.
    Made(Arc<Continuation>, usize),
    /// No row can be made.
    Never,
}

/// By loop header: the code behind it.
#[derive(Default)]
pub(super) struct PlainRows(BTreeMap<TableKey, PlainLoop>);

/// A way into a row, with its cost.
#[derive(Default)]
pub(super) struct PlainRow {
    pub(super) enter: Option<Arc<Continuation>>,
    /// The bytes of new machine code.
    pub(super) bytes: usize,
    /// Whether the engine has had no room for the code.
    pub(super) is_out_of_memory: bool,
}

impl PlainRows {
    /// The bytes of machine code of all rows of a function. Linear in them.
    pub(super) fn bytes_of(&self, func: Func) -> usize {
        let rows = self.0.range(TableKey::first(func)..);
        let of = rows.take_while(|(key, _)| key.func == func);
        of.map(|(_, made)| if let PlainLoop::Made(_, bytes) = made { *bytes } else { 0 }).sum()
    }

    /// The continuation from a loop header of a base into its row, which is made at the first
    /// request. `is_full` tells that the function gets no more rows. Cost: as
    /// [`LandingCode::row`] without assumptions, else logarithmic.
    pub(super) fn enter<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        key: TableKey,
        is_full: bool,
        pipeline: &Pipeline,
        observer: &mut O,
    ) -> PlainRow {
        let module = Arc::clone(tier.module());
        let Some(base) = module.body(key.func) else { return PlainRow::default() };
        let code = match self.0.remove(&key) {
            // `a_row_is_entered_with_all_values_or_not_at_all`
            Some(PlainLoop::Made(made, bytes)) => {
                let enter = tier.gives(key.func, made.requires()).then(|| Arc::clone(&made));
                self.0.insert(key, PlainLoop::Made(made, bytes));
                return PlainRow { enter, ..PlainRow::default() };
            }
            Some(PlainLoop::Never) => Err(None),
            _ if is_full => return PlainRow::default(),
            Some(PlainLoop::Lacking(code)) => Ok(code),
            None => LandingCode::new(&module, base, key.at).map(Box::new).map_err(Some),
        };
        let code = match code {
            Ok(code) if !tier.gives(key.func, &code.stay().entry().requires) => {
                self.0.insert(key, PlainLoop::Lacking(code));
                return PlainRow::default();
            }
            Ok(code) => code,
            Err(error) => {
                if let Some(error) = error {
                    observer.without_row(key.func, key.at, &RowError::Landing(error));
                }
                self.0.insert(key, PlainLoop::Never);
                return PlainRow::default();
            }
        };
        let plan = Plan::new(&[], pipeline);
        let made = code.row(&module, base, &plan).map_err(RowError::Landing);
        let mut maker = RowMaker { assume: &[], plan, ways: None, observer };
        let compiled = made.and_then(|made| {
            let compiled = compile(tier, base, key, &made, Default::default(), &mut maker);
            compiled.map(|compiled| (made, compiled)).map_err(RowError::Code)
        });
        match compiled {
            Ok((made, (version, enter))) => {
                maker.observer.row(key.func, key.at, &made);
                let bytes = version.code_size() + enter.code_size();
                self.0.insert(key, PlainLoop::Made(Arc::clone(&enter), bytes));
                PlainRow { enter: Some(enter), bytes, is_out_of_memory: false }
            }
            Err(error) => {
                maker.observer.without_row(key.func, key.at, &error);
                self.0.insert(key, PlainLoop::Never);
                let is_full = matches!(&error, RowError::Code(error) if is_out_of_memory(error));
                PlainRow { is_out_of_memory: is_full, ..PlainRow::default() }
            }
        }
    }
}
