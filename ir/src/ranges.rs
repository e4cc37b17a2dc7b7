//! Intervals of integers: the values that operations can give, and the values that operands can
//! have where a comparison is known to hold.
//!
//! The pass `ranges`, certificates and the checker share these functions, as they share
//! [`crate::rules`]. An interval has signed bounds, both included, and stands for integers of one
//! width. Every function here returns an interval that contains at least what it has to contain; a
//! larger one is never wrong. `every_interval_contains_what_it_must` tests this with all intervals
//! of integers of few bits.

use crate::entity::Block;
use crate::opcode::Opcode;
use crate::types::Type;

/// The integers from `low` to `high`, both included, as signed numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Interval {
    /// The least integer.
    pub low: i64,
    /// The largest integer. At least `low`.
    pub high: i64,
}

/// The reason for a claim about the contents of a class of values at the end of a block
/// (`transition::certificate::RangeClaim`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeBy {
    /// The claim about the class in a block that dominates this block strictly.
    Above(Block),
    /// The claims about the contents that each edge into the block brings, in the block that the
    /// edge leaves, and the condition of the branch there.
    Edges,
    /// The term is an operation, and the claims about its operands in this block give the interval.
    Operation,
    /// The term is a comparison. This block, which dominates the block of the claim, has one edge
    /// into it, whose branch compares the same two classes.
    Compared(Block),
}

/// The result of a comparison that is not decided.
const EITHER: Interval = Interval { low: 0, high: 1 };

impl Interval {
    /// All integers of this many bits.
    pub const fn all(bits: u32) -> Interval {
        let high = i64::MAX >> (64 - bits);
        Interval { low: -high - 1, high }
    }

    /// All contents of a type; `None` if the type is no integer.
    pub fn of_type(ty: Type) -> Option<Interval> {
        ty.is_int().then(|| Interval::all(ty.bits()))
    }

    /// The integer with these bits of a type.
    pub fn of_bits(ty: Type, bits: u64) -> Interval {
        let unused = 64 - ty.bits();
        Interval::exactly((bits << unused) as i64 >> unused)
    }

    /// The contents of a type in which only these bits may be set.
    pub fn of_mask(ty: Type, possible: u64) -> Interval {
        let all = Interval::all(ty.bits());
        match possible & ty.mask() {
            mask if mask <= all.high as u64 => Interval { low: 0, high: mask as i64 },
            _ => all,
        }
    }

    /// One integer.
    pub const fn exactly(value: i64) -> Interval {
        Interval { low: value, high: value }
    }

