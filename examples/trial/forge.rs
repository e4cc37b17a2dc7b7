//! Damaged mappings as files, so that another checker can judge them too (`proof/agree`): forgeries
//! written by hand, and the mappings of a module with random damage to certificates and entries.

use crate::p3::wrong::{self, Wrong};
use certify::Certifier;
use check::verdict::Check;
use ir::{Function, Module};
use osier::driver::{Derived, GivenUp, NoObserver, Recipe, Secured, derive_proved};
use osier::exchange::{self, ExportedParts, recheck};
use osier::{Format, load};
use osr::{Level, VersionPair};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use transition::certificate::{Certificate, MappingFacts};
use transition::mapping::Mapping;
use transition::{Pair, Side};
use verify::damage::{Damage, Damager, garble, garble_once};
use verify::generate::{Weights, generate};
use verify::prng::Prng;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the mappings go
    out: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The forgeries of the tests of the checker
    Hand {
        /// Where the verdicts of the checker go. `osier check` cannot judge these forgeries: no
        /// passes make their versions
        #[arg(long)]
        verdicts: PathBuf,
    },
    /// The mappings of a module, half of them damaged
    Module {
        /// The module
        file: PathBuf,
        /// The seed of the damage
        #[arg(long)]
        seed: u64,
        /// Passes
        #[arg(long, default_value = "O1")]
        pipeline: String,
    },
    /// A random program, and its mappings, half of them damaged
    Program {
        /// Where the program goes
        #[arg(long)]
        file: PathBuf,
        /// The seed of the program and of the damage
        #[arg(long)]
        seed: u64,
        /// The size of the program
        #[arg(long, default_value_t = 40)]
        size: u32,
    },
}

pub(crate) fn run(args: &Args) -> bool {
    match &args.what {
        What::Hand { verdicts } => by_hand(&args.out, verdicts),
        What::Module { file, seed, pipeline } => {
            let format = if file.extension().is_some_and(|e| e == "oir") {
                Format::Oir
            } else {
                Format::Wasm
            };
            let bytes = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let module = load(format, &bytes).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            forge(&module, &args.out, pipeline, *seed);
        }
        What::Program { file, seed, size } => {
            let text = ir::text::print_module(&generate(*seed, *size, &Weights::default()).module);
            write(file, &text);
            // Printing may number anew, so the mappings belong to the text.
            let module = load(Format::Oir, text.as_bytes()).expect("a printed module can be read");
            let pipelines = crate::cases::PIPELINES;
            forge(&module, &args.out, pipelines[*seed as usize % pipelines.len()], *seed);
        }
    }
    true
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn tell(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).expect("standard output can be written");
}

/// Mappings with their certificate, on the way into a file.
#[derive(Clone)]
struct Draft {
    certificate: Certificate,
    facts: Pair<MappingFacts>,
    mappings: Pair<Mapping>,
}

impl Draft {
    fn text(&self, versions: Pair<&Function>, left_out: &[Range<u64>]) -> String {
        let mut text = String::new();
        let mappings = self.mappings.as_ref().zip(self.facts.as_ref());
        let Pair { before, after } = mappings;
        let versions = [versions.before, versions.after];
        exchange::write(&mut text, versions, left_out, &self.certificate, [before, after]);
        text
    }
}

/// The entries that a reader reads from the lines of one function. `None` if it refuses them.
fn read_back(text: &str, versions: Pair<&Function>) -> Option<ExportedParts> {
    let file = exchange::header("", Level::Avail.name(), 1) + text;
    let file = exchange::read(&file).ok()?;
    file.functions.first()?.parts([versions.before, versions.after]).ok()
}

/// Writes the forgeries of the tests of the checker, and its verdicts on them as they are read.
fn by_hand(out: &Path, verdicts: &Path) {
    let (mut file, mut lines, mut count) = (String::new(), String::new(), 0);
    // All forgeries have the same declarations.
    let mut sizes = BTreeSet::new();
    for (number, forgery) in wrong::all().into_iter().enumerate() {
        let Wrong { check, module, versions, certificate, mappings, facts, .. } = forgery;
        // A file names no versions, so it cannot name wrong ones.
        if check == Check::Versions {
            continue;
        }
        let versions = versions.as_ref();
        let text = Draft { certificate, facts, mappings }.text(versions, &[]);
        let name = format!("{number}-{check}");
        let text = text.replacen("function f\n", &format!("function {name}\n"), 1);
        let Some(parts) = read_back(&text, versions) else {
            panic!("the forgery {name} cannot be read");
        };
        sizes.insert(exchange::least_sizes(&module));
        let found = recheck(&module, versions.before, versions.after, &parts, &mut NoObserver);
        for entry in &found.entries {
            writeln!(lines, "{}", entry.line(&name, Level::Avail.name()))
                .expect("writing to a string cannot fail");
        }
        file += &text;
        count += 1;
    }
    let [sizes]: [String; 1] = Vec::from_iter(sizes).try_into().expect("the sizes of one module");
    let header: String = exchange::header("-", Level::Avail.name(), count);
    write(out, &(header + &sizes + &file));
    write(verdicts, &lines);
    tell(&format!("{count} forgeries\n"));
}

