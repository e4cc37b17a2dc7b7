//! A model of how signal handlers read the list of code while writers change it
//! (`sys::registry`).
//!
//! The model executes every interleaving of the atomic steps of two handlers and of a writer that
//! publishes lists, and drops code in the middle. No handler may read a list or a table that was
//! freed, and a change that meets no handler must free all that was retired before.

use std::collections::BTreeSet;

/// The lists that the writer publishes one after the other; list 0 is there from the beginning.
/// The first two have the code, each with a pointer of its own to the one table.
const LISTS: usize = 4;

/// Where a handler is in `look_up`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum HandlerStep {
    /// Before `READERS.fetch_add`.
    Outside,
    /// Between that and the load of `LIST`.
    Counted,
    /// Reading this list.
    Reads(usize),
    /// Reading this list, and the table that it found there.
    ReadsTable(usize),
    /// After `READERS.fetch_sub`.
    Done,
}

/// A change by the writer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Change {
    /// `publish`: the swap that publishes this list.
    Publish(usize),
    /// `take_out`: takes the pointer to the table out of the list published last.
    Drop,
}

/// The changes, in order. List 1 is a copy of list 0, as of a merge, and list 2 leaves the place of
/// the dropped code out.
const CHANGES: [Change; 4] =
    [Change::Publish(1), Change::Drop, Change::Publish(2), Change::Publish(3)];

/// The variables of the protocol.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ProtocolState {
    published: usize,
    /// By list: whether it has the pointer to the table.
    pointers: [bool; LISTS],
    readers: usize,
    freed: [bool; LISTS],
    is_table_retired: bool,
    is_table_freed: bool,
    /// The number of changes begun, and whether the step that frees is next.
    writer: (usize, bool),
    /// Whether the early look of a [`Protocol::LooksBefore`] writer saw no readers.
    saw_none: bool,
    handlers: [HandlerStep; 2],
}

/// The variants of the protocol: the one of `sys::registry`, and three that are wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Right,
    /// The writer frees without a look at the readers.
    FreesAtOnce,
    /// The writer looks at the readers before the change instead of after it.
    LooksBefore,
    /// A handler does not count itself.
    CountsNever,
}

impl ProtocolState {
    fn start() -> ProtocolState {
        ProtocolState {
            published: 0,
            pointers: [true, true, false, false],
            readers: 0,
            freed: [false; LISTS],
            is_table_retired: false,
            is_table_freed: false,
            writer: (0, false),
            saw_none: false,
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
                (HandlerStep::Reads(list), _) if self.pointers[list] => {
                    HandlerStep::ReadsTable(list)
                }
                (HandlerStep::Reads(_) | HandlerStep::ReadsTable(_), Protocol::CountsNever) => {
                    HandlerStep::Done
                }
                (HandlerStep::Reads(_) | HandlerStep::ReadsTable(_), _) => {
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
        let (done, frees) = self.writer;
        if frees {
            let none = match protocol {
                Protocol::Right | Protocol::CountsNever => self.readers == 0,
                Protocol::FreesAtOnce => true,
                Protocol::LooksBefore => self.saw_none,
            };
            if none {
                next.freed[..self.published].fill(true);
                next.is_table_freed |= self.is_table_retired;
            }
            // The look before the next change.
            next.saw_none = protocol == Protocol::LooksBefore && self.readers == 0;
            next.writer = (done, false);
            return Some(next);
        }
        match *CHANGES.get(done)? {
            Change::Publish(list) => next.published = list,
            Change::Drop => {
                next.pointers[self.published] = false;
                next.is_table_retired = true;
            }
        }
        next.writer = (done + 1, true);
        Some(next)
    }

    /// Whether a handler reads a list or a table that was freed.
    fn is_wrong(&self) -> bool {
        let reads_freed = |step: &HandlerStep| match *step {
            HandlerStep::Reads(list) => self.freed[list],
            HandlerStep::ReadsTable(list) => self.freed[list] || self.is_table_freed,
            HandlerStep::Outside | HandlerStep::Counted | HandlerStep::Done => false,
        };
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
fn no_handler_reads_a_list_or_a_table_that_was_freed() {
    let states = reachable(Protocol::Right);
    assert!(states.len() > 100, "{} states", states.len());
    let wrong = states.iter().find(|state| state.is_wrong());
    assert_eq!(wrong, None);
    let all_freed = |state: &ProtocolState| {
        state.freed[..LISTS - 1].iter().all(|freed| *freed) && state.is_table_freed
    };
    assert!(states.iter().any(all_freed), "nothing is kept forever");
    // The table goes with the change that drops it, though a list names its place.
    let at_once = |state: &ProtocolState| state.is_table_freed && state.published == 1;
    assert!(states.iter().any(at_once));
}

#[test]
fn the_model_finds_protocols_that_are_wrong() {
    for protocol in [Protocol::FreesAtOnce, Protocol::LooksBefore, Protocol::CountsNever] {
        assert!(reachable(protocol).iter().any(ProtocolState::is_wrong), "{protocol:?}");
    }
}
