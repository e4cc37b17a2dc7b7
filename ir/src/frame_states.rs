//! Frame states: where an embedder's interpreter continues, and with which locals.
//!
//! Example: a front end compiles bytecode. Before the instructions of bytecode 12 of `sum`, it
//! notes a frame state: function `sum`, program counter 12, local 0 in `%i`, local 1 in `%s`. A run
//! that has left optimized code at a landing point there continues in the interpreter of the front
//! end, at bytecode 12, with both locals.
//!
//! In other compilers, such states are operands of instructions, and every pass carries them along
//! (Duboscq et al., "An Intermediate Representation for Speculative Optimizations in a Dynamic
//! Compiler", VMIL 2013). Here they are a table beside the base version of a function. No pass sees
//! it. An entry that leads to the base provides the values that the table names at its landing
//! point, if the table was armed in the base ([`FrameStates::required`]).

use crate::cfg::Cfg;
use crate::dom::DomTree;
use crate::entity::{Block, Inst, Point, Value};
use crate::function::{Function, ValueDef};
use crate::liveness::Liveness;
use crate::opcode::Opcode;
use crate::types::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// An activation of the embedder's interpreter. Numbers of functions, program counters, slots and
/// representations are the embedder's own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameState {
    /// The function.
    pub function: u32,
    /// The program counter at which the interpreter continues.
    pub pc: u32,
    /// The locals. Slots that are not listed have no contents.
    pub locals: Vec<Local>,
    /// The waiting activation below this activation, where the front end has compiled a call
    /// inline. Its locals must not be results of a call that the base executes within this
    /// activation.
    pub caller: Option<Arc<FrameState>>,
}

/// The contents of a slot of an activation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Local {
    /// The slot. A frame state names each slot at most once.
    pub slot: u32,
    /// The contents. Several slots may have the same value.
    pub content: LocalContent,
    /// How the contents stand for a value of the embedder's language, such as *boxed* or *bare
    /// integer*. The embedder gets it back unchanged.
    pub representation: u32,
}

/// The contents of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalContent {
    /// The contents of a value of the base version.
    Value(Value),
    /// Constant bits of a type.
    Constant(Type, u64),
}

impl FrameState {
    /// The state of an activation that no other waits for.
    pub fn new(function: u32, pc: u32, locals: Vec<Local>) -> FrameState {
        FrameState { function, pc, locals, caller: None }
    }

    /// The state of an activation whose slots have contents of values, all of representation 0.
    pub fn of_values(
        function: u32,
        pc: u32,
        slots: impl IntoIterator<Item = (u32, Value)>,
    ) -> FrameState {
        let local = |(slot, value)| {
            let content = LocalContent::Value(value);
            Local { slot, content, representation: 0 }
        };
        FrameState::new(function, pc, slots.into_iter().map(local).collect())
    }

    /// The first slot of this activation with the contents of a value. Cost: linear in the slots.
    pub fn slot_of(&self, value: Value) -> Option<u32> {
        let content = LocalContent::Value(value);
        self.locals.iter().find(|local| local.content == content).map(|local| local.slot)
    }

    /// This activation and the activations that wait for it, the innermost first.
    pub fn activations(&self) -> impl Iterator<Item = &FrameState> {
        std::iter::successors(Some(self), |state| state.caller.as_deref())
    }

    /// The values that this activation names, some perhaps twice.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.locals.iter().filter_map(|local| match local.content {
            LocalContent::Value(value) => Some(value),
            LocalContent::Constant(..) => None,
        })
    }

    /// The values that all activations name, some perhaps twice.
    pub fn all_values(&self) -> impl Iterator<Item = Value> + '_ {
        self.activations().flat_map(FrameState::values)
    }

    /// The same state with other contents.
    pub(crate) fn map(&self, content: &mut impl FnMut(LocalContent) -> LocalContent) -> FrameState {
        let mapped = |local: &Local| Local { content: content(local.content), ..*local };
        let locals = self.locals.iter().map(mapped).collect();
        let caller = self.caller.as_ref().map(|caller| Arc::new(caller.map(content)));
        FrameState { locals, caller, ..*self }
    }
}

/// The frame states of a base version, by point.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameStates {
    at: BTreeMap<Point, FrameState>,
    /// The points to which the builder has repeated a state, each with the point of that state.
    repeated: BTreeMap<Point, Point>,
}

/// The reason why frame states do not fit a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameStateError {
    /// The function has no such point.
    NoSuchPoint(Point),
    /// A state names a value that the function lacks.
    NoSuchValue(Point, Value),
    /// A state names a value that is not defined on every path to its point.
    NotAvailable(Point, Value),
    /// An activation names a slot twice.
    SlotTwice(Point, u32),
}

