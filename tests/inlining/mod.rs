//! Versions with inlined code: they run as their originals do, and the checker accepts them as
//! copies of those alone.

mod copies;
mod forgeries;
mod frames;
mod running;
mod wrong;

use ir::edit::{ActionLog, Fuel, apply};
use ir::text::parse_module;
use ir::{Func, Function, Module};
use passes::{Inline, InlinePolicy};

/// Inlines what a policy permits.
fn inlined(module: &Module, func: Func, policy: InlinePolicy) -> (Function, ActionLog) {
    let base = module.body(func).expect("it has a body");
    let pass = Inline { module, func, policy };
    apply(base, &pass, &mut Fuel::UNLIMITED.clone()).into_parts()
}

fn parsed(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Everything that is no recursion.
const ALL: InlinePolicy = InlinePolicy { size: 1000, depth: 4, growth: 1000, allowance: 2000 };
