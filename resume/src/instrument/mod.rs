//! Versions with OSR points: adds side exits to a version, before chosen instructions.
//!
//! Instrumentation splits a block before each point. The first part then ends in a test of the
//! point and a branch. The branch leads to a side exit, which only hands over the values of the
//! point, or to the rest of the block. A run without a side exit behaves like a run of the version.

mod failing;

use crate::copy::{Origins, spec};
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::liveness::Liveness;
use ir::{
    Block, Function, FunctionBuilder, Imm, Inst, InstSpec, Opcode, OsrPoint, Point, Target, Type,
    Value,
};
use std::fmt;
use transition::VersionKey;
use transition::mapping::{Assign, Entry, Mapping, Replay};

/// When a guard fires.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Truth {
    /// When its value is 0.
    Zero,
    /// When its value is not 0.
    NonZero,
}

/// When a run takes the side exit of a point.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// When the engine has set the flag of the point.
    Flag,
    /// When the engine's countdown, which starts at this number, has reached 0.
    Countdown(u64),
    /// When a value is zero or nonzero.
    Guard {
        /// The value, of an integer type.
        value: Value,
        /// Which of the two fires the guard.
        when: Truth,
    },
    /// At every visit of the point.
    Always,
    /// When the assumption fails that the point stands before. The test of the point takes the
    /// place of the assumption: behind it, the result is the constant.
    Failing,
}

/// A point to add to a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointSpec {
    /// The place.
    pub at: Point,
    /// When the run exits.
    pub condition: Condition,
    /// The values handed over. A value need not be live otherwise: the point that hands it over is
    /// a use of it.
    pub values: Vec<Value>,
}

impl PointSpec {
    /// A point that hands over the values required by the entry at it. `mapping` must be one from
    /// the version. `None` when it has no entry there.
    pub fn of_entry(mapping: &Mapping, at: Point, condition: Condition) -> Option<PointSpec> {
        Some(PointSpec { at, condition, values: mapping.entry(at)?.requires.clone() })
    }

    /// Points before all assumptions of a version that a run may reach, each handing over the
    /// values that the exit requires, which `exits` gives for the instruction. Cost: linear in the
    /// version.
    ///
    /// # Errors
    /// The first assumption without an exit.
    pub fn of_assumptions<'m>(
        version: &Function,
        mut exits: impl FnMut(Inst) -> Option<&'m [Value]>,
    ) -> Result<Vec<PointSpec>, Inst> {
        let cfg = Cfg::new(version);
        let all = cfg.rpo().iter().flat_map(|block| version.block_insts(*block));
        let assumptions = all.filter(|inst| version.inst(*inst).opcode == Opcode::Assume);
        let mut point = |inst: Inst| {
            let (at, condition) = (Point::before(inst), Condition::Failing);
            exits(inst).map(|values| PointSpec { at, condition, values: values.to_vec() })
        };
        assumptions.map(|inst| point(inst).ok_or(inst)).collect()
    }

    /// A point that hands over all live values and the arguments of the function, for use where the
    /// target version is not known yet. They include all values that an entry of a level below
    /// `osr::Level::Avail` requires. Cost: one liveness analysis.
    ///
    /// # Panics
    /// When the version lacks the point.
    pub fn of_live(version: &Function, at: Point, condition: Condition) -> PointSpec {
        let live = Liveness::new(version, &Cfg::new(version)).live_before(version, at);
        let mut values: Vec<Value> =
            live.iter().chain(version.arguments().iter().copied()).collect();
        values.sort_unstable();
        values.dedup();
        PointSpec { at, condition, values }
    }
}

/// A point of an instrumented version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointInfo {
    /// The place, before an instruction of the version without points.
    pub at: Point,
    /// When the run exits. The value of a guard is one of the version without points.
    pub condition: Condition,
    /// The types of the values handed over.
    pub types: Vec<Type>,
}

/// A version with OSR points.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// The code: a function of the same name and signature, in a family of its own, without
    /// unreachable blocks.
    pub function: Function,
    /// The source instructions and values of its instructions and values, in the version without
    /// points.
    pub origins: Origins,
    /// The points, by number.
    pub points: Vec<PointInfo>,
    /// The version without points.
    pub(crate) of: VersionKey,
    /// By instruction of the version: its copy.
    insts: Vec<PackedOption<Inst>>,
    /// By value of the version: its copy.
    values: Vec<PackedOption<Value>>,
}

impl Instrumented {
    /// The copy of an instruction. `None` if instrumentation left it out, or if the version lacks
    /// it. Cost: constant.
    pub fn copy_of(&self, inst: Inst) -> Option<Inst> {
        self.insts.get(inst.index()).and_then(|i| i.expand())
    }