impl fmt::Display for FrameStateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameStateError::NoSuchPoint(point) => {
                write!(f, "a frame state is at {}, which the function lacks", point.inst())
            }
            FrameStateError::NoSuchValue(point, value) => write!(
                f,
                "the frame state at {} names %{value}, which the function lacks",
                point.inst()
            ),
            FrameStateError::NotAvailable(point, value) => write!(
                f,
                "the frame state at {} names %{value}, which is not defined on every path there",
                point.inst()
            ),
            FrameStateError::SlotTwice(point, slot) => {
                write!(f, "the frame state at {} names slot {slot} twice", point.inst())
            }
        }
    }
}

impl std::error::Error for FrameStateError {}

fn first_point(function: &Function, block: Block) -> Point {
    Point::before(function.first_inst(block))
}

/// The content in front of a jump that becomes this content at the start of the block.
fn in_front(function: &Function, jump: Inst, content: LocalContent) -> LocalContent {
    let LocalContent::Value(value) = content else { return content };
    let target = &function.inst(jump).targets[0];
    // `FrameStates::check` names a value that the function lacks.
    let arg = match function.has_value(value).then(|| function.value_def(value)) {
        Some(ValueDef::Param(block, at)) if block == target.block => target.args.get(at as usize),
        _ => None,
    };
    LocalContent::Value(arg.copied().unwrap_or(value))
}

impl FrameStates {
    /// A table without states.
    pub fn new() -> FrameStates {
        FrameStates::default()
    }

    /// States for an interpreter of the IR itself. At every reachable point, the program counter is
    /// the number of the instruction. Each value that is live and needed there ([`crate::needed`])
    /// has the slot that `slot` gives it, if any. Cost: the values live at all points.
    pub fn of_live(
        number: u32,
        function: &Function,
        slot: impl Fn(Value) -> Option<u32>,
    ) -> FrameStates {
        let cfg = Cfg::new(function);
        let live = Liveness::of_needed(function, &cfg, &BTreeMap::new());
        let mut states = FrameStates::new();
        let local = |value: Value| {
            let content = LocalContent::Value(value);
            Some(Local { slot: slot(value)?, content, representation: 0 })
        };
        let insts = cfg.rpo().iter().flat_map(|block| function.block_insts(*block));
        for point in insts.map(Point::before) {
            let locals = live.live_before(function, point).iter().filter_map(local).collect();
            states.set(point, FrameState::new(number, point.inst().as_u32(), locals));
        }
        states
    }

    /// Sets the state at a point. Drops the states that the builder has repeated from there, since
    /// they would lead to the former state (`a_new_state_drops_the_repeats_of_the_former`). Cost:
    /// linear in the repeated states.
    pub fn set(&mut self, point: Point, state: FrameState) {
        self.repeated.remove(&point);
        for (copy, _) in self.repeated.extract_if(.., |_, of| *of == point) {
            self.at.remove(&copy);
        }
        self.at.insert(point, state);
    }

    /// Repeats the state at the start of each block in front of the jumps that lead to the block,
    /// unless they have a state of their own. The jump's arguments take the place of the block's
    /// parameters. A stretch without effects that ends in such a jump may have no other state
    /// (`a_jump_repeats_the_state_it_leads_to`).
    pub(crate) fn repeat_at_jumps(&mut self, function: &Function) {
        let has_state = |block: &Block| self.at.contains_key(&first_point(function, *block));
        let mut work: Vec<Block> = function.blocks().filter(has_state).collect();
        while let Some(block) = work.pop() {
            let first = first_point(function, block);
            let Some(state) = self.get(first).cloned() else { continue };
            let of = self.repeated.get(&first).copied().unwrap_or(first);
            let jumps = function.predecessors(block).iter().map(|edge| edge.inst);
            for jump in jumps.filter(|inst| function.inst(*inst).opcode == Opcode::Jump) {
                let point = Point::before(jump);
                if self.at.contains_key(&point) {
                    continue;
                }
                self.at.insert(point, state.map(&mut |content| in_front(function, jump, content)));
                self.repeated.insert(point, of);
                if function.prev_inst(jump).is_none() {
                    work.push(function.inst_block(jump));
                }
            }
        }
    }

    /// The state at a point. Cost: logarithmic.
    pub fn get(&self, point: Point) -> Option<&FrameState> {
        self.at.get(&point)
    }

