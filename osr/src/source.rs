//! The source point: what the source version has there.
//!
//! From a point whose line ends in its own block that is simply what is available. In a block that
//! only the source version has, compensation code first runs the rest of the block and takes its
//! jump, all parameters at once; what counts is what is available at the start of the far block
//! *after* that. A pool formed before the jump holds, on a back edge, the parameters of the last
//! iteration.

use crate::derive::{Node, Way};
use crate::lines::Crossing;
use crate::pair::Side;
use crate::scratch::Scratch;
use ir::{Inst, Point, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// What a value of the source version is, in terms of the source point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Here {
    /// A value as it is at the source point.
    Value(Value),
    /// The result of an operation of the rest of the block, by number.
    Rest(u32),
    /// Not to be had.
    Absent,
}

/// An operation of the rest of the block.
#[derive(Clone, Debug)]
struct RestOp {
    inst: Inst,
    args: SmallVec<[Here; 3]>,
}

/// What the source version has at one point.
#[derive(Debug)]
pub(crate) struct SourcePoint {
    point: Point,
    live: Scratch<bool>,
    /// The first point of the last block on the line that control may come to from elsewhere too.
    far: Option<Point>,
    bindings: BTreeMap<Value, Here>,
    rest: Vec<RestOp>,
}

impl SourcePoint {
    pub(crate) fn new(point: Point) -> SourcePoint {
        SourcePoint {
            point,
            live: Scratch::new(),
            far: None,
            bindings: BTreeMap::new(),
            rest: Vec::new(),
        }
    }

    /// Moves on to another point, whose line runs over `jumps`.
    pub(crate) fn enter(&mut self, p: &Side<'_>, point: Point, live: &[Value], jumps: &[Crossing]) {
        self.point = point;
        self.far = None;
        self.bindings.clear();
        self.rest.clear();
        self.live.clear();
        live.iter().for_each(|v| self.live.set(v.as_u32() as usize, true));
        let mut from = point.inst();
        for jump in jumps.iter() {
            from = self.cross(p, from, jump);
        }
    }

    pub(crate) fn is_live(&self, value: Value) -> bool {
        self.live.get(value.as_u32() as usize).is_some()
    }

    /// Runs the block from `from` to its end and takes its jump; returns the first instruction of
    /// the block it leads to. What may trap or reads memory is not run: the target version has not
    /// reached it either, and what it would compute is then not to be had.
    fn cross(&mut self, p: &Side<'_>, from: Inst, jump: &Crossing) -> Inst {
        let mut at = Some(from);
        while let Some(inst) = at.filter(|i| *i != jump.edges[0].inst) {
            let data = p.f.inst(inst);
            let args: SmallVec<[Here; 3]> = data.args.iter().map(|v| self.look_up(p, *v)).collect();
            let runs =
                data.opcode.is_pure() && data.results.len() == 1 && !args.contains(&Here::Absent);
            for value in &data.results {
                let here = if runs { Here::Rest(self.rest.len() as u32) } else { Here::Absent };
                self.bindings.insert(*value, here);
            }
            if runs {
                self.rest.push(RestOp { inst, args });
            }
            at = p.f.next_inst(inst);
        }
        let target = p.f.target(jump.edges[0]);
        let params = p.f.block_params(target.block);
        // All parameters at once: each argument is looked up before any is bound. Where several
        // edges may be taken, their arguments have to agree.
        let received = |index: usize| {
            let mut args = jump.edges.iter().map(|e| self.look_up(p, p.f.target(*e).args[index]));
            let first = args.next().unwrap_or(Here::Absent);
            if args.all(|other| other == first) { first } else { Here::Absent }
        };
        let bound: SmallVec<[(Value, Here); 4]> =
            params.iter().enumerate().map(|(index, param)| (*param, received(index))).collect();
        let first = p.f.first_inst(target.block);
        if jump.joins {
            let far = Point::before(first);
            self.far = Some(far);
            self.bindings.retain(|value, _| p.available(*value, far));
        }
        self.bindings.extend(bound);
        first
    }

    /// A value of the source version: bound on the way, or as it is at the source point if it is
    /// available there and where the line has got to.
    pub(crate) fn look_up(&self, p: &Side<'_>, value: Value) -> Here {
        match self.bindings.get(&value) {
            Some(here) => *here,
            None if self.far.is_some_and(|far| !p.available(value, far)) => Here::Absent,
            None if p.available(value, self.point) => Here::Value(value),
            None => Here::Absent,
        }
    }

    /// How a value of the source version can be had.
    pub(crate) fn way_of(&self, p: &Side<'_>, value: Value) -> Option<Way> {
        match self.look_up(p, value) {
            Here::Value(value) => Some(Way::Read(value)),
            Here::Rest(number) => Some(Way::Same(Node::Rest(number))),
            Here::Absent => None,
        }
    }

    /// The one way to compute an operation of the rest of the block.
    pub(crate) fn rest_way(&self, number: u32) -> Way {
        let op = &self.rest[number as usize];
        let args = op.args.iter().map(|here| match here {
            Here::Value(value) => Node::Here(*value),
            Here::Rest(number) => Node::Rest(*number),
            Here::Absent => unreachable!("an operation with a lost operand is not run"),
        });
        Way::Execute { inst: op.inst, in_source: true, args: args.collect() }
    }
}
