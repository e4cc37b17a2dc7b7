//! Workflows for services: they call `.ci/run` and repeat none of it, and the action passes its
//! inputs to its script.

use crate::report;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The workflows of this repository, by path.
fn workflows() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows");
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let names = entries.map(|entry| entry.file_name().into_string().expect("UTF-8"));
    names.map(|name| (name.clone(), text(&format!(".github/workflows/{name}")))).collect()
}

/// The words between brackets, behind `start` on its line.
fn listed(text: &str, start: &str, end: char) -> BTreeSet<String> {
    let (_, rest) = text.split_once(start).expect(start);
    let (list, _) = rest.split_once(end).expect("the end of the list");
    let words = list.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[test]
fn workflows_run_the_script_and_nothing_else() {
    let mut findings = Vec::new();
    let mut runs = 0;
    for (name, text) in workflows() {
        for line in text.lines().map(|line| line.trim().trim_start_matches("- ")) {
            let Some(command) = line.strip_prefix("run:") else { continue };
            runs += 1;
            let rest = command.trim().strip_prefix(".ci/run");
            if !rest.is_some_and(|rest| matches!(rest, "" | " ${{ matrix.judge }}")) {
                findings.push(format!("{name} runs{command}"));
            }
        }
    }
    report(runs, findings);
}

/// What the function `step` calls besides its command.
const CALLED: &str = "log=$(mktemp); processor_seconds() { processor=0; }; took() { :; }";

/// The function `step` of `.ci/run` ends with the first command that fails, also in a function, in
/// a loop and in front of a pipe.
#[test]
fn a_step_fails_with_any_of_its_commands() {
    let script = text(".ci/run");
    let start = script.find("\nstep() {").expect("the function");
    let end = start + script[start..].find("\n}\n").expect("its end") + 3;
    let run = |body: &str| {
        let step = &script[start..end];
        let program = format!("set -euo pipefail; {CALLED}\n{step}\nf() {{ {body}\n}}\nstep it f");
        let bash = std::process::Command::new("bash").args(["-c", &program]).output();
        bash.expect("bash runs").status.code()
    };
    for good in ["true", "false || true; echo good", "! false"] {
        assert_eq!(run(good), Some(0), "{good}");
    }
    for bad in
        ["false; true", "for x in 1 2; do [ $x = 2 ]; done; true", "false | cat; true", "! true"]
    {
        assert_eq!(run(bad), Some(1), "{bad}");
    }
}

#[test]
fn every_long_judge_has_a_job() {
    let script = text(".ci/run");
    let judges = listed(&script, "\nlong=(", ')');
    assert_eq!(listed(&text(".github/workflows/long.yml"), "judge: [", ']'), judges);
    let undefined = judges.iter().filter(|name| !script.contains(&format!("\nlong_{name}() {{")));
    report(judges.len(), undefined.map(|name| format!(".ci/run has no long_{name}")).collect());
}

/// The inputs of the action and their defaults.
fn inputs(action: &str) -> BTreeMap<String, Option<String>> {
    let (_, rest) = action.split_once("\ninputs:\n").expect("inputs");
    let (inputs, _) = rest.split_once("\noutputs:\n").expect("outputs");
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut last = String::new();
    for line in inputs.lines() {
        match line.strip_prefix("  ").expect("an indented line") {
            name if !name.starts_with(' ') => {
                name.trim_end_matches(':').clone_into(&mut last);
                found.insert(last.clone(), None);
            }
            key => {
                if let Some(default) = key.trim().strip_prefix("default: ") {
                    found.insert(last.clone(), Some(default.trim_matches('\'').to_owned()));
                }
            }
        }
    }
    found
}

/// An input reaches the script as a variable of its name, with the same default.
#[test]
fn the_action_passes_its_inputs_to_the_script() {
    let (action, script) = (text("action.yml"), text(".github/action/run.sh"));
    let (usage, _) = script.split_once("\nset -euo pipefail\n").expect("a usage");
    let inputs = inputs(&action);
    let mut findings = Vec::new();
    for (name, default) in &inputs {
        let variable = format!("OSIER_{}", name.replace('-', "_").to_uppercase());
        if !action.contains(&format!("        {variable}: ${{{{ inputs.{name} }}}}\n")) {
            findings.push(format!("the action does not pass {name} as {variable}"));
        }
        let default = default.clone().unwrap_or_default();
        if !script.contains(&format!("${{{variable}:-{default}}}")) {
            findings.push(format!("run.sh does not read {variable} with the default {default:?}"));
        }
        if !usage.contains(&format!("#   {variable}=")) {
            findings.push(format!("the usage of run.sh does not name {variable}"));
        }
    }
    report(inputs.len(), findings);
}

/// The manual's workflow for a project stays as short as it claims, and has inputs that exist.
#[test]
fn the_workflow_in_the_manual_is_short() {
    let manual = text("docs/testing.md");
    let (_, rest) = manual.split_once("```yaml\n").expect("a workflow");
    let (workflow, _) = rest.split_once("```").expect("its end");
    let lines = workflow.lines().count();
    assert!(lines <= 10, "the workflow has {lines} lines");
    let (_, with) = workflow.split_once("with: {").expect("inputs");
    let (with, _) = with.split_once('}').expect("the end of the inputs");
    let keys: Vec<&str> =
        with.split(", ").map(|pair| pair.split(':').next().expect("a key")).collect();
    let known = inputs(&text("action.yml"));
    let unknown = keys.iter().filter(|key| !known.contains_key(**key));
    report(keys.len(), unknown.map(|key| format!("the action has no input {key}")).collect());
}
