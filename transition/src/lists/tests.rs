//! Tests of `transition::lists`.

use super::*;
use std::collections::BTreeSet;

/// Lists of many lengths and densities, and a source of words.
fn lists() -> (Vec<BTreeSet<u32>>, impl FnMut(u32) -> u32) {
    let mut state = 1u64;
    let mut next = move |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u32 % below
    };
    let mut lists = vec![BTreeSet::new(), BTreeSet::from([7]), (0..3000).collect()];
    for length in [3, 20, 200, 2000] {
        for among in [2, 9] {
            lists.push((0..length).map(|_| next(length * among)).collect());
        }
    }
    (lists, next)
}

fn put(store: &mut Lists, list: &BTreeSet<u32>) -> u32 {
    let words: Vec<u32> = list.iter().copied().collect();
    store.put(&words).expect("the store has room")
}

#[test]
fn an_edited_list_is_the_list_that_is_put() {
    let (lists, mut next) = lists();
    let mut store = Lists::default();
    for list in &lists {
        let number = put(&mut store, list);
        let end = list.last().map_or(0, |last| last + 1);
        for count in [0, 1, 2, 5, 40] {
            // At the end as well, where the last part may be cut differently than in a longer
            // list.
            let words = (0..count).map(|_| next(end + 9)).chain((count % 2 == 1).then_some(end));
            let words: BTreeSet<u32> = words.collect();
            let other: BTreeSet<u32> = list.symmetric_difference(&words).copied().collect();
            let changes: Vec<(u32, bool)> =
                words.iter().map(|word| (*word, other.contains(word))).collect();
            assert_eq!(store.edited(number, &changes), Some(put(&mut store, &other)));
        }
        let all: Vec<(u32, bool)> = list.iter().map(|word| (*word, false)).collect();
        assert_eq!(store.edited(number, &all), Some(put(&mut store, &BTreeSet::new())));
    }
}

#[test]
fn lists_are_compared_as_sets_are() {
    let (lists, mut next) = lists();
    let mut store = Lists::default();
    let mut all: Vec<BTreeSet<u32>> = lists.clone();
    for list in &lists {
        let words: BTreeSet<u32> = (0..5).map(|_| next(3000)).collect();
        all.push(list.symmetric_difference(&words).copied().collect());
    }
    let numbers: Vec<u32> = all.iter().map(|list| put(&mut store, list)).collect();
    for (a, x) in numbers.iter().zip(&all) {
        assert_eq!(store.get(*a, 0), x.iter().copied().collect::<Vec<u32>>());
        assert!((0..3010).all(|word| store.has(*a, word) == x.contains(&word)));
        for (b, y) in numbers.iter().zip(&all) {
            let mut found = Vec::new();
            store.differences([*a, *b], |word, is_second| found.push((word, is_second)));
            let wanted = x.symmetric_difference(y).map(|word| (*word, y.contains(word)));
            assert!(found.into_iter().eq(wanted), "{x:?} {y:?}");
        }
    }
}

/// A neighbor of a long list takes few words more.
#[test]
fn an_edit_takes_the_words_of_few_parts() {
    let mut store = Lists::default();
    let mut list: BTreeSet<u32> = (0..4000).map(|word| 3 * word).collect();
    let mut number = put(&mut store, &list);
    let before = store.words.len();
    for word in 0..1000 {
        list.insert(12 * word + 1);
        number = store.edited(number, &[(12 * word + 1, true)]).expect("the store has room");
    }
    assert_eq!(number, put(&mut store, &list));
    assert!(store.words.len() - before < 1000 * 150, "{} words", store.words.len());
}
