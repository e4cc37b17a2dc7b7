//! The two sentences at the beginning of each report: the question, and the result.

use super::UNBLAMED;
use super::rows::{decimal, level, percent};
use crate::schema::{DirectionFigures, InliningReport, Report, SpeculationReport, Spread};
use crate::table::{grouped, shortened};
use derive::inlining::{InlinePlan, O3};
use std::collections::BTreeMap;

/// The width of names in sentences, in columns.
const NAME: usize = 44;

/// The name of the pipeline of these passes, in the syntax of `--pipeline`: `O1` for the passes of
/// `O1`, `O1,thread` if `thread` follows them, and otherwise the names of the passes, separated by
/// commas. Cost: linear.
pub fn pipeline_name(passes: &[String]) -> String {
    if InlinePlan::o3().names().iter().eq(passes) {
        return O3.to_owned();
    }
    if passes.is_empty() {
        return passes::registry::name_of(passes).unwrap_or_default().to_owned();
    }
    let mut names: Vec<&str> = Vec::new();
    let mut rest = passes;
    while let Some((first, behind)) = rest.split_first() {
        // The longest prefix with a name. Example: `O2,thread` begins with `O2`.
        let named = (2..=rest.len().min(passes::registry::longest()))
            .rev()
            .find_map(|count| Some((passes::registry::name_of(&rest[..count])?, &rest[count..])));
        let (name, left) = named.unwrap_or((first, behind));
        names.push(name);
        rest = left;
    }
    names.join(",")
}

/// The words for a pipeline in a sentence.
pub(super) fn pipeline_words(passes: &[String]) -> String {
    format!("the pipeline {}", shortened(&pipeline_name(passes), NAME))
}

/// A count and what is counted.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Two sentences about a report for readers who know none of its terms: the question and the
/// result.
pub fn summary(report: &Report) -> [String; 2] {
    let path = shortened(&report.program.path, NAME);
    let pipeline = pipeline_words(&report.pipeline);
    let counts = report.totals.functions;
    let selected = format!("of {} of {path}", counted(counts.selected, "function", "functions"));
    let start = if report.interrupted { "Until an interrupt, " } else { "" };
    if counts.changed == 0 {
        return [
            format!(
                "{start}Osier applied {pipeline} to {} of {path}, and changed none of them.",
                counted(counts.selected, "function", "functions")
            ),
            "Where nothing changes, a running call is at the same place of both versions, and \
             there is nothing to measure."
                .to_owned(),
        ];
    }
    let [forward, backward] = [&report.totals.forward.sum, &report.totals.backward.sum];
    let measured = format!(
        "{start}Osier optimized {} {selected} with {pipeline}, and asked at each of {} whether a \
         running call can move to the optimized version, and at each of {} there whether it can \
         move back.",
        grouped(counts.changed),
        counted(forward.reachable(), "point", "points"),
        counted(backward.reachable(), "point", "points"),
    );
    [measured, result(report, forward, backward)]
}

/// The second sentence.
fn result(report: &Report, forward: &DirectionFigures, backward: &DirectionFigures) -> String {
    let at = level(report);
    let sides = [forward, backward];
    let [there, back] = sides.map(|side| share_words(side.share(at)));
    let limit = match report.level.as_str() {
        "avail" => String::new(),
        level => format!("With the values that the level {level} allows, it "),
    };
    let mut text = if limit.is_empty() { "It ".to_owned() } else { limit };
    text += &format!("can move there at {there} and back at {back}");
    if report.profile.is_some() {
        let [there, back] = sides.map(|side| percent(side.dynamic_share(at)));
        text += &format!(" ({there} % and {back} % if each point counts as often as it ran)");
    }
    let [there, back] = sides.map(|side| decimal(side.chi.get(at).and_then(Spread::mean)));
    text += &format!(", which takes {there} steps there and {back} back on average");
    let mut blame: BTreeMap<&str, u64> = BTreeMap::new();
    for (pass, count) in sides.iter().flat_map(|side| &side.causes.blame) {
        *blame.entry(pass).or_default() += count;
    }
    let missing: u64 = blame.values().sum();
    // Of several passes with equal counts, the first by name.
    let worst = blame.iter().filter(|(pass, _)| **pass != UNBLAMED);
    let worst = worst.max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0)));
    match (missing, worst) {
        (0, _) => text + ".",
        (1, Some((pass, _))) => text + &format!("; the pass {pass} is to blame for the other one."),
        (_, Some((pass, count))) => {
            let others = format!("{} of the {} others", grouped(*count), grouped(missing));
            text + &format!("; the pass {pass} is to blame for {others}.")
        }
        (_, None) => {
            text + &format!("; for the {} others, no pass can be named.", grouped(missing))
        }
    }
}

/// A share of the points, in words.
fn share_words(share: Option<f64>) -> String {
    match share {
        None => "no point".to_owned(),
        Some(share) if share >= 100.0 => "every point".to_owned(),
        share => format!("{} % of the points", percent(share)),
    }
}

