//! Prints the entries of versions with inlined code: from the base, and out into frames.

use super::{Listing, NamedVersion};
use crate::source::{Lines, VersionLines};
use derive::driver::{MissingPoints, Why};
use derive::inlining::Inlined;
use ir::edit::ActionLog;
use ir::text::AtName;
use ir::{Func, Module, Point};
use osr::{Version, VersionTree};
use std::collections::BTreeMap;
use transition::frames::{FramePlace, Landing};
use transition::mapping::Entry;

/// Lists the entries of a version with inlined code: every reachable point of the base with its
/// entry into the version, and every reachable point of the version with its entry into frames. A
/// point without an entry has the reason. Cost: linear in the entries and in the functions of
/// frames.
pub fn frames(module: &Module, made: &Inlined) -> String {
    frames_with_lines(module, made, None)
}

/// As [`frames`], with the lines of the source behind the instructions, where they are known.
pub fn frames_with_lines(module: &Module, made: &Inlined, lines: Option<&dyn Lines>) -> String {
    let [base, opt] = [VersionTree::BASE, made.optimized]
        .map(|version| NamedVersion::of_inlined(module, made, version, lines));
    let log = ActionLog::empty_for(base.version);
    let mut out = String::new();
    let [up, down] = &made.points;
    let [up_missing, down_missing] = &made.missing;
    let mut listing = Listing { source: &base, target: &opt, log: &log, out: &mut out };
    listing.heading("base to opt", up, up_missing);
    for point in up {
        match made.up.entry(*point) {
            Some(entry) => listing.entry(*point, entry),
            None => listing.missing(*point, up_missing),
        }
    }
    // By function: the base, with its names.
    let mut bases: BTreeMap<Func, NamedVersion<'_>> = BTreeMap::new();
    let own = made.copies.instances()[0].func;
    let inner = made.down.entries().flat_map(|(_, entry)| &entry.inner);
    for func in inner.map(|frame| frame.func).chain([own]) {
        let body = module.body(func).expect("frames land in bases");
        bases.entry(func).or_insert_with(|| NamedVersion::new(module, body));
    }
    let mut listing = Listing { source: &opt, target: &base, log: &log, out: &mut out };
    listing.heading("opt to frames", down, down_missing);
    for point in down {
        match made.down.entry(*point) {
            Some(entry) => {
                let frames: Vec<Landing<'_>> = entry.landings(own, made.down.target()).collect();
                listing.frame_entry(*point, entry, &frames, &bases);
            }
            None => listing.missing(*point, down_missing),
        }
    }
    out
}

impl Listing<'_> {
    fn heading(&mut self, heading: &str, points: &[Point], missing: &MissingPoints) {
        let (name, count) = (AtName(self.source.version.name()), points.len());
        let entries = count - missing.len();
        self.line(0, &format!("func {name}, {heading}, avail: {entries} of {count} points"));
    }

    fn missing(&mut self, point: Point, missing: &MissingPoints) {
        let reason = missing.at(point).map_or("unknown", Why::name);
        self.no_entry(point, &reason.replace('_', " "));
    }

    fn frame_entry(
        &mut self,
        point: Point,
        entry: &Entry,
        frames: &[Landing<'_>],
        bases: &BTreeMap<Func, NamedVersion<'_>>,
    ) {
        let from = self.source.point(point);
        let places: Vec<String> =
            frames.iter().map(|frame| place(frame, &bases[&frame.func])).collect();
        self.line(2, &format!("{from} -> {}{}", places.join(" in "), self.source.comment(point)));
        self.compute(&entry.steps);
        let source = self.source;
        self.parts("replay", entry.replays.iter().map(|replay| source.replay(replay)));
        for frame in frames {
            let base = &bases[&frame.func];
            let name = base.version.name();
            let set = frame.assigns.iter().map(|assign| {
                format!("{} = {}", base.text.value(assign.value), source.operand(assign.from))
            });
            self.part("frame", &AtName(name).to_string());
            self.parts("set", set);
        }
        self.kept(&entry.kept);
    }
}

impl<'a> NamedVersion<'a> {
    /// A version of a function with inlined code, with the lines of its instructions, if the source
    /// is known.
    pub(crate) fn of_inlined(
        module: &'a Module,
        made: &'a Inlined,
        version: Version,
        lines: Option<&'a dyn Lines>,
    ) -> NamedVersion<'a> {
        let func = made.copies.instances()[0].func;
        let lines = lines.map(|lines| VersionLines::of_inlined(lines, func, made, version));
        NamedVersion::new(module, made.tree.function(version)).with_lines(lines)
    }
}

/// The place of a frame, as in `@f body:2 inst7`, or `@f within body:2 inst7`.
fn place(frame: &Landing<'_>, base: &NamedVersion<'_>) -> String {
    let (name, at) = (AtName(base.version.name()), base.point(Point::before(frame.at.inst())));
    match frame.at {
        FramePlace::Before(_) => format!("{name} {at}"),
        FramePlace::Within(_) => format!("{name} within {at}"),
    }
}
