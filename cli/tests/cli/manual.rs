//! The manuals show real output. Every block that a comment `<!-- shown: COMMAND -->` precedes is
//! made again and compared; `OIR_BLESS=1` writes the blocks anew.
//!
//! `COMMAND` is one of
//!
//! | command | text |
//! |---|---|
//! | `file PATH` | a file of the repository |
//! | `osier ARGUMENTS` | the standard output of the command |
//! | `oir NAME` | an example of `docs/examples/`, optimized |
//! | `actions NAME`, `listing NAME`, `mapping NAME` | `osier opt --emit` of that for an example |
//! | `inlined oir NAME`, and so on | the same of an example after `O3` |
//! | `explained NAME FUNC POINT DIRECTION` | `osier explain` of a point of an example after `O3` |
//! | `refuted drain` | the verdicts of `osier check` on the mapping that `docs/certificates.md` damages |
//! | `forged called` | the same for the entry into frames that the page damages |
//! | `diverging drain` | the divergence that the state oracle finds in the same mapping |
//! | `instrumented NAME POINT` | the base version of an example with a flag at one point |
//! | `continuation NAME POINT` | the transition from that point into the optimized version |
//!
//! A command may be followed by ` | A | B`, which cuts a piece out of the text. Each part is the
//! beginning of a line, indentation aside, and is looked for from the line of the part before it.
//! The piece begins at the line of the last part but one and ends before the line of the last
//! part; `.` as the last part means the end of the text. The common indentation of a piece is
//! taken off where the text is a Rust source.

use crate::harness::{self, file, root, scratch};
use osier::driver::{NoObserver, Proved, Vigilance, derive, prove};
use osier::interp::NoHost;
use osier::ir::text::{FunctionText, print_function};
use osier::ir::{Effects, Function, Inst, Module, Point};
use osier::osr::Level;
use osier::passes::Pipeline;
use osier::resume::{Condition, PointSpec, continuation, instrument};
use osier::transition::mapping::{Assign, Mapping, Operand};
use osier::{Format, load};
use std::collections::BTreeSet;
use std::fs;
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions};

/// The files whose blocks are checked.
const MANUALS: [&str; 12] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/certificates.md",
    "docs/embedding.md",
    "docs/native.md",
    "docs/osr.md",
    "docs/passes.md",
    "docs/programs.md",
    "docs/profile.md",
    "docs/report.md",
    "docs/speculation.md",
    "docs/testing.md",
];

/// The beginning of the comment before a block, and its end.
const SHOWN: (&str, &str) = ("<!-- shown: ", " -->");

/// An example of the manuals with both versions of its function.
struct Example {
    module: Module,
    base: Function,
    optimized: Function,
    certified: Proved,
}

impl Example {
    fn new(name: &str) -> Example {
        let path = root().join(format!("docs/examples/{name}.oir"));
        let text = fs::read(path).expect("the example");
        let module = load(Format::Oir, &text).expect("a right module");
        let base = module.defined().next().expect("a function").1.clone();
        let derived = derive(&module, &base, &Pipeline::default(), Vigilance::On, &mut NoObserver);
        let certified = prove(&module, &base, &derived, &[Level::Avail], &mut NoObserver);
        Example { module, base, optimized: derived.function, certified }
    }

    /// The point `block:index` of the base version.
    fn point(&self, place: &str) -> Point {
        let (block, index) = place.split_once(':').expect("a place is block:index");
        let names = FunctionText::new(&self.module, &self.base);
        let block = self.base.blocks().find(|b| names.block(*b) == block);
        let index = index.parse().expect("an index");
        let block = block.expect("a block of the base version");
        Point::before(self.base.block_insts(block).nth(index).expect("an instruction"))
    }

    /// The first divergence that the state oracle finds when an entry assigns another value to
    /// `v3`: the damage of [`refuted`].
    fn diverging(&self) -> String {
        let maps = self.certified.highest();
        let mut forward = Mapping::clone(&maps.before.mapping);
        let is_computed = |a: &Assign| matches!(a.from, Operand::Step(_));
        let found = forward.entries().find(|(_, entry)| entry.assigns.iter().any(is_computed));
        let (point, mut wrong) = found.map(|(p, e)| (p, e.clone())).expect("an entry with a step");
        for assign in wrong.assigns.iter_mut().filter(|a| is_computed(a)) {
            assign.from = Operand::Source(self.base.arguments()[1]);
        }
        forward.insert(point, wrong);
        let bounds = |f: &Function, inst: Inst| {
            let effects = f.inst(inst).opcode.effects();
            effects.has(Effects::TERMINATOR) || f.may_trap(inst)
        };
        let is_anchor = |i: &Inst| self.optimized.has_inst(*i) && bounds(&self.base, *i);
        let anchors: BTreeSet<Inst> = self.base.all_insts().filter(is_anchor).collect();
        let func = self.module.defined().next().expect("a function").0;
        let pair = FunctionPair {
            func,
            before: &self.base,
            after: &self.optimized,
            anchors: &anchors,
            forward: &forward,
            backward: &maps.after.mapping,
            copies: None,
        };
        let mut oracle = Oracle::new(&self.module, &[pair], OracleOptions::default())
            .expect("the versions belong together");
        oracle.run(func, &[8, 2], &NoHost);
        let found = oracle.report().divergences.first();
        format!("{}\n", found.expect("a divergence"))
    }

