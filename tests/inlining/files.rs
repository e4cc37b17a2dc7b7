//! Versions with inlined code written to files and read back, intact and damaged.

use super::parsed;
use ir::{Func, Function, Module};
use osier::driver::{CheckCounts, NoObserver};
use osier::exchange::{self, ReadError, Rechecked, WrittenCopy, recheck_copy};
use osier::inlining::{CalleeLandings, InlinePlan, LeftOut, inline};
use passes::Callers;
use proptest::prelude::{Strategy, any};
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

/// Inlined code two calls deep, in a loop, with a call that stays, a product that leaves the loop,
/// and a store in inlined code. `@low` and `@other` are alike, and so are the two calls of `@low`.
const TEXT: &str = "memory @mem 1
func @main(%n: i32, %d: i32) -> i32 {
start:
  %dead = mul.i32 %n, %n
  %zero = const.i32 0
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = slt.i32 %i, %n
  br_if %more, body, done
body:
  %y = call @high(%i, %d)
  %z = call @low(%sum, %d)
  %next = add.i32 %y, %z
  %one = const.i32 1
  %j = add.i32 %i, %one
  jump head(%j, %next)
done:
  return %sum
}
func @high(%i: i32, %d: i32) -> i32 {
entry:
  %two = const.i32 2
  %at = shl.i32 %i, %two
  %x = call @low(%at, %d)
  %y = sub.i32 %x, %i
  return %y
}
func @low(%at: i32, %d: i32) -> i32 {
entry:
  %square = mul.i32 %d, %d
  %y = mul.i32 %at, %square
  store.i32 @mem[%at], %y
  %seven = const.i32 7
  %q = udiv.i32 %y, %d
  %r = add.i32 %q, %seven
  return %r
}
func @other(%at: i32, %d: i32) -> i32 {
entry:
  %square = mul.i32 %d, %d
  %y = mul.i32 %at, %square
  store.i32 @mem[%at], %y
  %seven = const.i32 7
  %q = udiv.i32 %y, %d
  %r = add.i32 %q, %seven
  return %r
}
";

struct Sample {
    module: Module,
    func: Func,
    versions: [Function; 4],
    text: String,
}

impl Sample {
    fn new() -> Sample {
        let module = parsed(TEXT);
        let func = module.defined().next().expect("a function").0;
        let plan = InlinePlan::o3();
        let landings = CalleeLandings::new(&module, &plan);
        let made = inline(&module, func, &plan, &landings, &mut NoObserver);
        let made = made.expect("calls are inlined");
        assert_eq!(made.copies.instances().len(), 4, "three calls");
        let mut text = exchange::header(&plan.names().join(","), "avail", 1);
        let callees = ["high", "low"].map(|name| module.defined().find(|(_, f)| f.name() == name));
        text += &exchange::landings_header(callees.len());
        for (func, base) in callees.into_iter().flatten() {
            let certificate = CalleeLandings::certificate(base).expect("a base has one");
            exchange::landing(&mut text, func, base, &certificate);
        }
        exchange::write_copy(&mut text, &module, &WrittenCopy::of(func, &made));
        // A reader starts from the module alone: versions made twice from one base have other ids.
        let module = parsed(TEXT);
        let versions = plan
            .versions(&Callers::new(&module), func, &LeftOut::default(), &mut NoObserver)
            .expect("inlined again");
        Sample { module, func, versions, text }
    }

    fn judged(&self, text: &str) -> Result<Rechecked, ReadError> {
        let (module, file) = (&self.module, exchange::read(text)?);
        let mut certificates = Vec::new();
        for landing in &file.landings {
            let found = module.defined().find(|(_, f)| f.name() == landing.name);
            let what = "no such landing".to_owned();
            let (func, base) = found.ok_or(ReadError { line: landing.line(), what })?;
            certificates.push((func, landing.landing(func, base)?));
        }
        let landings = CalleeLandings::proved_by(Callers::new(module), certificates);
        let versions = self.versions.each_ref();
        let mut all = Rechecked::default();
        for function in &file.functions {
            let copy = function.copy(module, self.func, versions)?;
            let found = recheck_copy(module, self.func, versions, copy, &landings, &mut NoObserver);
            all.counts.merge(&found.counts);
            all.refused.extend(found.refused);
        }
        Ok(all)
    }

    /// The lines that begin with a word.
    fn lines(&self, word: &str) -> Vec<&str> {
        let begins = |line: &&str| line.split(' ').next() == Some(word);
        self.text.lines().filter(begins).collect()
    }

