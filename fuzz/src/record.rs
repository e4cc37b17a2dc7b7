//! Findings as files: the key that names a finding, and the record of a file.
//!
//! Example: two shards of a campaign find, in different random programs, that `licm` hoists a load
//! past a store. The program, the seed and the values differ. The *key* does not: the state oracle,
//! the rule `licm/load`, and *a value differs after the transition*. Findings with equal keys are
//! one finding, and the smallest program that shows it again represents it.

use super::guilty::GuiltyRewrite;
use super::oracle::{FuzzFinding, FuzzOracle};
use super::saved::SavedCase;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of [`FindingRecord`]. A reader refuses other versions.
pub const RECORD_SCHEMA: u32 = 1;

/// The most characters of a pass or a rule in a key.
const WORD: usize = 40;

/// The name of a finding, equal for findings of one cause in different programs.
///
/// It has three parts: the oracle, the pass and the rule of the guilty rewrite ([`guilty()`]), and
/// the *place*: the finding's message without names, numbers, instructions and inputs. Findings of
/// different causes may have equal keys. The second appears once the first is mended.
///
/// In place of a rewrite, `any` says that there is none to blame, and `unknown` that the time was
/// up before the search for it had ended. A finding thus may have two keys on a slow machine. The
/// place alone would not do: it is general, and would hide one cause behind another.
///
/// [`guilty()`]: crate::guilty()
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FindingKey {
    oracle: FuzzOracle,
    rewrite: KeyRewrite,
    place: String,
}

/// The guilty rewrite in a key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum KeyRewrite {
    /// The pass and the rule.
    Named([String; 2]),
    /// The search found no rewrite, or nobody can search for one.
    Nothing,
    /// The search did not end.
    Unknown,
}

impl FindingKey {
    /// The key of a finding. `within` is the function that contains it, if names of functions mean
    /// the same in other programs of the campaign: in the modules of a project.
    pub fn new(
        finding: &FuzzFinding,
        guilty: Option<&GuiltyRewrite>,
        within: Option<&str>,
    ) -> FindingKey {
        let mut place = general(&finding.message);
        if let Some(func) = within {
            place += &format!("\n@{func}");
        }
        let rewrite =
            guilty.map_or(KeyRewrite::Nothing, |g| KeyRewrite::Named([g.pass, g.rule].map(word)));
        FindingKey { oracle: finding.oracle, rewrite, place }
    }

    /// The key of a finding if the search for its guilty rewrite did not end in time.
    pub fn before_the_search(finding: &FuzzFinding) -> FindingKey {
        FindingKey { rewrite: KeyRewrite::Unknown, ..FindingKey::new(finding, None, None) }
    }

    /// The place: lines of the message, without all that differs between programs.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl FuzzFinding {
    /// Whether two findings in any programs are of the same oracle at the same place
    /// ([`FindingKey::place`]).
    pub fn is_like(&self, other: &FuzzFinding) -> bool {
        self.oracle == other.oracle && general(&self.message) == general(&other.message)
    }
}

impl fmt::Display for FindingKey {
    /// Prints a name for files: letters, digits, `-` and `_`. The place is a hash in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.oracle)?;
        match &self.rewrite {
            KeyRewrite::Named([pass, rule]) => write!(f, "{pass}-{rule}-")?,
            KeyRewrite::Nothing => f.write_str("any-")?,
            KeyRewrite::Unknown => f.write_str("unknown-")?,
        }
        write!(f, "{:08x}", hash(&self.place))
    }
}

/// A pass or a rule, as a key has it.
fn word(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().take(WORD).map(plain).collect()
}

/// The lines of a message that tell the kind of a finding. Lines about its points and its input
/// name one program. In the others, a name is its sigil alone, and a number is `N`.
fn general(message: &str) -> String {
    let is_special = |line: &&str| {
        let line = line.trim_start();
        ["from ", "to ", "on input "].iter().any(|start| line.starts_with(start))
    };
    let lines = message.lines().filter(|line| !is_special(line)).map(general_line);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn general_line(line: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut out = String::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let is_name = matches!(first, '%' | '@');
        let start = if is_name || !is_part(first) { first.len_utf8() } else { 0 };
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        if start > 0 && !is_name {
            continue;
        }
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        match token.contains(|c: char| c.is_ascii_digit()) {
            _ if is_name => {}
            true => out.push('N'),
            false => out.push_str(token),
        }
        rest = after;
    }
    out
}

/// The hash FNV-1a, folded to 32 bits: equal on all machines and in all builds.
fn hash(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}

/// The file of a finding, as JSON. `osier fuzz --replay` judges it again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FindingRecord {
    /// [`RECORD_SCHEMA`].
    pub schema: u32,
    /// The [`FindingKey`] as text: the name of the file.
    pub key: String,
    /// The name of the oracle.
    pub oracle: String,
    /// The guilty rewrite as text. `null` if it is not known.
    pub guilty: Option<String>,
    /// [`FindingKey::place`].
    pub place: String,
    /// The findings in the program as it was found.
    pub message: String,
    /// The command that makes the program again and judges it.
    pub reproduce: String,
    /// [`FuzzFailure::reproduced`](crate::FuzzFailure::reproduced).
    pub reproduced: Option<bool>,
    /// The options of `osier fuzz` under which the program is judged again. With `case` they select
    /// no program; otherwise they select one of the corpus, which the command reads again.
    pub options: Vec<String>,
    /// The seconds that the program may take (`--case-time`). `null` for the usual time.
    pub case_time: Option<u32>,
    /// The number of instructions of the program.
    pub instructions: u64,
    /// The program, reduced if there was time. `null` for programs of the corpus.
    pub case: Option<SavedCase>,
    /// The program as a test in the format of `tests/oir/`, reduced if there was time. `null` for
    /// a program of the corpus with `--engine jit`, and for another program with the key of an
    /// earlier one of the campaign.
    pub test: Option<String>,
}

