//! The keys of the document that stand for reports of the judges, and for shares of figures.

use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;
use verify::hops::HopReport;
use verify::state_oracle::{FrameChains, Report};
use verify::tables::TableRunReport;

/// Figures that are `null` in the document if their oracle did not run.
pub(super) trait OracleFigures {
    /// Whether the oracle ran.
    fn has_run(&self) -> bool;
}

pub(super) fn if_run<F, S>(figures: &F, to: S) -> Result<S::Ok, S::Error>
where
    F: OracleFigures + Serialize,
    S: Serializer,
{
    figures.has_run().then_some(figures).serialize(to)
}

pub(super) fn sum<K, S: Serializer>(parts: &BTreeMap<K, u64>, to: S) -> Result<S::Ok, S::Error> {
    parts.values().sum::<u64>().serialize(to)
}

pub(super) fn state<S: Serializer>(report: &Report, to: S) -> Result<S::Ok, S::Error> {
    let total = report.total();
    let share = |part: u64| (total.transitions > 0).then(|| part as f64 / total.transitions as f64);
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("runs", &report.runs)?;
    map.serialize_entry("trapped", &report.trapped)?;
    map.serialize_entry("exhausted", &report.exhausted)?;
    map.serialize_entry("transitions", &total.transitions)?;
    map.serialize_entry("forward", &report.forward.transitions)?;
    map.serialize_entry("backward", &report.backward.transitions)?;
    map.serialize_entry("with_chi", &share(total.with_code))?;
    map.serialize_entry("in_loops", &share(total.in_loops))?;
    map.serialize_entry("compared", &total.compared)?;
    map.serialize_entry("compared_mean", &share(total.compared))?;
    map.serialize_entry("going_on", &total.going_on)?;
    map.serialize_entry("going_on_exhausted", &total.going_on_exhausted)?;
    map.end()
}

pub(super) fn exits<S: Serializer>(report: &Report, to: S) -> Result<S::Ok, S::Error> {
    let total = report.total();
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("exits_holding", &total.holding)?;
    map.serialize_entry("exits_failing", &total.failing)?;
    map.serialize_entry("transitions", &total.transitions)?;
    map.end()
}

pub(super) fn chains<S: Serializer>(report: &HopReport, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("chains", &report.chains)?;
    map.serialize_entry("full_chains", &report.full_chains)?;
    map.serialize_entry("hops", &report.hops)?;
    map.serialize_entry("chains_exhausted", &report.exhausted)?;
    map.end()
}

pub(super) fn hops<S: Serializer>(report: &HopReport, to: S) -> Result<S::Ok, S::Error> {
    report.hops.serialize(to)
}

pub(super) fn frame_chains<S: Serializer>(all: &FrameChains, to: S) -> Result<S::Ok, S::Error> {
    let [single, several] = all.out;
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("chains", &all.chains)?;
    map.serialize_entry("chain_hops", &[all.into, single, several])?;
    map.serialize_entry("chains_several", &all.several)?;
    map.serialize_entry("chain_states", &all.states)?;
    map.serialize_entry("chain_apart", &all.apart)?;
    map.serialize_entry("chains_exhausted", &all.exhausted)?;
    map.end()
}

pub(super) fn tables<S: Serializer>(all: &TableRunReport, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("chains", &all.chains)?;
    map.serialize_entry("entered", &all.entered)?;
    map.serialize_entry("lies", &all.lies)?;
    map.serialize_entry("to_rows", &all.to_rows)?;
    map.serialize_entry("failed", &all.failed)?;
    map.serialize_entry("left", &all.left)?;
    map.serialize_entry("handed", &all.handed)?;
    map.serialize_entry("exhausted", &all.exhausted)?;
    map.serialize_entry("states", &all.states)?;
    map.serialize_entry("holding", &all.holding)?;
    map.serialize_entry("failing", &all.failing)?;
    map.serialize_entry("handed_states", &all.handed_states)?;
    map.serialize_entry("compared", &all.values)?;
    map.serialize_entry("not_aligned", &all.not_aligned)?;
    map.serialize_entry("transitions", &all.transitions())?;
    map.end()
}

pub(super) fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    time.as_secs_f64().serialize(to)
}

pub(super) fn from_seconds<'d, D: Deserializer<'d>>(from: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
}