    /// The text with a record about rewrites that the versions lack.
    fn left_out(&self, record: &str) -> String {
        self.with("number 0", &format!("number 0\n{record}"))
    }

    /// The text with one line replaced by others.
    fn with(&self, line: &str, instead: &str) -> String {
        assert_eq!(self.text.matches(&format!("\n{line}\n")).count(), 1, "{line}");
        self.text.replacen(&format!("\n{line}\n"), &format!("\n{instead}\n"), 1)
    }

    /// The entry out with the most frames, and steps if any has: its lines.
    fn deepest(&self) -> Vec<&str> {
        let begin = self.text.find("\nframes ").expect("an entry out") + 1;
        let mut entries: Vec<Vec<&str>> = Vec::new();
        for line in self.text[begin..].lines().filter(|line| *line != "end") {
            match line.starts_with("frames ") {
                true => entries.push(vec![line]),
                false => entries.last_mut().expect("one has begun").push(line),
            }
        }
        let frames = |lines: &Vec<&str>| lines.iter().filter(|l| l.starts_with("frame ")).count();
        entries.into_iter().max_by_key(frames).expect("an entry")
    }

    /// The records of the claim about the copy.
    fn claim(&self) -> String {
        let begin = self.text.find("instance 0 ").expect("a claim");
        let end = self.text.find("mapping into ").expect("entries into");
        self.text[begin..end].to_owned()
    }

    /// The text with the deepest entry replaced.
    fn instead_of_deepest(&self, lines: &[String]) -> String {
        self.with(&self.deepest().join("\n"), &lines.join("\n"))
    }
}

/// A line with one word replaced.
fn word(line: &str, index: usize, by: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    words[index] = by;
    words.join(" ")
}

fn whole(sample: &Sample) -> CheckCounts {
    let whole = sample.judged(&sample.text).expect("a written file can be read");
    assert_eq!((whole.counts.dropped.len(), &whole.refused[..]), (0, &[][..]), "{whole:?}");
    whole.counts
}

#[test]
fn a_written_version_reads_back_and_holds() {
    let sample = Sample::new();
    let counts = whole(&sample);
    assert!(counts.held > 60, "{counts:?}");
    let frames = sample.deepest().iter().filter(|line| line.starts_with("frame ")).count();
    assert_eq!(frames, 3, "{}", sample.text);
    assert_eq!(
        sample.lines("frames").len() + sample.lines("entry").len(),
        counts.held as usize,
        "every entry is judged"
    );
}

