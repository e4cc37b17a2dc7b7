//! Writes functions with inlined code: four versions, two pairs, the copy between them, and the
//! entries across the copy.

use super::write::{MappingWriter, escaped, list, operand};
use super::{ExportedParts, PAIRS, PLACES, VERSIONS};
use certify::Certifier;
use derive::inlining::{Inlined, LeftOut};
use ir::{Func, Function, Module, Point};
use osr::{Version, VersionPair, VersionTree};
use std::ops::Range;
use transition::certificate::EntryFacts;
use transition::copy::CopyClaim;
use transition::frames::FramePlace;
use transition::mapping::{Entry, Mapping};
use transition::{Pair, Side, VersionKey};

/// A function with inlined code, to be written.
#[derive(Clone, Debug)]
pub struct WrittenCopy<'a> {
    /// The function.
    pub func: Func,
    /// The base, the cleaned version, the copy and the optimized version.
    pub versions: [&'a Function; 4],
    /// The base with the cleaned version, and the copy with the optimized one.
    pub pairs: [ExportedParts; 2],
    /// The rewrites given up.
    pub left_out: LeftOut,
    /// The claim about the copy.
    pub claim: &'a CopyClaim,
    /// From the base to the optimized version.
    pub into: &'a Mapping,
    /// From the optimized version to frames.
    pub out: &'a Mapping,
}

impl<'a> WrittenCopy<'a> {
    /// The parts of a version with inlined code. Cost: two certificates.
    ///
    /// # Panics
    /// If the inlining assumes: its steps have no certificates of their own.
    pub fn of(func: Func, made: &'a Inlined) -> WrittenCopy<'a> {
        let versions = [VersionTree::BASE, made.cleaned, made.copy, made.optimized];
        WrittenCopy {
            func,
            versions: versions.map(|version| made.tree.function(version)),
            pairs: parts(made),
            left_out: made.retried.left_out(),
            claim: made.copies.claim(),
            into: &made.up,
            out: &made.down,
        }
    }
}

/// The certificates of the two pairs, each with the accepted entries of both directions and their
/// facts. Cost: two certificates, which are made anew.
///
/// # Panics
/// Like [`WrittenCopy::of`].
fn parts(made: &Inlined) -> [ExportedParts; 2] {
    let count = made.tree.versions().len();
    assert_eq!(count, 4, "inlining that assumes has more versions, and no certificate for each");
    assert_eq!(made.removed_objects, 0, "a file of mappings has no words for absent objects");
    let part = |at: usize, [before, after]: [Version; 2]| {
        let log = made.tree.log(before, after).expect("the version was derived");
        let versions = [before, after].map(|version| made.tree.function(version));
        let pair = VersionPair::new(versions[0], versions[1], &log);
        let pair = pair.expect("the tree has replayed its logs");
        let common = pair.correspondence();
        let mut certifier = Certifier::new(&common);
        let mappings = made.pairs[at].as_ref().map(|step| Mapping::clone(&step.mapping));
        let up = certifier.facts(Side::Before, &mappings.before);
        let facts = Pair::new(up, certifier.facts(Side::After, &mappings.after));
        ExportedParts { certificate: certifier.into_certificate(), mappings, facts }
    };
    [part(0, [osr::VersionTree::BASE, made.cleaned]), part(1, [made.copy, made.optimized])]
}

/// Writes a function with inlined code. Cost: linear in the output, but for look-ups.
pub fn write_copy(out: &mut String, module: &Module, written: &WrittenCopy<'_>) {
    let mut writer = MappingWriter { out };
    let [base, cleaned, ..] = written.versions;
    writer.line(format_args!("function {}", escaped(base.name())));
    writer.line(format_args!("number {}", written.func.as_u32()));
    let LeftOut { before, behind } = &written.left_out;
    for (word, left_out) in [("left-out", before), ("left-out-behind", behind)] {
        for Range { start, end } in left_out {
            writer.line(format_args!("{word} {start} {end}"));
        }
    }
    for (name, f) in VERSIONS.iter().zip(written.versions) {
        writer.version(name, f);
    }
    for (ends, ExportedParts { certificate, mappings, facts }) in PAIRS.iter().zip(&written.pairs) {
        writer.line(format_args!("pair {ends}"));
        writer.pair(certificate, Side::BOTH.map(|side| (&mappings[side], &facts[side])));
    }
    let names = VersionNames { module, func: written.func, cleaned };
    writer.claim(written.claim, &names);
    writer.mapping("into", written.into, &[]);
    writer.line(format_args!("mapping out {}", written.out.len()));
    for (point, entry) in written.out.entries() {
        writer.frames(point, entry, written.out.target(), &names);
    }
    writer.line("end");
}

/// The words for the versions of functions that instances and frames name.
struct VersionNames<'a> {
    module: &'a Module,
    func: Func,
    cleaned: &'a Function,
}

impl VersionNames<'_> {
    /// `-` for a version that a file cannot name. Any mapping can be written, and no reader accepts
    /// that word.
    fn of(&self, func: Func, key: VersionKey) -> &'static str {
        // A version that the first passes do not change has the key of the base.
        let is = |f: &Function| VersionKey::of(f) == key;
        match self.module.body(func) {
            Some(base) if is(base) => VERSIONS[0],
            Some(_) if func == self.func && is(self.cleaned) => VERSIONS[1],
            _ => "-",
        }
    }
}

impl MappingWriter<'_> {
    fn claim(&mut self, claim: &CopyClaim, names: &VersionNames<'_>) {
        for (id, instance) in claim.instances.iter().enumerate() {
            let (func, version) = (instance.func, names.of(instance.func, instance.version));
            let caller = instance.caller.map_or_else(
                || "- -".to_owned(),
                |(caller, call)| format!("{caller} {}", call.as_u32()),
            );
            let values = &instance.values;
            let values =
                values.iter().map(|(of, name)| format!("{}={}", of.as_u32(), name.as_u32()));
            let (func, values) = (func.as_u32(), list(values));
            self.line(format_args!("instance {id} {func} {version} {caller} {values}"));
        }
        for (block, (instance, inst)) in &claim.blocks {
            self.line(format_args!("begins {} {instance} {}", block.as_u32(), inst.as_u32()));
        }
    }

    fn frames(
        &mut self,
        point: Point,
        entry: &Entry,
        target: VersionKey,
        names: &VersionNames<'_>,
    ) {
        let kept = list(entry.kept.iter().map(|v| v.as_u32()));
        self.line(format_args!("frames {} {kept}", point.inst().as_u32()));
        let requires = (entry.requires != entry.reads()).then_some(&entry.requires[..]);
        self.code(requires, &entry.steps, &entry.replays, &EntryFacts::default());
        for frame in entry.landings(names.func, target) {
            let (func, version) = (frame.func.as_u32(), names.of(frame.func, frame.version));
            let place = match frame.at {
                FramePlace::Before(_) => PLACES[0],
                FramePlace::Within(_) => PLACES[1],
            };
            let assigns = frame.assigns.iter();
            let assigns =
                list(assigns.map(|a| format!("{}={}", a.value.as_u32(), operand(a.from))));
            let inst = frame.at.inst().as_u32();
            self.line(format_args!("frame {func} {version} {place} {inst} {assigns}"));
        }
    }
}
