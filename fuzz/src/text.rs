//! Prints figures for people, at most 80 columns wide.

use super::figures::{
    CertificateFigures, CompositionFigures, Figures, InlinedFigures, NativeFigures,
    SpeculationFigures, StressFigures, TableFigures,
};
use super::oracle::FuzzOracle;
use std::fmt::Write;
use verify::state_oracle::FrameChains;
use verify::tables::TableRunReport;

/// The figures of one source of programs, under a title. The text depends on neither times nor the
/// number of threads.
pub fn text(title: &str, figures: &Figures) -> String {
    let mut out = String::new();
    let total = figures.state.total();
    let mut line = |name: &str, value: String| {
        writeln!(out, "{name:<13} {value}").expect("writing to a string");
    };
    let chains: u64 = figures.versions.range(3..).map(|(_, count)| count).sum();
    let refused = if figures.refused > 0 {
        format!(", {} inputs rejected", figures.refused)
    } else {
        String::new()
    };
    line(
        title,
        format!("{} programs, {chains} of them with 3 to 6 versions{refused}", figures.programs),
    );
    if figures.native.runs > 0 {
        native_text(&mut line, figures);
        passes(&mut out, figures);
        return out;
    }
    if figures.pairs == 0 && figures.is_only_one() {
        inlining(&mut line, figures);
        speculation(&mut line, figures);
        return out;
    }
    line("  runs", {
        let state = &figures.state;
        format!("{}, {} ended by a trap, {} by a limit", state.runs, state.trapped, state.exhausted)
    });
    line(
        "  mapped",
        format!("{} of {} points of {} pairs", figures.entries, figures.points, figures.pairs),
    );
    let certificates = &figures.certificates;
    line("  certified", {
        let CertificateFigures { certified, unreached, .. } = certificates;
        let dropped = certificates.dropped();
        let share = percent(dropped, certified + dropped);
        format!("{certified} entries, {dropped} dropped, {share}; {unreached} unreachable")
    });
    if certificates.retried > 0 {
        let CertificateFigures { retried, given_up, still_dropped, .. } = certificates;
        let counts = format!("{given_up} rewrites given up, {still_dropped} entries dropped");
        line("  retry", format!("{retried} pairs again: {counts}"));
    }
    line("  covered", {
        let share = percent(figures.entries_fired, figures.entries_armed);
        format!("{} entries fired, {share} of all entries", figures.entries_fired)
    });
    let (forward, backward) =
        (figures.state.forward.transitions, figures.state.backward.transitions);
    line(
        "  transitions",
        format!("{} compared, {forward} forward and {backward} backward", total.transitions),
    );
    line("", {
        let (code, loops) = (
            percent(total.with_code, total.transitions),
            percent(total.in_loops, total.transitions),
        );
        format!(
            "{code} run code, {loops} in loops, {} values each",
            mean(total.compared, total.transitions)
        )
    });
    line(
        "  going on",
        format!("{} runs, {} ended by a limit", total.going_on, total.going_on_exhausted),
    );
    line("  hop chains", {
        let hops = &figures.hops;
        let full = percent(hops.full_chains, hops.chains);
        format!(
            "{}, {} hops, {full} with 4 or more, {} ended by a limit",
            hops.chains, hops.hops, hops.exhausted
        )
    });
    let StressFigures { stressed, stress_hops, stressed_exhausted } = figures.stress;
    if stressed > 0 {
        line(
            "  stressed",
            format!("{stressed} runs, {stress_hops} hops, {stressed_exhausted} ended by a limit"),
        );
    }
    line("  composed", {
        let CompositionFigures { composed, not_composed, same_point, .. } = figures.composition;
        let share = percent(composed, composed + not_composed);
        format!(
            "{composed} entries, {share} of those tried; {same_point} agree with other mappings"
        )
    });
    inlining(&mut line, figures);
    speculation(&mut line, figures);
    passes(&mut out, figures);
    out
}

