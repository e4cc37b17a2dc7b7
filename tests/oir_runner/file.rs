//! The contents of a `.oir` test file. `tests/oir/readme.oir` documents the format.

use std::fmt;

/// A statement of a file that is repeated, malformed or without effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A kind of exact expectation, which `OIR_BLESS=1` writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum BlockKind {
    /// The module after the pipeline.
    Text,
    /// The log of the pipeline.
    Actions,
    /// The mappings between the version before and the version after.
    Mapping,
}

impl BlockKind {
    pub(crate) const ALL: [BlockKind; 3] =
        [BlockKind::Text, BlockKind::Actions, BlockKind::Mapping];

    pub(crate) fn name(self) -> &'static str {
        match self {
            BlockKind::Text => "text",
            BlockKind::Actions => "actions",
            BlockKind::Mapping => "mapping",
        }
    }

    fn named(name: &str) -> Option<BlockKind> {
        BlockKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How a call must end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// With these literals.
    Returns(Vec<String>),
    /// With a trap of this kind, and an operand of these bits.
    Traps(String, Option<u64>),
    /// By an exit at the OSR point with this number, with values of these bits.
    Leaves(u32, Vec<u64>),
    /// By an assumption that fails for this reason.
    Fails(u32),
}

/// A `run` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RunLine {
    pub(crate) line: usize,
    pub(crate) function: String,
    pub(crate) args: Vec<String>,
    pub(crate) ending: Ending,
}

/// The directions in which transitions fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Directions {
    Forward,
    Backward,
    Both,
}

/// An error that the parser or the verifier must report at a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ErrorLine {
    pub(crate) line: usize,
    pub(crate) rule: String,
    pub(crate) substring: String,
}

/// A block of expected output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) kind: BlockKind,
    pub(crate) text: String,
}

/// A whole file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TestFile {
    pub(crate) pipeline: Option<String>,
    pub(crate) expects: Vec<BlockKind>,
    pub(crate) runs: Vec<RunLine>,
    pub(crate) osr: Option<Directions>,
    pub(crate) fuel: Option<u64>,
    pub(crate) forbid: Vec<String>,
    pub(crate) xfail: Option<String>,
    /// The names of the checks that leave entries unproved.
    pub(crate) unproved: Option<Vec<String>>,
    pub(crate) errors: Vec<ErrorLine>,
    pub(crate) blocks: Vec<Block>,
    /// Everything before the first block, which is the text of the module.
    pub(crate) body: String,
}

/// Reads a file. With `bless`, blocks may be missing, since the run will write them.
pub(crate) fn read(text: &str, bless: bool) -> Result<TestFile, Vec<Fault>> {
    let mut reader = Reader { file: TestFile::default(), faults: Vec::new(), line: 0 };
    reader.purpose(text);
    for (number, line) in text.lines().enumerate() {
        reader.line = number + 1;
        reader.read_line(line);
    }
    reader.line = 1;
    reader.check_whole(bless);
    if reader.faults.is_empty() { Ok(reader.file) } else { Err(reader.faults) }
}

struct Reader {
    file: TestFile,
    faults: Vec<Fault>,
    line: usize,
}

impl Reader {
    fn fault(&mut self, message: impl Into<String>) {
        self.faults.push(Fault { line: self.line, message: message.into() });
    }

    fn purpose(&mut self, text: &str) {
        self.line = 1;
        let first = text.lines().next().unwrap_or("");
        if first.strip_prefix(";;").is_none_or(|purpose| purpose.trim().is_empty()) {
            self.fault("the file does not begin with its purpose (`;; ...`)");
        }
    }

