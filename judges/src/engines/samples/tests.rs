//! Tests of `judges::engines::samples`.

use super::{EngineSample, Key, Measure, Samples};
use crate::engines::contender::Contender;

fn sample(contender: Contender, round: u32, wall: f64) -> EngineSample {
    let key =
        Key { measure: Measure::Process, program: "p.o2 1".to_owned(), cores: 2, contender, round };
    EngineSample { key, wall, processor: wall, is_over: false, calls: Vec::new() }
}

#[test]
fn samples_survive_their_file_and_the_later_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("samples");
    assert_eq!(Samples::read(&file).expect("no file").0.len(), 0);
    let mut called = sample(Contender::Node, 1, 2.0);
    (called.calls, called.is_over) = (vec![1.0, 0.5], true);
    let first = [sample(Contender::Tiered, 1, 1.0), called.clone()];
    Samples::append(&file, &first).expect("writable");
    Samples::append(&file, &[sample(Contender::Tiered, 1, 3.0)]).expect("writable");
    let samples = Samples::read(&file).expect("samples");
    assert_eq!(samples.get(&called.key), Some(&called));
    let (program, contender) = ("p.o2 1", Contender::Tiered);
    let series =
        samples.series(Measure::Process, program, 2, contender, |sample| Some(sample.wall));
    assert_eq!(series, [(1, 3.0)].into());
    assert!(samples.cores(Measure::Process).iter().eq([&2]));
    std::fs::write(&file, "{}\n").expect("writable");
    let error = Samples::read(&file).expect_err("no sample");
    assert!(error.contains("samples:1: no sample"), "{error}");
}
