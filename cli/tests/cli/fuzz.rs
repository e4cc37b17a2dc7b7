//! `osier fuzz`: its budgets, and `--engine jit` on a system with few resources.

use crate::harness::{Ended, command, file, output, scratch};
use std::fs;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

/// The note about memories whose accesses were checked instead of guarded.
const UNGUARDED: &str = "pairs of versions without guards, for lack of address space";

/// More memories of 6 GiB than fit into the address space to which a child process limits itself.
const TOO_MANY: usize = 43;

fn ended(mut command: Command) -> Ended {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ended::of(output(&mut command))
}

#[test]
fn memories_without_address_space_for_guards_are_no_finding() {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 5000000 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_osier")]);
    limited.args([
        "fuzz",
        "--engine",
        "jit",
        "--programs",
        "6",
        "--size",
        "30",
        "--inputs",
        "2",
        "--jobs",
        "1",
    ]);
    let ended = ended(limited).with_status(0);
    assert!(
        ended.stdout.contains("generated     6 programs") && ended.stdout.contains(UNGUARDED),
        "{ended:#?}"
    );
}

#[test]
fn a_program_with_more_memories_than_can_be_guarded_is_judged_too() {
    let memories = "(memory 1)".repeat(TOO_MANY);
    let text = format!(
        "(module {memories} (func (export \"_start\") (local i32)
          (loop
            (i32.store 42 (local.get 0) (i32.mul (local.get 0) (i32.const 3)))
            (i32.store (local.get 0) (i32.load 42 (local.get 0)))
            (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 4))) (i32.const 400))))))"
    );
    let folder = scratch();
    let path = file(&folder, "memories.wasm", wat::parse_str(text).expect("a module"));
    // This seed chooses guarded memories; seed 0 would choose checked accesses anyway.
    let ended = ended(command(&[
        "fuzz",
        "--engine",
        "jit",
        "--corpus",
        &path,
        "--pipeline",
        "O1",
        "--seed",
        "1",
    ]))
    .with_status(0);
    assert!(
        ended.stdout.contains("corpus        1 programs") && ended.stdout.contains(UNGUARDED),
        "{ended:#?}"
    );
}

/// A program that ends at once passed, although nothing in it was compared.
#[test]
fn a_program_without_a_transition_is_named_as_not_judged() {
    let folder = scratch();
    let program = |name: &str, body: &str| {
        let text = format!("(module (memory 1) (func (export \"_start\") (local i32) {body}))");
        file(&folder, name, wat::parse_str(text).expect("a module"))
    };
    let idle = program("idle.wasm", "");
    let busy = program(
        "busy.wasm",
        "(loop (i32.store (i32.const 8) (local.tee 0 (i32.add (local.get 0) (i32.const 3))))
           (br_if 0 (i32.lt_u (local.get 0) (i32.mul (i32.const 40) (i32.const 3)))))",
    );
    for engine in ["interp", "jit"] {
        let args = ["fuzz", "--engine", engine, "--corpus", &busy, &idle];
        let told = ended(command(&args)).with_status(0).stdout;
        let named: Vec<&str> = told.lines().filter(|l| l.starts_with("not judged ")).collect();
        assert_eq!(named, [format!("not judged    {idle}: no transition compared")], "{told}");
        let failed = ended(command(&[&args[..], &["--floors"]].concat())).with_status(1);
        assert!(
            failed.stderr.contains(&format!("no transition compared: {idle}\n")),
            "{failed:#?}"
        );
    }
    let args = ["fuzz", "--corpus", &busy, "--floors", "--format", "json"];
    let report: serde_json::Value =
        serde_json::from_str(&ended(command(&args)).with_status(0).stdout).expect("JSON");
    assert_eq!(report["idle"], serde_json::json!([]));
}

#[test]
fn a_removed_command_cannot_start_itself_again() {
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_osier"));
    // A hard link: a file just written may still be open in a child process of another test.
    let folder = tempfile::tempdir_in(own.parent().expect("a file has a folder"))
        .expect("a temporary folder");
    let path = folder.path().join("osier");
    fs::hard_link(own, &path).expect("in one file system");
    let open = fs::File::open(&path).expect("readable");
    fs::remove_file(&path).expect("the test created the file");
    let mut gone = Command::new(format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd()));
    gone.args(["fuzz", "--engine", "jit", "--programs", "40", "--jobs", "2"]);
    let ended = ended(gone).with_status(2);
    assert!(ended.stderr.contains("osier: cannot judge native code: cannot start "), "{ended:#?}");
    assert!(ended.stdout.contains("generated     0 programs"), "{ended:#?}");
}

