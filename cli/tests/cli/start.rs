//! What a new user sees first: the screen, the version, completions, pages of `man`, and answers to
//! misspelled options.

use crate::harness::osier;

const COMMANDS: [&str; 8] =
    ["run", "opt", "report", "explain", "fuzz", "check", "completions", "man"];

#[test]
fn osier_alone_prints_a_screen_that_names_its_version_and_commands() {
    // The command is missing, so a script that forgets it fails.
    let screen = osier(&[]).with_status(2).stderr;
    let version = osier(&["--version"]).with_status(0).stdout;
    assert!(screen.starts_with(&version), "{screen}");
    for command in &COMMANDS[..6] {
        assert!(screen.contains(&format!("  osier {command} ")), "{command}");
    }
    assert!(screen.lines().all(|line| line.chars().count() <= 100));
    // The tests run in a repository, as a rule, but also in an archive of the sources.
    let version = version.trim_end().strip_prefix("osier ").expect("the name comes first");
    let (package, commit) = version.split_once(" (").unwrap_or((version, "0)"));
    assert_eq!(package, env!("CARGO_PKG_VERSION"));
    let commit = commit.strip_suffix(')').expect("brackets");
    assert!(commit.chars().all(|c| c.is_ascii_hexdigit()), "{commit}");
}

#[test]
fn completions_and_pages_know_every_command() {
    // How each shell begins the part of a command: a word alone occurs in many texts.
    for (shell, begins) in [
        ("bash", "osier,{})"),
        ("elvish", "&'osier;{}'="),
        ("fish", "-a \"{}\""),
        ("powershell", "'osier;{}' {"),
        ("zsh", "_osier__subcmd__{}_commands()"),
    ] {
        let text = osier(&["completions", shell]).with_status(0).stdout;
        for command in COMMANDS {
            let part = begins.replace("{}", command);
            assert!(text.contains(&part), "{shell} has no {part}:\n{text}");
        }
        assert!(text.contains("blame-check"), "{shell} knows options");
    }
    let version = osier(&["--version"]).with_status(0).stdout;
    let version = version.trim_end();
    let heading = |page: &str| page.lines().find(|l| l.starts_with(".TH ")).map(str::to_owned);
    let page = osier(&["man"]).with_status(0).stdout;
    let head = heading(&page).expect("a heading");
    assert!(head.starts_with(".TH osier 1") && head.contains(version), "{head}");
    for command in COMMANDS {
        let page = osier(&["man", command]).with_status(0).stdout;
        let head = heading(&page).expect("a heading");
        assert!(head.starts_with(&format!(".TH osier-{command} 1")), "{head}");
        assert!(head.contains(version), "{head}");
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{page}");
    }
    let unknown = osier(&["man", "rum"]).with_status(2).stderr;
    assert!(unknown.starts_with("osier: no command \"rum\" (commands: run, opt,"), "{unknown}");
}

#[test]
fn a_misspelled_option_is_answered_with_the_right_one() {
    for (words, right) in [
        (&["run", "--dri", "x.wasm"][..], "--dir"),
        (&["report", "--pipline", "O1", "x.wasm"], "--pipeline"),
        (&["report", "--blamecheck", "x.wasm"], "--blame-check"),
    ] {
        let told = osier(words).with_status(2).stderr;
        assert!(told.contains(&format!("a similar argument exists: '{right}'")), "{told}");
        assert!(!told.contains("as a value"), "{told}");
    }
}

#[test]
fn a_quiet_command_writes_results_alone() {
    let module = "tests/corpus/matmul.wasm";
    for command in ["report", "check"] {
        let told = osier(&[command, module]).with_status(0);
        let quiet = osier(&["--quiet", command, module]).with_status(0);
        assert!(!told.stderr.is_empty());
        assert_eq!((quiet.stderr.as_str(), &quiet.stdout), ("", &told.stdout));
    }
    let missing = osier(&["report", "-q", "no/such/file.wasm"]).with_status(2);
    assert!(missing.stderr.contains("cannot read"), "{}", missing.stderr);
}

/// The graph of both versions: each block once, boxes for loops, entries in both directions.
#[test]
fn a_graph_has_the_blocks_loops_and_entries_of_both_versions() {
    let graph = |file: &str, func: &str| {
        osier(&["opt", file, "--func", func, "--emit", "dot"]).with_status(0).stdout
    };
    let text = graph("docs/examples/window.oir", "window");
    assert!(text.starts_with("digraph \"window\" {\n") && text.ends_with("}\n"), "{text}");
    assert_eq!(text.matches(" {\n").count(), text.matches("}\n").count(), "{text}");
    // Each block of both versions is a node, and once.
    for block in ["base start", "base head", "optimized start", "optimized head"] {
        let node = text.lines().filter(|l| l.trim_start().starts_with(&format!("\"{block}\" [")));
        assert_eq!(node.count(), 1, "{block}: {text}");
    }
    // An edge inside a version joins two of its blocks.
    for line in text.lines().filter(|line| line.contains(" -> ") && !line.contains("dashed")) {
        let ends: Vec<&str> = line.split('"').skip(1).step_by(2).take(2).collect();
        let [from, to] = ends[..] else { panic!("{line}") };
        assert_eq!(from.split(' ').next(), to.split(' ').next(), "{line}");
        assert!(text.contains(&format!("\"{to}\" [")), "{line}");
    }
    for part in [
        "subgraph \"cluster base\" {",
        "subgraph \"cluster optimized\" {",
        "label=\"loop head\"",
        "\"base head\" -> \"optimized head\" [style=dashed, color=blue",
        "\"optimized head\" -> \"base head\" [style=dashed, color=red",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Entries out of inlined code lead to the block in which the function calls.
#[test]
fn a_graph_of_inlined_code_has_entries_back_to_the_call() {
    let inlined = ["opt", "docs/examples/called.oir", "--pipeline", "O3", "--emit", "dot"];
    let text = osier(&inlined).with_status(0).stdout;
    let back = text.lines().filter(|line| line.contains("color=red"));
    let ends: Vec<&str> =
        back.flat_map(|line| line.split('"').skip(1).step_by(2).take(2)).collect();
    assert!(ends.len() >= 2, "{text}");
    for end in ends {
        assert!(text.contains(&format!("\"{end}\" [")), "{end}: {text}");
    }
}

#[test]
fn a_word_that_is_not_unicode_is_no_panic() {
    use std::os::unix::ffi::OsStrExt;
    let word = std::ffi::OsStr::from_bytes(b"\xff");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_osier"));
    let ended = command.arg("--bogus").arg(word).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
}
