//! Sizes: of modules, functions, lines, and of the code that decides acceptance.

use crate::functions::{SYNTAX, SyntaxFacts};
use crate::report;
use crate::tree::{Source, files, sources};

/// The number of lines that a module must not exceed without a reason. Tests are exempt.
const MODULE_LINES: usize = 600;

/// The number of lines that no module may exceed, reason or not.
const MODULE_LINES_AT_MOST: usize = 1000;

/// Modules longer than [`MODULE_LINES`], each with the reason why it is not split.
const LONG_MODULES: &[(&str, &str)] = &[];

/// The number of lines a function must not exceed outside tests.
const FUNCTION_LINES: usize = 100;

/// Functions longer than [`FUNCTION_LINES`], by file and name, each with the reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    (
        "interp/src/exec.rs",
        "run_loop",
        "the interpreter's dispatch: one short arm for each operation, sharing the registers of the loop",
    ),
    ("interp/src/fast/exec.rs", "run_loop", "the dispatch of the fast tier, for the same reason"),
];

#[test]
fn modules_are_short() {
    let sources: Vec<Source> = sources().into_iter().filter(|s| !s.is_test()).collect();
    let mut findings = Vec::new();
    for source in &sources {
        let lines = source.text.lines().count();
        let excused = LONG_MODULES.iter().any(|(path, _)| *path == source.path);
        if lines > MODULE_LINES_AT_MOST || (lines > MODULE_LINES && !excused) {
            findings.push(format!("{} has {lines} lines", source.path));
        }
        if lines <= MODULE_LINES && excused {
            findings.push(format!("{} has {lines} lines and needs no excuse", source.path));
        }
    }
    for (path, _) in
        LONG_MODULES.iter().filter(|(path, _)| !sources.iter().any(|s| s.path == *path))
    {
        findings.push(format!("{path} is excused and does not exist"));
    }
    report(sources.len(), findings);
}

/// The columns of a line of code, of a comment, or of a manual.
const COLUMNS: usize = 100;

#[test]
fn lines_fit_side_by_side() {
    let files: Vec<(String, String)> =
        files().into_iter().filter(|(p, _)| p.ends_with(".rs") || p.ends_with(".md")).collect();
    let mut findings = Vec::new();
    // The list of unsafe code is written by a test, a line for each use.
    for (path, text) in files.iter().filter(|(path, _)| path != "jit/UNSAFE.md") {
        let is_manual = path.ends_with(".md");
        let mut in_code = false;
        for (line, number) in text.lines().zip(1..) {
            in_code ^= is_manual && line.trim_start().starts_with("```");
            // A table, printed output and a literal keep their lines: breaking one changes it.
            let is_literal = line.contains('"') || line.contains("\\n");
            let is_row = line.trim_start_matches(['/', '!', ' ']).starts_with('|');
            let is_whole = in_code || is_row || is_literal || is_link(line);
            if line.chars().count() > COLUMNS && !is_whole {
                findings.push(format!("{path}:{number} has {} columns", line.chars().count()));
            }
        }
    }
    report(files.len(), findings);
}

/// Whether a line is one word, such as an address, that cannot be broken.
fn is_link(line: &str) -> bool {
    line.trim_start_matches(['/', '!', ' ', '-']).split_whitespace().count() == 1
}

/// The folder of the modules of the checker that decide acceptance. A reader must go through their
/// lines to trust the checker. The other modules of the crate word verdicts and tell refuted
/// entries from undecided ones.
const ACCEPTANCE: &str = "check/src/accept/";

/// The files of `transition` and `ir` that the modules of acceptance use: composition, with and
/// without frames, and typing;
/// versions and their parts; the table and the meaning of operations; the rewrite rules; and the
/// verifier, with the graph and the dominators that it uses. Where a path ends with `/`, all files
/// of the folder count.
const FOUNDATION: &[&str] = &[
    "transition/src/ascending.rs",
    "transition/src/certificate.rs",
    "transition/src/compose.rs",
    "transition/src/copy.rs",
    "transition/src/demand.rs",
    "transition/src/frames.rs",
    "transition/src/lists.rs",
    "transition/src/mapping.rs",
    "transition/src/packed.rs",
    "transition/src/parts.rs",
    "transition/src/shared.rs",
    "transition/src/side.rs",
    "transition/src/version.rs",
    "ir/src/cfg.rs",
    "ir/src/chunked.rs",
    "ir/src/decided.rs",
    "ir/src/dom.rs",
    "ir/src/entity.rs",
    "ir/src/eval/",
    "ir/src/function.rs",
    "ir/src/inst.rs",
    "ir/src/layout.rs",
    "ir/src/module.rs",
    "ir/src/opcode.rs",
    "ir/src/opcode/types.rs",
    "ir/src/place.rs",
    "ir/src/ranges.rs",
    "ir/src/rules/",
    "ir/src/trap.rs",
    "ir/src/types.rs",
    "ir/src/verifier/",
];

/// The folder of the lines of OCaml that the extracted judge adds to the theorem: they read the
/// file, number its values, read its operations, fold floats, and print verdicts.
const JUDGE: &str = "proof/judge/";

