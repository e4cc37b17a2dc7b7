//! Replay of the logs of the default pipeline on generated programs and kernels. The logs check,
//! and the check rejects a log with an action dropped, swapped or edited.

use ir::edit::{ActionKind, ActionLog, ClaimedLog};
use ir::{Function, Module};
use osier::driver::{NoObserver, Vigilance, derive};
use osier::{Format, load};
use passes::Pipeline;
use verify::generate::{Weights, generate};

/// The log of the default pipeline, and the version after it.
fn optimized(module: &Module, base: &Function) -> (ActionLog, Function) {
    let derived = derive(module, base, &Pipeline::default(), Vigilance::Off, &mut NoObserver);
    (derived.log, derived.function)
}

fn modules() -> Vec<Module> {
    let mut modules: Vec<Module> =
        (0..20).map(|seed| generate(seed, 60, &Weights::default()).module).collect();
    for kernel in ["sort", "vm"] {
        let path = format!("{}/tests/corpus/{kernel}.wasm", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).expect("the kernels are in the repository");
        modules.push(load(Format::Wasm, &bytes).expect("kernels are modules"));
    }
    modules
}

/// Damages every log at sampled indices and asserts that the check rejects each damaged log.
/// Returns the number of damaged logs.
fn damage(mut change: impl FnMut(&mut ClaimedLog, usize, &Function) -> bool) -> usize {
    let mut tried = 0;
    for module in modules() {
        for (_, base) in module.defined() {
            let (log, after) = optimized(&module, base);
            let truth = ClaimedLog::from(&log);
            assert_eq!(truth.check(base, &after), Ok(()));
            // Each check replays the whole log, so long logs are sampled.
            for index in (0..log.len()).step_by(1 + log.len() / 40) {
                let mut claim = truth.clone();
                if change(&mut claim, index, base) && claim != truth {
                    assert!(
                        claim.check(base, &after).is_err(),
                        "{}: {:?}",
                        base.name(),
                        truth.actions[index]
                    );
                    tried += 1;
                }
            }
        }
    }
    tried
}

#[test]
fn a_dropped_action_is_noticed() {
    let tried = damage(|claim, index, _| {
        claim.actions.remove(index);
        true
    });
    assert!(tried > 1000, "only {tried} were tried");
}

#[test]
fn two_swapped_actions_are_noticed() {
    // The stamps stay in place, so only the effect of the actions can give the swap away.
    let tried = damage(|claim, index, _| {
        let Some((second, first)) = index.checked_sub(1).map(|before| (index, before)) else {
            return false;
        };
        let kinds = (claim.actions[first].1.clone(), claim.actions[second].1.clone());
        (claim.actions[first].1, claim.actions[second].1) = (kinds.1, kinds.0);
        true
    });
    assert!(tried > 1000, "only {tried} were tried");
}

#[test]
fn an_edited_action_is_noticed() {
    let tried = damage(|claim, index, base| {
        let (argument, first) = (base.arguments().first().copied(), base.first_inst(base.entry()));
        match &mut claim.actions[index].1 {
            ActionKind::Add { data, .. } => data.imm = ir::Imm::Bits(0x5eed),
            ActionKind::Delete { next, .. } => *next = first,
            ActionKind::Hoist { to, .. } | ActionKind::Sink { to, .. } => *to = first,
            ActionKind::ReplaceAll { after, .. } | ActionKind::ReplaceOperand { after, .. } => {
                match argument {
                    Some(argument) if argument != *after => *after = argument,
                    _ => return false,
                }
            }
            ActionKind::FoldBranch { keep, .. } => *keep += 1,
            ActionKind::ResolveCall { inst, .. } => *inst = first,
            ActionKind::Inline { call, .. } => *call = first,
            ActionKind::RemoveBlockParam { index, .. } => *index += 1,
            ActionKind::Redirect { edge, .. } => edge.index += 1,
            ActionKind::RemoveUnreachable { blocks } => blocks.push(base.entry()),
            ActionKind::MergeBlocks { jump, .. } | ActionKind::SplitEdge { jump, .. } => {
                *jump = first
            }
            ActionKind::JoinEdges { jump, .. } => *jump = first,
            ActionKind::RemoveDead { insts, .. } => insts.push(first),
            ActionKind::AddBlockParam { .. } => return false,
        }
        true
    });
    assert!(tried > 800, "only {tried} were tried");
}
