//! Versions with inlined code: they run like their originals, and the checker accepts them as
//! copies of their originals alone.

mod assuming;
mod cases;
mod copies;
mod exits;
mod explained;
mod files;
mod forgeries;
mod frames;
mod handed;
mod long;
mod policy;
mod recursion;
mod retry;
mod running;
mod wrong;

use ir::edit::{ActionLog, Fuel, apply};
use ir::text::parse_module;
use ir::{Func, Function, Module};
use passes::{Callers, Inline, InlinePolicy};

/// Inlines the calls that a policy permits.
fn inlined(module: &Module, func: Func, policy: InlinePolicy) -> (Function, ActionLog) {
    let base = module.body(func).expect("it has a body");
    let callers = Callers::new(module);
    let pass = Inline { callers: &callers, func, policy, counts: None };
    apply(base, &pass, &mut Fuel::UNLIMITED.clone()).into_parts()
}

fn parsed(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Everything that is no recursion.
pub(crate) const ALL: InlinePolicy = InlinePolicy {
    size: 1000,
    single_size: 1000,
    hot_size: 1000,
    hot: 1,
    depth: 4,
    recursion: 0,
    growth: 1000,
    allowance: 2000,
};
