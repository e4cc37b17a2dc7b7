//! A pass whose `run` takes sessions of a single lifetime: two sessions would have one type.
use ir::edit::{Editor, Pass};
use std::marker::PhantomData;

struct OneLifetime<'e>(PhantomData<&'e ()>);

impl<'e> Pass for OneLifetime<'e> {
    fn name(&self) -> &'static str {
        "one_lifetime"
    }

    fn run(&self, _: &mut Editor<'e>) {}
}

fn main() {}
