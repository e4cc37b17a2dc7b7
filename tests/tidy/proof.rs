//! The table of the theorem: `docs/proof.md` says of each check whether it is proved.

use crate::report;
use crate::tree::files;

/// The state of the checks of a row, as its first word.
const STATES: [&str; 4] = ["proved", "assumed", "trusted", "outside"];

/// The text of a file of the repository.
fn text(path: &str) -> String {
    let found = files().into_iter().find(|(at, _)| at == path);
    found.unwrap_or_else(|| panic!("there is no {path}")).1
}

/// The names of all checks, in the order of the source.
fn checks() -> Vec<String> {
    let source = text("check/src/accept/checks.rs");
    let (_, list) = source.split_once("\nchecks! {").expect("the list of checks");
    let (list, _) = list.split_once("\n}").expect("the end of the list");
    let lines = list.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.filter_map(|line| Some(line.split('"').nth(1)?.to_owned())).collect()
}

/// The names between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// A new check fails here until a row names it.
#[test]
fn the_table_of_the_theorem_names_every_check() {
    let checks = checks();
    let page = text("docs/proof.md");
    let (_, table) = page.split_once("\n| part | checks | state |").expect("the table");
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for line in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        rows.push(line.trim_matches('|').split('|').map(str::trim).collect());
    }
    let mut findings = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    for row in &rows {
        let [part, of, state, _] = row[..] else {
            findings.push(format!("a row has {} cells: {row:?}", row.len()));
            continue;
        };
        if !STATES.iter().any(|one| state.starts_with(one)) {
            findings.push(format!("{part}: the state `{state}` begins with none of {STATES:?}"));
        }
        for name in quoted(of) {
            if !checks.iter().any(|check| check == name) {
                findings.push(format!("{part}: there is no check `{name}`"));
            }
            if named.contains(&name) {
                findings.push(format!("{part}: another row names `{name}`, too"));
            }
            named.push(name);
        }
    }
    let missing = checks.iter().filter(|check| !named.contains(&check.as_str()));
    findings.extend(missing.map(|check| format!("no row names `{check}`")));
    report(checks.len().min(rows.len()), findings);
}
