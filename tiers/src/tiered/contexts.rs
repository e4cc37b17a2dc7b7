//! How a policy lets calls with constant arguments lead to rows of their callees.

use super::{Tiered, Workplace};
use crate::Observer;
use crate::contexts::{ContextMaker, ContextUse};
use ir::Func;
use jit::{FailedPoint, Tier, Version};
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
    pub(super) fn link_contexts(&mut self, tier: &mut Tier<'_>, func: Func) {
        let Tiered { speculations, pipeline, observer, contexts, tables, room, .. } = self;
        let rows = std::mem::take(&mut tables.fresh);
        if !contexts.is_on || *room == 0 {
            return;
        }
        let before = contexts.bytes;
        let mut new: Vec<Arc<Version>> = tier.installed(func).cloned().into_iter().collect();
        new.extend(rows);
        let mut maker = ContextMaker { speculations, pipeline, observer };
        for version in new {
            contexts.link(tier, &version, &mut maker);
        }
        *room = room.saturating_sub(contexts.bytes.saturating_sub(before));
        if contexts.is_out_of_memory {
            *room = 0;
        }
    }

    /// Lets a context row go whose assumption has failed too often.
    pub(super) fn give_up_context(&mut self, tier: &mut Tier<'_>, at: FailedPoint<'_>) {
        if at.count >= crate::MAX_FAILURES {
            self.contexts.give_up(tier, at);
        }
    }
}
