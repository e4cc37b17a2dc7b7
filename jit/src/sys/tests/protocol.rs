//! A model of how signal handlers read the list of code while writers replace it (`sys::traps`).
//!
//! The model executes every interleaving of the atomic steps of two handlers and of a writer that
//! publishes three arrays. No handler may read an array that was freed, and a change that meets no
//! handler must free all arrays before.

use std::collections::BTreeSet;

/// The arrays that the writer publishes one after the other; array 0 is there from the beginning.
const ARRAYS: usize = 4;

/// Where a handler is in `look_up`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum HandlerStep {
    /// Before `READERS.fetch_add`.
    Outside,
    /// Between that and the load of `LIST`.
    Counted,
    /// Reading this array.
    Reads(usize),
    /// After `READERS.fetch_sub`.
    Done,
}

/// Where the writer is in `RegistryWriter::publish`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum WriterStep {
    /// Before the swap that publishes this array.
    Publishes(usize),
    /// Between the swap of this array and the load of `READERS`.
    Published(usize),
}

/// The variables of the protocol.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ProtocolState {
    published: usize,
    readers: usize,
    freed: [bool; ARRAYS],
    writer: WriterStep,
    handlers: [HandlerStep; 2],
}

/// The variants of the protocol: the one of `sys::traps`, and two that are wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Right,
    /// The writer frees without a look at the readers.
    FreesAtOnce,
    /// A handler does not count itself.
    CountsNever,
}

impl ProtocolState {
    fn start() -> ProtocolState {
        ProtocolState {
            published: 0,
            readers: 0,
            freed: [false; ARRAYS],
            writer: WriterStep::Publishes(1),
            handlers: [HandlerStep::Outside; 2],
        }
    }

    /// The states after one atomic step of the writer or a handler.
    fn next(&self, protocol: Protocol) -> Vec<ProtocolState> {
        let mut states: Vec<ProtocolState> = self.after_writer(protocol).into_iter().collect();
        for handler in 0..self.handlers.len() {
            let mut next = self.clone();
            next.handlers[handler] = match (self.handlers[handler], protocol) {
                (HandlerStep::Outside, Protocol::CountsNever) => HandlerStep::Reads(self.published),
                (HandlerStep::Outside, _) => {
                    next.readers += 1;
                    HandlerStep::Counted
                }
                (HandlerStep::Counted, _) => HandlerStep::Reads(self.published),
                (HandlerStep::Reads(_), Protocol::CountsNever) => HandlerStep::Done,
                (HandlerStep::Reads(_), _) => {
                    next.readers -= 1;
                    HandlerStep::Done
                }
                // The thread faults again.
                (HandlerStep::Done, _) => HandlerStep::Outside,
            };
            states.push(next);
        }
        states
    }

    fn after_writer(&self, protocol: Protocol) -> Option<ProtocolState> {
        let mut next = self.clone();
        match self.writer {
            WriterStep::Publishes(ARRAYS..) => return None,
            WriterStep::Publishes(array) => {
                next.published = array;
                next.writer = WriterStep::Published(array);
            }
            WriterStep::Published(array) => {
                if self.readers == 0 || protocol == Protocol::FreesAtOnce {
                    next.freed[..array].fill(true);
                }
                next.writer = WriterStep::Publishes(array + 1);
            }
        }
        Some(next)
    }

    /// Whether a handler reads an array that was freed.
    fn is_wrong(&self) -> bool {
        let reads_freed =
            |step: &HandlerStep| matches!(step, HandlerStep::Reads(array) if self.freed[*array]);
        self.handlers.iter().any(reads_freed) || self.freed[self.published]
    }
}

/// All states that are reachable.
fn reachable(protocol: Protocol) -> BTreeSet<ProtocolState> {
    let mut found = BTreeSet::from([ProtocolState::start()]);
    let mut pending = vec![ProtocolState::start()];
    while let Some(state) = pending.pop() {
        for next in state.next(protocol) {
            if found.insert(next.clone()) {
                pending.push(next);
            }
        }
    }
    found
}

#[test]
fn no_handler_reads_a_list_that_was_freed() {
    let states = reachable(Protocol::Right);
    assert!(states.len() > 100, "{} states", states.len());
    let wrong = states.iter().find(|state| state.is_wrong());
    assert_eq!(wrong, None);
    let all_freed = |state: &ProtocolState| state.freed[..ARRAYS - 1].iter().all(|freed| *freed);
    assert!(states.iter().any(all_freed), "nothing is kept forever");
}

#[test]
fn the_model_finds_protocols_that_are_wrong() {
    for protocol in [Protocol::FreesAtOnce, Protocol::CountsNever] {
        assert!(reachable(protocol).iter().any(ProtocolState::is_wrong), "{protocol:?}");
    }
}
