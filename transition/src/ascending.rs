//! Ascending lists of values, and their differences.
//!
//! The entries of a straight line list hundreds of values each, and entries of neighboring points
//! list nearly the same values. Code that walks from entry to entry looks at the values in which
//! two lists differ, and passes the other values many at a time.

use ir::entity::Value;

/// The values that are compared at a time.
const RUN: usize = 16;

/// Calls `only` for the values in exactly one of two lists, with `true` for the second list.
///
/// The lists may stand in any order: the second list always is the first list without the values
/// called with `false`, and with the values called with `true`. If both ascend, the two kinds have
/// no value in common. Cost: a few steps for each of these values, and a fraction of a step for any
/// other value.
pub fn differences(first: &[Value], second: &[Value], mut only: impl FnMut(Value, bool)) {
    let (mut a, mut b) = (first, second);
    loop {
        (a, b) = behind_common(a, b);
        let (Some((x, rest_a)), Some((y, rest_b))) = (a.split_first(), b.split_first()) else {
            break;
        };
        let is_second = y < x;
        only(*x.min(y), is_second);
        if is_second { b = rest_b } else { a = rest_a }
    }
    a.iter().for_each(|value| only(*value, false));
    b.iter().for_each(|value| only(*value, true));
}

/// The values of `wanted` that `known` lacks, in order. Both lists ascend. Cost: as for
/// [`differences`]; a run of values that the list itself lacks costs a logarithm.
pub fn missing<'a, 'b>(
    known: &'a [Value],
    wanted: &'b [Value],
) -> impl Iterator<Item = Value> + use<'a, 'b> {
    let (mut a, mut b) = (known, wanted);
    std::iter::from_fn(move || {
        loop {
            (a, b) = behind_common(a, b);
            let (value, rest) = b.split_first()?;
            a = &a[count_below(a, *value)..];
            if a.first() != Some(value) {
                b = rest;
                return Some(*value);
            }
        }
    })
}

/// Two lists without the start that they have in common.
#[inline]
pub(crate) fn behind_common<'a, 'b, T: PartialEq>(
    first: &'a [T],
    second: &'b [T],
) -> (&'a [T], &'b [T]) {
    let (mut a, mut b) = (first, second);
    while let (Some((x, rest_a)), Some((y, rest_b))) =
        (a.split_first_chunk(), b.split_first_chunk())
        && are_equal(x, y)
    {
        (a, b) = (rest_a, rest_b);
    }
    while let (Some((x, rest_a)), Some((y, rest_b))) = (a.split_first(), b.split_first())
        && x == y
    {
        (a, b) = (rest_a, rest_b);
    }
    (a, b)
}

/// Without an exit on the way, so that it takes a few vector instructions.
#[inline]
fn are_equal<T: PartialEq>(a: &[T; RUN], b: &[T; RUN]) -> bool {
    a.iter().zip(b).fold(true, |equal, (x, y)| equal & (x == y))
}

/// Whether each value of a list is less than the next value.
#[inline]
pub fn ascends(list: &[Value]) -> bool {
    let next = list.get(1..).unwrap_or_default();
    list.iter().zip(next).fold(true, |ascends, (value, next)| ascends & (value < next))
}

/// The number of values less than another at the start of an ascending list. Cost: logarithmic in
/// this number.
#[inline]
pub fn count_below<T: Ord>(list: &[T], value: T) -> usize {
    let mut bound = 1;
    while list.get(bound - 1).is_some_and(|known| *known < value) {
        bound *= 2;
    }
    let from = bound / 2;
    from + list[from..bound.min(list.len())].partition_point(|known| *known < value)
}

/// An ascending list without the values of another. Cost: a copy, and logarithms for these values.
pub fn without(list: &[Value], others: &[Value]) -> Vec<Value> {
    let (mut rest, mut kept) = (list, Vec::with_capacity(list.len()));
    for other in others {
        let (below, from) = rest.split_at(count_below(rest, *other));
        kept.extend_from_slice(below);
        rest = if from.first() == Some(other) { &from[1..] } else { from };
    }
    kept.extend_from_slice(rest);
    kept
}

/// An ascending list with the values of another ascending one. Cost: as for [`without`].
pub fn with(list: Vec<Value>, others: &[Value]) -> Vec<Value> {
    if others.is_empty() {
        return list;
    }
    let (mut rest, mut all) = (&list[..], Vec::with_capacity(list.len() + others.len()));
    for other in others {
        let (below, from) = rest.split_at(count_below(rest, *other));
        all.extend_from_slice(below);
        all.push(*other);
        rest = if from.first() == Some(other) { &from[1..] } else { from };
    }
    all.extend_from_slice(rest);
    all
}

/// The values of two lists in any order, ascending, each once. Cheap if the first list ascends.
pub fn union(mut list: Vec<Value>, mut others: Vec<Value>) -> Vec<Value> {
    others.sort_unstable();
    others.dedup();
    if !ascends(&list) {
        list.sort_unstable();
        list.dedup();
    }
    with(list, &others)
}

#[cfg(test)]
mod tests;
