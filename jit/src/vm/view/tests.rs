//! Tests of `jit::vm::view`.

use super::NativeView;
use crate::config::Interruption;
use crate::vm::helpers;
use crate::vm::linear::Addresses;
use ir::Module;
use ir::module::FuncDecl;

/// A module that grows by a function at a time gets a new block when it has doubled. The words
/// of functions move along.
#[test]
fn blocks_are_replaced_at_doublings() {
    let mut module = Module::new();
    let sig = module.sig(&ir::Signature::default());
    let mut view = NativeView::new(&module, Addresses::new(), Interruption::Never, helpers::TABLE);
    let (mut blocks, mut last) = (0, view.address());
    for number in 0..1000usize {
        let name = number.to_string();
        let func =
            module.funcs.push(FuncDecl { name, sig, import: None, effect: Default::default() });
        view.extend(&module, Addresses::new());
        view.lay_out(&module);
        view.point_at(func, std::ptr::without_provenance(number));
        if view.address() != last {
            (blocks, last) = (blocks + 1, view.address());
            let words = view.block.words_of_functions();
            assert!((0..=number).eq(words.into_iter().take(number + 1)), "{number}");
        }
        assert_eq!(view.signatures.of_functions().len(), number + 1);
    }
    assert!((9..=11).contains(&blocks), "{blocks}");
}
