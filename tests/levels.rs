//! Mappings of several levels synthesized together equal mappings synthesized separately: each
//! entry that a level takes over from the level below is the entry it would have found.

use osier::driver::{NoObserver, Vigilance, derive};
use osr::{
    Level, MappingLimits, SynthesizedMapping, VersionPair, synthesize, synthesize_levels,
    synthesize_within,
};
use passes::registry::parse;
use verify::generate::{Weights, generate};

#[test]
fn levels_made_together_are_those_made_apart() {
    let (mut entries, mut kept) = ([0; Level::ALL.len()], 0);
    for seed in 0..150 {
        let program = generate(seed, 60, &Weights::default());
        let base = program.module.body(program.main).expect("the main function has a body");
        let pipeline = parse(if seed % 2 == 0 { "O1" } else { "O2" }).expect("a named pipeline");
        let derived = derive(&program.module, base, &pipeline, Vigilance::On, &mut NoObserver);
        let pair =
            VersionPair::new(base, &derived.function, &derived.log).expect("the log leads there");
        let together = synthesize_levels(&pair, &Level::ALL);
        let some = [Level::Avail, Level::Live, Level::Avail];
        let (few, mut listed) = (synthesize_levels(&pair, &some), Vec::new());
        for (at, (level, made)) in together.iter().enumerate() {
            let alone = format!("{:?}", synthesize(&pair, *level));
            assert_eq!(format!("{made:?}"), alone, "seed {seed}, {level}");
            entries[at] += made.forward.mapping.len() + made.backward.mapping.len();
            let of_few = few.iter().find(|(l, _)| l == level);
            listed.extend(of_few.map(|(level, made)| (*level, format!("{made:?}") == alone)));
        }
        assert_eq!(listed, [(Level::Live, true), (Level::Avail, true)], "seed {seed}");
        let avail = &together[Level::Avail as usize].1;
        kept += avail.forward.mapping.entries().filter(|(_, e)| !e.kept.is_empty()).count();
    }
    // Each level has more entries than the level below, and `avail` keeps values.
    assert!(entries.windows(2).all(|w| w[0] < w[1]), "{entries:?}");
    assert!(kept > 1000, "{kept}");
}

#[test]
fn a_pair_in_parts_has_the_entries_of_a_pair_at_once() {
    let mut kept = 0;
    for seed in 0..60 {
        let program = generate(seed, 120, &Weights::default());
        let base = program.module.body(program.main).expect("the main function has a body");
        let pipeline = parse(if seed % 2 == 0 { "O1" } else { "O2" }).expect("a named pipeline");
        let derived = derive(&program.module, base, &pipeline, Vigilance::Off, &mut NoObserver);
        let pair =
            VersionPair::new(base, &derived.function, &derived.log).expect("the log leads there");
        let whole = MappingLimits { whole: usize::MAX, ..MappingLimits::default() };
        let parts = MappingLimits { whole: 0, part: 40, ..MappingLimits::default() };
        let both = [whole, parts].map(|limits| synthesize_within(&pair, &Level::ALL, limits));
        let [at_once, in_parts] = both;
        for ((level, a), (_, b)) in at_once.iter().zip(&in_parts) {
            for (a, b) in [(&a.forward, &b.forward), (&a.backward, &b.backward)] {
                let rest = |made: &SynthesizedMapping| {
                    (made.points, made.unreachable, made.missing.clone())
                };
                assert!(a.mapping == b.mapping, "seed {seed}, {level}");
                assert_eq!(rest(a), rest(b), "seed {seed}, {level}");
            }
            kept += a.forward.mapping.entries().filter(|(_, e)| !e.kept.is_empty()).count();
        }
    }
    assert!(kept > 500, "{kept}");
}

#[test]
fn reasons_are_those_of_the_level_alone() {
    // A level that takes over results of the level below searches fewer points. The values that it
    // knows to be lost are others then, and must not decide which of them is the reason.
    for (seed, pipeline) in
        [(882_151, "O2"), (882_165, "O1"), (882_190, "O1"), (882_467, "canonical")]
    {
        let program = generate(seed, 400, &Weights::default());
        let base = program.module.body(program.main).expect("the main function has a body");
        let pipeline = parse(pipeline).expect("a named pipeline");
        let derived = derive(&program.module, base, &pipeline, Vigilance::Off, &mut NoObserver);
        let pair =
            VersionPair::new(base, &derived.function, &derived.log).expect("the log leads there");
        for (level, together) in synthesize_levels(&pair, &Level::ALL) {
            let alone = synthesize(&pair, level);
            assert_eq!(together.forward.missing, alone.forward.missing, "seed {seed}, {level}");
            assert_eq!(together.backward.missing, alone.backward.missing, "seed {seed}, {level}");
        }
    }
}
