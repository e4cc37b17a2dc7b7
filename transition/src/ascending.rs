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
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn list(ids: impl IntoIterator<Item = u32>) -> Vec<Value> {
        ids.into_iter().map(Value::from_u32).collect()
    }

    /// Lists that agree in long runs, and differ at both ends and between.
    fn lists() -> Vec<Vec<Value>> {
        let mut lists = vec![list([]), list([5]), list([5, 6]), list(0..15), list(0..16)];
        for (drop, step) in [(0, 7), (1, 16), (99, 17), (40, 50), (3, 2), (1000, 1)] {
            let keeps = |id: &u32| *id != drop && id % step != drop % step || step == 1;
            lists.push(list((0..100).filter(keeps)));
            lists.push(list((2..120).filter(keeps)));
        }
        lists
    }

    #[test]
    fn lists_are_merged_and_compared_as_sets_are() {
        for a in lists() {
            for b in lists() {
                let (x, y): (BTreeSet<_>, BTreeSet<_>) = (a.iter().collect(), b.iter().collect());
                let (mut gone, mut come) = (Vec::new(), Vec::new());
                differences(
                    &a,
                    &b,
                    |value, is_second| {
                        if is_second { come.push(value) } else { gone.push(value) }
                    },
                );
                assert!(gone.iter().eq(x.difference(&y).copied()), "{a:?} {b:?}");
                assert!(come.iter().eq(y.difference(&x).copied()), "{a:?} {b:?}");
                assert!(missing(&b, &a).eq(x.difference(&y).map(|value| **value)), "{a:?} {b:?}");
                assert!(without(&a, &b).iter().eq(x.difference(&y).copied()), "{a:?} {b:?}");
                assert!(with(a.clone(), &b).iter().eq(x.union(&y).copied()), "{a:?} {b:?}");
            }
            for id in 0..130 {
                let below = a.iter().filter(|value| value.as_u32() < id).count();
                assert_eq!(count_below(&a, Value::from_u32(id)), below);
            }
        }
    }

    #[test]
    fn differences_of_lists_in_any_order_make_one_of_the_other() {
        let (a, b) = (list([9, 3, 3, 7, 1, 2]), list([3, 9, 1, 1, 7]));
        let mut counts = [0i32; 10];
        a.iter().for_each(|value| counts[value.as_u32() as usize] += 1);
        differences(&a, &b, |value, is_second| {
            counts[value.as_u32() as usize] += if is_second { 1 } else { -1 };
        });
        b.iter().for_each(|value| counts[value.as_u32() as usize] -= 1);
        assert_eq!(counts, [0; 10]);
    }

    #[test]
    fn a_list_ascends_if_each_value_is_less_than_the_next() {
        assert!(ascends(&list([])) && ascends(&list([4])) && ascends(&list(0..40)));
        assert!(!ascends(&list([4, 4])) && !ascends(&list((0..40).chain([39]))));
        assert!(!ascends(&list([1, 0].into_iter().chain(2..40))));
    }
}