    /// The copy of a value. `None` if instrumentation left it out, or if the version lacks it.
    /// Cost: constant.
    pub fn copy_of_value(&self, value: Value) -> Option<Value> {
        self.values.get(value.index()).and_then(|v| v.expand())
    }

    /// Makes an entry into the version an entry into this code, without a seal. It lands behind the
    /// points before its instruction, so that the run does not exit at once again. `None` when the
    /// landing point was left out. Cost: linear in the entry.
    pub fn entry(&self, entry: &Entry) -> Option<Entry> {
        let assign =
            |a: &Assign| Some(Assign { value: self.copy_of_value(a.value)?, from: a.from });
        // No copied instruction reads a value without a copy, so the entry need not provide it.
        let mut assigns: Vec<Assign> = entry.assigns.iter().filter_map(assign).collect();
        assigns.sort_unstable();
        // A replay of a composed entry may be a write of a version on the way, without a copy.
        let inst = |r: &Replay| self.copy_of(r.inst).unwrap_or(r.inst);
        let replay = |r: &Replay| Replay { inst: inst(r), ..r.clone() };
        Some(Entry {
            target: Point::before(self.copy_of(entry.target.inst())?),
            replays: entry.replays.iter().map(replay).collect(),
            assigns,
            ..entry.clone()
        })
    }
}

/// Why a version could not be instrumented. Fields name a point by its index in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentError {
    /// The version does not have the instruction of a point.
    NoSuchPoint {
        /// The index of the point.
        point: usize,
        /// The instruction.
        inst: Inst,
    },
    /// A value is not available at a point: its definition does not dominate the point, or the
    /// version lacks the value.
    NotAvailable {
        /// The index of the point.
        point: usize,
        /// The value.
        value: Value,
    },
    /// The value of a guard is not an integer.
    NotAnInteger {
        /// The index of the point.
        point: usize,
        /// The value.
        value: Value,
        /// Its type.
        ty: Type,
    },
    /// A point that fires when an assumption fails stands before another instruction.
    NotAnAssumption {
        /// The index of the point.
        point: usize,
        /// The instruction.
        inst: Inst,
    },
    /// An assumption is about a reference that is not null. No operation compares references.
    NotComparable {
        /// The index of the point.
        point: usize,
        /// The value.
        value: Value,
    },
}

impl fmt::Display for InstrumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstrumentError::NoSuchPoint { point, inst } => {
                write!(f, "point {point}: the version has no {inst}")
            }
            InstrumentError::NotAvailable { point, value } => {
                write!(f, "point {point}: {value} is not available there")
            }
            InstrumentError::NotAnInteger { point, value, ty } => {
                write!(f, "point {point}: the guard {value} is {ty}, not an integer")
            }
            InstrumentError::NotAnAssumption { point, inst } => {
                write!(f, "point {point}: {inst} is no assumption that could fail")
            }
            InstrumentError::NotComparable { point, value } => {
                write!(f, "point {point}: the reference {value} can only be compared with null")
            }
        }
    }
}

impl std::error::Error for InstrumentError {}

/// Adds OSR points to a version. Point k of the list gets the number k. The code tests several
/// points before one instruction in the order of the list. The result also lists points in
/// unreachable code and points behind one that always exits; no run visits them. Cost: near linear
/// in the version and the points.
///
/// # Errors
/// See [`InstrumentError`].
pub fn instrument(
    version: &Function,
    points: &[PointSpec],
) -> Result<Instrumented, InstrumentError> {
    instrumented(version, points, Behind::LeftOut)
}

/// As [`instrument`], for entries that may land behind a point that always exits: code behind such
/// a point stays, as unreachable code. A continuation has it only if its own paths reach it.
///
/// # Errors
/// See [`InstrumentError`].
pub fn instrument_for_entries(
    version: &Function,
    points: &[PointSpec],
) -> Result<Instrumented, InstrumentError> {
    instrumented(version, points, Behind::Kept)
}

/// The fate of code that stands only behind points that always exit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    LeftOut,
    Kept,
}

