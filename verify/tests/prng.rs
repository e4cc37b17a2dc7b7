//! The generator of random numbers.

use osier_verify::prng::Prng;

#[test]
fn the_stream_is_the_published_one() {
    let mut prng = Prng::new(1234567);
    let expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ];
    assert_eq!(expected.map(|_| prng.next_u64()), expected);
}

#[test]
fn weights_of_zero_are_never_chosen() {
    let mut prng = Prng::new(1);
    let mut seen = [0u32; 4];
    for _ in 0..1000 {
        seen[prng.weighted(&[0, 1, 0, 3]).expect("some weight is positive")] += 1;
    }
    assert_eq!((seen[0], seen[2]), (0, 0));
    assert!(seen[1] > 150 && seen[3] > 600, "{seen:?}");
    assert_eq!(prng.weighted(&[0, 0]), None);
    assert_eq!(prng.weighted(&[]), None);
}

#[test]
fn a_fork_does_not_depend_on_later_draws() {
    let parent = Prng::new(7);
    let mut drawn = parent.clone();
    let fork = parent.fork(3);
    drawn.next_u64();
    assert_eq!(parent.fork(3), fork);
    assert_ne!(parent.fork(4), fork);
    assert_ne!(drawn.fork(3), fork);
}