    /// The states, by ascending point.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Point, &FrameState)> {
        self.at.iter().map(|(point, state)| (*point, state))
    }

    /// The states that the front end has noted, by ascending point: all but those that the builder
    /// has repeated in front of jumps. One bytecode has one of them, unless the front end notes it
    /// twice.
    pub fn noted(&self) -> impl Iterator<Item = (Point, &FrameState)> {
        self.iter().filter(|(point, _)| !self.repeated.contains_key(point))
    }

    /// The state that the front end has noted at a point.
    fn noted_at(&self, point: Point) -> Option<&FrameState> {
        self.get(point).filter(|_| !self.repeated.contains_key(&point))
    }

    /// Each instruction of a function with the last noted state in front of it in its block.
    /// Instructions in front of the first such state of their block are left out. A repeated state
    /// does not count: the jump behind it belongs to the bytecode in front of it
    /// (`a_jump_belongs_to_the_bytecode_in_front_of_it`). Linear in the instructions.
    pub fn by_inst(&self, function: &Function) -> impl Iterator<Item = (Inst, &FrameState)> {
        function.blocks().flat_map(move |block| {
            let mut last = None;
            let with_last = move |inst| {
                last = self.noted_at(Point::before(inst)).or(last);
                last.map(|state| (inst, state))
            };
            function.block_insts(block).filter_map(with_last).collect::<Vec<_>>()
        })
    }

    /// The last state in front of a point in its block, or at it, with its own point. An
    /// interpreter that executes the state's instructions from there on comes to the point; from a
    /// state that is repeated in front of a jump, it continues behind the jump. Cost: linear in the
    /// block in front of the point.
    ///
    /// # Panics
    /// If the function has no such point.
    pub fn covering(&self, function: &Function, at: Point) -> Option<(Point, &FrameState)> {
        let before = std::iter::successors(Some(at.inst()), |inst| function.prev_inst(*inst));
        before.map(Point::before).find_map(|point| Some((point, self.get(point)?)))
    }

    /// The contents of a slot of the innermost activation, in the state that covers a point: what
    /// to guess about a register ([`FrameStates::covering`]). Instructions between the state and
    /// the point may have set the register since. Cost: as [`FrameStates::covering`].
    ///
    /// # Panics
    /// If the function has no such point.
    pub fn content(&self, function: &Function, at: Point, slot: u32) -> Option<LocalContent> {
        let (_, state) = self.covering(function, at)?;
        state.locals.iter().find(|local| local.slot == slot).map(|local| local.content)
    }

    /// The point of the last noted state in front of a point in its block, or at it, if the value
    /// is available at the state, and neither that state nor a repeated one behind it names the
    /// value. Then a guess about the value, at the point, is about no register: often it is the
    /// value that a register had before. `None` for the results of instructions between the state
    /// and the point, for values that a slot has, and without a noted state. Cost: as
    /// [`FrameStates::covering`].
    ///
    /// # Panics
    /// If the function has no such point or value.
    pub fn not_named(&self, function: &Function, at: Point, value: Value) -> Option<Point> {
        let is_named = |state: &FrameState| state.all_values().any(|named| named == value);
        let (_, covering) = self.covering(function, at)?;
        let before = std::iter::successors(Some(at.inst()), |inst| function.prev_inst(*inst));
        // A jump repeats a state behind the results of the bytecode in front of it, which that
        // state need not name (`a_guess_at_a_jump_is_about_its_bytecode`).
        let mut noted = before.map(Point::before);
        let (point, state) = noted.find_map(|point| Some((point, self.noted_at(point)?)))?;
        let block = function.inst_block(at.inst());
        // The value is available at `at`, so in its block it is defined in front of `at`.
        let is_behind = function.defining_inst(value).is_some_and(|def| {
            function.inst_block(def) == block && !function.stands_before(def, point.inst())
        });
        (!is_behind && !is_named(state) && !is_named(covering)).then_some(point)
    }

    /// The number of points with a state.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether no point has a state.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// By reachable point of a function: the values that its state names, ascending, each once.
    pub fn required(&self, function: &Function) -> impl Iterator<Item = (Point, BTreeSet<Value>)> {
        let cfg = Cfg::new(function);
        let is_reachable = move |point: Point| {
            function.has_inst(point.inst()) && cfg.is_reachable(function.inst_block(point.inst()))
        };
        let states = self.iter().filter(move |(point, _)| is_reachable(*point));
        states.map(|(point, state)| (point, state.all_values().collect()))
    }

    /// Checks that the states fit a function. Nothing comes to a point that no edge leads to, so
    /// any value of the function may be named there. Cost: near linear in function and states.
    ///
    /// # Errors
    /// The first state that names a value which is not available at its point, or a slot twice.
    pub fn check(&self, function: &Function) -> Result<(), FrameStateError> {
        let cfg = Cfg::new(function);
        let dom = DomTree::new(function, &cfg);
        for (point, state) in self.iter() {
            if !function.has_inst(point.inst()) {
                return Err(FrameStateError::NoSuchPoint(point));
            }
            let is_reachable = cfg.is_reachable(function.inst_block(point.inst()));
            for value in state.all_values() {
                if !function.has_value(value) {
                    return Err(FrameStateError::NoSuchValue(point, value));
                }
                if is_reachable && !dom.available_at(function, value, point) {
                    return Err(FrameStateError::NotAvailable(point, value));
                }
            }
            for activation in state.activations() {
                let mut named = BTreeSet::new();
                if let Some(twice) = activation.locals.iter().find(|l| !named.insert(l.slot)) {
                    return Err(FrameStateError::SlotTwice(point, twice.slot));
                }
            }
        }
        Ok(())
    }
}