fn instrumented(
    version: &Function,
    points: &[PointSpec],
    behind: Behind,
) -> Result<Instrumented, InstrumentError> {
    let cfg = Cfg::new(version);
    check(version, &cfg, points)?;
    let mut copier = Copier::new(version, points, behind);
    // Code that stands only behind a point that always exits is left out. Without such a point the
    // version's own graph serves.
    let cfg = if copier.cuts.contains(&true) { copier.shortened() } else { cfg };
    copier.lay_out(&cfg);
    // Reverse postorder of the graph that remains: definitions are copied before their uses.
    for &block in cfg.rpo() {
        copier.fill(block);
    }
    let (insts, values) = (copier.insts, copier.values);
    let function =
        copier.builder.finish().expect("every block of a version ends in a terminator").function;
    let info = |spec: &PointSpec| PointInfo {
        at: spec.at,
        condition: spec.condition,
        types: spec.values.iter().map(|v| version.value_type(*v)).collect(),
    };
    let points = points.iter().map(info).collect();
    let of = VersionKey::of(version);
    Ok(Instrumented { function, origins: copier.origins, points, of, insts, values })
}

fn check(version: &Function, cfg: &Cfg, points: &[PointSpec]) -> Result<(), InstrumentError> {
    let dom = DomTree::new(version, cfg);
    for (point, spec) in points.iter().enumerate() {
        let inst = spec.at.inst();
        if !version.has_inst(inst) {
            return Err(InstrumentError::NoSuchPoint { point, inst });
        }
        let guard = match spec.condition {
            Condition::Guard { value, .. } => Some(value),
            Condition::Flag | Condition::Countdown(_) | Condition::Always => None,
            Condition::Failing => {
                failing::check(version, point, inst)?;
                None
            }
        };
        let is_reached = cfg.is_reachable(version.inst_block(inst));
        for &value in spec.values.iter().chain(&guard) {
            // Unreachable code is left out, and dominance says nothing about it.
            let fits = if is_reached {
                dom.available_at(version, value, spec.at)
            } else {
                version.has_value(value)
            };
            if !fits {
                return Err(InstrumentError::NotAvailable { point, value });
            }
        }
        if let Some((value, ty)) =
            guard.map(|v| (v, version.value_type(v))).filter(|(_, ty)| !ty.is_int())
        {
            return Err(InstrumentError::NotAnInteger { point, value, ty });
        }
    }
    Ok(())
}

/// Whether code that stands only behind a point is left out.
fn leaves_out(spec: &PointSpec, behind: Behind) -> bool {
    spec.condition == Condition::Always && behind == Behind::LeftOut
}

/// The end of a list of points.
const NONE: u32 = u32::MAX;

struct Copier<'v> {
    version: &'v Function,
    points: &'v [PointSpec],
    behind: Behind,
    /// By instruction of the version: the first point before it.
    first: Vec<u32>,
    /// By point: the next point before the same instruction.
    next: Vec<u32>,
    /// By block of the version: whether a point in it always exits, so that no run reaches its end.
    cuts: Vec<bool>,
    builder: FunctionBuilder,
    /// By block of the version: its copy, or the first part of its copy.
    blocks: Vec<PackedOption<Block>>,
    /// By point that a run may pass: the block for the code behind it.
    parts: Vec<PackedOption<Block>>,
    insts: Vec<PackedOption<Inst>>,
    values: Vec<PackedOption<Value>>,
    origins: Origins,
}

