//! A pass that makes an editor of its own would write a log of a function nobody sees.
use ir::Function;
use ir::edit::{ActionLog, Editor, Fuel};

fn forge(function: &mut Function, log: ActionLog, fuel: &mut Fuel) {
    let origin = ("gvn", "");
    let _ = Editor { function, log, records: true, origin, fuel, session: std::marker::PhantomData };
}

fn main() {}