    /// The integer, if there is only one.
    pub fn value(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Whether the interval has this integer.
    pub fn has(self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether all integers of the interval are in another.
    pub fn is_within(self, other: Interval) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// The integers of both intervals. If there are none, no run is at the place in question, and
    /// the answer is the first interval.
    #[must_use]
    pub fn and(self, other: Interval) -> Interval {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low <= high { Interval { low, high } } else { self }
    }

    /// The smallest interval with the integers of both.
    #[must_use]
    pub fn or(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The integers other than a bound, if that is this value and not the only one.
    #[must_use]
    pub fn without(self, value: i64) -> Interval {
        match (self.low == value, self.high == value) {
            (true, false) => Interval { low: value + 1, ..self },
            (false, true) => Interval { high: value - 1, ..self },
            _ => self,
        }
    }

    /// The same integers, or all of this width if bounds exceed it.
    fn fit(low: i128, high: i128, bits: u32) -> Interval {
        let all = Interval::all(bits);
        match (i64::try_from(low), i64::try_from(high)) {
            (Ok(low), Ok(high)) if all.has(low) && all.has(high) => Interval { low, high },
            _ => all,
        }
    }

    /// The bounds of an operation that has its extremes at bounds of its operands.
    fn extremes(a: Interval, b: Interval, of: impl Fn(i128, i128) -> i128) -> (i128, i128) {
        let corner = |x: i64, y: i64| of(x.into(), y.into());
        let all = [
            corner(a.low, b.low),
            corner(a.low, b.high),
            corner(a.high, b.low),
            corner(a.high, b.high),
        ];
        (all.into_iter().min().unwrap_or(0), all.into_iter().max().unwrap_or(0))
    }
}

/// The order of two integers: which of *less*, *equal* and *greater* are possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct OrderSet(u8);

impl OrderSet {
    const LESS: u8 = 1;
    const EQUAL: u8 = 2;
    const GREATER: u8 = 4;

    /// The orders in which a comparison holds, and whether it compares unsigned integers; `None`
    /// for other operations.
    fn of(opcode: Opcode) -> Option<(OrderSet, bool)> {
        let (less, equal, greater) = (OrderSet::LESS, OrderSet::EQUAL, OrderSet::GREATER);
        let (orders, is_unsigned) = match opcode {
            Opcode::Eq => (equal, false),
            Opcode::Ne => (less | greater, false),
            Opcode::Slt => (less, false),
            Opcode::Sle => (less | equal, false),
            Opcode::Sgt => (greater, false),
            Opcode::Sge => (greater | equal, false),
            Opcode::Ult => (less, true),
            Opcode::Ule => (less | equal, true),
            Opcode::Ugt => (greater, true),
            Opcode::Uge => (greater | equal, true),
            _ => return None,
        };
        Some((OrderSet(orders), is_unsigned))
    }

    fn negated(self) -> OrderSet {
        OrderSet(7 & !self.0)
    }

    fn swapped(self) -> OrderSet {
        OrderSet(self.0 & 2 | (self.0 & 1) << 2 | self.0 >> 2)
    }

    /// The possible orders of two integers from these intervals.
    fn among(a: Interval, b: Interval) -> OrderSet {
        let mut orders = 0;
        if a.low < b.high {
            orders |= OrderSet::LESS;
        }
        if a.low <= b.high && b.low <= a.high {
            orders |= OrderSet::EQUAL;
        }
        if a.high > b.low {
            orders |= OrderSet::GREATER;
        }
        OrderSet(orders)
    }

    /// Whether a comparison that holds in the orders `asked` holds.
    fn decides(self, asked: OrderSet) -> Option<bool> {
        match (self.0 & asked.0, self.0 & !asked.0) {
            (_, 0) => Some(true),
            (0, _) => Some(false),
            _ => None,
        }
    }
}

/// Whether unsigned and signed order of two integers from these intervals are the same.
fn orders_agree(a: Interval, b: Interval) -> bool {
    (a.low >= 0) == (b.low >= 0) && (a.low >= 0 || a.high < 0) && (b.low >= 0 || b.high < 0)
}

/// The integers that an operation on integers of `bits` bits can give, if its operands are from
/// these intervals. `None` if nothing is known of the operation.
pub fn of_operation(opcode: Opcode, bits: u32, operands: &[Interval]) -> Option<Interval> {
    let sum = |a: i128, b: i128| a + b;
    let difference = |a: i128, b: i128| a - b;
    let product = |a: i128, b: i128| a * b;
    let flag = |is: bool| Interval::exactly(is.into());
    let overflow = |a: Interval, b: Interval, of: &dyn Fn(i128, i128) -> i128| {
        let (low, high) = Interval::extremes(a, b, of);
        let all = Interval::all(bits);
        let (least, most) = (i128::from(all.low), i128::from(all.high));
        match (least <= low && high <= most, high < least || most < low) {
            (true, _) => flag(false),
            (_, true) => flag(true),
            _ => EITHER,
        }
    };
    let within = |a: Interval, b: Interval, of: &dyn Fn(i128, i128) -> i128| {
        let (low, high) = Interval::extremes(a, b, of);
        Interval::fit(low, high, bits)
    };
    Some(match (opcode, operands) {
        (Opcode::Add, &[a, b]) => within(a, b, &sum),
        (Opcode::Sub, &[a, b]) => within(a, b, &difference),
        (Opcode::Mul, &[a, b]) => within(a, b, &product),
        (Opcode::SaddOverflows, &[a, b]) => overflow(a, b, &sum),
        (Opcode::SsubOverflows, &[a, b]) => overflow(a, b, &difference),
        (Opcode::SmulOverflows, &[a, b]) => overflow(a, b, &product),
        (Opcode::And, &[a, b]) if a.low >= 0 || b.low >= 0 => {
            // No more than the operands that are not negative, the sign of which the result has.
            let bound = |x: Interval| if x.low >= 0 { x.high } else { i64::MAX };
            Interval { low: 0, high: bound(a).min(bound(b)) }
        }
        (Opcode::Srem, &[a, b]) if b.low > 0 => {
            let most = b.high - 1;
            let low = if a.low >= 0 { 0 } else { a.low.max(-most) };
            let high = if a.high <= 0 { 0 } else { a.high.min(most) };
            Interval { low, high }
        }
        (Opcode::Sshr, &[a, b]) => {
            let by = b.value().map(|by| by & i64::from(bits - 1))?;
            Interval { low: a.low >> by, high: a.high >> by }
        }
        (Opcode::Select, &[test, a, b]) => match (test.has(0), test.value()) {
            (false, _) => a,
            (true, Some(_)) => b,
            _ => a.or(b),
        },
        (Opcode::Sextend, &[a]) => a,
        (Opcode::Uextend, &[a]) if a.low >= 0 => a,
        (Opcode::Eqz, &[a]) => match (a.has(0), a.value()) {
            (false, _) => flag(false),
            (true, Some(_)) => flag(true),
            _ => EITHER,
        },
        (_, &[a, b]) => {
            let (asked, is_unsigned) = OrderSet::of(opcode)?;
            let is_known = !is_unsigned || orders_agree(a, b);
            let decided = OrderSet::among(a, b).decides(asked).filter(|_| is_known);
            decided.map_or(EITHER, flag)
        }
        _ => return None,
    })
}

/// The integers that an operand of an operation on integers of `bits` bits can be, where the
/// operation has given zero (`holds` is false) or another integer. `operands` are the intervals
/// before.
pub fn behind(
    opcode: Opcode,
    bits: u32,
    holds: bool,
    operands: [Interval; 2],
    index: usize,
) -> Interval {
    let [own, other] = if index == 0 { operands } else { [operands[1], operands[0]] };
    let all = Interval::all(bits);
    let capped = |low: i128, high: i128| {
        let clamp = |x: i128| x.clamp(all.low.into(), all.high.into()) as i64;
        own.and(Interval { low: clamp(low), high: clamp(high).max(clamp(low)) })
    };
    let (least, most) = (i128::from(all.low), i128::from(all.high));
    let (low, high) = (i128::from(other.low), i128::from(other.high));
    match (opcode, holds, index) {
        (Opcode::SaddOverflows, false, _) => return capped(least - high, most - low),
        (Opcode::SsubOverflows, false, 0) => return capped(least + low, most + high),
        (Opcode::SsubOverflows, false, _) => return capped(low - most, high - least),
        _ => {}
    }
    let Some((orders, is_unsigned)) = OrderSet::of(opcode) else { return own };
    let orders = if holds { orders } else { orders.negated() };
    let orders = if index == 0 { orders } else { orders.swapped() };
    if is_unsigned && !orders_agree(own, other) {
        // No more, unsigned, than an integer that is not negative.
        return match orders.0 & OrderSet::GREATER == 0 && other.low >= 0 {
            true => own.and(Interval { low: 0, high: other.high }),
            false => own,
        };
    }
    match orders.0 {
        OrderSet::EQUAL => own.and(other),
        OrderSet::LESS => capped(least, high - 1),
        3 => capped(least, high),
        OrderSet::GREATER => capped(low + 1, most),
        6 => capped(low, most),
        5 => other.value().map_or(own, |value| own.without(value)),
        _ => own,
    }
}

/// Whether a comparison of two integers holds, where another comparison of the same integers is
/// known to hold or not. `is_swapped`: the known comparison has them in the opposite order. Where
/// one of the comparisons is of unsigned integers, the intervals decide whether that matters.
pub fn implied(
    known: Opcode,
    holds: bool,
    is_swapped: bool,
    asked: Opcode,
    operands: [Interval; 2],
) -> Option<bool> {
    let ((orders, unsigned), (asked, asks_unsigned)) = (OrderSet::of(known)?, OrderSet::of(asked)?);
    let orders = if holds { orders } else { orders.negated() };
    let orders = if is_swapped { orders.swapped() } else { orders };
    // Equality is the same in both.
    let is_equality = |orders: OrderSet| {
        orders.0 & OrderSet::LESS == 0 && orders.0 & OrderSet::GREATER == 0
            || orders.0 == OrderSet::LESS | OrderSet::GREATER
    };
    let fits = unsigned == asks_unsigned
        || is_equality(orders)
        || is_equality(asked)
        || orders_agree(operands[0], operands[1]);
    orders.decides(asked).filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: u32 = 3;

    fn intervals() -> Vec<Interval> {
        let Interval { low, high } = Interval::all(BITS);
        (low..=high).flat_map(|a| (a..=high).map(move |b| Interval { low: a, high: b })).collect()
    }

    fn wrapped(x: i64) -> i64 {
        x << (64 - BITS) >> (64 - BITS)
    }

    fn unsigned(x: i64) -> i64 {
        x & ((1 << BITS) - 1)
    }

    /// The meaning of an operation at this width, written down again.
    fn meaning(opcode: Opcode, a: i64, b: i64) -> Option<i64> {
        let overflows = |x: i64| i64::from(wrapped(x) != x);
        let (u, v) = (unsigned(a), unsigned(b));
        Some(match opcode {
            Opcode::Add => wrapped(a + b),
            Opcode::Sub => wrapped(a - b),
            Opcode::Mul => wrapped(a * b),
            Opcode::SaddOverflows => overflows(a + b),
            Opcode::SsubOverflows => overflows(a - b),
            Opcode::SmulOverflows => overflows(a * b),
            Opcode::And => a & b,
            Opcode::Srem if b == 0 => return None,
            Opcode::Srem => a % b,
            Opcode::Eq => (a == b).into(),
            Opcode::Ne => (a != b).into(),
            Opcode::Slt => (a < b).into(),
            Opcode::Sle => (a <= b).into(),
            Opcode::Sgt => (a > b).into(),
            Opcode::Sge => (a >= b).into(),
            Opcode::Ult => (u < v).into(),
            Opcode::Ule => (u <= v).into(),
            Opcode::Ugt => (u > v).into(),
            Opcode::Uge => (u >= v).into(),
            _ => return None,
        })
    }

    fn known() -> impl Iterator<Item = Opcode> {
        Opcode::ALL.iter().copied().filter(|opcode| meaning(*opcode, 1, 1).is_some())
    }

    fn members(of: Interval) -> impl Iterator<Item = i64> {
        of.low..=of.high
    }

    #[test]
    fn every_interval_contains_what_it_must() {
        for opcode in known() {
            for (a, b) in
                intervals().into_iter().flat_map(|a| intervals().into_iter().map(move |b| (a, b)))
            {
                let found = of_operation(opcode, BITS, &[a, b]);
                let found = found.unwrap_or(Interval::all(BITS));
                for (x, y) in members(a).flat_map(|x| members(b).map(move |y| (x, y))) {
                    let Some(result) = meaning(opcode, x, y) else { continue };
                    assert!(found.has(result), "{opcode:?} {x} of {a:?}, {y} of {b:?}: {found:?}");
                    let holds = result != 0;
                    for (index, value) in [x, y].into_iter().enumerate() {
                        let rest = behind(opcode, BITS, holds, [a, b], index);
                        assert!(rest.has(value), "{opcode:?} {holds} {a:?} {b:?}: {rest:?}");
                        assert!(rest.is_within([a, b][index]));
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_comparison_implies_holds() {
        let comparisons = || known().filter(|opcode| OrderSet::of(*opcode).is_some());
        for (first, asked) in comparisons().flat_map(|a| comparisons().map(move |b| (a, b))) {
            for (a, b) in
                intervals().into_iter().flat_map(|a| intervals().into_iter().map(move |b| (a, b)))
            {
                for (x, y) in members(a).flat_map(|x| members(b).map(move |y| (x, y))) {
                    for is_swapped in [false, true] {
                        let (p, q) = if is_swapped { (y, x) } else { (x, y) };
                        let holds = meaning(first, p, q) == Some(1);
                        let found = implied(first, holds, is_swapped, asked, [a, b]);
                        let truth = meaning(asked, x, y) == Some(1);
                        assert!(found.is_none_or(|found| found == truth), "{first:?} {asked:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_of_a_loop_exclude_overflow() {
        let all = Interval::all(32);
        let index = behind(Opcode::Slt, 32, true, [all, all], 0);
        assert_eq!(index, Interval { high: i64::from(i32::MAX) - 1, ..all });
        let one = Interval::exactly(1);
        let sum = |of: Interval| of_operation(Opcode::SaddOverflows, 32, &[of, one]);
        assert_eq!(sum(index), Some(Interval::exactly(0)));
        assert_eq!(sum(all), Some(EITHER));
        assert_eq!(implied(Opcode::Slt, true, false, Opcode::Ult, [all, all]), None);
        let natural = Interval { low: 0, ..all };
        assert_eq!(implied(Opcode::Slt, true, false, Opcode::Ult, [natural, natural]), Some(true));
    }

    #[test]
    fn operations_of_one_operand_and_of_three() {
        for a in intervals() {
            let tested = of_operation(Opcode::Eqz, BITS, &[a]).expect("of one operand");
            assert!(members(a).all(|x| tested.has((x == 0).into())));
            for by in 0..4 {
                let shifted = of_operation(Opcode::Sshr, 4, &[a, Interval::exactly(by)])
                    .expect("by a constant");
                assert!(members(a).all(|x| shifted.has(x >> by)));
            }
            for b in intervals() {
                let picked = |test: Interval| of_operation(Opcode::Select, BITS, &[test, a, b]);
                assert_eq!(picked(Interval::exactly(0)), Some(b));
                assert_eq!(picked(Interval { low: 1, high: 3 }), Some(a));
                assert_eq!(picked(EITHER), Some(a.or(b)));
            }
        }
        let natural = Interval { low: 0, high: 7 };
        assert_eq!(of_operation(Opcode::Uextend, 64, &[natural]), Some(natural));
        assert_eq!(of_operation(Opcode::Uextend, 64, &[Interval::all(32)]), None);
        assert_eq!(of_operation(Opcode::Xor, 32, &[natural, natural]), None);
    }
}