impl<'v> Copier<'v> {
    fn new(version: &'v Function, points: &'v [PointSpec], behind: Behind) -> Copier<'v> {
        let mut first = vec![NONE; version.inst_bound()];
        let mut next = vec![NONE; points.len()];
        let mut cuts = vec![false; version.block_bound()];
        // From the last point to the first: each becomes the head of its instruction's list, which
        // thus has the points in the order given.
        for (k, spec) in points.iter().enumerate().rev() {
            let inst = spec.at.inst();
            next[k] = std::mem::replace(&mut first[inst.index()], k as u32);
            cuts[version.inst_block(inst).index()] |= leaves_out(spec, behind);
        }
        Copier {
            version,
            points,
            behind,
            first,
            next,
            cuts,
            builder: FunctionBuilder::new(version.name(), version.signature().clone()),
            blocks: vec![None.into(); version.block_bound()],
            parts: vec![None.into(); points.len()],
            insts: vec![None.into(); version.inst_bound()],
            values: vec![None.into(); version.value_bound()],
            origins: Origins::default(),
        }
    }

    /// The graph without code that stands only behind points that always exit.
    fn shortened(&self) -> Cfg {
        Cfg::of_edges(self.version, |edge| !self.cuts[self.version.inst_block(edge.inst).index()])
    }

    /// Creates the blocks of the version with their parameters, each followed by the blocks that
    /// its points split it into. Side exits come last: `ask` creates them.
    fn lay_out(&mut self, cfg: &Cfg) {
        let version = self.version;
        for block in version.blocks().filter(|b| cfg.is_reachable(*b)) {
            let copy = self.builder.create_block();
            self.blocks[block.index()] = copy.into();
            if let Some(name) = version.block_name(block) {
                self.builder.name_block(copy, name);
            }
            if version.is_cold(block) {
                self.builder.mark_cold(copy);
            }
            for &param in version.block_params(block) {
                let value = self.builder.append_param(copy, version.value_type(param));
                self.set_value(value, param);
            }
            self.split(block);
        }
    }

    /// Creates the blocks for the code behind the points of a block.
    fn split(&mut self, block: Block) {
        for inst in self.version.block_insts(block) {
            let mut point = self.first[inst.index()];
            while point != NONE {
                // No run passes this point: neither code nor further points behind it get a block.
                if leaves_out(&self.points[point as usize], self.behind) {
                    return;
                }
                let part = self.builder.create_block();
                if self.version.is_cold(block) {
                    self.builder.mark_cold(part);
                }
                self.parts[point as usize] = part.into();
                point = self.next[point as usize];
            }
        }
    }

    fn fill(&mut self, block: Block) {
        let version = self.version;
        self.builder
            .switch_to(self.blocks[block.index()].expect("every reachable block has a copy"));
        for inst in version.block_insts(block) {
            // Points before their instruction: an entry that lands at the instruction's copy is
            // behind all of them ([`Instrumented::entry`]).
            let mut point = self.first[inst.index()];
            while point != NONE {
                if self.ask(point as usize) {
                    return;
                }
                point = self.next[point as usize];
            }
            if self.points_at(inst).any(|point| point.condition == Condition::Failing) {
                self.assumed(inst);
                continue;
            }
            let (blocks, values) = (&self.blocks, &self.values);
            let value =
                |v: Value| values[v.index()].expect("definitions come first in reverse postorder");
            let target = |t: &Target| Target {
                block: blocks[t.block.index()].expect("reachable code was copied"),
                args: t.args.iter().map(|v| value(*v)).collect(),
            };
            let copy = self.builder.insert(spec(version, inst, value, target));
            self.insts[inst.index()] = copy.into();
            self.origins.set_inst(copy, inst);
            for (index, result) in version.inst(inst).results.iter().enumerate() {
                let value = self.builder.function().inst(copy).results[index];
                self.set_value(value, *result);
            }
        }
    }

    /// The points before an instruction.
    fn points_at(&self, inst: Inst) -> impl Iterator<Item = &'v PointSpec> + '_ {
        let first = Some(self.first[inst.index()]).filter(|point| *point != NONE);
        let next = |point: &u32| Some(self.next[*point as usize]).filter(|point| *point != NONE);
        std::iter::successors(first, next).map(|point| &self.points[point as usize])
    }

    /// Emits the test of a point and its side exit. Returns whether the code behind the point is
    /// left out.
    fn ask(&mut self, point: usize) -> bool {
        let spec: &PointSpec = &self.points[point];
        let exit = self.builder.create_block();
        let leave = Target::new(exit, &[]);
        let number = Imm::Exit(OsrPoint::new(point));
        let rest = self.parts[point].expand();
        let stay = rest.map(|block| Target::new(block, &[]));
        match (spec.condition, stay) {
            (Condition::Flag | Condition::Countdown(_), Some(stay)) => {
                let fire = self.builder.insert_value(InstSpec::new(
                    Opcode::OsrTest,
                    Type::I32,
                    number,
                    &[],
                ));
                self.builder.br_if(fire, leave, stay);
            }
            (Condition::Failing, Some(stay)) => {
                self.test(self.points[point].at.inst(), leave, stay);
            }
            (Condition::Guard { value, when }, Some(stay)) => {
                let value = self.values[value.index()].expect("a guard is available");
                let (then, otherwise) =
                    if when == Truth::NonZero { (leave, stay) } else { (stay, leave) };
                self.builder.br_if(value, then, otherwise);
            }
            // The point always exits. If there is a block for the code behind it, entries may land
            // there.
            (_, _) => {
                self.builder.jump(exit, &[]);
            }
        }
        // The side exit is filled at once, while the values of the point are at hand; then the copy
        // continues in the rest.
        self.builder.switch_to(exit);
        let values: Vec<Value> = spec
            .values
            .iter()
            .map(|v| self.values[v.index()].expect("the values of a point are available"))
            .collect();
        self.builder.insert(InstSpec {
            imm: number,
            ..InstSpec::terminator(Opcode::OsrExit, &values, Vec::new())
        });
        if let Some(rest) = rest {
            self.builder.switch_to(rest);
        }
        rest.is_none()
    }

    fn set_value(&mut self, copy: Value, of: Value) {
        self.values[of.index()] = copy.into();
        self.origins.set_value(copy, of);
        if let Some(name) = self.version.value_name(of) {
            self.builder.name_value(copy, name);
        }
    }
}
