//! How a policy enters code that assumes in the middle of a run: at hot loops, and where an
//! assumption has failed.

use super::{Goal, Tiered, Workplace};
use crate::Observer;
use crate::limits::{TableLimits, TableUse};
use crate::speculating::MAX_FAILURES;
use crate::tables::{ExitLanding, ROW_AFTER, RowMaker, RowTaken, TableKey};
use derive::speculate::Pins;
use ir::Function;
use jit::{Continuation, FailedPoint, HotLoop, Onward, RunError, Tier};
use std::sync::Arc;
use transition::mapping::Entry;

impl<O: Observer> Tiered<O> {
    /// Sets where runs enter rows of landing tables (`docs/speculation.md`). Default: everywhere.
    pub fn entering(self, table_use: TableUse) -> Tiered<O> {
        Tiered { table_use, ..self }
    }

    /// Bounds the landing tables. Default: [`TableLimits::default`].
    pub fn table_limits(mut self, limits: TableLimits) -> Tiered<O> {
        self.tables.limits = limits;
        self
    }

    /// Sets the values that assumptions keep as operands. Default: the values that exits lack.
    pub fn pinning(mut self, pins: Pins) -> Tiered<O> {
        self.speculations.pin(pins);
        self
    }

    /// The most work of the search for assumptions with exits in one version
    /// ([`derive::speculate::Plan::work`]). Default: [`derive::speculate::Plan::WORK`].
    pub fn searching(mut self, work: u64) -> Tiered<O> {
        self.speculations.grant(work);
        self
    }

    /// The continuation of a loop of the base in code that assumes: the speculative version, or a
    /// row of the landing table at the loop, since no entry lands behind an assumption.
    ///
    /// # Errors
    /// If code cannot be compiled or linked.
    pub(super) fn enter_speculative(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
        base: &Function,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let Tiered { speculations, pipeline, observer, workplace, tables, .. } = self;
        let Workplace::Here(compiler) = workplace else { return Ok(None) };
        let one = speculations.version(tier, at.func, pipeline, observer)?;
        let entry = one.and_then(|one| Some((one.made.forward.checked_entry(at.at)?, one)));
        let may = |entry: &Entry| entry.kept.is_empty() || tier.gives(at.func, &entry.requires);
        if let Some((entry, one)) = entry.filter(|(entry, _)| may(entry.entry())) {
            return compiler.continuation(tier.engine(), base, entry, &one.version).map(Some);
        }
        let of = speculations.of_rows(tier, at.func, pipeline, observer);
        let may_enter = self.room > 0 && self.table_use != TableUse::Nowhere;
        let Some((assume, plan, ways)) = of.filter(|_| may_enter) else { return Ok(None) };
        let mut maker = RowMaker { assume, plan, ways, observer };
        let before = tables.bytes;
        let entry = tables.enter_loop(tier, TableKey { func: at.func, at: at.at }, &mut maker);
        self.spend_on_rows(before);
        Ok(entry)
    }

    /// The continuation of a loop that an interpreter of the embedder's own runs, in a row that
    /// assumes nothing, since no entry leads into the version of the function there. `None` if no
    /// row can be made.
    pub(super) fn enter_plain(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Option<Arc<Continuation>> {
        let may_enter = self.room > 0 && self.table_use != TableUse::Nowhere;
        let is_here = matches!(self.workplace, Workplace::Here(_));
        if !may_enter || !is_here || !tier.is_of_embedder() {
            return None;
        }
        let Tiered { pipeline, observer, tables, .. } = self;
        let key = TableKey { func: at.func, at: at.at };
        let is_full = tables.is_full(at.func);
        let row = tables.plain.enter(tier, key, is_full, pipeline, observer);
        let before = tables.bytes;
        tables.bytes += row.bytes;
        tables.is_out_of_memory |= row.is_out_of_memory;
        self.spend_on_rows(before);
        row.enter
    }

    /// Counts the bytes of new rows, of which there were so many before.
    fn spend_on_rows(&mut self, before: usize) {
        self.room = self.room.saturating_sub(self.tables.bytes - before);
        if self.tables.is_out_of_memory {
            self.room = 0;
        }
    }

    /// The run continues in a row of the landing table where an exit lands. `None` if the exit has
    /// been taken rarely, or no row can take over. If the table ends there, the value of the
    /// assumption has many contents, and the version of the function gives it up.
    ///
    /// # Errors
    /// If the next version of the function cannot be compiled or linked.
    pub(super) fn land(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<Option<Onward>, RunError> {
        let Tiered { speculations, pipeline, observer, tables, contexts, .. } = self;
        let may_land = self.room > 0 && self.table_use == TableUse::Everywhere;
        if !may_land || !tables.may_land(at) {
            return Ok(None);
        }
        let (func, before) = (at.version.func(), tables.bytes);
        let exit = speculations.exit(at).or_else(|| tables.exit(at)).or_else(|| contexts.exit(at));
        let landing = exit.and_then(|exit| exit.landed(at));
        let failed = landing.as_ref().map(ExitLanding::assumption);
        let of = speculations.of_rows(tier, func, pipeline, observer);
        let went_on = landing.zip(of).and_then(|(landing, (assume, plan, ways))| {
            tables.land(tier, at, landing, &mut RowMaker { assume, plan, ways, observer })
        });
        self.spend_on_rows(before);
        let Some(RowTaken { onward, is_last }) = went_on else {
            self.tables.give_up_exit(at);
            return Ok(None);
        };
        let Tiered { speculations, pipeline, observer, .. } = self;
        let listed = failed.filter(|_| is_last).and_then(|of| speculations.listed(func, &of));
        if listed.is_some() && speculations.replace(tier, func, listed, pipeline, observer)? {
            self.want(tier, Goal::Version(func))?;
        }
        Ok(Some(onward))
    }

    /// Counts the failure of an exit. If no row takes over, returns the failures of its assumption
    /// in all versions and rows together, else the failures of this exit. Logarithmic.
    pub(super) fn lost(&mut self, at: FailedPoint<'_>) -> u64 {
        let Tiered { speculations, tables, contexts, .. } = self;
        let is_lost = match self.table_use {
            TableUse::Everywhere => at.count >= ROW_AFTER && !tables.may_land(at),
            TableUse::AtLoops => true,
            TableUse::Nowhere => false,
        };
        let exit = speculations.exit(at).or_else(|| tables.exit(at)).or_else(|| contexts.exit(at));
        match exit.filter(|_| is_lost).map(|exit| exit.assumption()) {
            Some(of) => at.count.max(tables.lost.note(at.version.func(), &of)),
            None => at.count,
        }
    }

    /// Gives up a row whose assumption has failed too often, though no row takes over.
    ///
    /// # Errors
    /// If an exit that led to the row cannot lead back to the interpreter.
    pub(super) fn give_up_row(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<(), RunError> {
        if at.count < MAX_FAILURES {
            return Ok(());
        }
        let func = at.version.func();
        let of = self.tables.give_up_row(tier, at)?;
        if let Some(listed) = of.and_then(|of| self.speculations.listed(func, &of)) {
            self.speculations.give_up(func, &listed, &mut self.observer);
        }
        Ok(())
    }
}
