//! The branches that constants decide, where both versions of a pair know the reason.

use crate::pair::Analyzed;
use fixedbitset::FixedBitSet;
use ir::Block;
use ir::decided::Decided;
use std::collections::BTreeSet;
use std::sync::Arc;
use transition::Pair;

/// The decided branches of two versions for a certificate, given the blocks around redirected
/// edges.
///
/// Example: `a: br_if %x, c(2), b`, `b: jump c(1)` and `c(%v): br_if %v, d, e`. A pass sends the
/// edge of `a` to `d`. `%v` is always 1 then, in the version after alone, and `e` is unreachable
/// there. But a certificate gives `%v` one term in both versions, which is no constant. If it took
/// `e` for unreachable, it would lack terms that it needs, and prove nothing.
///
/// In general, a parameter of such a block decides a branch only if it is constant in both versions
/// (`tests/oir/passes/thread/a_constant_of_one_version_decides_nothing.oir`). Cost: that of
/// [`Decided::new`], once for each parameter that is constant in one version alone, at most.
pub(crate) fn decided_alike(
    versions: Pair<&Analyzed<'_>>,
    rerouted: &BTreeSet<Block>,
) -> Pair<Arc<Decided>> {
    let functions = versions.map(|version| version.f);
    let common = rerouted.iter().filter(|b| functions.iter().all(|f| f.has_block(**b)));
    let params = common.flat_map(|b| functions.before.block_params(*b)).copied();
    let params: Vec<_> = params.filter(|param| functions.after.has_value(*param)).collect();
    let mut decided = versions.map(|version| Arc::clone(&version.decided));
    let mut unknown = FixedBitSet::new();
    loop {
        let known = |param| decided.as_ref().map(|version| version.is_constant(param));
        let unlike = params.iter().filter(|param| known(**param).before != known(**param).after);
        let unlike: Vec<usize> = unlike.map(|param| param.as_u32() as usize).collect();
        if unlike.is_empty() {
            return decided;
        }
        unknown.extend(unlike);
        decided = functions.map(|f| Arc::new(Decided::with_unknown(f, &unknown)));
    }
}
