//! Tests of `fuzz::native::nans`.

use super::*;
use crate::CampaignOptions;
use interp::{Limits, Machine, NoObserver};

/// Each observed float is the result of a `select`, and programs end as before.
#[test]
fn programs_observe_no_nan() {
    let mut settled_operands = 0;
    for seed in 0..40 {
        let options = CampaignOptions { nans: Nans::Platform, ..CampaignOptions::default() };
        let case = options.generated(seed);
        let made = settled(&case);
        for (_, body) in made.module.defined() {
            for data in body.all_insts().map(|inst| body.inst(inst)) {
                let floats = observed(data).iter().filter(|v| body.value_type(**v).is_float());
                for value in floats {
                    let inst = body.defining_inst(*value).expect("a result");
                    assert_eq!(body.inst(inst).opcode, Opcode::Select, "{seed}");
                    settled_operands += 1;
                }
            }
        }
        let end = |case: &Case| {
            // The longer program runs out of fuel elsewhere, so both get more.
            let limits = Limits { fuel: LONGER * LONGER * made.fuel, ..Limits::default() };
            let mut machine = Machine::new(&case.module, limits).expect("an instance");
            let ends = case.arguments.iter().map(|args| {
                let world = &mut case.world.clone();
                let ended = machine.invoke(case.entry, args, world, &mut NoObserver);
                (ended.returned().map(<[u64]>::to_vec), ended.trap())
            });
            (ends.collect::<Vec<_>>(), machine.computed_memory_digest())
        };
        let (before, after) = (end(&case).0, end(&made).0);
        let alike = |(a, b): (&Option<Vec<u64>>, &Option<Vec<u64>>)| a.is_some() == b.is_some();
        for ((a, x), (b, y)) in before.iter().zip(&after) {
            assert!(alike((a, b)) && x == y, "{seed}: {a:?} {x:?}, {b:?} {y:?}");
        }
    }
    assert!(settled_operands > 100, "{settled_operands}");
}

#[test]
fn nans_of_one_type_agree_with_the_processors_alone() {
    let (quiet, negative) = (0x7fc0_0000, 0xffc0_0000);
    assert!(agree(Nans::Platform, Type::F32, [quiet, negative]));
    assert!(!agree(Nans::Canonical, Type::F32, [quiet, negative]));
    assert!(!agree(Nans::Platform, Type::I32, [quiet, negative]));
    assert!(!agree(Nans::Platform, Type::F32, [quiet, 0]));
    assert!(agree(Nans::Canonical, Type::F32, [5, 5]));
}