/// Untrusted files there: the kernel tests the claims of three, the theorem needs no test of the
/// fourth, and the last file judges no entry.
const CLAIMS: [&str; 5] = [
    "proof/judge/flow.ml",
    "proof/judge/owed.ml",
    "proof/judge/rules.ml",
    "proof/judge/shape.ml",
    "proof/judge/fold.ml",
];

/// The lines of code of a file of OCaml, without comments and blank lines.
fn ocaml_lines(text: &str) -> usize {
    let (mut depth, mut lines) = (0, 0);
    for line in text.lines() {
        let (mut rest, mut has_code) = (line, false);
        while let Some(at) = rest.find(if depth > 0 { "*)" } else { "(*" }) {
            has_code |= depth == 0 && !rest[..at].trim().is_empty();
            depth = 1 - depth;
            rest = &rest[at + 2..];
        }
        has_code |= depth == 0 && !rest.trim().is_empty();
        lines += usize::from(has_code);
    }
    lines
}

/// The lines of code of a file, without comments, blank lines and the tests at its end.
fn code_lines(source: &Source) -> usize {
    let text = source.text.replace("#[cfg(test)]\nmod tests;\n", "");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// The lines by which a part of the trusted base may shrink before its figure has to follow.
const SLACK: usize = 50;

/// Compares a part of the trusted base with the figure before these words of `README.md`. The
/// figure is also the bound, and stands there alone. A commit that raises it says why. Prints both
/// to the handle itself, because the test harness captures `print!`. Returns a line if the part is
/// larger than the figure, or much smaller.
fn compared(lines: usize, words: &str) -> Option<String> {
    let readme = files().into_iter().find(|(path, _)| path == "README.md").expect("README.md").1;
    let readme: Vec<&str> = readme.split_whitespace().collect();
    let readme = readme.join(" ");
    let (before, _) = readme.split_once(&format!(" {words}")).expect(words);
    let figure = before.rsplit(' ').next().unwrap_or_default().replace(',', "");
    let figure: usize = figure.parse().expect(words);
    let text = format!("{lines} {words}; README.md says {figure}");
    std::io::Write::write_all(&mut std::io::stdout(), format!("{text}\n").as_bytes())
        .expect("standard output can be written");
    (lines > figure || lines + SLACK < figure).then_some(text)
}

/// Judges the figure of `README.md` for the extracted judge, beside Coq and OCaml:
/// `cargo test --test tidy the_judge_is_small`.
#[test]
fn the_judge_is_small() {
    let judge = files().into_iter().filter(|(path, _)| {
        path.starts_with(JUDGE) && path.ends_with(".ml") && !CLAIMS.contains(&path.as_str())
    });
    let files: Vec<(String, String)> = judge.collect();
    let lines = files.iter().map(|(_, text)| ocaml_lines(text)).sum();
    report(files.len(), compared(lines, "lines of OCaml around it").into_iter().collect());
}

/// Judges the two figures of `README.md` for the trusted base:
/// `cargo test --test tidy the_checker_is_small`.
#[test]
fn the_checker_is_small() {
    let all = sources();
    let is_of = |path: &str, place: &str| match place.ends_with('/') {
        true => path.starts_with(place),
        false => path == place,
    };
    let code: Vec<&Source> = all.iter().filter(|s| !s.is_test()).collect();
    let mut findings = Vec::new();
    let mut count = |places: &[&str], words: &str| {
        let mut lines = 0;
        for place in places {
            let found: Vec<_> = code.iter().filter(|s| is_of(&s.path, place)).collect();
            if found.is_empty() {
                findings.push(format!("there is no {place}"));
            }
            lines += found.iter().map(|s| code_lines(s)).sum::<usize>();
        }
        findings.extend(compared(lines, words));
    };
    count(&[ACCEPTANCE], "lines of code of the checker");
    count(FOUNDATION, "lines that they use of `transition` and `ir`");
    // Acceptance uses no other module of its crate, so the modules that word verdicts cannot make
    // an entry hold.
    let inside = code.iter().filter(|s| is_of(&s.path, ACCEPTANCE));
    for source in inside {
        for (number, line) in source.text.lines().enumerate() {
            let line = line.trim();
            let outside = ["crate::judge", "crate::verdict"].iter().any(|m| line.contains(m));
            if outside && !line.starts_with("//") {
                findings.push(format!("{}:{}: {line}", source.path, number + 1));
            }
        }
    }
    report(code.len(), findings);
}

#[test]
fn functions_are_short() {
    let mut checked = 0;
    let mut findings = Vec::new();
    let mut excused = Vec::new();
    for SyntaxFacts { source, functions, .. } in SYNTAX.iter().filter(|f| !f.source.is_test()) {
        for function in functions {
            checked += 1;
            if function.lines <= FUNCTION_LINES {
                continue;
            }
            match LONG_FUNCTIONS
                .iter()
                .position(|(path, name, _)| *path == source.path && *name == function.name)
            {
                Some(row) => excused.push(row),
                None => findings.push(format!(
                    "{}: {} has {} lines",
                    source.path, function.name, function.lines
                )),
            }
        }
    }
    for (row, (path, name, _)) in LONG_FUNCTIONS.iter().enumerate() {
        if !excused.contains(&row) {
            findings.push(format!("{path}: {name} is excused and is short or gone"));
        }
    }
    report(checked, findings);
}
