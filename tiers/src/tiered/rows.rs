//! How a policy enters code that assumes in the middle of a run: at hot loops, and where an
//! assumption has failed.

use super::{Tiered, Workplace};
use crate::Observer;
use crate::tables::{ROW_AFTER, RowMaker, TableUse};
use ir::Function;
use jit::{Continuation, FailedPoint, HotLoop, Onward, RunError, Tier};
use std::sync::Arc;
use transition::mapping::Entry;

impl<O: Observer> Tiered<O> {
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
        let may = |entry: &Entry| entry.kept.is_empty() || tier.has_dead_values();
        if let Some((entry, one)) = entry.filter(|(entry, _)| may(entry.entry())) {
            return compiler.continuation(tier.engine(), base, entry, &one.version).map(Some);
        }
        let of = speculations.of_rows(tier, at.func, pipeline);
        let may_enter = self.room > 0 && self.table_use != TableUse::Nowhere;
        let Some((assume, plan)) = of.filter(|_| may_enter) else { return Ok(None) };
        let mut maker = RowMaker { assume, plan, observer };
        let before = tables.bytes;
        let entry = tables.enter_loop(tier, (at.func, at.at), &mut maker);
        self.room = self.room.saturating_sub(tables.bytes - before);
        entry
    }

    /// Goes on in a row of the landing table where an exit lands. `None` if the exit has been taken
    /// rarely, or no row can take over.
    ///
    /// # Errors
    /// If a row cannot be compiled or linked.
    pub(super) fn land(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<Option<Onward>, RunError> {
        let Tiered { speculations, pipeline, observer, tables, .. } = self;
        let exit = speculations.exit(at).or_else(|| tables.exit(at));
        let may_land = at.count >= ROW_AFTER && self.table_use == TableUse::Everywhere;
        let landing = exit.filter(|_| may_land).and_then(|exit| exit.landed(at));
        let Some(landing) = landing else { return Ok(None) };
        let of = speculations.of_rows(tier, at.version.func(), pipeline);
        let Some((assume, plan)) = of.filter(|_| self.room > 0) else { return Ok(None) };
        let before = tables.bytes;
        let onward = tables.land(tier, at, landing, &mut RowMaker { assume, plan, observer });
        self.room = self.room.saturating_sub(tables.bytes - before);
        onward
    }
}
