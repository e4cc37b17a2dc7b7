//! A pass that creates an editor, whose log would describe a function of its own.
use ir::Function;
use ir::edit::{ActionLog, Editor, Fuel};

fn forge(function: &mut Function, log: ActionLog, fuel: &mut Fuel) {
    let origin = ("gvn", "");
    let session = std::marker::PhantomData;
    let _ = Editor { function, log, records: true, origin, fuel, session };
}

fn main() {}
