//! What imported functions look like.

use crate::{import, laws, modules};

#[test]
fn every_function_is_well_formed_and_has_no_needless_parameter() {
    for (name, file) in modules() {
        let module = import(&file);
        let findings = ir::verifier::verify_module(&module);
        assert!(findings.is_empty(), "{name}: {}", findings[0]);
        for (_, function) in module.defined() {
            let explicit = |block| if block == function.entry() { function.arguments().len() } else { 0 };
            let found = laws::violations(function, explicit);
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

/// Control makes blocks where it needs them: none that only jumps on, but where the program has an arm
/// with nothing in it, and no blocks in straight line, but at the heads of loops.
#[test]
fn there_are_no_needless_blocks() {
    for (name, file) in modules() {
        let module = import(&file);
        for (_, function) in module.defined() {
            for block in function.blocks().skip(1) {
                assert!(
                    !function.predecessors(block).is_empty(),
                    "{name}: {}: {block} is unreachable",
                    function.name()
                );
            }
        }
    }
}
