//! How far the tiering policy is from the best possible schedule, over the visits of a recorded
//! run.
//!
//! ```text
//! osier run --engine tiered --hot 4294967295 --stats=visits.json PROGRAM
//! cargo run --release --example osr_cost -- schedule visits.json
//! ```
//!
//! The visits have no order, so the simulation spreads the visits of each place evenly over the
//! run. At each moment every function advances in its tier. Costs are [`Costs::MEASURED`].
//!
//! The best schedule knows all visits before the run. On one thread it compiles at the start all
//! code that saves more than it costs. On two it compiles all of these in the order of the savings
//! by their price (Smith's rule), which is best where savings come evenly.

use super::Report;
use osier::tiers::Costs;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

/// The steps into which a run is divided.
const STEPS: usize = 20_000;

/// A place whose visits were counted.
struct Place {
    is_loop: bool,
    instructions: usize,
    visits: u64,
}

/// A function that the run has called.
struct Visited {
    instructions: usize,
    places: Vec<Place>,
}

impl Visited {
    /// The instructions executed.
    fn work(&self) -> f64 {
        self.places.iter().map(|place| place.instructions as f64 * place.visits as f64).sum()
    }

    fn price(&self, costs: &Costs) -> f64 {
        costs.of_base(self.instructions, false) as f64
    }

    fn saving(&self, costs: &Costs) -> f64 {
        self.work() * (costs.interpreted - costs.native) as f64
    }

    /// The part of the run after which the policy requests code, with the price of this code;
    /// `None` if it requests no code.
    fn asked(&self, costs: &Costs, share: u64) -> Option<(f64, f64)> {
        // A function that is called often is compiled as a whole.
        let calls = self.places.iter().find(|place| !place.is_loop).map_or(0, |it| it.visits);
        let has_loop = self.places.iter().any(|place| place.is_loop && place.visits > 0);
        let price = costs.of_base(self.instructions, has_loop && calls < Costs::CALLS) as f64;
        let part = price * share as f64 / 100.0 / self.saving(costs);
        (part < 1.0).then_some((part, price))
    }
}

/// When code is requested, and whether the run waits for it.
struct Plan {
    /// By function: the part of the run after which its code is requested, and the price.
    asked: Vec<Option<(f64, f64)>>,
    /// Whether the run waits.
    waits: bool,
}

pub(super) fn run(file: &Path) -> Result<Report, Box<dyn Error>> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let stats: Value =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let functions = visited(&stats)
        .filter(|functions| !functions.is_empty())
        .ok_or_else(|| format!("{}: no visits; write it by `osier run --stats`", file.display()))?;
    Ok(report(&functions, &Costs::MEASURED))
}

/// The functions of a document of `osier run --stats`.
fn visited(stats: &Value) -> Option<Vec<Visited>> {
    let functions = stats.get("tiering")?.get("visits")?.as_array()?;
    let place = |place: &Value| {
        Some(Place {
            is_loop: !place.get("point")?.is_null(),
            instructions: place.get("instructions")?.as_u64()? as usize,
            visits: place.get("visits")?.as_u64()?,
        })
    };
    let function = |function: &Value| {
        Some(Visited {
            instructions: function.get("instructions")?.as_u64()? as usize,
            places: function.get("places")?.as_array()?.iter().map(place).collect::<Option<_>>()?,
        })
    };
    functions.iter().map(function).collect()
}

/// The milliseconds of a run by a plan.
fn simulate(functions: &[Visited], costs: &Costs, plan: &Plan) -> f64 {
    let works: Vec<f64> = functions.iter().map(Visited::work).collect();
    let (mut time, mut compiler_free) = (0.0, 0.0);
    let mut native: Vec<Option<f64>> = vec![None; functions.len()];
    let mut waiting: BTreeSet<usize> = BTreeSet::new();
    let mut unasked: BTreeSet<usize> =
        (0..functions.len()).filter(|index| plan.asked[*index].is_some()).collect();
    let price = |index: usize| plan.asked[index].map_or(0.0, |(_, price)| price);
    for step in 0..STEPS {
        let part = step as f64 / STEPS as f64;
        let due = |index: &usize| plan.asked[*index].is_some_and(|(asked, _)| asked <= part);
        for index in unasked.iter().copied().filter(due).collect::<Vec<_>>() {
            unasked.remove(&index);
            if plan.waits {
                time += price(index);
                native[index] = Some(time);
            } else {
                waiting.insert(index);
            }
        }
        // The compiler takes the function that saves most by its price.
        while compiler_free <= time && !waiting.is_empty() {
            let worth = |index: &usize| functions[*index].saving(costs) / price(*index).max(1.0);
            let Some(next) = waiting.iter().copied().max_by(|a, b| worth(a).total_cmp(&worth(b)))
            else {
                break;
            };
            waiting.remove(&next);
            compiler_free = compiler_free.max(time) + price(next);
            native[next] = Some(compiler_free);
        }
        let rate = |index: usize| match native[index] {
            Some(from) if from <= time => costs.native,
            _ => costs.interpreted,
        };
        let cost: f64 = (0..functions.len()).map(|i| works[i] * rate(i) as f64).sum();
        time += cost / STEPS as f64;
    }
    time / 1e9
}

fn report(functions: &[Visited], costs: &Costs) -> Report {
    let by_policy = |share| functions.iter().map(|f| f.asked(costs, share)).collect();
    let never = || vec![None; functions.len()];
    let first = |pays: &dyn Fn(&Visited) -> bool| {
        let asked = |f: &Visited| pays(f).then(|| (0.0, f.price(costs)));
        functions.iter().map(asked).collect::<Vec<_>>()
    };
    let pays = |f: &Visited| f.saving(costs) > f.price(costs);
    let of = |asked, waits| simulate(functions, costs, &Plan { asked, waits });
    let rows = [
        ("interpreter only", of(never(), true)),
        ("compile first, one thread", of(first(&|_| true), true)),
        ("policy, one thread", of(by_policy(Costs::SHARE_HERE), true)),
        ("best, one thread", of(first(&pays), true)),
        ("policy, two threads", of(by_policy(Costs::SHARE_BESIDE), false)),
        ("best, two threads", of(first(&|f| f.saving(costs) > 0.0), false)),
    ];
    let (one, two) = (rows[2].1 / rows[3].1, rows[4].1 / rows[5].1);
    let mut table = format!("{} functions called; simulated milliseconds\n", functions.len());
    for (name, milliseconds) in &rows {
        table += &format!("  {name:<28} {milliseconds:>10.2}\n");
    }
    table += &format!("the policy beside the best: {one:.3} on one thread, {two:.3} on two\n");
    let json = json!({
        "milliseconds": rows.map(|(name, ms)| json!({ "schedule": name, "milliseconds": ms })),
        "one_thread": one,
        "two_threads": two,
    });
    Report { table, json }
}