/// Functions with more entries than this are rarely damaged as a whole: most damage to a
/// certificate has all entries of the pair refused.
const MANY_ENTRIES: usize = 300;

/// Writes the mappings of a module, half of them damaged.
fn forge(module: &Module, out: &Path, pipeline: &str, seed: u64) {
    let passes = passes::parse(pipeline).unwrap_or_else(|error| panic!("{pipeline}: {error}"));
    let mut prng = Prng::new(seed ^ 0xf0_96ed);
    let (mut file, mut functions, mut damaged, mut entries) = (String::new(), 0, 0, 0);
    for (_, base) in module.defined() {
        let levels = [Level::Avail];
        let recipe = Recipe::new(&passes, &levels);
        let Secured { derived, proved: certified, retried } =
            derive_proved(module, base, &recipe, &mut NoObserver);
        let left_out: Vec<_> = retried.given_up.iter().map(GivenUp::numbers).collect();
        let made = certified.highest();
        let draft = Draft {
            certificate: certified.certificate.clone(),
            facts: made.as_ref().map(|made| made.facts.clone()),
            mappings: made.as_ref().map(|made| Mapping::clone(&made.mapping)),
        };
        let versions = Pair::new(base, &derived.function);
        let of_draft = Side::BOTH.map(|side| draft.mappings[side].len()).iter().sum::<usize>();
        let whole = prng.chance(if of_draft > MANY_ENTRIES { 3 } else { 35 });
        let (text, changed) = match whole {
            true => (garbled(&mut prng, versions, &draft, &left_out), of_draft),
            false => damaged_entries(&mut prng, base, &derived, draft, &left_out),
        };
        file += &text;
        functions += 1;
        damaged += changed;
        entries += of_draft;
    }
    let header = exchange::header(&passes.names().join(","), Level::Avail.name(), functions);
    write(out, &(header + &exchange::least_sizes(module) + &file));
    tell(&format!("{functions} functions, {entries} entries, {damaged} damaged\n"));
}

/// The text of a function with a garbled certificate, or garbled facts or entries.
fn garbled(
    prng: &mut Prng,
    versions: Pair<&Function>,
    draft: &Draft,
    left_out: &[Range<u64>],
) -> String {
    // Some damage makes a file that no reader accepts, for example a rule without a name.
    for _ in 0..20 {
        let Draft { mut certificate, mut facts, mut mappings } = draft.clone();
        match prng.chance(70) {
            true => garble_once(prng, &mut certificate, &mut facts, &mut mappings),
            false => garble(prng, &mut certificate, &mut facts, &mut mappings),
        }
        let text = Draft { certificate, facts, mappings }.text(versions, left_out);
        if read_back(&text, versions).is_some() {
            return text;
        }
    }
    draft.text(versions, left_out)
}

/// The text of a function with damaged entries and the facts that the certifier finds for them, and
/// their number. Entries provide all values that entries of the other direction require. A damaged
/// entry may require any value. So the other direction has no entries, or both directions have
/// little damage.
fn damaged_entries(
    prng: &mut Prng,
    base: &Function,
    derived: &Derived,
    mut draft: Draft,
    left_out: &[Range<u64>],
) -> (String, usize) {
    let versions = Pair::new(base, &derived.function);
    let mut changed = 0;
    let one = Side::BOTH[prng.index(2)];
    let (most, least) = prng.pick(&[(100, None), (70, None), (40, None), (1, Some(1))]);
    for side in Side::BOTH {
        let Some(percent) = (if side == one { Some(most) } else { least }) else {
            draft.mappings[side] = Mapping::new(versions[side], versions[side.other()]);
            draft.facts[side] = MappingFacts::new();
            continue;
        };
        let damager = Damager::new(versions[side], versions[side.other()]);
        let entries: Vec<_> =
            draft.mappings[side].entries().map(|(point, entry)| (point, entry.clone())).collect();
        for (point, entry) in entries {
            let kind = prng.pick(&Damage::ALL);
            if prng.chance(percent)
                && let Some(damaged) = damager.damage(prng, kind, point, &entry)
                && damaged != entry
            {
                draft.mappings[side].insert(point, damaged);
                changed += 1;
            }
        }
    }
    if changed > 0 {
        let pair = VersionPair::new(base, &derived.function, &derived.log);
        let pair = pair.expect("the log leads to the version derived");
        let common = pair.correspondence();
        let mut certifier = Certifier::new(&common);
        draft.facts = Pair::from_fn(|side: Side| certifier.facts(side, &draft.mappings[side]));
        draft.certificate = certifier.into_certificate();
    }
    (draft.text(versions, left_out), changed)
}
