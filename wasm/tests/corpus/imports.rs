//! Tests of the form of imported functions.

use crate::corpus::{import, laws, modules};
use ir::Opcode;

#[test]
fn every_function_is_well_formed_and_has_no_needless_parameter() {
    for (name, file) in modules() {
        let module = import(&file);
        let findings = ir::verifier::verify_module(&module);
        assert!(findings.is_empty(), "{name}: {}", findings[0]);
        for (_, function) in module.defined() {
            let explicit =
                |block| if block == function.entry() { function.arguments().len() } else { 0 };
            let found = laws::violations(function, explicit);
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

/// Blocks exist only where control needs them. All are reachable, none continues a straight line,
/// and none contains only a jump, except loop headers, which have a back edge.
#[test]
fn there_are_no_needless_blocks() {
    for (name, file) in modules() {
        let module = import(&file);
        for (_, function) in module.defined() {
            let cfg = ir::cfg::Cfg::new(function);
            for block in function.blocks().skip(1) {
                let at = || format!("{name}: {}: {block}", function.name());
                let number =
                    cfg.rpo_index(block).unwrap_or_else(|| panic!("{} is unreachable", at()));
                let preds: Vec<_> = function.predecessors(block).iter().map(|e| e.inst).collect();
                let is_jump = |inst| function.inst(inst).opcode == Opcode::Jump;
                let head =
                    preds.iter().any(|p| cfg.rpo_index(function.inst_block(*p)) >= Some(number));
                assert!(
                    preds.len() > 1 || !is_jump(preds[0]),
                    "{} continues a straight line",
                    at()
                );
                let only = function.first_inst(block);
                let params = function.block_params(block).len();
                let forwards = is_jump(only) && function.inst(only).operand_count() + params == 0;
                assert!(head || !forwards, "{} is empty", at());
            }
        }
    }
}
