//! Versions with OSR points: code that asks, before instructions of one's choice, whether to leave,
//! and leaves.
//!
//! A block is split before each point. What stands at its end then is a test of the point, and a
//! branch to a block of the point that does nothing but leave with its values, or to the rest.
//! Nothing else changes: a run that is never told to leave does what the version does.

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
use transition::mapping::{Assign, Entry, Mapping, Replay};

/// When a guard fires.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Truth {
    /// When its value is 0.
    Zero,
    /// When its value is not 0.
    NonZero,
}

/// When a run leaves at a point.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// When the engine has set a flag of the point.
    Flag,
    /// When the engine's count, which starts here, has gone down to 0.
    Countdown(u64),
    /// When a value is as said.
    Guard {
        /// The value, of an integer type.
        value: Value,
        /// What makes the run leave.
        when: Truth,
    },
    /// Whenever the run comes to the point.
    Always,
}

/// A point to be put into a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointSpec {
    /// Where.
    pub at: Point,
    /// When the run leaves.
    pub condition: Condition,
    /// What it leaves with. Live or not: what is kept for an entry is used here, and so kept.
    pub values: Vec<Value>,
}

impl PointSpec {
    /// A point that leaves with what the entry at it requires. `None` when the mapping, which has
    /// to be one from the version, has no entry there.
    pub fn of_entry(mapping: &Mapping, at: Point, condition: Condition) -> Option<PointSpec> {
        Some(PointSpec { at, condition, values: mapping.entry(at)?.requires.clone() })
    }

    /// A point that leaves with what is live, arguments of the function included: where the version
    /// gone on in is not known yet. Entries of the levels up to [`crate::Level::LiveE`] then find
    /// what they require. Cost: that of liveness.
    ///
    /// # Panics
    /// When the version does not have the point.
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
    /// Where it was put: an instruction of the version that was instrumented.
    pub at: Point,
    /// When the run leaves; the value of a guard is one of the version that was instrumented.
    pub condition: Condition,
    /// The types of the values it leaves with.
    pub types: Vec<Type>,
}

/// A version with OSR points.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// The code: a function of the same name and signature, in a family of its own. Blocks that
    /// nothing leads to are left out.
    pub function: Function,
    /// What its instructions and values are in the version that was instrumented.
    pub origins: Origins,
    /// The points, by number.
    pub points: Vec<PointInfo>,
    /// By instruction of the version: its copy.
    insts: Vec<PackedOption<Inst>>,
    /// By value of the version: its copy.
    values: Vec<PackedOption<Value>>,
}

impl Instrumented {
    /// The copy of an instruction; `None` of one left out, or that the version does not have. Cost:
    /// constant.
    pub fn copy_of(&self, inst: Inst) -> Option<Inst> {
        self.insts.get(inst.index()).and_then(|i| i.expand())
    }

    /// The copy of a value; `None` of one left out, or that the version does not have. Cost:
    /// constant.
    pub fn copy_of_value(&self, value: Value) -> Option<Value> {
        self.values.get(value.index()).and_then(|v| v.expand())
    }

    /// An entry into the version as an entry into this code: behind the points before the
    /// instruction it lands at, so that what has just come does not leave at once. `None` when it
    /// lands in what was left out, or replays such. Cost: linear in the entry.
    pub(crate) fn entry(&self, entry: &Entry) -> Option<Entry> {
        let assign =
            |a: &Assign| Some(Assign { value: self.copy_of_value(a.value)?, from: a.from });
        // A value without a copy is read by nothing that was copied.
        let mut assigns: Vec<Assign> = entry.assigns.iter().filter_map(assign).collect();
        assigns.sort_unstable();
        let replay = |r: &Replay| Some(Replay { inst: self.copy_of(r.inst)?, ..r.clone() });
        Some(Entry {
            target: Point::before(self.copy_of(entry.target.inst())?),
            replays: entry.replays.iter().map(replay).collect::<Option<_>>()?,
            assigns,
            ..entry.clone()
        })
    }
}

/// Why a version could not be instrumented. Points are told by their index in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentError {
    /// The version does not have the instruction of a point.
    NoSuchPoint {
        /// Which point.
        point: usize,
        /// The instruction.
        inst: Inst,
    },
    /// The definition of a value, which the version may not even have, does not dominate a point.
    NotAvailable {
        /// Which point.
        point: usize,
        /// The value.
        value: Value,
    },
    /// The value of a guard is no integer.
    NotAnInteger {
        /// Which point.
        point: usize,
        /// The value.
        value: Value,
        /// What it is.
        ty: Type,
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
        }
    }
}

impl std::error::Error for InstrumentError {}