/// Each part of an entry out, wrong in one way. The checker composes another, and says where they
/// differ.
#[test]
fn an_entry_that_differs_from_the_composed_one_is_refused() {
    let sample = Sample::new();
    let held = whole(&sample).held;
    let deepest: Vec<String> = sample.deepest().into_iter().map(str::to_owned).collect();
    let at = deepest.iter().position(|line| line.starts_with("frame ")).expect("frames");
    let changed = |index: usize, line: String| {
        let mut lines = deepest.clone();
        lines[index] = line;
        lines
    };
    let without = |index: usize| {
        let mut lines = deepest.clone();
        lines.remove(index);
        lines
    };
    let swapped = |a: usize, b: usize| {
        let mut lines = deepest.clone();
        lines.swap(a, b);
        lines
    };
    let innermost = &deepest[at];
    let low = innermost.split(' ').nth(1).expect("its function");
    let other = (low.parse::<u32>().expect("a number") + 1).to_string();
    let assigns = innermost.rsplit(' ').next().expect("assigns").to_owned();
    let (first, rest) = assigns.split_once(',').expect("several");
    let (value, from) = first.split_once('=').expect("an assignment");
    let wrong = format!("{value}={},{rest}", if from == "v0" { "v1" } else { "v0" });
    let outermost = deepest.len() - 1;
    let call = deepest[outermost].split(' ').nth(4).expect("a call").to_owned();
    let next = (call.parse::<u32>().expect("a number") + 1).to_string();
    let cases = [
        ("no outermost frame", without(outermost), "frame-count"),
        ("no frame in the middle", without(at + 1), "frame-count"),
        ("no innermost frame", without(at), "frame-count"),
        ("a frame twice", changed(at, format!("{innermost}\n{innermost}")), "frame-count"),
        ("frames swapped", swapped(at, at + 1), "frame-function"),
        ("waiting frames swapped", swapped(at + 1, at + 2), "frame-function"),
        ("another function, alike", changed(at, word(innermost, 1, &other)), "frame-function"),
        (
            "the version being left behind the call",
            changed(outermost, word(&deepest[outermost], 2, "cleaned")),
            "frame-version",
        ),
        (
            "waiting before its call",
            changed(at + 1, word(&deepest[at + 1], 3, "before")),
            "frame-place",
        ),
        ("innermost within", changed(at, word(innermost, 3, "within")), "frame-place"),
        (
            "within another call",
            changed(outermost, word(&deepest[outermost], 4, &next)),
            "frame-place",
        ),
        ("another value", changed(at, word(innermost, 5, &wrong)), "frame-assigns"),
        ("one value less", changed(at, word(innermost, 5, rest)), "frame-assigns"),
        ("no values", changed(at, word(innermost, 5, "-")), "frame-assigns"),
        (
            "a value twice",
            changed(at, word(innermost, 5, &format!("{first},{assigns}"))),
            "frame-assigns",
        ),
        (
            "a step that nothing reads",
            changed(at, format!("step const i32 i32 1 - - -\n{innermost}")),
            "composed-steps",
        ),
        (
            "a store that it does not need",
            changed(at, format!("replay 0 store i32 address:0:0 v0,v1 -\n{innermost}")),
            "composed-replays",
        ),
        (
            "fewer required values",
            changed(at, format!("requires 0\n{innermost}")),
            "composed-requires",
        ),
        ("other kept values", changed(0, word(&deepest[0], 2, "0")), "composed-kept"),
    ];
    for (what, lines, reason) in cases {
        // Values that only a wrong frame reads are required, too: the frame is compared first.
        let text = sample.instead_of_deepest(&lines);
        let found = sample.judged(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
        let dropped = found.counts.dropped;
        assert_eq!(dropped.keys().collect::<Vec<_>>(), [reason], "{what}: {:?}", found.refused);
        assert_eq!((dropped[reason], found.counts.held), (1, held - 1), "{what}");
        let line = text.lines().position(|l| l == lines[0]).expect("the entry") + 1;
        assert_eq!(found.refused[0].line, line, "{what}: {}", found.refused[0].what);
    }
}

/// An entry at a point where no entry is composed, and an entry that lands elsewhere, in both
/// directions.
#[test]
fn entries_across_the_copy_are_compared_point_by_point() {
    let sample = Sample::new();
    let held = whole(&sample).held;
    let begin = sample.text.find("mapping into ").expect("entries into");
    let (before, into) = sample.text.split_at(begin);
    let entries: Vec<&str> = into.lines().filter(|l| l.starts_with("entry ")).collect();
    let last = entries.last().expect("an entry into");
    let frames = sample.lines("frames");
    let out = frames.last().expect("an entry out");
    let in_into = |line: &str, instead: &str| {
        before.to_owned() + &into.replacen(&format!("{line}\n"), &format!("{instead}\n"), 1)
    };
    let cases = [
        (in_into(last, &word(last, 2, "0")), "composed-target"),
        (in_into(last, &word(last, 1, "4000000")), "not-composed"),
        (in_into(last, &word(last, 3, "0")), "composed-kept"),
        (in_into(last, &format!("{last}\nassign 0 v0")), "composed-assigns"),
        (sample.with(out, &word(out, 1, "4000000")), "not-composed"),
    ];
    for (text, reason) in cases {
        let found = sample.judged(&text).unwrap_or_else(|error| panic!("{reason}: {error}"));
        let dropped = found.counts.dropped;
        assert_eq!(dropped.keys().collect::<Vec<_>>(), [reason], "{:?}", found.refused);
        assert_eq!((dropped[reason], found.counts.held), (1, held - 1), "{reason}");
    }
}

/// Claims about the copy, each wrong in one way. No entry across it is composed then.
#[test]
fn a_claim_about_the_copy_that_is_wrong_is_refused_with_its_line() {
    let sample = Sample::new();
    whole(&sample);
    // `@low` is inlined into `@main`, and into `@high` in `@main`.
    let [own, high, low, inner] = sample.lines("instance")[..] else { panic!("four instances") };
    let begins = sample.lines("begins");
    let values = |line: &str| line.rsplit(' ').next().expect("values").to_owned();
    let fewer = values(inner).split_once(',').expect("several").1.to_owned();
    let swapped = format!("{}\n{}", word(low, 6, &values(inner)), word(inner, 6, &values(low)));
    let of = |line: &str, id: &str| line.split(' ').nth(2) == Some(id);
    let in_high = begins.iter().find(|line| of(line, "1")).expect("a block of `@high`");
    let in_low = begins.iter().find(|line| of(line, "2")).expect("a block of `@low`");
    let cases = [
        ("an instance called from another", sample.with(inner, &word(inner, 4, "0"))),
        ("an instance called from itself", sample.with(inner, &word(inner, 4, "3"))),
        (
            "an instance at another call",
            sample.with(low, &word(low, 5, high.split(' ').nth(5).expect("a call"))),
        ),
        ("an instance without a caller", sample.with(inner, &word(&word(inner, 4, "-"), 5, "-"))),
        ("a function that is called", sample.with(own, &word(&word(own, 4, "0"), 5, "0"))),
        ("another function, alike", sample.with(inner, &word(inner, 2, "3"))),
        ("another version", sample.with(own, &word(own, 3, "base"))),
        ("environments of one function swapped", sample.with(&format!("{low}\n{inner}"), &swapped)),
        ("a name less", sample.with(inner, &word(inner, 6, &fewer))),
        ("a block at another place", sample.with(in_high, &word(in_high, 3, "1"))),
        ("a block of another instance", sample.with(in_low, &word(in_low, 2, "3"))),
        ("a block of an instance that there is not", sample.with(in_low, &word(in_low, 2, "9"))),
        ("a block without a place", sample.text.replacen(&format!("{in_low}\n"), "", 1)),
        ("no claim", sample.text.replacen(&sample.claim(), "", 1)),
    ];
    let across = sample.lines("frames").len() as u64;
    for (what, text) in cases {
        let found = sample.judged(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found.counts.dropped.len(), 1, "{what}: {:?}", found.counts);
        assert!(found.counts.dropped["copy"] > across, "{what}: {:?}", found.counts);
        let claim = sample.text.lines().position(|l| l.starts_with("instance 0 "));
        assert_eq!(Some(found.refused[0].line - 1), claim, "{what}");
        assert!(found.refused[0].what.starts_with("the copy: "), "{what}: {:?}", found.refused);
    }
}

/// The frames of a function land where the file proves its values live, and nowhere else.
#[test]
fn frames_land_where_the_file_proves_the_landing() {
    let sample = Sample::new();
    let held = whole(&sample).held;
    let begin = sample.text.find("landing low\n").expect("a landing");
    let (before, landing) = sample.text.split_at(begin);
    let rest = &landing[landing.find("end\n").expect("its end") + 4..];
    let without = format!("{before}{rest}").replacen("landings 2", "landings 1", 1);
    // The first claim about the base, of another term.
    let wrong = landing.replacen("value before 2 3", "value before 2 2", 1);
    assert_ne!(wrong, landing);
    for text in [without, format!("{before}{wrong}")] {
        let found = sample.judged(&text).expect("readable");
        assert_eq!(found.counts.dropped.keys().collect::<Vec<_>>(), ["not-composed"]);
        assert!(found.counts.held < held, "{:?}", found.counts);
        assert!(found.refused[0].what.contains("in which frames of func2 land"), "{found:?}");
    }
}

/// A pair that does not hold takes the entries across the copy with it, and the entries of the pair
/// are counted by the check that they fail.
#[test]
fn entries_are_composed_of_accepted_ones_alone() {
    let sample = Sample::new();
    let held = whole(&sample).held;
    let begin = sample.text.find("pair copy optimized").expect("a pair");
    let (before, pair) = sample.text.split_at(begin);
    let backward = pair.find("mapping backward").expect("a mapping");
    let (ahead, back) = pair.split_at(backward);
    let entry = back.lines().find(|l| l.starts_with("entry ")).expect("an entry");
    let wrong = back.replacen(entry, &word(entry, 3, "0"), 1);
    let found = sample.judged(&format!("{before}{ahead}{wrong}")).expect("readable");
    let dropped: Vec<(&str, u64)> =
        found.counts.dropped.iter().map(|(check, count)| (check.as_str(), *count)).collect();
    assert_eq!(dropped, [("kept", 1), ("not-composed", 1)]);
    assert_eq!(found.counts.held, held - 2);
    let what = &found.refused[0].what;
    assert!(what.contains("the version has no accepted entry there"), "{what}");
}

#[test]
fn malformed_records_are_refused_with_their_line() {
    let sample = Sample::new();
    let instances = sample.lines("instance");
    let [.., last] = instances[..] else { panic!("instances") };
    let begins = sample.lines("begins")[1];
    let frame = *sample.deepest().last().expect("a frame");
    let frames = sample.deepest()[0];
    let one = |line: &str, instead: String| sample.text.replacen(line, &instead, 1);
    let values = last.rsplit(' ').next().expect("values");
    let name = values.split(',').next().expect("a name");
    let many: String = (4..40).map(|id| format!("\ninstance {id} 2 base 0 5 -")).collect();
    let cases = [
        (one(last, word(last, 1, "7")), "instance 3 is expected"),
        (one(last, word(last, 2, "9")), "no code of func9"),
        (one(last, word(last, 3, "cleaned")), "func2 has no version `cleaned` here"),
        (one(last, word(last, 3, "-")), "func2 has no version `-` here"),
        (one(last, word(last, 4, "-")), "`-` is not a valid number"),
        (one(last, word(last, 6, &format!("{name},{name}"))), "two names"),
        (one(last, word(last, 6, "0=0")), "%v0 is the name of two values"),
        (one(last, word(last, 6, "0")), "`0` has no `=`"),
        (one(last, format!("{last}{many}")), "a copy of 10 blocks"),
        (one(begins, format!("{begins}\n{begins}")), "begins twice"),
        (one(frame, word(frame, 3, "behind")), "`behind` is no place of a frame"),
        (one(frame, word(frame, 1, "4294967295")), "is not an id"),
        (one(frame, format!("{frame} x")), "unexpected `x`"),
        (one(frames, format!("{frames}\nstep const i32 i32 1 - 0 -")), "name no terms"),
        (one(frames, format!("{frames}\nassign 0 v0")), "frames have the assignments"),
        (one(frames, format!("{frames}\n{frames}")), "must ascend"),
        (one("\nmapping out ", "\nmapping out 9".to_owned()), "announces 9"),
        (one("landings 2", "landings 3".to_owned()), "announces 3 landings; the file has 2"),
        (one("landings 2\n", String::new()), "announces 0 landings; the file has 2"),
        (one("landing low", "landing high".to_owned()), "lists the function twice"),
        (sample.left_out("left-out 0 x"), "expected two numbers of rewrites"),
        (sample.left_out("left-out-behind 0"), "expected two numbers of rewrites"),
        (one("main\nnumber 0", "main\nnumber 1".to_owned()), "has the number 0, not 1"),
        (one("low\nnumber 2", "low\nnumber 1".to_owned()), "has the number 2, not 1"),
        (one("low\nnumber 2", "low\nnumber x".to_owned()), "expected the number of a function"),
        (one("pair copy optimized", "pair base optimized".to_owned()), "expected `pair copy"),
        (one("version cleaned", "version after".to_owned()), "expected `version cleaned`"),
    ];
    for (text, cause) in cases {
        assert_ne!(text, sample.text, "{cause}");
        let error = sample.judged(&text).map(|found| format!("{found:?}")).expect_err(cause);
        assert!(error.to_string().contains(cause), "{cause}: {error}");
        assert!(error.line > 1 && error.what.len() < 300, "{error}");
    }
}

/// Files that are older than the record hold, too.
#[test]
fn functions_may_lack_numbers() {
    let sample = Sample::new();
    let older = sample.text.lines().filter(|line| !line.starts_with("number "));
    let older: String = older.map(|line| format!("{line}\n")).collect();
    assert!(older.len() < sample.text.len());
    let [found, all] = [&older, &sample.text].map(|text| sample.judged(text).expect("a file"));
    assert_eq!(found.counts.held, all.counts.held);
    assert!(found.counts.dropped.is_empty());
}

#[test]
fn a_truncated_version_is_refused_with_its_line() {
    let sample = Sample::new();
    let lines = sample.text.lines().count();
    for cut in 0..sample.text.len() - 1 {
        match sample.judged(&sample.text[..cut]) {
            Ok(found) => panic!("cut at {cut}: {found:?}"),
            Err(error) => assert!(error.line <= lines + 1 && !error.what.is_empty(), "{error}"),
        }
    }
}

/// Time and memory grow with the file alone: this file has 10^6 frames of one entry, places of
/// missing blocks, and names of missing values.
#[test]
fn very_many_records_are_judged_quickly() {
    let sample = Sample::new();
    let held = whole(&sample).held;
    let deepest: Vec<String> = sample.deepest().into_iter().map(str::to_owned).collect();
    let frame = deepest.last().expect("a frame");
    let mut lines = deepest.clone();
    lines.push(vec![frame.as_str(); 1_000_000].join("\n"));
    let found = sample.judged(&sample.instead_of_deepest(&lines)).expect("readable");
    assert_eq!((found.counts.dropped["frame-count"], found.counts.held), (1, held - 1));
    let begins = *sample.lines("begins").last().expect("a place");
    let places: String = (1000..300_000).map(|block| format!("\nbegins {block} 3 0")).collect();
    let found = sample.judged(&sample.with(begins, &format!("{begins}{places}")));
    assert_eq!(found.expect("readable").counts.held, held, "places of unreachable blocks");
    let last = *sample.lines("instance").last().expect("an instance");
    let names: String = (1000..300_000).map(|value| format!(",{value}={value}")).collect();
    let found = sample.judged(&sample.with(last, &format!("{last}{names}")));
    assert_eq!(found.expect("readable").counts.held, held, "names of values that there are not");
}

/// A word of the file, and how it changes: whether it is one of the copy and of the entries across
/// it, its line, its index in the line, and a choice.
fn damages() -> impl Strategy<Value = (bool, Index, Index, u32)> {
    (any::<bool>(), any::<Index>(), any::<Index>(), 0..5u32)
}

/// Replaces one word behind the versions, or a line, by one that is nearly right.
fn damaged(text: &str, across: bool, line: Index, word: Index, choice: u32) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let first = if across { "instance " } else { "pair " };
    let first = lines.iter().position(|l| l.starts_with(first)).expect("records");
    if choice == 4 {
        let at = first + line.index(lines.len() - first - 1);
        lines.swap(at, at + 1);
        return lines.join("\n") + "\n";
    }
    let line = line.get_mut(&mut lines[first..]);
    let mut parts: Vec<String> = line.split_inclusive([' ', ',', '=']).map(str::to_owned).collect();
    let part = word.get_mut(&mut parts);
    let word = part.trim_end_matches([' ', ',', '=']).to_owned();
    let end = part[word.len()..].to_owned();
    let (kind, number) = word.split_at(usize::from(word.starts_with(['v', 's'])));
    let changed = match (number.parse::<i64>(), choice) {
        (Ok(number), 0) => format!("{kind}{}", number - 1),
        (Ok(number), 1) => format!("{kind}{}", number + 1),
        (Ok(_), 2) => format!("{kind}0"),
        (Err(_), 0) => format!("{word},0"),
        (Err(_), 1) => "before".to_owned(),
        (Err(_), 2) => "v0".to_owned(),
        (_, _) => "-".to_owned(),
    };
    *part = changed + &end;
    *line = parts.concat();
    lines.join("\n") + "\n"
}