    /// The base version with a flag at a point, which hands over the values that the entry there
    /// requires.
    fn instrumented(&self, place: &str) -> String {
        let up = &self.certified.levels[0].1.before.mapping;
        let point = PointSpec::of_entry(up, self.point(place), Condition::Flag);
        let made = instrument(&self.base, &[point.expect("an entry")]).expect("a right point");
        print_function(&self.module, &made.function)
    }

    /// The continuation of the entry at a point of the base version.
    fn continuation(&self, place: &str) -> String {
        let up = &self.certified.levels[0].1.before.mapping;
        let entry = up.checked_entry(self.point(place)).expect("an entry");
        let made = continuation("continuation", &self.base, &[&self.optimized], entry);
        print_function(&self.module, &made.expect("a right entry").function)
    }
}

/// The output of `osier check` on the mapping of an example in which one value is assigned another.
fn refuted(name: &str) -> String {
    let path = format!("docs/examples/{name}.oir");
    let right = output(&format!("mapping {name}"));
    let wrong = right.replacen("assign 3 s0", "assign 3 v1", 1);
    assert_ne!(right, wrong, "the assignment that the manual damages");
    let folder = scratch();
    let mapping = file(&folder, "wrong.txt", wrong);
    harness::osier(&["check", &path, "--mapping", &mapping]).with_status(1).stdout
}

/// The output of `osier check` on the mapping of an example after `O3` in which a waiting frame
/// gets two values the wrong way round.
fn forged(name: &str) -> String {
    let path = format!("docs/examples/{name}.oir");
    let right = output(&format!("inlined mapping {name}"));
    let (before, entry) = right.split_once("\nframes 15 1\n").expect("the entry at the store");
    let wrong = entry.replacen("2=v2,3=v3", "2=v3,3=v2", 1);
    assert_ne!(entry, wrong, "the frame that the manual damages");
    let folder = scratch();
    let mapping = file(&folder, "wrong.txt", format!("{before}\nframes 15 1\n{wrong}"));
    harness::osier(&["check", &path, "--mapping", &mapping]).with_status(1).stdout
}

/// A module of the sessions and its profile.
fn profiled(name: &str) -> [String; 2] {
    ["oir", "profile"].map(|kind| format!("cli/tests/cli/golden/{name}.{kind}"))
}

/// The text that a command stands for.
fn output(command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    match words.as_slice() {
        ["file", path] => fs::read_to_string(root().join(path)).expect("a file that is shown"),
        ["osier", arguments @ ..] => harness::osier(arguments).with_status(0).stdout,
        [emit @ ("oir" | "actions" | "listing" | "mapping"), name] => {
            let path = format!("docs/examples/{name}.oir");
            harness::osier(&["opt", &path, "--emit", emit]).with_status(0).stdout
        }
        ["inlined", emit, name] => {
            let path = format!("docs/examples/{name}.oir");
            let command = ["opt", &path, "--pipeline", "O3", "--emit", emit];
            harness::osier(&command).with_status(0).stdout
        }
        ["speculated", name] => {
            let [module, profile] = profiled(name);
            harness::osier(&["report", &module, "--speculate", &profile]).with_status(0).stdout
        }
        ["assumed", name, func, point] => {
            let [module, profile] = profiled(name);
            let place = ["--func", func, "--point", point];
            let command = ["explain", &module, "--speculate", &profile];
            harness::osier(&[&command[..], &place[..]].concat()).with_status(0).stdout
        }
        ["refuted", name] => refuted(name),
        ["forged", name] => forged(name),
        ["explained", name, func, point, direction] => {
            let path = format!("docs/examples/{name}.oir");
            let point = ["--func", func, "--point", point, "--direction", direction];
            let command = ["explain", &path, "--pipeline", "O3"];
            harness::osier(&[&command[..], &point[..]].concat()).with_status(0).stdout
        }
        ["diverging", name] => Example::new(name).diverging(),
        ["instrumented", name, place] => Example::new(name).instrumented(place),
        ["continuation", name, place] => Example::new(name).continuation(place),
        _ => panic!("no command of the manuals: {command}"),
    }
}

