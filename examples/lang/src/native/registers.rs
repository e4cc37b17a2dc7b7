//! Which registers are live where, and how native code keeps them.

use crate::bytecode::{Op, Pc, Proto, Reg};
use crate::value::tag;
use std::collections::BTreeMap;

/// How native code keeps a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rep {
    /// Not at all: the register is dead, or was never set.
    Dead,
    /// As an `i32`.
    Int,
    /// As an `f64`.
    Double,
    /// As a word, of which this is known.
    Word(Known),
}

/// The facts known of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// Nothing.
    Nothing,
    /// Its tag.
    Tag(u64),
    /// It is an object of this shape.
    Shape(u32),
}

impl Rep {
    pub(super) const ANY: Rep = Rep::Word(Known::Nothing);

    /// The tag of the word, where it is known.
    pub(super) fn tag(self) -> Option<u64> {
        match self {
            Rep::Word(Known::Tag(tag)) => Some(tag),
            Rep::Word(Known::Shape(_)) => Some(tag::OBJECT),
            _ => None,
        }
    }

    /// How a register is kept where two paths join. An int32 and a double are one type of the
    /// language, so they join to a double.
    pub(super) fn join(self, other: Rep) -> Rep {
        match (self, other) {
            _ if self == other => self,
            (Rep::Int | Rep::Double, Rep::Int | Rep::Double) => Rep::Double,
            _ if self.tag().is_some() && self.tag() == other.tag() => {
                Rep::Word(Known::Tag(self.tag().unwrap_or_default()))
            }
            _ => Rep::ANY,
        }
    }
}

/// By register.
pub(super) type State = Vec<Rep>;

/// Joins the state of one more path to the state of a place. Returns whether that changes it.
pub(super) fn join(place: &mut State, path: &State) -> bool {
    let joined: State = place.iter().zip(path).map(|(a, b)| a.join(*b)).collect();
    let is_new = joined != *place;
    *place = joined;
    is_new
}

/// A set of registers.
pub(super) type Registers = [u64; 4];

pub(super) fn has(set: &Registers, register: Reg) -> bool {
    set[usize::from(register) / 64] >> (register % 64) & 1 == 1
}

/// The registers that an instruction reads, and the register that it sets.
pub(super) fn accesses(op: Op) -> (Vec<Reg>, Option<Reg>) {
    let range = |from: Reg, count: u32| (from..from + count as Reg).collect::<Vec<Reg>>();
    match op {
        Op::Const(d, _) | Op::GetGlobal(d, _) | Op::GetUp(d, _) | Op::NewObject(d, _) => {
            (vec![], Some(d))
        }
        // Its captures are added by `live`.
        Op::Closure(d, _) => (vec![], Some(d)),
        Op::Move(d, a)
        | Op::AddInt(d, a, _)
        | Op::Negate(d, a)
        | Op::Not(d, a)
        | Op::NewCell(d, a)
        | Op::GetCell(d, a)
        | Op::GetField(d, a, _) => (vec![a], Some(d)),
        Op::Add(d, a, b)
        | Op::Sub(d, a, b)
        | Op::Mul(d, a, b)
        | Op::Arith(_, d, a, b)
        | Op::Compare(_, d, a, b)
        | Op::GetIndex(d, a, b) => (vec![a, b], Some(d)),
        Op::Jump(_) | Op::JumpBack(_) => (vec![], None),
        Op::JumpIf(a, _)
        | Op::JumpUnless(a, _)
        | Op::SetGlobal(a, _)
        | Op::SetUp(a, _)
        | Op::Return(a)
        | Op::Throw(a) => (vec![a], None),
        Op::JumpLt(a, b, _)
        | Op::JumpNotLt(a, b, _)
        | Op::JumpLe(a, b, _)
        | Op::JumpNotLe(a, b, _)
        | Op::JumpEq(a, b, _)
        | Op::JumpNe(a, b, _)
        | Op::SetCell(a, b)
        | Op::InitSlot(a, b, _)
        | Op::SetField(a, b, _) => (vec![a, b], None),
        Op::ForNext(a, b, _) => (vec![a, b], Some(a)),
        Op::NewArray(d, from, count) => (range(from, count), Some(d)),
        Op::SetIndex(a, b, c) => (vec![a, b, c], None),
        Op::Call(d, callee, args) => (range(callee, u32::from(args) + 1), Some(d)),
        Op::Builtin(_, d, from, count) => (range(from, count.into()), Some(d)),
    }
}

/// Where an instruction leads, other than to the next. The second is whether it also leads there.
pub(super) fn leads(mut op: Op) -> (Option<Pc>, bool) {
    let falls = !matches!(op, Op::Jump(_) | Op::JumpBack(_) | Op::Return(_) | Op::Throw(_));
    (op.target().copied(), falls)
}

/// By instruction: the live registers in front of the instruction. A handler may be reached from
/// every instruction of its region.
pub(super) fn live(proto: &Proto, captured: impl Fn(u32) -> Vec<Reg>) -> Vec<Registers> {
    let mut live = vec![[0; 4]; proto.code.len() + 1];
    loop {
        let mut changed = false;
        for pc in (0..proto.code.len()).rev() {
            let op = proto.code[pc];
            let (target, falls) = leads(op);
            let mut set = if falls { live[pc + 1] } else { [0; 4] };
            let mut add = |more: Registers| set.iter_mut().zip(more).for_each(|(a, b)| *a |= b);
            target.into_iter().for_each(|to| add(live[to as usize]));
            let (mut reads, sets) = accesses(op);
            if let Op::Closure(_, number) = op {
                reads.extend(captured(number));
            }
            let mut without = |register: Reg| {
                set[usize::from(register) / 64] &= !(1 << (register % 64));
            };
            sets.into_iter().for_each(&mut without);
            if let Some(handler) = proto.handler(pc as Pc) {
                let mut more = live[handler.target as usize];
                more[usize::from(handler.register) / 64] &= !(1 << (handler.register % 64));
                set.iter_mut().zip(more).for_each(|(a, b)| *a |= b);
            }
            for register in reads {
                set[usize::from(register) / 64] |= 1 << (register % 64);
            }
            changed |= live[pc] != set;
            live[pc] = set;
        }
        if !changed {
            return live;
        }
    }
}

/// The instructions that a jump, a handler or the end of a jump leads to: each begins a block.
pub(super) fn leaders(proto: &Proto) -> BTreeMap<Pc, bool> {
    let mut leaders = BTreeMap::new();
    for (pc, op) in (0..).zip(&proto.code) {
        let (target, falls) = leads(*op);
        if let Some(to) = target {
            *leaders.entry(to).or_insert(false) |= to <= pc;
        }
        if target.is_some() || !falls {
            leaders.entry(pc + 1).or_insert(false);
        }
    }
    proto.handlers.iter().for_each(|handler| _ = leaders.entry(handler.target).or_insert(false));
    leaders.remove(&(proto.code.len() as Pc));
    leaders
}
