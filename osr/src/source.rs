//! The source point: which values of the source version an entry can have there.
//!
//! If the path from the point ends in the same block, these are the available values. Otherwise the
//! point stands in a block that only the source version has. Compensation code then follows the
//! path in place of the run: it executes the rest of the block and takes its jump, all parameters
//! at once. The pool is then formed from the values available at the start of the far block,
//! *after* the jump. A pool formed before the jump would, on a back edge, hold the parameters of
//! the last iteration (`tests/oir/osr/stale_parameter.oir`).

use crate::facts::Facts;
use crate::level::Level;
use crate::node::{Alternative, SearchNode};
use crate::pair::analyzed::Analyzed;
use crate::paths::TakenJump;
use crate::scratch::Scratch;
use cranelift_entity::EntityRef;
use ir::{Inst, Point, Value};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::BTreeMap;
use transition::ascending::differences;

/// Instructions of one block that compensation code follows on a path, up to its jump. The search
/// gives up at half of this number of operations, and without the limit each point of a long block
/// would cost the rest of the block.
const MAX_FOLLOWED: usize = 512;

/// A value of the source version, in terms of the source point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Here {
    /// A value as it is at the source point.
    Value(Value),
    /// The result of an operation on the path, by number.
    Rest(u32),
    /// Another member of the value's class, as it is at the source point. The path defines the
    /// value, and the entry cannot execute its definition. Usable from [`Level::Alias`] up.
    Member(Value),
    /// The entry cannot have the value.
    Absent,
}

/// An operation on the path.
#[derive(Clone, Debug)]
struct RestOp {
    inst: Inst,
    args: SmallVec<[Here; 3]>,
    /// The lowest level that may execute it: an operand, or an operand's operand, may be
    /// [`Here::Member`].
    level: Level,
}

/// The ways to have a wanted value from a source point whose path binds nothing, at the highest
/// level. A lower level has fewer.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) enum Outlook {
    /// No entry has it.
    #[default]
    Hopeless,
    /// An entry reads it without keeping a value.
    Read,
    /// Another value of the target version stands for it.
    Replaced,
    /// An entry must keep this value for it.
    Forced(Value),
    /// An entry makes it by a step of its own, or keeps a value for it.
    Constant,
    /// An entry computes it from its operands by a step of its own, or keeps a value for it.
    Computed,
}

/// The source version's values at one point.
#[derive(Debug, Default)]
pub(crate) struct SourcePoint {
    /// `None` before the first point.
    point: Option<Point>,
    /// By value index; as long as the greatest index so far.
    live: Vec<bool>,
    live_values: Vec<Value>,
    /// The first point of the last block on the path that another edge leads to as well.
    far: Option<Point>,
    bindings: BTreeMap<Value, Here>,
    rest: Vec<RestOp>,
    /// By wanted value of the target version: the ways to have it from here.
    outlooks: RefCell<Scratch<Outlook>>,
}

impl SourcePoint {
    /// Moves to another point, whose path takes `jumps`. `live` are the values live there.
    pub(crate) fn enter(
        &mut self,
        p: &Analyzed<'_>,
        facts: &Facts,
        point: Point,
        live: &[Value],
        jumps: &[TakenJump],
    ) {
        self.point = Some(point);
        self.far = None;
        self.bindings.clear();
        self.rest.clear();
        self.outlooks.get_mut().clear();
        // Neighboring points have nearly the same live values.
        let bound = live.last().map_or(0, |last| last.as_u32() as usize + 1);
        self.live.resize(bound.max(self.live.len()), false);
        differences(&self.live_values, live, |value, is_live| {
            self.live[value.as_u32() as usize] = is_live;
        });
        self.live_values.clear();
        self.live_values.extend_from_slice(live);
        let mut from = point.inst();
        for jump in jumps.iter() {
            from = self.cross(p, facts, from, jump);
        }
    }

    /// The ways to have a wanted value from here, which `find` finds at the first request.
    pub(crate) fn outlook(&self, value: Value, find: impl FnOnce() -> Outlook) -> Outlook {
        let index = value.as_u32() as usize;
        let known = self.outlooks.borrow().get(index);
        known.unwrap_or_else(|| {
            let outlook = find();
            self.outlooks.borrow_mut().set(index, outlook);
            outlook
        })
    }

    /// Whether the path stays in the block of the point, so that nothing is bound on it.
    pub(crate) fn is_plain(&self) -> bool {
        self.bindings.is_empty() && self.far.is_none()
    }

    /// The first point of the last block on the path that another edge leads to as well.
    pub(crate) fn far(&self) -> Option<Point> {
        self.far
    }

    /// The values that the path binds.
    pub(crate) fn bound(&self) -> impl Iterator<Item = Value> {
        self.bindings.keys().copied()
    }

    /// The point; `None` before the first point.
    pub(crate) fn point(&self) -> Option<Point> {
        self.point
    }

    /// The values live at the source point, ascending.
    pub(crate) fn live_values(&self) -> &[Value] {
        &self.live_values
    }

    pub(crate) fn is_live(&self, value: Value) -> bool {
        self.live.get(value.as_u32() as usize).is_some_and(|live| *live)
    }

