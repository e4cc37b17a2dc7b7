//! How a policy lets calls with constant arguments lead to rows of their callees.

use super::{Tiered, Workplace};
use crate::Observer;
use crate::contexts::{CONTEXT_PAUSE, ContextMaker, ContextUse};
use ir::Func;
use jit::{FailedPoint, RunError, Tier, Version};
use std::sync::Arc;

impl<O: Observer> Tiered<O> {
    /// Sets whether calls with constant arguments lead to rows of their callees
    /// (`docs/speculation.md`). Default: yes. In the background, none does.
    pub fn in_contexts(mut self, contexts: ContextUse) -> Tiered<O> {
        self.contexts.is_on = contexts == ContextUse::On;
        self.speculations.dispatches = self.contexts.is_on;
        self.tables.dispatches = self.contexts.is_on;
        if let Workplace::Here(compiler) = &mut self.workplace {
            compiler.dispatches = self.contexts.is_on;
        }
        self
    }

    /// Lets the calls of new code lead to rows: of the installed version of a function, and of new
    /// rows of landing tables.
    ///
    /// # Errors
    /// If a call cannot be linked. A bug of ours.
    pub(super) fn link_contexts(
        &mut self,
        tier: &mut Tier<'_>,
        func: Func,
    ) -> Result<(), RunError> {
        let Tiered { speculations, pipeline, observer, contexts, tables, room, .. } = self;
        let rows = std::mem::take(&mut tables.fresh);
        if !contexts.is_on || *room == 0 {
            return Ok(());
        }
        let before = contexts.bytes;
        let mut new: Vec<Arc<Version>> = tier.installed(func).cloned().into_iter().collect();
        new.extend(rows);
        let mut maker = ContextMaker { speculations, pipeline, observer, left: CONTEXT_PAUSE };
        for version in new {
            contexts.link(tier, &version, &mut maker)?;
        }
        *room = room.saturating_sub(contexts.bytes.saturating_sub(before));
        if contexts.is_out_of_memory {
            *room = 0;
        }
        Ok(())
    }

    /// Lets a context row go whose assumption has failed too often.
    ///
    /// # Errors
    /// If a call cannot lead back. A bug of ours.
    pub(super) fn give_up_context(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<(), RunError> {
        match at.count >= crate::MAX_FAILURES {
            true => self.contexts.give_up(tier, at, &mut self.observer),
            false => Ok(()),
        }
    }
}