impl FindingRecord {
    /// Whether this record represents the finding better than another with the same key. A program
    /// that showed the finding again is better than one that was not judged again, and this one
    /// better than one that showed nothing. Then fewer instructions are better, and then a test.
    pub fn is_better_than(&self, other: &FindingRecord) -> bool {
        let rank = |record: &FindingRecord| {
            let doubt = match record.reproduced {
                Some(true) => 0,
                None => 1,
                Some(false) => 2,
            };
            (doubt, record.instructions, record.test.is_none())
        };
        rank(self) < rank(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(oracle: FuzzOracle, message: &str) -> FuzzFinding {
        FuzzFinding { oracle, versions: [0, 1], message: message.to_owned() }
    }

    fn state(message: &str) -> String {
        FindingKey::new(&finding(FuzzOracle::State, message), None, None).to_string()
    }

    #[test]
    fn names_numbers_points_and_inputs_are_not_in_the_key() {
        let one = state(
            "@main, forward, visit 3:\n  from inst12  %x = add.i32 %a, %b\n  to   inst4  return\n  \
             %v7 is 0x1f in the target version, and 0x20 after the transition\n  on input (0x1)",
        );
        let other = state(
            "@f2, forward, visit 17:\n  from inst1  %k = load.i64 %p\n  to   inst9  jump head\n  \
             %sum is 0x0 in the target version, and 0x7 after the transition\n  on input ()",
        );
        assert_eq!(one, other);
        assert!(one.starts_with("state-any-"), "{one}");
        let back = "@f2, backward, visit 17:\n  %sum is 0x0 in the target version, and 0x7 after \
                    the transition";
        assert_ne!(other, state(back), "the direction is part of the place");
        assert_ne!(one, state("@main, forward, visit 3:\n  the effects so far differ"));
    }

    #[test]
    fn the_key_is_a_name_for_files() {
        let guilty = GuiltyRewrite {
            func: "f".to_owned(),
            pass: "load_elim",
            rule: "a/rule with-signs",
            number: 3,
            action: String::new(),
        };
        let found = finding(FuzzOracle::GoingOn, "ends in ../../etc \u{e9}");
        let key = FindingKey::new(&found, Some(&guilty), None).to_string();
        assert!(key.starts_with("going_on-load_elim-a_rule_with_signs-"), "{key}");
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        assert!(key.chars().all(plain), "{key}");
        let within = |func| FindingKey::new(&found, Some(&guilty), Some(func)).to_string();
        assert_ne!(within("sort"), within("partition"), "functions of the corpus are told apart");
        assert_eq!(within("sort"), within("sort"));
    }

    /// A test for 300 instructions came before 20 instructions, and a program that showed nothing
    /// again could replace one that did.
    #[test]
    fn the_smallest_program_that_shows_the_finding_again_is_the_best() {
        let record = |reproduced, instructions, test: Option<&str>| FindingRecord {
            schema: RECORD_SCHEMA,
            key: "state-any-0".to_owned(),
            oracle: "state".to_owned(),
            guilty: None,
            place: String::new(),
            message: String::new(),
            reproduce: String::new(),
            reproduced,
            options: Vec::new(),
            case_time: None,
            instructions,
            case: None,
            test: test.map(str::to_owned),
        };
        let ranked = [
            record(Some(true), 20, Some("a test")),
            record(Some(true), 20, None),
            record(Some(true), 300, Some("a test")),
            record(None, 10, Some("a test")),
            record(None, 30, None),
            record(Some(false), 5, Some("a test")),
        ];
        for (at, one) in ranked.iter().enumerate() {
            for (other_at, other) in ranked.iter().enumerate() {
                assert_eq!(one.is_better_than(other), at < other_at, "{at} and {other_at}");
            }
        }
    }

    #[test]
    fn a_key_says_whether_the_search_for_the_rewrite_ended() {
        let found = finding(FuzzOracle::State, "the effects so far differ");
        let name = |key: FindingKey| key.to_string();
        let searched = name(FindingKey::new(&found, None, None));
        let hash = searched.strip_prefix("state-any-").expect("no rewrite");
        assert_eq!(name(FindingKey::before_the_search(&found)), format!("state-unknown-{hash}"));
    }

    #[test]
    fn a_line_keeps_its_words() {
        assert_eq!(
            general_line("  the version before stops at inst3 of @f.g, 12 of %v1: i32"),
            "the version before stops at N of @, N of %: N"
        );
        assert_eq!(general_line("index out of bounds: the len is 3 but the index is 0x5f"), {
            "index out of bounds: the len is N but the index is N"
        });
        assert_eq!(general_line("\u{e9}% \u{1f600}@"), "\u{e9}% \u{1f600}@");
    }
}