/// Whether two texts describe the same entries: the lines, less the order of records that the form
/// leaves free.
fn is_same(a: &str, b: &str) -> bool {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    sorted(a) == sorted(b)
}

#[test]
fn damage_to_a_version_is_refused_or_drops_entries_and_never_panics() {
    let sample = Sample::new();
    let whole = whole(&sample).held;
    let (refused, dropped, claims) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let config = Config { cases: 3000, failure_persistence: None, ..Config::default() };
    let made = TestRunner::new(config).run(&damages(), |(across, line, word, choice)| {
        let text = damaged(&sample.text, across, line, word, choice);
        match sample.judged(&text) {
            Err(_) => refused.set(refused.get() + 1),
            Ok(found) => {
                let lost = found.counts.held < whole;
                assert_eq!(lost, !found.counts.dropped.is_empty(), "{found:?}");
                dropped.set(dropped.get() + u64::from(lost));
                claims.set(claims.get() + u64::from(found.counts.dropped.contains_key("copy")));
                // Records of entries across the copy and of the claim have no freedom.
                let across = |l: &str| {
                    ["frames ", "frame ", "instance ", "begins "].iter().any(|w| l.starts_with(w))
                };
                let kept: Vec<&str> = text.lines().filter(|l| across(l)).collect();
                let right: Vec<&str> = sample.text.lines().filter(|l| across(l)).collect();
                assert!(lost || kept == right || is_same(&text, &sample.text), "{kept:?}");
            }
        }
        Ok(())
    });
    made.unwrap_or_else(|failure| panic!("{failure}"));
    let (refused, dropped, claims) = (refused.get(), dropped.get(), claims.get());
    assert!(
        refused > 500 && dropped > 500 && claims > 10,
        "{refused} rejected, {dropped} with dropped entries, {claims} copies"
    );
}
