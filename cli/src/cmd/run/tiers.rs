//! `osier run --engine tiered`: the steps of the tiers, for `--stats` and `--trace-tiers`.

use crate::cmd::failure::print;
use ir::{Module, Point};
use jit::VisitedPlace;
use osier::listing;
use osier::schema::{RunTiering, TierOrder, VisitCount, VisitedFunction};
use osier::tiers::{CodeTier, OrderEnd, TierEvent, Wanted};
use std::collections::BTreeMap;

/// The width of a function's name in the time line.
const NAME: usize = 24;

/// The steps of tiering so far, with their times in seconds after the start of the run.
#[derive(Default)]
pub(super) struct TierRecord {
    pub(super) figures: RunTiering,
    /// The position of the last order for each requested code.
    orders: BTreeMap<(ir::Func, Option<Point>, CodeTier), usize>,
    paused: Option<f64>,
    /// When the longest pause began.
    longest_at: f64,
    /// All steps except pauses.
    steps: Vec<(f64, TierEvent)>,
    /// Lines about assumptions.
    told: Vec<(f64, String)>,
}

impl TierRecord {
    /// Notes a step.
    pub(super) fn note(&mut self, module: &Module, now: f64, event: TierEvent) {
        match event {
            TierEvent::Paused => self.paused = Some(now),
            TierEvent::Resumed => self.resume(now),
            _ => self.steps.push((now, event)),
        }
        match event {
            TierEvent::Paused | TierEvent::Resumed => {}
            TierEvent::Asked(wanted, visits) => self.ask(module, wanted, visits, now),
            TierEvent::Begun(wanted) => self.set(wanted, |order| order.begun = Some(now)),
            TierEvent::Made { wanted, .. } => self.set(wanted, |order| order.made = Some(now)),
            TierEvent::Installed(wanted) => {
                self.set(wanted, |order| order.installed = Some(now));
            }
            TierEvent::Entered(wanted) => {
                self.set(wanted, |order| order.entered = order.entered.or(Some(now)));
            }
            TierEvent::Dropped(wanted, why) => {
                self.set(wanted, |order| order.dropped = Some(reason(why)));
            }
        }
    }

    /// Notes a step about an assumption of a function.
    pub(super) fn tell(&mut self, step: &str, function: &str, now: f64, what: Option<String>) {
        let name = shortened(function);
        self.told.extend(what.map(|what| (now, format!("{step:<7} {name:<NAME$} {what}"))));
    }

    fn resume(&mut self, now: f64) {
        let Some(paused) = self.paused.take() else { return };
        let figures = &mut self.figures;
        figures.pauses += 1;
        figures.paused += now - paused;
        if now - paused > figures.longest_pause {
            figures.longest_pause = now - paused;
            self.longest_at = paused;
        }
    }

    fn ask(&mut self, module: &Module, wanted: Wanted, visits: u64, now: f64) {
        let why = match (wanted.at, visits) {
            (None, 0) => "follow-up",
            (None, _) => "calls",
            (Some(_), _) => "loop",
        };
        self.orders.insert((wanted.func, wanted.at, wanted.tier), self.figures.orders.len());
        self.figures.orders.push(TierOrder {
            function: module.funcs[wanted.func].name.clone(),
            point: wanted.at.map(|at| point(module, wanted.func, at)),
            tier: tier_name(wanted.tier),
            why,
            visits,
            asked: now,
            ..TierOrder::default()
        });
    }

    fn set(&mut self, wanted: Wanted, change: impl FnOnce(&mut TierOrder)) {
        let index = self.orders.get(&(wanted.func, wanted.at, wanted.tier));
        if let Some(order) = index.and_then(|index| self.figures.orders.get_mut(*index)) {
            change(order);
        }
    }