/// A program that runs until its fuel of 2^32 instructions is spent, which takes minutes.
fn endless(folder: &tempfile::TempDir) -> String {
    let text = r#"(module (memory 1) (func (export "_start") (local i32)
      (loop (i32.store (i32.const 8) (local.tee 0 (i32.add (local.get 0) (i32.const 3))))
            (br 0))))"#;
    file(folder, "endless.wasm", wat::parse_str(text).expect("a module"))
}

/// A campaign without a program looked like one without findings.
#[test]
fn a_campaign_that_judges_no_program_fails() {
    for format in ["text", "json", "junit", "markdown"] {
        let args = ["fuzz", "--programs", "0", "--format", format];
        let ended = ended(command(&args)).with_status(1);
        assert!(ended.stderr.contains("no program was judged"), "{ended:#?}");
        let told = match format {
            "junit" => "<error message=\"no program was judged\">",
            "markdown" => "### Osier fuzz: no program was judged\n",
            "json" => "\"panic\": null",
            _ => "panic -, ssa -,",
        };
        assert!(ended.stdout.contains(told), "{ended:#?}");
    }
}

/// The figures of a command that prints JSON.
fn document(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).expect("a document")
}

/// Before, the command ended when its longest program did.
#[test]
fn the_time_is_up_within_a_program_too() {
    let folder = scratch();
    let path = endless(&folder);
    for engine in ["interp", "jit"] {
        let args = ["fuzz", "--engine", engine, "--corpus", &path, "--time", "8"];
        let args = [&args[..], &["--format", "json", "--jobs", "2"]].concat();
        let ended = ended(command(&args)).with_status(1);
        let why = "the time was up before any program was judged";
        assert!(ended.stderr.contains(why), "{ended:#?}");
        let document = document(&ended);
        let unfinished = document["unfinished"].as_array().expect("commands");
        assert!(unfinished[0].as_str().is_some_and(|one| one.contains(&path)), "{ended:#?}");
        assert!(document["seconds"].as_f64() < Some(60.0), "{ended:#?}");
        assert_eq!(document["generated"], serde_json::Value::Null, "a corpus alone was selected");
    }
}

#[test]
fn a_program_that_takes_too_long_fails_by_name() {
    let folder = scratch();
    let path = endless(&folder);
    let args = ["fuzz", "--corpus", &path, "--case-time", "1", "--pipeline", "O1"];
    let ended = ended(command(&args)).with_status(1);
    let late = format!(
        "took longer than --case-time: osier fuzz --case-time 1 --corpus '{path}' --seed 0"
    );
    assert!(ended.stderr.contains(&late), "{ended:#?}");
    assert!(ended.stderr.contains("1 program took longer than --case-time"), "{ended:#?}");
}

/// With a limit, the corpus is judged again and again, with other passes each time.
#[test]
fn a_corpus_alone_is_judged_until_the_limit() {
    let folder = scratch();
    let text = r#"(module (memory 1) (func (export "_start") (local i32)
      (loop (i32.store (local.get 0) (i32.mul (local.get 0) (i32.load (i32.const 4))))
            (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 4)))
                               (i32.const 200))))))"#;
    let path = file(&folder, "short.wasm", wat::parse_str(text).expect("a module"));
    let limits = ["--time", "500", "--transitions", "5000"];
    let args = [&["fuzz", "--corpus", &path, "--format", "json"], &limits[..]].concat();
    let ended = ended(command(&args)).with_status(0);
    let document = document(&ended);
    assert!(document["transitions"].as_u64() >= Some(5000), "{ended:#?}");
    assert!(document["corpus"]["programs"].as_u64() > Some(2), "more than one round: {ended:#?}");
    let passes = document["corpus"]["passes"].as_object().expect("passes by name");
    assert!(passes.len() > 12, "further rounds draw their passes: {:?}", passes.keys());
}
