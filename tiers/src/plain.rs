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
use jit::{Continuation, Tier};
use passes::Pipeline;
use std::collections::BTreeMap;
use std::sync::Arc;

/// By loop header: the way into its row. `None` if no row can be made.
#[derive(Default)]
pub(super) struct PlainRows(BTreeMap<TableKey, Option<Arc<Continuation>>>);

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
    /// The continuation from a loop header of a base into its row, which is made at the first
    /// request. Cost: as [`LandingCode::row`] without assumptions, else logarithmic.
    pub(super) fn enter<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        key: TableKey,
        pipeline: &Pipeline,
        observer: &mut O,
    ) -> PlainRow {
        if let Some(known) = self.0.get(&key) {
            // `a_row_is_entered_with_all_values_or_not_at_all`
            let enter = known.clone().filter(|made| tier.gives(key.func, made.requires()));
            return PlainRow { enter, ..PlainRow::default() };
        }
        let module = Arc::clone(tier.module());
        let Some(base) = module.body(key.func) else { return PlainRow::default() };
        let plan = Plan::new(&[], pipeline);
        let code = LandingCode::new(&module, base, key.at);
        let lacks = |code: &LandingCode| !tier.gives(key.func, &code.stay().entry().requires);
        if code.as_ref().is_ok_and(lacks) {
            return PlainRow::default();
        }
        let made = code.and_then(|code| code.row(&module, base, &plan)).map_err(RowError::Landing);
        let mut maker = RowMaker { assume: &[], plan, ways: None, observer };
        let compiled = made.and_then(|made| {
            let compiled = compile(tier, base, key, &made, Default::default(), &mut maker);
            compiled.map(|compiled| (made, compiled)).map_err(RowError::Code)
        });
        match compiled {
            Ok((made, (version, enter))) => {
                maker.observer.row(key.func, key.at, &made);
                self.0.insert(key, Some(Arc::clone(&enter)));
                let bytes = version.code_size() + enter.code_size();
                PlainRow { enter: Some(enter), bytes, is_out_of_memory: false }
            }
            Err(error) => {
                maker.observer.without_row(key.func, key.at, &error);
                self.0.insert(key, None);
                let is_full = matches!(&error, RowError::Code(error) if is_out_of_memory(error));
                PlainRow { is_out_of_memory: is_full, ..PlainRow::default() }
            }
        }
    }
}
