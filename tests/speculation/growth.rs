//! The growth of a search with the assumptions, counted and not timed, and the bound on its work.

use super::shapes::{Shape, assumptions, module};
use super::support::{Made, counts, exits, first};
use osier::osr::VersionTree;
use osier::speculate::{Dropped, Plan, Speculative};
use passes::{Pipeline, parse};

const SHAPES: [Shape; 6] =
    [Shape::Row, Shape::Loop, Shape::Chain, Shape::Same, Shape::Calls, Shape::Nests];

/// The work of a search, the size of the logs, and the size of all entries.
fn counted(made: &Made) -> [u64; 3] {
    let Speculative { from, optimized, forward, backward, work, .. } = made.last();
    let log = made.tree.log(*from, *optimized).expect("one is derived from the other");
    let mappings = backward.values().chain([forward]);
    let entries = mappings.flat_map(|mapping| mapping.entries());
    let entries = entries.map(|(_, entry)| (entry.size() + entry.requires.len() + 1) as u64);
    [*work, log.actions().len() as u64, entries.sum()]
}

/// Before, uses of one value cost the square of the assumptions about it.
#[test]
fn the_work_of_a_search_doubles_with_the_assumptions() {
    let pipeline = parse("O1").expect("it is a pipeline");
    for shape in SHAPES {
        let mut before: Option<[u64; 3]> = None;
        for parts in [24, 48, 96] {
            let module = module(shape, parts);
            let (_, base) = first(&module);
            let assume = assumptions(base);
            assert_eq!(assume.len(), parts, "{shape:?}");
            let made = Made::new(&module, base, &assume, &pipeline).expect("it is legal");
            let (exits, dropped, settled) = counts(&made);
            assert_eq!(exits + dropped + settled, parts, "{shape:?}");
            match shape {
                Shape::Same => assert_eq!((exits, settled), (1, parts - 1)),
                // The checker's rounds over loops decide.
                Shape::Nests => {}
                _ => assert_eq!(exits, parts, "{shape:?}: {:?}", made.last().dropped),
            }
            let after = counted(&made);
            for (before, after) in before.iter().flatten().zip(after) {
                assert!(after * 10 <= before * 23, "{shape:?}: {before} to {after} at {parts}");
            }
            before = Some(after);
        }
    }
}

/// The plan grants no turn with assumptions, and the version is made without them.
#[test]
fn assumptions_over_the_work_of_the_plan_are_left_out() {
    let module = module(Shape::Row, 4);
    let (_, base) = first(&module);
    let (assume, pipeline) = (assumptions(base), Pipeline::default());
    let turn = Made::new(&module, base, &assume, &pipeline).expect("it is legal").last().work;
    for (work, expected) in [(turn, (4, 0, 0)), (base.inst_count() as u64, (0, 4, 0))] {
        let mut made = Made { tree: VersionTree::new(base.clone()), all: Vec::new() };
        let plan = Plan { work, ..Plan::new(&assume, &pipeline) };
        made.again(&module, &plan).expect("it is legal");
        assert_eq!(counts(&made), expected, "work {work}");
        assert!(made.last().dropped.iter().all(|(_, why)| *why == Dropped::NoWorkLeft));
        let taken = exits(&module, &made, &[&[0], &[4]]);
        assert_eq!(taken, [0, 0], "work {work}: memory is zero");
    }
}
