//! Functions and edits made by hand.

use ir::edit::{Applied, Editor, Fuel, Pass, apply};
use ir::{Function, Inst, Value};

/// A pass made of one closure.
struct Edit<F: Fn(&mut Editor<'_>)>(F);

impl<F: Fn(&mut Editor<'_>)> Pass for Edit<F> {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        assert!(editor.plan("by_hand"));
        (self.0)(editor);
    }
}

/// The function of a module that has one. Panics unless the verifier accepts the module.
pub(crate) fn function(text: &str) -> Function {
    let module = ir::text::parse_module(text).unwrap_or_else(|e| panic!("{}", e[0]));
    let (_, body) = module.defined().next().expect("one function");
    assert!(ir::verifier::verify_module(&module).is_empty());
    body.clone()
}

pub(crate) fn edited(base: &Function, edit: impl Fn(&mut Editor<'_>)) -> Applied {
    apply(base, &Edit(edit), &mut Fuel::UNLIMITED.clone())
}

/// The value with this name.
pub(crate) fn value(f: &Function, name: &str) -> Value {
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    let results = f.all_insts().flat_map(|i| f.inst(i).results.to_vec());
    params
        .chain(results)
        .find(|v| f.value_name(*v) == Some(name))
        .unwrap_or_else(|| panic!("no %{name}"))
}

/// The instruction that defines the value with this name.
pub(crate) fn inst(f: &Function, name: &str) -> Inst {
    f.defining_inst(value(f, name)).expect("an instruction")
}
