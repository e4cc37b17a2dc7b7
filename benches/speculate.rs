//! Cost of a speculation by its assumptions: functions of parts with an assumption each, by `O1`.
//! The throughput is in assumptions; it should not fall as they double.

use divan::Bencher;
use divan::counter::ItemsCount;
use osier::osr::VersionTree;
use osier::speculate::{Plan, speculate};
use shapes::{Shape, assumptions, module};

#[path = "../tests/speculation/shapes.rs"]
mod shapes;

const SIZES: [usize; 4] = [125, 250, 500, 1000];

fn speculation(bencher: Bencher<'_, '_>, shape: Shape, parts: usize) {
    let module = module(shape, parts);
    let (_, base) = module.defined().next().expect("it has a function");
    let assume = assumptions(base);
    let pipeline = passes::parse("O1").expect("it is a pipeline");
    let counted = bencher.counter(ItemsCount::new(assume.len()));
    counted.bench_local(|| {
        let mut tree = VersionTree::new(base.clone());
        speculate(&module, &mut tree, VersionTree::BASE, &Plan::new(&assume, &pipeline))
    });
}

#[divan::bench(args = SIZES)]
fn row(bencher: Bencher<'_, '_>, parts: usize) {
    speculation(bencher, Shape::Row, parts);
}

#[divan::bench(args = SIZES)]
fn in_a_loop(bencher: Bencher<'_, '_>, parts: usize) {
    speculation(bencher, Shape::Loop, parts);
}

#[divan::bench(args = SIZES)]
fn chain(bencher: Bencher<'_, '_>, parts: usize) {
    speculation(bencher, Shape::Chain, parts);
}

#[divan::bench(args = SIZES)]
fn one_value(bencher: Bencher<'_, '_>, parts: usize) {
    speculation(bencher, Shape::Same, parts);
}

#[divan::bench(args = SIZES)]
fn calls(bencher: Bencher<'_, '_>, parts: usize) {
    speculation(bencher, Shape::Calls, parts);
}

#[divan::bench(args = SIZES)]
fn nests(bencher: Bencher<'_, '_>, parts: usize) {
    speculation(bencher, Shape::Nests, parts);
}

fn main() {
    divan::main();
}