    fn read_line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix(";=") {
            return self.open_block(name.trim());
        }
        if let Some(block) = self.file.blocks.last_mut() {
            block.text.push_str(line);
            block.text.push('\n');
            return;
        }
        self.file.body.push_str(line);
        self.file.body.push('\n');
        if let Some(directive) = line.strip_prefix(";@") {
            self.directive(directive.trim());
        } else if line.trim_start().starts_with(";@") || line.trim_start().starts_with(";=") {
            self.fault("directives and blocks stand at the start of a line");
        } else if line.starts_with(";;") {
            // The purpose paragraph.
        } else if let Some((before, annotation)) = line.split_once(";~") {
            self.annotation(before, annotation.trim());
        }
    }

    fn open_block(&mut self, name: &str) {
        let Some(kind) = BlockKind::named(name) else {
            return self.fault(format!("unknown block `{name}`"));
        };
        if self.file.blocks.iter().any(|b| b.kind == kind) {
            self.fault(format!("a second block `{name}`"));
        }
        self.file.blocks.push(Block { line: self.line, kind, text: String::new() });
    }

    fn annotation(&mut self, before: &str, annotation: &str) {
        if before.trim().is_empty() {
            self.fault("`;~` stands on the line that gives the error");
        }
        let Some((rule, substring)) =
            annotation.strip_prefix("error: ").and_then(|rest| rest.split_once(' '))
        else {
            return self.fault("expected `;~ error: RULE substring`");
        };
        let (rule, substring) = (rule.to_owned(), substring.trim().to_owned());
        self.file.errors.push(ErrorLine { line: self.line, rule, substring });
    }

    fn directive(&mut self, directive: &str) {
        let Some((key, value)) = directive.split_once(':') else {
            return self.fault(format!("expected `;@ directive: ...`, found `{directive}`"));
        };
        let value = value.trim();
        if value.is_empty() {
            return self.fault(format!("`{key}` says nothing"));
        }
        match key {
            "pipeline" => self.once(key, value.to_owned(), |file| &mut file.pipeline),
            "xfail" => self.once(key, value.to_owned(), |file| &mut file.xfail),
            "unproved" => {
                let checks = value.split(',').map(|check| check.trim().to_owned()).collect();
                self.once(key, checks, |file| &mut file.unproved);
            }
            "expect" => self.expect(value),
            "run" => self.run(value),
            "osr" => match value {
                "every-point forward" => self.once(key, Directions::Forward, |file| &mut file.osr),
                "every-point backward" => {
                    self.once(key, Directions::Backward, |file| &mut file.osr)
                }
                "every-point both" => self.once(key, Directions::Both, |file| &mut file.osr),
                _ => self.fault("expected `every-point` and `forward`, `backward` or `both`"),
            },
            "fuel" => match value.parse() {
                Ok(rewrites) => self.once(key, rewrites, |file| &mut file.fuel),
                Err(_) => self.fault(format!("`{value}` is not a number of rewrites")),
            },
            "forbid" => self.forbid(value),
            _ => self.fault(format!("unknown directive `{key}`")),
        }
    }

    fn once<T>(&mut self, key: &str, value: T, slot: impl Fn(&mut TestFile) -> &mut Option<T>) {
        if slot(&mut self.file).replace(value).is_some() {
            self.fault(format!("a second `{key}`"));
        }
    }

    fn expect(&mut self, value: &str) {
        match BlockKind::named(value) {
            Some(kind) if self.file.expects.contains(&kind) => {
                self.fault(format!("a second `expect: {value}`"))
            }
            Some(kind) => self.file.expects.push(kind),
            None => self.fault(format!("expected `text`, `actions` or `mapping`, found `{value}`")),
        }
    }

    fn forbid(&mut self, value: &str) {
        for name in value.split(',').map(str::trim) {
            if ACTIONS.contains(&name) {
                self.file.forbid.push(name.to_owned());
            } else {
                self.fault(format!("there is no action `{name}`"));
            }
        }
    }

    fn run(&mut self, value: &str) {
        match run_line(self.line, value) {
            Some(run) => self.file.runs.push(run),
            None => self.fault(
                "expected `@function(arguments) == results`, `... traps KIND`, `... leaves POINT (bits, ...)` or `... fails REASON`",
            ),
        }
    }

    /// Records the faults that only the whole file shows.
    fn check_whole(&mut self, bless: bool) {
        let file = &self.file;
        let fails = !file.errors.is_empty();
        let runs = !file.runs.is_empty() || file.osr.is_some();
        let optimized = file.osr.is_some() || file.fuel.is_some() || !file.forbid.is_empty();
        let logged = file.expects.iter().any(|kind| *kind != BlockKind::Text);
        let mut messages = Vec::new();
        if !fails && !runs && file.expects.is_empty() && file.forbid.is_empty() {
            messages.push("the file asserts nothing".to_owned());
        }
        if fails && (runs || optimized || file.pipeline.is_some() || !file.expects.is_empty()) {
            messages.push(
                "a file with errors has no module, so it can have no other directive".to_owned(),
            );
        }
        if file.pipeline.is_none() && (optimized || logged) {
            messages.push(
                "this asks about an optimized version, and there is no `pipeline`".to_owned(),
            );
        }
        if file.osr.is_some() && file.runs.is_empty() {
            messages.push("`osr` needs `run` lines: transitions fire in their calls".to_owned());
        }
        for kind in file
            .expects
            .iter()
            .filter(|kind| !bless && !file.blocks.iter().any(|b| b.kind == **kind))
        {
            messages
                .push(format!("the block `{}` is missing: write it with OIR_BLESS=1", kind.name()));
        }
        for block in file.blocks.iter().filter(|block| !file.expects.contains(&block.kind)) {
            messages.push(format!(
                "nothing expects the block `{}` of line {}",
                block.kind.name(),
                block.line
            ));
        }
        for message in messages {
            self.fault(message);
        }
    }
}

/// The names of the primitive actions. `every_action_can_be_forbidden` compares them with the
/// editor's list.
pub(crate) const ACTIONS: &[&str] = &[
    "add",
    "delete",
    "hoist",
    "sink",
    "replace_operand",
    "replace_all",
    "fold_branch",
    "resolve_call",
    "inline",
    "split_edge",
    "join_edges",
    "redirect",
    "merge_blocks",
    "remove_unreachable",
    "add_block_param",
    "remove_block_param",
    "remove_dead",
];

/// Reads `@f(3, 4) == 12`, `@f() == ()`, `@f(1) == (2, 3)`, `@f(1) traps division_by_zero`,
/// `@f(1) traps user3 with 5`, `@f(1) leaves 0 (2, 3)` or `@f(1) fails 7`.
fn run_line(line: usize, text: &str) -> Option<RunLine> {
    let (function, rest) = text.strip_prefix('@')?.split_once('(')?;
    let (args, rest) = rest.split_once(')')?;
    let rest = rest.trim();
    let (how, what) = rest.split_once(' ')?;
    let ending = match how {
        "==" => {
            Ending::Returns(literals(what.trim().trim_start_matches('(').trim_end_matches(')')))
        }
        "traps" => match what.trim().split_once(" with ") {
            Some((kind, bits)) => Ending::Traps(kind.to_owned(), Some(bits.parse().ok()?)),
            None => Ending::Traps(what.trim().to_owned(), None),
        },
        "leaves" => {
            let (point, values) = what.trim().strip_suffix(')')?.split_once('(')?;
            let values =
                literals(values).iter().map(|bits| bits.parse()).collect::<Result<_, _>>().ok()?;
            Ending::Leaves(point.trim().parse().ok()?, values)
        }
        "fails" => Ending::Fails(what.trim().parse().ok()?),
        _ => return None,
    };
    Some(RunLine { line, function: function.to_owned(), args: literals(args), ending })
}

fn literals(text: &str) -> Vec<String> {
    text.split(',').map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect()
}
