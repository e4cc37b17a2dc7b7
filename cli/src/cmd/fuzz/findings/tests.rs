//! Tests of `cli::fuzz::findings`.

use super::*;

/// A finding of the state oracle, with this number of instructions.
pub(in crate::cmd::fuzz) fn record(instructions: u64, test: Option<&str>) -> FindingRecord {
    FindingRecord {
        reproduced: Some(true),
        schema: RECORD_SCHEMA,
        key: "state-licm-load-0badcafe".to_owned(),
        oracle: "state".to_owned(),
        guilty: None,
        place: String::new(),
        message: String::new(),
        reproduce: String::new(),
        options: vec!["--corpus".to_owned(), "app.wasm".to_owned()],
        case_time: None,
        instructions,
        case: None,
        test: test.map(str::to_owned),
    }
}

/// The smaller program stays, whatever the order, and of equal ones that with a test.
#[test]
fn the_smaller_program_of_a_key_stays() {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let path = scratch.path().join("deep/found");
    let folder = FindingsFolder::open(path.clone()).expect("it can be made");
    let steps = [
        (record(90, None), 90, None),
        (record(40, Some("forty")), 40, Some("forty")),
        (record(50, Some("fifty")), 40, Some("forty")),
        (record(40, None), 40, Some("forty")),
        (record(9, Some("nine")), 9, Some("nine")),
    ];
    for (new, instructions, test) in steps {
        folder.tell_saved(&new).expect("the folder is writable");
        let kept = read(&path.join("state-licm-load-0badcafe.json")).expect("a record");
        assert_eq!(kept.instructions, instructions);
        let text = std::fs::read_to_string(path.join("state-licm-load-0badcafe.oir"));
        assert_eq!(text.ok().as_deref(), test);
    }
    let found = records(std::slice::from_ref(&path)).expect("a folder");
    assert_eq!(found, [path.join("state-licm-load-0badcafe.json")], "no file is left behind");
}

/// Several shards write to one folder at the same time.
#[test]
fn shards_may_share_a_folder() {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let path = scratch.path().to_owned();
    std::thread::scope(|scope| {
        for shard in 0..4u64 {
            let folder = FindingsFolder::open(path.clone()).expect("it exists");
            scope.spawn(move || {
                for number in 0..20 {
                    let size = 100 - (number * 4 + shard);
                    let new = record(size, Some(&size.to_string()));
                    folder.tell_saved(&new).expect("the folder is writable");
                }
            });
        }
    });
    let kept = read(&path.join("state-licm-load-0badcafe.json")).expect("a record");
    assert_eq!(kept.instructions, 21);
    let text = std::fs::read_to_string(path.join("state-licm-load-0badcafe.oir"));
    assert_eq!(text.expect("a test"), "21");
}