/// Puts OSR points into a version; point k of the list gets the number k. Of several before one
/// instruction the first is asked first. Points in code that nothing leads to, and behind one that
/// always leaves, are listed and never come to. Cost: near linear in the version and the points.
///
/// # Errors
/// See [`InstrumentError`].
pub fn instrument(
    version: &Function,
    points: &[PointSpec],
) -> Result<Instrumented, InstrumentError> {
    let cfg = Cfg::new(version);
    check(version, &cfg, points)?;
    let mut copier = Copier::new(version, points);
    let cfg = if copier.cuts.contains(&true) { copier.shortened() } else { cfg };
    copier.lay_out(&cfg);
    for &block in cfg.rpo() {
        copier.fill(block);
    }
    let (insts, values) = (copier.insts, copier.values);
    let function = copier.builder.finish().expect("every block of a version ends in a terminator");
    let info = |spec: &PointSpec| PointInfo {
        at: spec.at,
        condition: spec.condition,
        types: spec.values.iter().map(|v| version.value_type(*v)).collect(),
    };
    let points = points.iter().map(info).collect();
    Ok(Instrumented { function, origins: copier.origins, points, insts, values })
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
        };
        let is_reached = cfg.is_reachable(version.inst_block(inst));
        for &value in spec.values.iter().chain(&guard) {
            // What nothing leads to is left out, and dominance says nothing there.
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

/// The end of a list of points.
const NONE: u32 = u32::MAX;

struct Copier<'v> {
    version: &'v Function,
    points: &'v [PointSpec],
    /// By instruction of the version: the first point before it.
    first: Vec<u32>,
    /// By point: the next one before the same instruction.
    next: Vec<u32>,
    /// By block of the version: whether no run comes to its end.
    cuts: Vec<bool>,
    builder: FunctionBuilder,
    /// By block of the version: its copy, or the first part of it.
    blocks: Vec<PackedOption<Block>>,
    /// By point that is come to and may stay: the block of what comes behind it.
    parts: Vec<PackedOption<Block>>,
    insts: Vec<PackedOption<Inst>>,
    values: Vec<PackedOption<Value>>,
    origins: Origins,
}

impl<'v> Copier<'v> {
    fn new(version: &'v Function, points: &'v [PointSpec]) -> Copier<'v> {
        let mut first = vec![NONE; version.inst_bound()];
        let mut next = vec![NONE; points.len()];
        let mut cuts = vec![false; version.block_bound()];
        for (k, spec) in points.iter().enumerate().rev() {
            let inst = spec.at.inst();
            next[k] = std::mem::replace(&mut first[inst.index()], k as u32);
            cuts[version.inst_block(inst).index()] |= spec.condition == Condition::Always;
        }
        Copier {
            version,
            points,
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

    /// The graph without what only stands behind points that always leave.
    fn shortened(&self) -> Cfg {
        Cfg::of_edges(self.version, |edge| !self.cuts[self.version.inst_block(edge.inst).index()])
    }

    /// Makes all blocks, with their parameters, as the version has them; behind each what it is
    /// split into, and at the end those that leave.
    fn lay_out(&mut self, cfg: &Cfg) {
        let version = self.version;
        for block in version.blocks().filter(|b| cfg.is_reachable(*b)) {
            let copy = self.builder.create_block();
            self.blocks[block.index()] = copy.into();
            if let Some(name) = version.block_name(block) {
                self.builder.name_block(copy, name);
            }
            for &param in version.block_params(block) {
                let value = self.builder.append_param(copy, version.value_type(param));
                self.set_value(value, param);
            }
            self.split(block);
        }
    }

    /// Makes the blocks for what comes behind the points of a block.
    fn split(&mut self, block: Block) {
        for inst in self.version.block_insts(block) {
            let mut point = self.first[inst.index()];
            while point != NONE {
                if self.points[point as usize].condition == Condition::Always {
                    return;
                }
                self.parts[point as usize] = self.builder.create_block().into();
                point = self.next[point as usize];
            }
        }
    }

    fn fill(&mut self, block: Block) {
        let version = self.version;
        self.builder
            .switch_to(self.blocks[block.index()].expect("a block that is come to was made"));
        for inst in version.block_insts(block) {
            let mut point = self.first[inst.index()];
            while point != NONE {
                if self.ask(point as usize) {
                    return;
                }
                point = self.next[point as usize];
            }
            let (blocks, values) = (&self.blocks, &self.values);
            let value =
                |v: Value| values[v.index()].expect("definitions come first in reverse postorder");
            let target = |t: &Target| Target {
                block: blocks[t.block.index()].expect("what is come to was made"),
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

    /// Asks whether to leave at a point; whether nothing comes behind it.
    fn ask(&mut self, point: usize) -> bool {
        let spec = &self.points[point];
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
            (Condition::Guard { value, when }, Some(stay)) => {
                let value = self.values[value.index()].expect("a guard is available");
                let (then, otherwise) =
                    if when == Truth::NonZero { (leave, stay) } else { (stay, leave) };
                self.builder.br_if(value, then, otherwise);
            }
            (_, _) => {
                self.builder.jump(exit, &[]);
            }
        }
        self.builder.switch_to(exit);
        let values: Vec<Value> = spec
            .values
            .iter()
            .map(|v| self.values[v.index()].expect("what a point hands over is available"))
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
