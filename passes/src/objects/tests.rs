use super::{ObjectPlaces, ObjectPlan, RemoveObjects};
use ir::edit::{Fuel, apply};
use ir::{FunctionText, Module};

const MODULE: &str = "memory @m 1
import func @new \"env\" \"new\" (i32, i64) -> ref effect(allocates)
import func @show \"env\" \"show\" (f64) -> ()
import func @give \"env\" \"give\" (ref) -> ()
";

fn optimized(body: &str) -> String {
    let text = format!("{MODULE}{body}");
    let module: Module = ir::text::parse(&text).expect("the text is a module").module;
    let func = module.defined().last().expect("a function").0;
    let f = module.body(func).expect("a function");
    let plan = ObjectPlan::new(&module, f, &ObjectPlaces::default());
    let (made, _) =
        apply(f, &RemoveObjects { plan: &plan }, &mut Fuel::UNLIMITED.clone()).into_parts();
    FunctionText::new(&module, &made).to_string()
}