/// Adds the lines about versions with inlined code, if there are any.
fn inlining(line: &mut dyn FnMut(&str, String), figures: &Figures) {
    let all = &figures.inlining;
    if all.versions == 0 {
        return;
    }
    line("  inlined", {
        let [up, down] = [0, 1].map(|way| percent(all.lost[way], all.points[way]));
        format!("{} calls in {} versions; lost: {up} up, {down} down", all.calls, all.versions)
    });
    line("  frames", {
        let InlinedFigures { down: [one, two, three, four, more], up, .. } = all;
        format!("{one} with 1, {two} 2, {three} 3, {four} 4, {more} more; {up} up")
    });
    line("", {
        let InlinedFigures { going_on, without_room, ambiguous, .. } = all;
        format!("{going_on} went on, {without_room} without room, {ambiguous} not told apart")
    });
    if all.chains.chains > 0 {
        let FrameChains { chains, several, states, exhausted, .. } = &all.chains;
        let hops = all.chains.hops();
        line("  chains", format!("{chains}, {hops} hops, {states} states compared"));
        let text = format!("{several} left into several activations twice or more often");
        line("", format!("{text}, {exhausted} limited"));
    }
    if all.assumptions > 0 {
        let InlinedFigures { assumptions, exits_holding, exits_failing, .. } = all;
        let exits = format!("{exits_holding} holding, {exits_failing} failing");
        line("", format!("{assumptions} assumptions: {exits}"));
    }
}

/// Adds the lines about speculative versions, if there are any.
fn speculation(line: &mut dyn FnMut(&str, String), figures: &Figures) {
    let all = &figures.speculation;
    if all.wanted > 0 {
        assumed(line, all);
    }
    if all.tables.tables > 0 {
        tables(line, &all.tables);
    }
}

/// Adds the lines about assumptions and their exits.
fn assumed(line: &mut dyn FnMut(&str, String), all: &SpeculationFigures) {
    line("  assumed", {
        let share = percent(all.failing, all.made);
        let SpeculationFigures { wanted, made, settled, dropped, .. } = all;
        format!(
            "{wanted}: {made} exits, {settled} settled, {dropped} dropped; {share} seen failing"
        )
    });
    let (holding, failing) = all.exits();
    let transitions = all.state.total().transitions;
    line("  exits", format!("{holding} holding, {failing} failing, of {transitions} transitions"));
}

/// Adds the lines about landing tables.
fn tables(line: &mut dyn FnMut(&str, String), all: &TableFigures) {
    let TableFigures { tables, rows, exits, facts, runs, .. } = all;
    line("  tables", format!("{tables}, {rows} rows, {exits} exits, {facts} facts at starts"));
    line("", {
        let TableRunReport { entered, lies, to_rows, failed, left, .. } = runs;
        format!("{entered} in, {lies} refused, {to_rows} on to rows, {failed} failed, {left} out")
    });
    let TableRunReport { states, holding, failing, .. } = runs;
    line("", format!("{states} states compared, {holding} holding, {failing} failing"));
    if all.handing > 0 {
        let TableRunReport { handed, handed_states, .. } = runs;
        let text = format!("{} with frame states, {handed} handed over", all.handing);
        line("", format!("{text}, {handed_states} such states compared"));
    }
}

