//! The work of the analysis, counted, and copies that show late.

use super::{Analysis, Receivers, copies};
use crate::edges::EdgeIndex;
use ir::text::parse_module;
use ir::{Function, Module, Value};

fn parsed(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

fn body(module: &Module) -> &Function {
    module.defined().next().expect("one function").1
}

/// An interpreter: a loop over `n` variables, with a case for each variable that changes it and
/// passes the other variables on.
fn interpreter(n: usize) -> Module {
    let list = |item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(", ");
    let cases: String = (0..n)
        .map(|case| {
            let passed =
                list(&|at| if at == case { format!("%n{case}") } else { format!("%x{at}") });
            format!(
                "case{case}:\n  %n{case} = add.i32 %x{case}, %x{}\n  jump head({passed})\n",
                (case * 7 + 1) % n
            )
        })
        .collect();
    parsed(&format!(
        "func @f(%a: i32) -> i32 {{\nentry:\n  %zero = const.i32 0\n  jump head({})\n\
         head({}):\n  switch %a, [{}], default done\n{cases}done:\n  return %x0\n}}",
        list(&|_| "%zero".to_owned()),
        list(&|at| format!("%x{at}: i32")),
        list(&|at| format!("case{at}")),
    ))
}

/// Of `n` variables that `n` back edges pass on, each changes twice. Looking at all arguments of an
/// edge for each of them that changed made the work cubic.
#[test]
fn values_passed_around_many_loops_cost_linear_time() {
    for n in [10, 40, 160] {
        let module = interpreter(n);
        let function = body(&module);
        let arguments = (n + 1) * n;
        let analysis = Analysis::run(function);
        assert!(analysis.work <= 3 * arguments, "{} of {arguments} arguments", analysis.work);
        // The lists of receivers omit a parameter that receives itself on `n` edges.
        let receivers = Receivers::new(function, &EdgeIndex::new(function));
        assert_eq!(receivers.list.len(), 2 * n);
    }
}

/// Loops inside one another, whose parameters look like copies of the parameter outside until the
/// search sees the back edges: `%i` receives `%o` alone, at each depth. A search that starts anew
/// for each loop has to bound the number of starts, and then misses copies.
#[test]
fn copies_in_any_number_of_loops_are_found() {
    const DEPTH: usize = 100;
    let (mut open, mut close) = (String::new(), String::new());
    for n in 0..DEPTH {
        let outer = if n == 0 { "%a".to_owned() } else { format!("%i{}", n - 1) };
        open +=
            &format!("  jump outer{n}({outer})\nouter{n}(%o{n}: i32):\n  jump inner{n}(%o{n})\n");
        open += &format!("inner{n}(%i{n}: i32):\n  br_if %b, down{n}, inner{n}(%i{n})\ndown{n}:\n");
        let back = format!("up{n}:\n  br_if %i{n}, outer{n}(%b), ");
        let onward = if n == 0 { "done\n".to_owned() } else { format!("up{}\n", n - 1) };
        close = format!("{back}{onward}{close}");
    }
    let module = parsed(&format!(
        "func @f(%a: i32, %b: i32) -> i32 {{\nentry:\n{open}  jump up{}\n{close}done:\n  return %a\n}}",
        DEPTH - 1
    ));
    let function = body(&module);
    let roots = copies::roots(&Analysis::run(function));
    let named = |name: &str| -> Value {
        let values = (0..function.value_bound() as u32).map(Value::from_u32);
        let mut values = values.filter(|v| function.has_value(*v));
        values.find(|v| function.value_name(*v) == Some(name)).expect("a value")
    };
    for n in 0..DEPTH {
        let outer = named(&format!("o{n}"));
        assert_eq!(roots[outer.as_u32() as usize], Some(outer), "two values arrive");
        assert_eq!(roots[named(&format!("i{n}")).as_u32() as usize], Some(outer), "a copy");
    }
}