/// The piece of a text that the parts of a marker cut out.
fn piece(text: &str, parts: &[&str]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let find = |from: usize, part: &str| {
        let found = lines[from..].iter().position(|line| line.trim_start().starts_with(part));
        from + found.unwrap_or_else(|| panic!("no line begins with `{part}`"))
    };
    let Some((end, starts)) = parts.split_last() else { return format!("{}\n", text.trim_end()) };
    let start = starts.iter().fold(0, |from, part| find(from, part));
    let end = if *end == "." { lines.len() } else { find(start + 1, end) };
    let mut shown = lines[start..end].join("\n").trim_end().to_owned();
    shown.push('\n');
    shown
}

/// A text without the indentation that all of its lines share.
fn unindented(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let least = text.lines().filter(|l| !l.is_empty()).map(indent).min().unwrap_or(0);
    text.lines().map(|line| format!("{}\n", line.get(least..).unwrap_or(""))).collect()
}

/// The text of the block that a marker precedes.
fn shown(marker: &str) -> String {
    let parts: Vec<&str> = marker.split(" | ").collect();
    let text = piece(&output(parts[0]), &parts[1..]);
    if parts[0].ends_with(".rs") { unindented(&text) } else { text }
}

/// A manual with every marked block made anew, the number of such blocks, and the blocks that
/// differ.
fn checked(manual: &str) -> (String, usize, Vec<String>) {
    let (mut right, mut count, mut differ) = (String::new(), 0, Vec::new());
    let mut lines = manual.lines();
    while let Some(line) = lines.next() {
        right.push_str(line);
        right.push('\n');
        let Some(marker) = line.strip_prefix(SHOWN.0).and_then(|l| l.strip_suffix(SHOWN.1)) else {
            continue;
        };
        let fence = lines.next().expect("a block behind the marker");
        assert!(fence.starts_with("```"), "no block behind the marker `{marker}`");
        let found: String =
            lines.by_ref().take_while(|l| *l != "```").map(|l| format!("{l}\n")).collect();
        let expected = shown(marker);
        count += 1;
        if found != expected {
            differ.push(format!("{marker}\n{expected}"));
        }
        right.push_str(&format!("{fence}\n{expected}```\n"));
    }
    (right, count, differ)
}

#[test]
fn manuals_show_real_output() {
    let is_blessing = std::env::var_os("OIR_BLESS").is_some_and(|value| value == "1");
    let mut count = 0;
    let mut findings = Vec::new();
    for name in MANUALS {
        let path = root().join(name);
        let text = fs::read_to_string(&path).expect("a manual");
        let (right, shown, differ) = checked(&text);
        count += shown;
        if differ.is_empty() {
            continue;
        }
        if is_blessing {
            fs::write(&path, right).expect("the manual is writable");
        } else {
            findings.extend(differ.into_iter().map(|block| format!("{name}: {block}")));
        }
    }
    assert!(count >= 20, "only {count} blocks are marked");
    assert!(findings.is_empty(), "`OIR_BLESS=1` writes these blocks:\n{}", findings.join("\n"));
}

#[test]
fn the_pieces_of_the_certificate_are_the_whole_of_it() {
    let manual = fs::read_to_string(root().join("docs/certificates.md")).expect("the manual");
    let export = "mapping drain";
    let is_piece =
        |line: &str| line.strip_prefix(SHOWN.0).is_some_and(|rest| rest.starts_with(export));
    let mut lines = manual.lines();
    let mut pieces = String::new();
    while let Some(line) = lines.next() {
        if is_piece(line) {
            let block = lines.by_ref().skip(1).take_while(|l| *l != "```");
            pieces.extend(block.map(|l| format!("{l}\n")));
        }
    }
    assert_eq!(pieces, output(export));
}

#[test]
fn the_readme_shows_part_of_a_report() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the readme");
    let whole = output("osier report tests/corpus/matmul.wasm");
    let block = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let mut printed = whole.lines();
    let mut count = 0;
    for line in block.expect("the picture of a report").lines().filter(|l| !l.is_empty()) {
        count += 1;
        assert!(printed.any(|l| l == line), "not printed, or not in this order: {line}");
    }
    assert!(count >= 10, "{count} lines are few for a picture");
}

#[test]
fn pieces_begin_and_end_where_their_parts_say() {
    let text = "one\n  two\n    three\nfour\n";
    assert_eq!(piece(text, &[]), text);
    assert_eq!(piece(text, &["two", "four"]), "  two\n    three\n");
    assert_eq!(piece(text, &["one", "thr", "."]), "    three\nfour\n");
    assert_eq!(unindented("  two\n\n    three\n"), "two\n\n  three\n");
}
