//! Missing files, outputs that cannot be written, and inputs that are not modules.

use crate::harness::{command, corpus, file, kernel, osier, osier_with_input, output, scratch};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// Every command that reads a file.
const COMMANDS: [&str; 5] = ["run", "opt", "report", "check", "explain"];

/// The arguments for a command on a file, with the options that it requires.
fn on<'a>(command: &'a str, path: &'a str) -> Vec<&'a str> {
    match command {
        "explain" => vec![command, path, "--func", "f", "--point", "entry"],
        _ => vec![command, path],
    }
}

#[test]
fn unreadable_inputs_are_named() {
    let folder = scratch();
    let empty = file(&folder, "empty.oir", "");
    let missing = folder.path().join("missing.wasm").display().to_string();
    let directory = folder.path().display().to_string();
    for name in COMMANDS {
        for path in [&empty, &missing, &directory] {
            let ended = osier(&on(name, path)).with_status(2);
            assert!(
                ended.stderr.starts_with("osier: ") && ended.stderr.contains(path),
                "{}",
                ended.stderr
            );
            assert_eq!(ended.stdout, "");
        }
    }
}

/// A file of an unknown name is read as the text form. If it is certainly something else, one line
/// says so; otherwise the messages are those of the text form.
#[test]
fn a_file_of_another_kind_is_named_as_such() {
    let folder = scratch();
    for (name, contents, expected) in [
        ("prog.c", "int main(void) {\n  return 0;\n}\n", "compile the source"),
        ("prog", "\x7fELF\x02\x01", "an ELF file"),
        ("page.html", "<!doctype html>\n<p>\n", "HTML"),
        ("report.json", "{\n  \"schema\": 2\n}\n", "JSON"),
    ] {
        let path = file(&folder, name, contents);
        let ended = osier(&["report", &path]).with_status(2);
        assert!(ended.stderr.contains("is not a module: "), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let text = "func @f() {\nentry:\n  %a = nonsense.i32 1\n  %b = more.i32 2\n  return\n}\n";
    let path = file(&folder, "module.txt", text);
    let ended = osier(&["report", &path]).with_status(2);
    assert!(!ended.stderr.contains("is not a module"), "{}", ended.stderr);
    assert!(ended.stderr.contains("module.txt:3:"), "{}", ended.stderr);
}

#[test]
fn a_function_that_the_module_lacks_is_answered_with_names_like_it() {
    let sort = kernel("sort", "");
    let ended = osier(&["report", &sort, "--func", "quick_srot"]).with_status(2);
    assert!(ended.stderr.contains("no function \"quick_srot\"; "), "{}", ended.stderr);
    let ended = osier(&["report", &sort, "--func", "quicksrt"]).with_status(2);
    assert!(ended.stderr.contains("did you mean \"quicksort\""), "{}", ended.stderr);
}

/// What does not run a module leaves out the functions that use what is not supported. A run
/// refuses the module.
#[test]
fn functions_that_use_unsupported_parts_are_left_out_and_counted() {
    let folder = scratch();
    let text = "(module
        (func $f (export \"f\") (param i32) (result i32) (i32.add (local.get 0) (i32.const 0)))
        (func $lanes (local v128)) (func $\"es\\1bc\" (drop (v128.const i32x4 0 0 0 0)))
        (func $more (local v128)) (func $next (return_call $more)))";
    let path = file(&folder, "parts.wat", text);
    for command in COMMANDS {
        let arguments = on(command, &path).into_iter();
        if command == "run" {
            let arguments: Vec<&str> = arguments.collect();
            let ended = osier(&arguments).with_status(2);
            assert!(ended.stderr.contains("this module uses SIMD"), "{}", ended.stderr);
            continue;
        }
        let arguments = arguments.map(|one| if one == "entry" { "block0" } else { one });
        let arguments: Vec<&str> = arguments.collect();
        let ended = osier(&arguments).with_status(0);
        let told = "parts.wat: left out: 4 of 5 functions: 3 SIMD, 1 tail calls (@lanes at ";
        assert!(ended.stderr.contains(told), "{command}: {}", ended.stderr);
        assert!(!ended.stderr.contains('\x1b'), "{command}: {}", ended.stderr);
    }
    for (command, place) in [("report", &["program", "left_out"][..]), ("check", &["left_out"])] {
        let ended = osier(&[command, &path, "--format", "json"]).with_status(0);
        let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
        let left_out = place.iter().fold(&document, |value, key| &value[*key]);
        let first = &left_out[0];
        assert_eq!((&first["name"], &first["feature"]), (&"lanes".into(), &"SIMD".into()));
        assert_eq!(left_out.as_array().map(Vec::len), Some(4));
    }
    let missing = osier(&["report", &path, "--func", "lanes"]).with_status(2);
    assert!(missing.stderr.contains("is left out"), "{}", missing.stderr);
}

#[test]
fn bytes_that_are_no_module_are_refused_with_a_place() {
    let folder = scratch();
    let binary = fs::read(corpus("matmul.wasm")).expect("readable");
    let cases: [(&str, &[u8], &str); 6] = [
        ("short.wasm", &binary[..binary.len() / 2], "short.wasm:"),
        ("version.wasm", b"\0asm\x02\0\0\0", "version.wasm:"),
        ("text.wat", b"(module (func", "text.wat:"),
        ("bad.oir", b"func @f() {\nentry:\n  jump nowhere\n}\n", "bad.oir:3:"),
        ("latin.oir", b"func @f\xe9() {}", "latin.oir:"),
        ("garbage", b"\x00\x01\x02", "garbage:"),
    ];
    for (name, bytes, place) in cases {
        let path = file(&folder, name, bytes);
        for command in COMMANDS {
            let ended = osier(&on(command, &path)).with_status(2);
            assert!(ended.stderr.contains(place), "{command}: {}", ended.stderr);
            assert_eq!(ended.stdout, "");
        }
    }
}

#[test]
fn a_mapping_is_judged_for_the_functions_asked_for() {
    let folder = scratch();
    let body =
        "(%a: i32) -> i32 {\nentry:\n  %z = const.i32 0\n  %s = add.i32 %a, %z\n  return %s\n}\n";
    let module = file(&folder, "two.oir", format!("func @f{body}func @g{body}"));
    let whole = osier(&["opt", &module, "--emit", "mapping"]).with_status(0).stdout;
    let header: String = whole.lines().take(4).map(|line| format!("{line}\n")).collect();
    let (first, second) =
        whole[header.len()..].split_at(whole.find("function g").expect("two") - header.len());
    let check = |text: &str, options: &[&str]| {
        let mapping = file(&folder, "m.map", text);
        osier(&[&["check", &module, "--mapping", &mapping], options].concat())
    };
    let both = check(&whole, &[]).with_status(0).stderr;
    let one = check(&whole, &["--func", "g"]).with_status(0).stderr;
    assert!(one.contains(" entries checked") && one != both, "{one}{both}");
    // No verdict, and so no success.
    for (text, options, cause) in [
        (
            header.replace("functions 2", "functions 0"),
            &[][..],
            "the file contains none of the functions to check",
        ),
        (header.clone(), &[], "the header announces 2 functions; the file has 0"),
        (format!("{header}{first}"), &[], "the header announces 2 functions; the file has 1"),
        (
            format!("{header}{first}").replace("functions 2", "functions 1"),
            &["--func", "g"],
            "the file contains none of the functions to check",
        ),
        (format!("{whole}{second}"), &[], "twice"),
        (whole.replace("level avail", "level none"), &[], "unknown level `none`"),
        // Certificates had such records once.
        (
            whole.replacen("\nmapping forward", "\npassed 3\nmapping forward", 1),
            &[],
            "expected `mapping forward`",
        ),
    ] {
        let ended = check(&text, options).with_status(2);
        assert!(ended.stderr.contains(cause), "{}", ended.stderr);
    }
    let long = check(&whole.replace("anchor ", &format!("anchor {}", "9".repeat(100_000))), &[])
        .with_status(2);
    assert!(long.stderr.len() < 400, "quotations are truncated");
}

/// The verdicts judge the mapping of the file: the changed entry is refused, and with a damaged
/// certificate all entries are.
#[test]
fn each_entry_of_a_damaged_mapping_has_a_verdict() {
    let folder = scratch();
    let path = kernel("queens", "");
    let whole = osier(&["opt", &path, "--emit", "mapping"]).with_status(0).stdout;
    let verdicts = |text: &str, status: i32| -> Vec<String> {
        let mapping = file(&folder, "m.map", text);
        let ended = osier(&["check", &path, "--mapping", &mapping, "--verdicts"]);
        let lines = ended.with_status(status).stdout;
        lines.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let sound = verdicts(&whole, 0);
    let entries = whole.lines().filter(|line| line.starts_with("entry ")).count();
    assert!(entries > 100 && sound.len() == entries, "{entries} entries: {}", sound.len());
    assert!(sound.iter().all(|line| line.ends_with(" accept")), "{sound:?}");
    let own = osier(&["check", &path, "--verdicts"]).with_status(0).stdout;
    assert!(own.starts_with(&(sound.join("\n") + "\n\n")), "those of the command's own mappings");

    let step = whole.lines().find(|line| line.starts_with("step add ")).expect("a sum");
    let damaged = verdicts(&whole.replacen(step, &step.replacen("add", "sub", 1), 1), 1);
    let differ = sound.iter().zip(&damaged).filter(|(sound, damaged)| sound != damaged);
    let differ: Vec<&String> = differ.map(|(_, damaged)| damaged).collect();
    assert!(matches!(&differ[..], [one] if one.ends_with(" refuse step-term")), "{differ:?}");

    let term = whole.lines().find(|line| line.starts_with("term 0 ")).expect("a term");
    let claims = verdicts(&whole.replacen(term, &format!("{} x", &term[..term.len() - 2]), 1), 2);
    assert!(claims.is_empty(), "a record that cannot be read has no verdict");
    let pair = whole.replacen(term, &term.replacen(" 0 itself ", " 1 itself ", 1), 1);
    let refused = verdicts(&pair, 1);
    let function = refused[0].split(' ').next().expect("its name").to_owned();
    let of_pair = refused.iter().filter(|line| line.split(' ').next() == Some(&function));
    let reasons: Vec<&str> =
        of_pair.map(|line| &line[line.find(" refuse").expect("refused")..]).collect();
    assert!(reasons.len() > 1 && reasons.iter().all(|r| *r == reasons[0]), "{reasons:?}");
}

/// The kernel inlines calls two deep, in some of its functions.
#[test]
fn mappings_with_inlined_code_are_judged_again_and_forgeries_are_refused() {
    let folder = scratch();
    let path = kernel("calls", "");
    let whole = osier(&["opt", &path, "--pipeline", "O3", "--emit", "mapping"]);
    let whole = whole.with_status(0).stdout;
    let check = |text: &str| {
        let mapping = file(&folder, "m.map", text);
        osier(&["check", &path, "--mapping", &mapping, "--format", "json"])
    };
    let judged = |text: &str, status: i32| {
        let ended = check(text).with_status(status);
        let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        (report, ended.stderr)
    };
    let (report, _) = judged(&whole, 0);
    let own = osier(&["check", &path, "--pipeline", "O3", "--format", "json"]).with_status(0);
    let own: Value = serde_json::from_str(&own.stdout).expect("JSON");
    assert_eq!((&report["held"], &report["dropped"]), (&own["held"], &own["dropped"]));
    let functions = report["functions"].as_array().expect("a list");
    assert!(functions.len() > 3 && whole.contains("\nversion after\n"), "{functions:?}");
    // A waiting frame is taken away: the entry is dropped, and its line and the cause are told.
    let lines: Vec<&str> = whole.lines().collect();
    let waiting = lines.iter().position(|l| l.starts_with("frame ") && l.contains(" within "));
    let waiting = waiting.expect("two frames");
    let entry = lines[..waiting].iter().rposition(|l| l.starts_with("frames ")).expect("its entry");
    let without = [&lines[..waiting], &lines[waiting + 1..], &[""]].concat().join("\n");
    let (report, message) = judged(&without, 1);
    assert_eq!(report["dropped"]["frame-count"], 1);
    let functions = report["functions"].as_array().expect("a list");
    let told = functions.iter().find_map(|f| f["refused_records"].get(0)).expect("a record");
    assert_eq!(told["line"], entry + 1);
    assert!(told["what"].as_str().is_some_and(|what| what.contains("frames; composed are 2")));
    assert!(message.contains("1 entries of the mapping do not hold"), "{message}");
    // The copy is claimed to come about in another way.
    let begins = lines.iter().position(|l| l.starts_with("begins 1 ")).expect("a claim");
    let wrong = whole.replacen(&format!("\n{}\n", lines[begins]), "\n", 1);
    let (report, _) = judged(&wrong, 1);
    assert!(report["dropped"]["copy"].as_u64() > Some(10), "{}", report["dropped"]);
    // A wrong claim is told without any entry that depends on it.
    let begin = wrong.find("mapping into ").expect("entries");
    let end = begin + wrong[begin..].find("\nend\n").expect("its end");
    let bare = format!("{}mapping into 0\nmapping out 0{}", &wrong[..begin], &wrong[end..]);
    let (report, message) = judged(&bare, 1);
    assert_eq!(report["dropped"].as_object().map(|d| d.len()), Some(0));
    assert!(message.contains("the copy: inst"), "{message}");
    // A landing is proved for functions that may be inlined, and for no others.
    let landing = lines.iter().find(|l| l.starts_with("landing ")).expect("a landing");
    for (text, cause) in [
        (whole.replacen(landing, "landing nobody", 1), "inline no function nobody"),
        (whole.replacen(",inline,", ",", 1), "the passes of the file inline no function"),
        (whole.replacen("version cleaned", "version before", 1), "expected `version cleaned`"),
        (whole.replacen("osier-mapping 3", "osier-mapping 2", 1), "expected `osier-mapping 3`"),
    ] {
        let ended = check(&text).with_status(2);
        assert!(ended.stderr.contains(cause), "{cause}: {}", ended.stderr);
    }
}

#[test]
fn findings_of_the_verifier_have_a_line() {
    let folder = scratch();
    let text = "func @f(%a: i32) -> i32 {\nentry:\n  %b = add.i32 %a, %c\n  %c = add.i32 %a, %a\n  return %b\n}\n";
    let path = file(&folder, "order.oir", text);
    let ended = osier(&["opt", &path]).with_status(2);
    assert!(ended.stderr.contains("order.oir:3: SSA-DOM-1 in @f"), "{}", ended.stderr);
}

#[test]
fn standard_input_is_a_file_too() {
    let binary = fs::read(corpus("matmul.wasm")).expect("readable");
    let ended = osier_with_input(&["run", "-", "--invoke", "matmul", "3"], &binary).with_status(0);
    assert!(!ended.stdout.is_empty());
    let text = "func @f() -> i32 {\nentry:\n  %a = const.i32 7\n  return %a\n}\n";
    let ended = osier_with_input(&["run", "-", "--invoke", "f"], text.as_bytes()).with_status(0);
    assert_eq!(ended.stdout, "7\n");
    osier_with_input(&["report", "-"], b"").with_status(2);
}

#[test]
fn webassembly_may_be_text() {
    let folder = scratch();
    let text = "(module (func (export \"seven\") (result i32) i32.const 3 i32.const 4 i32.add))";
    let path = file(&folder, "seven.wat", text);
    assert_eq!(osier(&["run", &path, "--invoke", "seven"]).with_status(0).stdout, "7\n");
    let optimized = osier(&["opt", &path, "--pipeline", "O1"]).with_status(0).stdout;
    assert!(optimized.contains("const.i32 7"), "{optimized}");
}

#[test]
fn printed_modules_can_be_read_again() {
    let folder = scratch();
    for pipeline in ["O0", "O1"] {
        let printed =
            osier(&["opt", &kernel("sort", ""), "--pipeline", pipeline]).with_status(0).stdout;
        let path = file(&folder, "sort.oir", &printed);
        assert_eq!(osier(&["opt", &path, "--pipeline", "O0"]).with_status(0).stdout, printed);
        let ended = osier(&["run", &path, "--", "500"]).with_status(0);
        assert_eq!(
            ended.stdout,
            fs::read_to_string(corpus("expected/sort.500.txt")).expect("readable")
        );
    }
}

/// Every command that writes to standard output.
fn writers() -> Vec<Vec<&'static str>> {
    let module = "tests/corpus/sort.wasm";
    vec![
        vec!["report", module],
        vec!["report", module, "--format", "html"],
        vec!["opt", module],
        vec!["opt", module, "--emit", "mapping"],
        vec!["check", module],
        vec!["explain", module, "--func", "quick", "--point", "block0"],
        vec!["fuzz", "--programs", "2", "--size", "20"],
        vec!["run", module, "--invoke", "quick", "9", "1"],
        vec!["--help"],
    ]
}

#[test]
fn a_reader_that_has_gone_is_no_failure_and_no_panic() {
    for args in writers() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = command(&args);
        let output = output(command.stdout(writer).stderr(Stdio::piped()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?} {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("cannot write"), "{stderr}");
    }
}

#[test]
fn diagnostics_that_nobody_reads_change_nothing() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    for (args, status) in
        [(["report", "tests/corpus/sort.wasm"], 0), (["report", "tests/corpus/missing.wasm"], 2)]
    {
        let writer = writer.try_clone().expect("another handle");
        let output = output(command(&args).stdout(Stdio::piped()).stderr(writer));
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(status), status == 2));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    for args in writers().into_iter().filter(|args| args[0] != "--help") {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let output = output(command(&args).stdout(full).stderr(Stdio::piped()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?} {stderr}");
        assert!(
            stderr.contains("cannot write standard output: No space left on device"),
            "{args:?} {stderr}"
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
    let ended = osier(&["report", "tests/corpus/sort.wasm", "-o", "/dev/full"]).with_status(2);
    assert!(
        ended.stderr.contains("cannot write /dev/full: No space left on device"),
        "{}",
        ended.stderr
    );
    // A program sees the write error itself, and its status reports it.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let args = ["run", "tests/corpus/sort.wasm", "--", "500"];
    let output = output(command(&args).stdout(full).stderr(Stdio::piped()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && !stderr.contains("panicked"), "{stderr}");
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_open_but_cannot_be_read_are_named() {
    // The first page of `/proc/self/mem` is never mapped, for any user.
    for name in COMMANDS {
        let ended = osier(&on(name, "/proc/self/mem")).with_status(2);
        assert!(
            ended.stderr.starts_with("osier: cannot read /proc/self/mem: "),
            "{}",
            ended.stderr
        );
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = scratch();
    let path = file(&folder, "secret.oir", "func @f() {\nentry:\n  return\n}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("ours");
    let ended = osier(&["opt", &path]);
    match fs::read(&path) {
        // A user who may read everything may read this file too.
        Ok(_) => drop(ended.with_status(0)),
        Err(_) => {
            let stderr = ended.with_status(2).stderr;
            assert!(
                stderr.contains("cannot read") && stderr.contains("Permission denied"),
                "{stderr}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_with_names_are_read_and_written() {
    let folder = scratch();
    let pipe = folder.path().join("pipe").display().to_string();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("there is a `mkfifo`")
            .success()
    );
    let module = fs::read(corpus("queens.wasm")).expect("readable");
    let wanted = osier(&["check", &kernel("queens", "")]).with_status(0).stdout;
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, &module).expect("the command reads it"));
        assert_eq!(osier(&["check", &pipe]).with_status(0).stdout, wanted);
    });
    std::thread::scope(|scope| {
        let read = scope.spawn(|| fs::read_to_string(&pipe).expect("the command writes it"));
        osier(&["check", &kernel("queens", ""), "-o", &pipe]).with_status(0);
        assert_eq!(read.join().expect("it reads"), wanted);
    });
    assert!(fs::metadata(&pipe).is_ok_and(|m| !m.is_file()), "it is still a pipe");
}

#[test]
fn a_file_larger_than_the_limit_is_refused_before_it_is_held() {
    for (path, input) in [("tests/corpus/sort.wasm", &b""[..]), ("-", &[b' '; 5000])] {
        let ended =
            osier_with_input(&["opt", path, "--max-input-bytes", "1000"], input).with_status(2);
        assert!(
            ended.stderr.contains("is larger than 1000 bytes (--max-input-bytes raises the limit)"),
            "{}",
            ended.stderr
        );
    }
    let ended = osier(&["opt", "/dev/zero", "--max-input-bytes", "100000"]).with_status(2);
    assert!(ended.stderr.contains("/dev/zero is larger than"), "{}", ended.stderr);
    let long = ["opt", "tests/corpus/sort.wasm", "--max-function-instructions", "2"];
    let (ended, hint) = (
        osier(&long).with_status(2),
        "the limit is 2 (--max-function-instructions raises the limit)",
    );
    assert!(ended.stderr.contains(hint), "{}", ended.stderr);
    // A function of 50,000 locals, in eleven bytes.
    let text = "(module (func (local i32) (nop)))";
    let many = wat::parse_str(text).expect("a module");
    let many: Vec<u8> = {
        let at = many.windows(2).position(|two| two == [1, 0x7f]).expect("one local");
        // The count of locals grows by two bytes, and so do the body and the section.
        let mut bytes = [&many[..at], &[0xd0, 0x86, 0x03][..], &many[at + 1..]].concat();
        bytes[at - 2] += 2;
        bytes[at - 4] += 2;
        bytes
    };
    let folder = scratch();
    let path = file(&folder, "locals.wasm", many);
    let ended = osier(&["opt", &path, "--max-import-bytes", "0"]).with_status(2);
    assert!(ended.stderr.contains("(--max-import-bytes raises the limit)"), "{}", ended.stderr);
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = scratch();
    let out = file(&folder, "out.json", "the previous contents");
    let bad = file(&folder, "bad.oir", "func");
    osier(&["report", &bad, "-o", &out]).with_status(2);
    assert_eq!(fs::read_to_string(&out).expect("readable"), "the previous contents");
    osier(&["report", &kernel("queens", ""), "--format", "json", "-o", &out]).with_status(0);
    let json = fs::read_to_string(&out).expect("readable");
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .expect("readable")
        .map(|e| e.expect("readable").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["bad.oir", "out.json"], "nothing else is left behind");
}

#[cfg(unix)]
#[test]
fn links_stay_and_their_targets_are_written() {
    use std::os::unix::fs::symlink;
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let report = |out: &str, status: i32| {
        let out = at(out).display().to_string();
        osier(&["report", &kernel("queens", ""), "--format", "json", "-o", &out])
            .with_status(status)
    };
    fs::create_dir(at("below")).expect("writable");
    file(&folder, "there.json", "the previous contents");
    symlink("there.json", at("to_file")).expect("a link");
    symlink("below/hop", at("to_nothing")).expect("a link");
    symlink("../made.json", at("below/hop")).expect("a link");
    symlink("round", at("round")).expect("a link");
    for (link, target) in [("to_file", "there.json"), ("to_nothing", "made.json")] {
        report(link, 0);
        let json = fs::read_to_string(at(target)).expect("readable");
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{target}");
    }
    let ended = report("round", 2);
    assert!(ended.stderr.contains("round"), "{}", ended.stderr);
    for link in ["to_file", "to_nothing", "below/hop", "round"] {
        assert!(at(link).is_symlink(), "{link}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_the_work() {
    let folder = scratch();
    let missing = folder.path().join("missing/out.txt").display().to_string();
    let a_folder = folder.path().display().to_string();
    let path = kernel("queens", "");
    for out in [&missing, &a_folder] {
        // Without `Output::check`, the commands tell times first, and `run` runs the program.
        for args in [
            &["report", &path, "-o", out][..],
            &["opt", &path, "-o", out],
            &["check", &path, "-o", out],
            &["explain", &path, "--func", "f", "--point", "entry", "-o", out],
            &["run", "--profile", out, &path],
            &["run", &format!("--stats={out}"), &path],
        ] {
            let ended = osier(args).with_status(2);
            let told = format!("osier: cannot write {out}: ");
            assert!(ended.stderr.starts_with(&told), "{args:?} {}", ended.stderr);
            assert_eq!(ended.stderr.lines().count(), 1, "{args:?} {}", ended.stderr);
            assert_eq!(ended.stdout, "", "{args:?}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("ours").count(), 0, "nothing is left behind");
}

#[test]
fn unknown_commands_and_names_are_bad_usage() {
    osier(&["lint", "tests/corpus/queens.wasm"]).with_status(2);
    osier(&["report", "tests/corpus/queens.wasm", "--pipeline", "nonsense"]).with_status(2);
    osier(&["report", "tests/corpus/queens.wasm", "--func", "nonsense"]).with_status(2);
    let twice = ["--pipeline", "O2", "--pipeline", "O1", "--pipeline", "O2"];
    let ended = osier(&[&["report", "tests/corpus/queens.wasm"], &twice[..]].concat());
    assert_eq!(ended.with_status(2).stderr, "osier: --pipeline: O2 is given twice\n");
    osier(&[]).with_status(2);
}

/// `dse` removes one of two equal writes, which leaves no certificate of the load between them, and
/// the retry gives the rewrite up.
#[test]
fn more_rewrites_given_up_than_allowed_fail() {
    let folder = scratch();
    let text = "memory @m 1\nglobal @g: mut i32 = 7\nfunc @f(%a: i32) -> i32 {\nentry:\n  \
        %z = const.i32 0\n  global_set.i32 @g, %a\n  store16.i32 @m[%z], %a\n  \
        global_set.i32 @g, %a\n  %b = uload8.i32 @m[%z]\n  global_set.i32 @g, %z\n  \
        store.i32 @m[%z], %b\n  return %b\n}\n";
    let path = file(&folder, "twice.oir", text);
    let check = ["check", &path, "--pipeline", "dse"];
    let with = |most: &str| osier(&[&check[..], &["--max-given-up", most]].concat());
    let beyond = with("0").with_status(1);
    assert!(beyond.stderr.contains("rewrites are given up, more than 0"), "{}", beyond.stderr);
    with("1000").with_status(0);
    osier(&check).with_status(0);
    osier(&[&check[..], &["--max-given-up", "0", "--no-retry"]].concat()).with_status(2);
}