    /// Prints the time line on standard error, in lines of at most 80 columns for names of usual
    /// length.
    pub(super) fn show(&self, module: &Module) {
        print("      ms  step    function                 code");
        let steps = self.steps.iter().filter_map(|(at, event)| Some((*at, line(module, *event)?)));
        let mut lines: Vec<(f64, String)> = steps.chain(self.told.iter().cloned()).collect();
        lines.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        for (at, line) in lines {
            print(&format!("{:8.2}  {line}", at * 1e3));
        }
        let RunTiering { pauses, paused, longest_pause, .. } = self.figures;
        print(&format!(
            "the run waited {pauses} {}, {:.2} ms in all, {:.2} ms at most, at {:.2} ms",
            if pauses == 1 { "time" } else { "times" },
            paused * 1e3,
            longest_pause * 1e3,
            self.longest_at * 1e3
        ));
        let is_waiting = |order: &&TierOrder| order.begun.is_none() && order.dropped.is_none();
        let waiting = self.figures.orders.iter().filter(is_waiting).count();
        if waiting > 0 {
            let orders = if waiting == 1 { "order was" } else { "orders were" };
            print(&format!("{waiting} {orders} waiting for the compiler at the end"));
        }
    }
}

/// A line of the time line; `None` for pauses.
fn line(module: &Module, event: TierEvent) -> Option<String> {
    let (step, wanted, more) = match event {
        TierEvent::Asked(wanted, 0) => ("queues", wanted, String::new()),
        TierEvent::Asked(wanted, 1) => ("asks", wanted, ", visit 1".to_owned()),
        TierEvent::Asked(wanted, visits) => ("asks", wanted, format!(", {visits} visits")),
        TierEvent::Begun(wanted) => ("begins", wanted, String::new()),
        TierEvent::Made { wanted, is_entry: false } if wanted.at.is_some() => {
            ("made", wanted, ", no entry".to_owned())
        }
        TierEvent::Made { wanted, .. } => ("made", wanted, String::new()),
        TierEvent::Installed(wanted) => ("calls", wanted, String::new()),
        TierEvent::Entered(wanted) => ("enters", wanted, String::new()),
        TierEvent::Dropped(wanted, why) => ("drops", wanted, format!(", {}", reason(why))),
        TierEvent::Paused | TierEvent::Resumed => return None,
    };
    let shown = shortened(&module.funcs[wanted.func].name);
    // Without the instruction, for which a line has no room.
    let place = |at| point(module, wanted.func, at).split(": ").next().map(str::to_owned);
    let at = wanted.at.and_then(place).map(|at| format!(" from {at}"));
    let tier = tier_name(wanted.tier);
    Some(format!("{step:<7} {shown:<NAME$} {tier}{}{more}", at.unwrap_or_default()))
}

/// A name with at most [`NAME`] characters.
fn shortened(name: &str) -> String {
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(std::iter::once('~')).collect(),
        false => name.to_owned(),
    }
}

fn point(module: &Module, func: ir::Func, at: Point) -> String {
    module.body(func).map_or_else(String::new, |body| listing::place(module, body, at))
}

fn tier_name(tier: CodeTier) -> &'static str {
    match tier {
        CodeTier::Base => "base",
        CodeTier::Optimized => "optimized",
    }
}

fn reason(why: OrderEnd) -> &'static str {
    match why {
        OrderEnd::Superseded => "superseded",
        OrderEnd::QueueFull => "queue full",
        OrderEnd::CodeFull => "code full",
    }
}

/// The visits by function.
pub(super) fn visits(module: &Module, visited: Vec<VisitedPlace>) -> Vec<VisitedFunction> {
    let mut functions: Vec<VisitedFunction> = Vec::new();
    for VisitedPlace { func, header, instructions, visits } in visited {
        if header.is_none() {
            functions.push(VisitedFunction {
                function: module.funcs[func].name.clone(),
                instructions: module.body(func).map_or(0, ir::Function::inst_count),
                places: Vec::new(),
            });
        }
        let point = header.map(|inst| point(module, func, Point::before(inst)));
        if let Some(function) = functions.last_mut() {
            function.places.push(VisitCount { point, instructions, visits });
        }
    }
    functions
}
