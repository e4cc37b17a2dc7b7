//! Tests of `jit::vm::native_stack`.

use super::{FRAMES_OF_PIECE, FRAMES_OF_QUESTION, Pace};

/// The number of visited frames stays within a constant factor of the frames paid for. The
/// number of waiting pieces stays within the depth of the stack divided by [`FRAMES_OF_PIECE`].
#[test]
fn walks_are_paid_for() {
    for depth in [0, 1, 5000, 1_000_000] {
        let (mut pace, mut retired, mut visited, mut most) = (Pace::default(), 0, 0, 0);
        pace.walked(depth, 0);
        let questions = 20_000;
        for _ in 0..questions {
            retired += 1;
            if pace.ask(retired) {
                (visited, retired) = (visited + depth, 0);
                pace.walked(depth, 0);
            }
            most = most.max(retired);
        }
        assert!(visited <= questions * (FRAMES_OF_PIECE + FRAMES_OF_QUESTION), "{depth}");
        assert!(most <= depth / FRAMES_OF_PIECE + 1, "{depth}: {most} wait");
    }
}

/// Once a deep stack is shallow, requests alone free the code that it has kept.
#[test]
fn questions_alone_lead_to_a_walk() {
    let mut pace = Pace::default();
    pace.walked(1600, 7);
    let asked = (1..).find(|_| pace.ask(7)).expect("in the end");
    assert_eq!(asked, 1600 / FRAMES_OF_QUESTION);
}