    /// Takes the path from `from` to the end of its block and over `jump`. Returns the first
    /// instruction of the next block. An operation that may trap or reads memory is not executed:
    /// the target version has not reached it either. Another member of its class may stand for its
    /// result (`tests/oir/osr/a_load_on_the_path_is_an_earlier_one.oir`).
    fn cross(&mut self, p: &Analyzed<'_>, facts: &Facts, from: Inst, jump: &TakenJump) -> Inst {
        let mut at = Some(near_end(p, from, jump.edges[0].inst));
        while let Some(inst) = at.filter(|i| *i != jump.edges[0].inst) {
            let data = p.f.inst(inst);
            let args: SmallVec<[Here; 3]> =
                data.args.iter().map(|v| self.readable(p, *v)).collect();
            // One result and all operands, or no expression can stand for the operation. Values of
            // the block that depend on an absent one are absent in turn.
            let runs = data.opcode.is_step()
                && data.opcode.is_pure()
                && data.results.len() == 1
                && !args.contains(&Here::Absent);
            for value in &data.results {
                let here = match runs {
                    true => Here::Rest(self.rest.len() as u32),
                    false => self.member(p, facts, *value),
                };
                self.bindings.insert(*value, here);
            }
            if runs {
                let level = args.iter().map(|arg| self.level_of(*arg)).max();
                self.rest.push(RestOp { inst, args, level: level.unwrap_or(Level::Empty) });
            }
            at = p.f.next_inst(inst);
        }
        let target = p.f.target(jump.edges[0]);
        let params = p.f.block_params(target.block);
        // All parameters at once: each argument is looked up before any parameter is bound. Binding
        // the parameters in turn would give the second parameter of a swap the first parameter's
        // new value (`from_a_block_on_a_back_edge_parameters_are_bound_by_the_jump_first`). Where
        // several edges may be taken, their arguments have to agree.
        let received = |index: usize| {
            let mut args = jump.edges.iter().map(|e| self.readable(p, p.f.target(*e).args[index]));
            let first = args.next().unwrap_or(Here::Absent);
            if args.all(|other| other == first) { first } else { Here::Absent }
        };
        let bound: SmallVec<[(Value, Here); 4]> =
            params.iter().enumerate().map(|(index, param)| (*param, received(index))).collect();
        let first = p.f.first_inst(target.block);
        // A value bound on the path may belong to code that the other edges into the block do not
        // pass. The target version lacks the value there, and an expression must not read it.
        if jump.joins {
            let far = Point::before(first);
            self.far = Some(far);
            self.bindings.retain(|value, _| p.available(*value, far));
        }
        self.bindings.extend(bound);
        first
    }

    /// The member of a value's class that the entry has at the source point, for a value that the
    /// path defines at the place it has reached.
    fn member(&self, p: &Analyzed<'_>, facts: &Facts, value: Value) -> Here {
        let chain = facts.chain(value, p.side);
        let has = |member: &Value| {
            p.f.has_value(*member) && self.readable(p, *member) == Here::Value(*member)
        };
        chain.into_iter().find(has).map_or(Here::Absent, Here::Member)
    }

    /// The lowest level that may use a value.
    fn level_of(&self, here: Here) -> Level {
        match here {
            Here::Member(_) => Level::Alias,
            Here::Rest(number) => self.rest[number as usize].level,
            Here::Value(_) | Here::Absent => Level::Empty,
        }
    }

    /// A value of the source version: as the path bound it, or as it is at the source point. In the
    /// second case it must be available both there and at the place the path has reached.
    pub(crate) fn look_up(&self, p: &Analyzed<'_>, value: Value) -> Here {
        match self.bindings.get(&value) {
            Some(here) => *here,
            None if self.far.is_some_and(|far| !p.available(value, far)) => Here::Absent,
            None if self.point.is_some_and(|point| p.available(value, point)) => Here::Value(value),
            None => Here::Absent,
        }
    }

    /// As [`SourcePoint::look_up`], without the values that entries must not read.
    pub(crate) fn readable(&self, p: &Analyzed<'_>, value: Value) -> Here {
        match self.look_up(p, value) {
            Here::Value(value) if p.hidden.contains(value.index()) => Here::Absent,
            here => here,
        }
    }

    /// Whether a value is live at the source point under its own id.
    pub(crate) fn reads_itself(&self, p: &Analyzed<'_>, value: Value) -> bool {
        // A live value is available. Most paths bind nothing and need no more than that.
        self.is_live(value) && (self.is_plain() || self.look_up(p, value) == Here::Value(value))
    }

    /// The alternative that gives a value of the source version, and the lowest level that may use
    /// it, if there is one.
    pub(crate) fn alternative_of(
        &self,
        p: &Analyzed<'_>,
        value: Value,
    ) -> Option<(Alternative, Level)> {
        let here = self.readable(p, value);
        let alternative = match here {
            Here::Value(value) | Here::Member(value) => Alternative::Read(value),
            Here::Rest(number) => Alternative::Same(SearchNode::Rest(number)),
            Here::Absent => return None,
        };
        Some((alternative, self.level_of(here)))
    }

    /// The single alternative for an operation on the path.
    pub(crate) fn rest_alternative(&self, number: u32) -> Alternative {
        let op = &self.rest[number as usize];
        let args = op.args.iter().map(|here| match here {
            Here::Value(value) | Here::Member(value) => SearchNode::Here(*value),
            Here::Rest(number) => SearchNode::Rest(*number),
            Here::Absent => unreachable!("an operation with an absent operand is not recorded"),
        });
        Alternative::Execute { inst: op.inst, in_source: true, args: args.collect() }
    }
}

/// The first instruction to follow from `from` to a jump at the end of its block. The entry has no
/// use for the instructions before it: their results are not available at the source point.
fn near_end(p: &Analyzed<'_>, from: Inst, jump: Inst) -> Inst {
    let mut at = jump;
    for _ in 0..MAX_FOLLOWED {
        if at == from {
            break;
        }
        let Some(before) = p.f.prev_inst(at) else { break };
        at = before;
    }
    at
}
