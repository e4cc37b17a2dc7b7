//! Programs that the checker proves nothing about.

use crate::certified::retry::{SHIFTS, Shifts};
use fuzz::{CampaignOptions, Case, FuzzOracle, judge};
use ir::text::parse_module;
use passes::registry::StaticPass;

/// As [`SHIFTS`], but it makes the rewrites that it is refused.
static STUBBORN: Shifts = Shifts { yields: false };

/// The versions agree in every run, and the checker can prove none of them: each store writes a
/// product in one version and a shift in the other. A pass that makes the rewrite though it is
/// refused makes the same versions again. A campaign that certifies nothing must end differently
/// from a campaign that found nothing.
#[test]
fn a_program_of_which_nothing_is_certified_is_a_finding() {
    let program = |factor: u32| {
        parse_module(&format!(
            "memory @m 1\nfunc @f(%a: i32) {{\nentry:\n  %k = const.i32 {factor}\n  \
             %p = mul.i32 %a, %k\n  %zero = const.i32 0\n  store.i32 @m[%zero], %p\n  return\n}}"
        ))
        .expect("well-formed")
    };
    let judged = |factor: u32, certificates: bool, shifts: StaticPass| {
        let options = CampaignOptions { certificates, assumptions: 0, ..Default::default() };
        let case = CampaignOptions { inlining: false, ..options }.generated(0);
        let module = program(factor);
        let (entry, _) = module.defined().next().expect("a function");
        let (arguments, steps) = (vec![vec![5], vec![7]], vec![vec![shifts]]);
        judge(&Case { module, entry, arguments, steps, ..case })
    };
    let found = judged(8, true, &STUBBORN);
    assert_eq!(found.oracle(), Some(FuzzOracle::Certificates), "{:?}", found.findings);
    let message = &found.findings[0].message;
    let dropped = found.figures.certificates.dropped();
    assert!(dropped > 4 && found.figures.certificates.certified == 0, "{:?}", found.figures);
    let expected =
        format!("none of {dropped} entries of the program is accepted: anchor-operands {dropped}");
    assert_eq!(message, &expected);
    // Programs are clean if something of them is accepted, at once or without the rewrites to
    // blame, or if no certificates of them are wanted.
    let clean = [judged(9, true, &STUBBORN), judged(8, true, &SHIFTS), judged(8, false, &STUBBORN)];
    assert_eq!(clean.each_ref().map(|judged| judged.findings.len()), [0; 3]);
    let again = &clean[1].figures.certificates;
    assert!(again.certified == 0 && again.dropped() == dropped, "{again:?}");
    assert!(again.held_again > 0 && again.still_dropped == 0, "{again:?}");
}
