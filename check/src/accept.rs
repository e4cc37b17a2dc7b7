//! The places where mappings are sealed: after judging, and by composition.

use crate::verdict::Verdict;
use crate::{Checked, Relation};
use ir::Point;
use transition::certificate::MappingFacts;
use transition::mapping::Mapping;
use transition::{Composition, NotAChain, Pair, Refusal, Side};

/// A mapping after it was judged.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The entries that hold.
    pub mapping: Checked<Mapping>,
    /// The facts behind them, in their order.
    pub facts: MappingFacts,
    /// The source points of the other entries, ascending, each with its verdict.
    pub rejected: Vec<(Point, Verdict)>,
}

/// Judges the mappings between two versions in both directions, each armed while the other is used,
/// and keeps the entries that hold. If the versions were not proved to correspond, that verdict
/// applies to every entry, and nothing is kept. Cost: that of [`Relation::judge`].
pub fn accept(
    relation: &Result<Relation<'_, '_>, Verdict>,
    mappings: Pair<Mapping>,
    facts: Pair<MappingFacts>,
) -> Pair<Accepted> {
    let verdicts = Pair::from_fn(|side: Side| match relation {
        Ok(relation) => {
            relation.judge(side, &mappings[side], &facts[side], &[&mappings[side.other()]])
        }
        Err(verdict) => vec![*verdict; mappings[side].len()],
    });
    Pair {
        before: seal(mappings.before, facts.before, &verdicts.before),
        after: seal(mappings.after, facts.after, &verdicts.after),
    }
}

/// Drops the entries that do not hold. Dropping is safe: an entry that is gone demands nothing of
/// the entries that land in its source version, so it takes no reason away from them.
fn seal(mut mapping: Mapping, facts: MappingFacts, verdicts: &[Verdict]) -> Accepted {
    let points = mapping.entries().map(|(point, _)| point).zip(verdicts.iter().copied());
    let rejected: Vec<(Point, Verdict)> = points.filter(|(_, v)| !v.holds()).collect();
    for (point, _) in &rejected {
        mapping.remove(*point);
    }
    let facts = facts.into_iter().zip(verdicts).filter(|(_, v)| v.holds()).map(|(f, _)| f);
    Accepted { mapping: Checked::new(mapping), facts: facts.collect(), rejected }
}

/// Composes two accepted mappings. Returns the composition, accepted, and the points at which it was
/// refused, ascending.
///
/// The second mapping holds of every state of the middle version. The first mapping makes such a
/// state as far as it provides values, and the second reads only values it requires: composition
/// asks of each pair of entries that the first provides them. Cost: as [`transition::compose`].
///
/// # Errors
/// When the second mapping does not leave from the version that the first leads to.
pub fn compose(
    first: &Checked<Mapping>,
    second: &Checked<Mapping>,
) -> Result<(Checked<Mapping>, Vec<(Point, Refusal)>), NotAChain> {
    let Composition { mapping, refused } = transition::compose(first, second)?;
    Ok((Checked::new(mapping), refused))
}
