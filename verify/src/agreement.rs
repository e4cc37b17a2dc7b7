//! Agreement of mappings that were made in different ways.
//!
//! Take two mappings between the same versions, one composed and one built directly. At one source
//! point they may have different target points, provide different values, and compute them by
//! different code. If their entries share a target point, both entries must give equal contents
//! to each value provided by both. [`Agreement`] runs both entries on the states that a
//! real run has at the source point, without making a transition.
//!
//! Agreement proves neither mapping right. The state oracle ([`crate::state_oracle`]) compares
//! entries with the target version.

use interp::{Control, Host, InstantiateError, Limits, Machine, NoObserver, Observer, Scope, View};
use ir::{Func, Function, Inst, Module, Point, Value};
use std::collections::BTreeMap;
use std::fmt;
use transition::VersionKey;
use transition::mapping::{Entry, Mapping};

/// Two entries that give a value different contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The arguments of the run, as bits.
    pub input: Vec<u64>,
    /// The source point.
    pub point: Point,
    /// The target point of both entries.
    pub target: Point,
    /// The indices of the two mappings in the list.
    pub mappings: [usize; 2],
    /// The value; `None` if compensation code failed.
    pub value: Option<Value>,
    /// The contents that each entry gives the value, as bits.
    pub bits: [u64; 2],
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disagreement { input, point, target, mappings: [a, b], value, bits } = self;
        write!(f, "from {} to {}: ", point.inst(), target.inst())?;
        match value {
            Some(value) => write!(
                f,
                "{value} is {:#x} by mapping {a}, and {:#x} by mapping {b}",
                bits[0], bits[1]
            )?,
            None => write!(f, "the compensation code of mapping {a} or {b} fails")?,
        }
        write!(f, ", on input {input:x?}")
    }
}

/// Counts of the comparisons, and the disagreements found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgreementReport {
    /// Visits of points at which several mappings have an entry.
    pub visits: u64,
    /// Pairs of entries with the same target point, summed over those visits.
    pub same_point: u64,
    /// Pairs of entries with different target points.
    pub other_point: u64,
    /// Values compared.
    pub compared: u64,
    /// All disagreements found, kept or not.
    pub disagreement_count: u64,
    /// The first disagreements, up to [`MAX_KEPT`].
    pub disagreements: Vec<Disagreement>,
}

impl AgreementReport {
    /// Adds the counts of another comparison, and keeps all its disagreements.
    pub fn add(&mut self, other: &AgreementReport) {
        self.visits += other.visits;
        self.same_point += other.same_point;
        self.other_point += other.other_point;
        self.compared += other.compared;
        self.disagreement_count += other.disagreement_count;
        self.disagreements.extend(other.disagreements.iter().cloned());
    }
}

/// The most disagreements kept by one comparison.
pub const MAX_KEPT: usize = 16;

/// Compares mappings from one version of a function to another.
#[derive(Debug)]
pub struct Agreement<'a> {
    func: Func,
    /// By source point with several entries: each entry with the index of its mapping.
    entries: BTreeMap<Inst, Vec<(usize, &'a Entry)>>,
    /// A machine that has run nothing, with the source version as current version.
    pristine: Machine,
    report: AgreementReport,
}

/// The reason why mappings cannot be compared.
#[derive(Clone, PartialEq, Debug)]
pub enum AgreementSetupError {
    /// The mapping has another source version than the given one, or another target version than
    /// the first mapping.
    OtherVersions {
        /// Its index in the list.
        mapping: usize,
    },
    /// The module cannot be instantiated.
    Instantiate(InstantiateError),
}

