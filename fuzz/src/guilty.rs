//! Finds the rewrite to blame for a finding: the last of the shortest list of rewrites with which
//! an oracle still finds something.
//!
//! Rewrites have numbers, over all functions and passes of a case, and [`Case::rewrites`] bounds
//! them ([`ir::edit::Fuel`]). Example: with 40 rewrites the state oracle finds a wrong value, with
//! 39 it finds nothing. Number 39 is guilty: `licm` hoists a load past a store. A search by halves
//! takes a judgment for each bit of the number of rewrites. It assumes that a finding stays when
//! rewrites are added, and finds one of the guilty rewrites otherwise. A panic of a pass has no
//! guilty rewrite: the numbers of the rewrites come from the logs, and there are none.

use super::case::Case;
use super::figures::Figures;
use super::versions::derive;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A rewrite without which a finding disappears.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuiltyRewrite {
    /// The name of the function.
    pub func: String,
    /// The name of the pass.
    pub pass: &'static str,
    /// The rule of the pass.
    pub rule: &'static str,
    /// The number of the rewrite among all rewrites of the case.
    pub number: u64,
    /// Its first action.
    pub action: String,
}

impl fmt::Display for GuiltyRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GuiltyRewrite { func, pass, rule, number, action } = self;
        write!(f, "rewrite {number} of @{func}: {pass}/{rule}, {action}")
    }
}

/// The guilty rewrite of a case that `fails`. `None` if the case fails without rewrites, does not
/// fail with all, or if the versions cannot be derived; also if `fails` has no answer for a case.
/// Cost: a judgment for each bit of the number of rewrites.
pub fn guilty(case: &Case, fails: &dyn Fn(&Case) -> Option<bool>) -> Option<GuiltyRewrite> {
    let limited = |rewrites: u64| Case { rewrites, ..case.clone() };
    let all = rewrites_of(case)?.len() as u64;
    if !fails(&limited(all))? || fails(&limited(0))? {
        return None;
    }
    let (mut passes, mut least) = (0, all);
    while least - passes > 1 {
        let middle = passes + (least - passes) / 2;
        match fails(&limited(middle))? {
            true => least = middle,
            false => passes = middle,
        }
    }
    rewrites_of(&limited(least))?.pop()
}

/// The rewrites of a case in order, those without actions included. `None` if the versions cannot
/// be derived.
fn rewrites_of(case: &Case) -> Option<Vec<GuiltyRewrite>> {
    let derived = catch_unwind(AssertUnwindSafe(|| derive(case, &mut Figures::default())));
    let families = derived.ok()?.ok()?;
    let mut rewrites: Vec<GuiltyRewrite> = Vec::new();
    for family in &families {
        let func = family.function(0).name();
        let log = family.log();
        for action in log.iter().flat_map(|log| log.actions()) {
            let (origin, number) = (action.origin(), action.origin().rewrite());
            // Rewrites without actions, such as one that finds its work done, take numbers too.
            while rewrites.len() as u64 <= number {
                rewrites.push(GuiltyRewrite {
                    func: func.to_owned(),
                    pass: origin.pass(),
                    rule: origin.rule(),
                    number: rewrites.len() as u64,
                    action: action.kind().to_string(),
                });
            }
        }
    }
    Some(rewrites)
}