/// The two sentences on several pipelines over one program.
pub(super) fn several_summary(reports: &[&Report]) -> [String; 2] {
    let Some(first) = reports.first() else { return Default::default() };
    let start = if first.interrupted { "Until an interrupt, " } else { "" };
    let measured = format!(
        "{start}Osier optimized {} of {} with {} pipelines, one after the other, and asked at \
         each point whether a running call can move to the optimized version, and at each of the \
         points there whether it can move back.",
        counted(first.totals.functions.selected, "function", "functions"),
        shortened(&first.program.path, NAME),
        reports.len(),
    );
    let at = level(first);
    let lowest = |report: &&Report| {
        let sides = [&report.totals.forward.sum, &report.totals.backward.sum];
        sides.into_iter().filter_map(|side| side.share(at)).fold(100.0, f64::min)
    };
    let named = |report: &Report| shortened(&pipeline_name(&report.pipeline), NAME / 2);
    let [mut worst, mut best] = [first; 2];
    for report in reports {
        // Of equal pipelines, the first one.
        worst = if lowest(report) < lowest(worst) { report } else { worst };
        best = if lowest(report) > lowest(best) { report } else { best };
    }
    let of = |report: &Report| {
        let sides = [&report.totals.forward.sum, &report.totals.backward.sum];
        let [there, back] = sides.map(|side| share_words(side.share(at)));
        format!("there at {there} and back at {back}")
    };
    let result = match lowest(worst) < lowest(best) {
        true => format!(
            "At the level {} it can move at most points with {}, {}; at fewest with {}, {}.",
            first.level,
            named(best),
            of(best),
            named(worst),
            of(worst)
        ),
        false => {
            format!("The pipelines do equally well: with {} it can move {}.", named(best), of(best))
        }
    };
    [measured, result]
}

/// The two sentences on a pipeline that inlines.
pub(super) fn inlining_summary(report: &InliningReport) -> [String; 2] {
    let start = if report.interrupted { "Until an interrupt, " } else { "" };
    let with = report.functions.len() as u64;
    let [own, inlined] = [&report.totals.own, &report.totals.inlined];
    let measured = format!(
        "{start}Osier inlined {} in {} of {} of {} with {}, and asked at each of {} whether a \
         running call can move to the optimized version, and at each of {} there whether it can \
         move back.",
        counted(report.totals.calls, "call", "calls"),
        grouped(with),
        counted(with + report.plain, "function", "functions"),
        shortened(&report.program.path, NAME),
        pipeline_words(&report.pipeline),
        counted(report.totals.up.points, "point", "points"),
        counted(own.points + inlined.points, "point", "points"),
    );
    let result = format!(
        "It can move there at {}, back at {} outside of inlined code, and at {} inside, from where \
         it goes on in several functions.",
        share_words(report.totals.up.share()),
        share_words(own.share()),
        share_words(inlined.share()),
    );
    [measured, result]
}

/// The two sentences on the assumptions that a profile suggests.
pub(super) fn speculation_summary(report: &SpeculationReport) -> [String; 2] {
    let start = if report.interrupted { "Until an interrupt, " } else { "" };
    let totals = &report.totals;
    if totals.suggested == 0 {
        return [
            format!(
                "{start}Osier found no assumption in the profile {} for the functions of {}.",
                shortened(&report.profile, NAME),
                shortened(&report.program.path, NAME)
            ),
            format!(
                "It looks at places that were visited {} or more, and suggests facts that held \
                 there each time.",
                counted(report.visits, "time", "times")
            ),
        ];
    }
    let measured = format!(
        "{start}Osier found {} in the profile {} for {} of {} of {}, and optimized versions that \
         make them with {}.",
        counted(totals.suggested, "assumption", "assumptions"),
        shortened(&report.profile, NAME / 2),
        grouped(report.functions.len() as u64),
        counted(report.program.functions, "function", "functions"),
        shortened(&report.program.path, NAME),
        pipeline_words(&report.pipeline),
    );
    let result = format!(
        "{} an exit that leads a call back to the base if the assumption fails; {} settled \
         without one, and {} dropped.",
        counted(totals.exits, "has", "have"),
        counted(totals.settled, "is", "are"),
        counted(totals.all_dropped(), "is", "are"),
    );
    [measured, result]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_have_their_names() {
        let named = |list: &str| {
            let names: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
            pipeline_name(&names)
        };
        let o1: Vec<&str> = passes::parse("O1").expect("known").names();
        assert_eq!(named(&o1.join(" ")), "O1");
        assert_eq!(named(&InlinePlan::o3().names().join(" ")), "O3");
        assert_eq!((named(""), named("licm cse")), ("O0".to_owned(), "licm,cse".to_owned()));
        assert_eq!(named(&format!("licm {} hoist", o1.join(" "))), "licm,O1,hoist");
    }
}
