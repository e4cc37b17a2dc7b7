//! Tests of `transition::ascending`.

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