/// Adds the lines about native code. Times are omitted.
fn native_text(line: &mut dyn FnMut(&str, String), figures: &Figures) {
    let native = &figures.native;
    line(
        "  mapped",
        format!("{} of {} points of {} pairs", figures.entries, figures.points, figures.pairs),
    );
    line("  native runs", {
        format!(
            "{}, {} ended by a trap, {} by a limit",
            native.runs, native.trapped, native.exhausted
        )
    });
    line("  covered", {
        let share = percent(native.points_fired, native.points);
        format!("{} points fired, {share} of those compiled in", native.points_fired)
    });
    line("  transitions", {
        let NativeFigures { transitions, forward, backward, .. } = native;
        format!("{transitions} compared, {forward} forward and {backward} backward")
    });
    line("", {
        let probed = percent(native.probed, native.transitions);
        let visits = native.transitions + native.stays + native.probed;
        format!(
            "{probed} also at the landing point, {} values each time",
            mean(native.compared, visits)
        )
    });
    if native.stays > 0 {
        line("  stays", native.stays.to_string());
    }
    if native.left_inlined > 0 {
        let (all, framed) = (native.left_inlined, native.framed);
        line("  inlined", format!("{all} exits, {framed} of them into several activations"));
        if native.failed_inlined > 0 {
            line("", format!("{} at assumptions that failed", native.failed_inlined));
        }
        if native.resumed_inlined > 0 {
            line(
                "",
                format!("{} times taken back by a policy that counts", native.resumed_inlined),
            );
        }
    }
    if native.released > 0 {
        line("  released", format!("{} versions in the middle of runs", native.released));
    }
    if native.tiered > 0 {
        let NativeFigures { tiered, late, delays, entered, flagged, .. } = native;
        let mean = mean(*delays, *late);
        line("  tiers", format!("{tiered} programs, {late} pieces of code {mean} visits late"));
        line("", format!("{entered} times up, {flagged} times down by another thread's flag"));
    }
    if native.tabled > 0 {
        let NativeFigures { tabled, rows, linked_to_rows, entered_rows, to_rows, .. } = native;
        line("  tables", format!("{tabled} programs, {rows} rows, {linked_to_rows} exits to them"));
        line("", format!("{entered_rows} times up in loops, {to_rows} times from exits to rows"));
    }
    if native.nans > 0 {
        line("  NaNs", format!("{} values agree but for their bits", native.nans));
    }
    if native.assumptions > 0 {
        line("  assumed", {
            let failing = percent(native.assumptions_failing, native.assumptions);
            let (all, versions) = (native.assumptions, native.speculative);
            format!("{all} assumptions in {versions} versions, {failing} failed")
        });
        line("  exits", {
            let (down, linked) = (native.exits_interpreted, native.exits_linked);
            format!(
                "{} taken, {down} to the interpreter, {linked} linked; {} visits held",
                native.exits, native.held
            )
        });
    }
    let unguarded = match native.unguarded {
        0 => String::new(),
        pairs => format!("; {pairs} pairs of versions without guards, for lack of address space"),
    };
    line("  compiled", format!("{} pieces of code{unguarded}", native.compiled_functions));
}

/// Adds the share of programs that each pass acted on, two passes per line.
fn passes(out: &mut String, figures: &Figures) {
    let columns: Vec<String> = figures
        .passes
        .iter()
        .map(|(name, pass)| {
            format!("{name:<11}{:>8} of {:<8}", percent(pass.acted, pass.programs), pass.programs)
        })
        .collect();
    for (number, pair) in columns.chunks(2).enumerate() {
        let name = if number == 0 { "  acted on" } else { "" };
        writeln!(out, "{name:<13} {}", pair.join("  ").trim_end()).expect("writing to a string");
    }
}

/// The number of programs in which each oracle found something, in the order of oracles. A dash
/// marks an oracle that did not run.
pub fn oracles_text(figures: &Figures) -> String {
    let found = |oracle: &FuzzOracle| match figures.has_run(*oracle) {
        true => figures.findings.get(oracle).copied().unwrap_or(0).to_string(),
        false => "-".to_owned(),
    };
    let words: Vec<String> = FuzzOracle::ALL.iter().map(|o| format!("{o} {}", found(o))).collect();
    let (first, second) = words.split_at(words.len() / 2 + 1);
    format!("found         {}\n              {}\n", first.join(", "), second.join(", "))
}

fn percent(part: u64, all: u64) -> String {
    if all == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / all as f64) }
}

fn mean(sum: u64, count: u64) -> String {
    if count == 0 { "-".to_owned() } else { format!("{:.1}", sum as f64 / count as f64) }
}