impl fmt::Display for AgreementSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgreementSetupError::OtherVersions { mapping } => {
                write!(f, "mapping {mapping} belongs to other versions")
            }
            AgreementSetupError::Instantiate(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for AgreementSetupError {}

impl<'a> Agreement<'a> {
    /// A comparison of mappings from `version`, a version of a function of a verified module. The
    /// entries must be well-formed, as the state oracle finds them. Cost: near linear in module and
    /// mappings.
    ///
    /// # Errors
    /// See [`AgreementSetupError`].
    ///
    /// # Panics
    /// If the verifier rejects the module or the version.
    pub fn new(
        module: &Module,
        func: Func,
        version: &Function,
        mappings: &[&'a Mapping],
        limits: Limits,
    ) -> Result<Agreement<'a>, AgreementSetupError> {
        let (source, target) = (VersionKey::of(version), mappings.first().map(|m| m.target()));
        let strays = |m: &&Mapping| m.source() != source || Some(m.target()) != target;
        if let Some(mapping) = mappings.iter().position(strays) {
            return Err(AgreementSetupError::OtherVersions { mapping });
        }
        let mut entries: BTreeMap<Inst, Vec<(usize, &Entry)>> = BTreeMap::new();
        for (number, mapping) in mappings.iter().enumerate() {
            mapping
                .entries()
                .for_each(|(p, e)| entries.entry(p.inst()).or_default().push((number, e)));
        }
        // A single entry has nothing to agree with, and its point need not be watched.
        entries.retain(|_, list| list.len() > 1);
        let mut pristine =
            Machine::new(module, limits).map_err(AgreementSetupError::Instantiate)?;
        let id = pristine.add_version(module, func, version);
        pristine.mark(id, entries.keys().copied());
        pristine.set_current(func, id);
        Ok(Agreement { func, entries, pristine, report: AgreementReport::default() })
    }

    /// Runs the start function of the module, if there is one, then a function, and compares
    /// entries at every visit of their source point. If a limit ends the run, the visits before it
    /// count.
    ///
    /// # Panics
    /// If the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        let (mut machine, mut host) = (self.pristine.clone(), host.clone());
        if let Some(start) = machine.start_function()
            && machine.invoke(start, &[], &mut host, &mut NoObserver).returned().is_none()
        {
            return;
        }
        let Agreement { func: watched, entries, report, .. } = self;
        let mut comparing =
            Comparing { func: *watched, entries, args, report, given: [Vec::new(), Vec::new()] };
        machine.invoke(func, args, &mut host, &mut comparing);
    }

    /// The comparisons so far.
    pub fn report(&self) -> &AgreementReport {
        &self.report
    }
}

/// Observes a run, and compares entries at their source points.
struct Comparing<'r, 'a> {
    func: Func,
    entries: &'r BTreeMap<Inst, Vec<(usize, &'a Entry)>>,
    args: &'r [u64],
    report: &'r mut AgreementReport,
    /// The values that the current two entries provide. Kept between visits to spare allocations.
    given: [Vec<(Value, u64)>; 2],
}

impl Observer for Comparing<'_, '_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        if view.func() == self.func
            && let Some(list) = self.entries.get(&inst)
        {
            self.report.visits += 1;
            for (index, a) in list.iter().enumerate() {
                list[index + 1..].iter().for_each(|b| self.compare(view, inst, [*a, *b]));
            }
        }
        Control::Continue
    }
}

impl Comparing<'_, '_> {
    fn compare(&mut self, view: &View<'_>, inst: Inst, pair: [(usize, &Entry); 2]) {
        if pair[0].1.target != pair[1].1.target {
            self.report.other_point += 1;
            return;
        }
        self.report.same_point += 1;
        let mut different = None;
        for ((_, entry), given) in pair.iter().zip(&mut self.given) {
            given.clear();
            if entry.run(|v| view.value(v), |_, v, bits| given.push((v, bits))).is_err() {
                different = Some((None, [0, 0]));
            }
        }
        // Both lists ascend by value, since assignments do.
        let [first, second] = &self.given;
        for (value, bits) in first {
            let Ok(at) = second.binary_search_by_key(value, |(v, _)| *v) else { continue };
            self.report.compared += 1;
            if second[at].1 != *bits {
                different.get_or_insert((Some(*value), [*bits, second[at].1]));
            }
        }
        let Some((value, bits)) = different else { return };
        self.report.disagreement_count += 1;
        if self.report.disagreements.len() < MAX_KEPT {
            self.report.disagreements.push(Disagreement {
                input: self.args.to_vec(),
                point: Point::before(inst),
                target: pair[0].1.target,
                mappings: [pair[0].0, pair[1].0],
                value,
                bits,
            });
        }
    }
}
