//! Programs that the checker proves nothing about.

use fuzz::{CampaignOptions, Case, FuzzOracle, judge};
use ir::edit::{Editor, Pass};
use ir::text::parse_module;
use ir::{Imm, Inst, InstSpec, Opcode};
use passes::registry::StaticPass;

/// A right pass that no rule explains: it makes each product with 8 a shift by 3.
struct Shifts {
    /// Whether it leaves out the rewrites that it is refused.
    yields: bool,
}

impl Pass for Shifts {
    fn name(&self) -> &'static str {
        "shifts"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let function = editor.func();
        let wanted = |i: &Inst| {
            let data = function.inst(*i);
            data.opcode == Opcode::Mul && function.constant(data.args[1]) == Some(8)
        };
        let products: Vec<Inst> = function.all_insts().filter(wanted).collect();
        for inst in products {
            if editor.plan("power-of-two") || !self.yields {
                let (ty, arg) = (editor.func().inst(inst).ty, editor.func().inst(inst).args[0]);
                let three = editor.add_value(InstSpec::constant(ty, 3), inst);
                let shift = InstSpec::new(Opcode::Shl, ty, Imm::None, &[arg, three]);
                let shifted = editor.add_value(shift, inst);
                let product = editor.func().inst(inst).result().expect("a product");
                editor.replace_all(product, shifted);
                editor.delete(inst);
            }
        }
    }
}

static YIELDS: Shifts = Shifts { yields: true };
static STUBBORN: Shifts = Shifts { yields: false };

/// The versions agree in every run, and the checker can prove none of them: each store writes a
/// product in one version and a shift in the other. A pass that makes the rewrite though it is
/// refused makes the same versions again. A campaign that certifies nothing must not end as one
/// that found nothing.
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
        let case = CampaignOptions { certificates, ..CampaignOptions::default() }.generated(0);
        let module = program(factor);
        let (entry, _) = module.defined().next().expect("a function");
        let (arguments, steps) = (vec![vec![5], vec![7]], vec![vec![shifts]]);
        judge(&Case { module, entry, arguments, steps, assumptions: 0, inlining: false, ..case })
    };
    let found = judged(8, true, &STUBBORN);
    assert_eq!(found.oracle(), Some(FuzzOracle::Certificates), "{:?}", found.findings);
    let message = &found.findings[0].message;
    let dropped = found.figures.certificates.dropped();
    assert!(dropped > 4 && found.figures.certificates.certified == 0, "{:?}", found.figures);
    let expected =
        format!("none of {dropped} entries of the program is accepted: anchor-operands {dropped}");
    assert_eq!(message, &expected);
    // Programs of which something is accepted, at once or without the rewrites to blame, or that
    // nobody wants certificates of, are clean.
    let clean = [judged(9, true, &STUBBORN), judged(8, true, &YIELDS), judged(8, false, &STUBBORN)];
    assert_eq!(clean.each_ref().map(|judged| judged.findings.len()), [0; 3]);
    let again = &clean[1].figures.certificates;
    assert!(again.certified == 0 && again.dropped() == dropped, "{again:?}");
    assert!(again.held_again > 0 && again.still_dropped == 0, "{again:?}");
}
