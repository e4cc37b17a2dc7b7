//! Output does not depend on the number of threads. After Ctrl-C, the command reports its findings
//! so far.

use crate::harness::{KERNELS, file, kernel, osier, scratch};
use serde_json::Value;

/// The document without the fields that depend on the clock.
fn untimed(text: &str) -> Value {
    let mut document: Value = serde_json::from_str(text).expect("JSON");
    for key in ["time", "seconds"] {
        if let Some(time) = document.get_mut(key) {
            time.take();
        }
    }
    document
}

/// The page without the times.
fn untimed_page(page: &str) -> String {
    let (before, rest) = page.split_once("<section aria-label=\"Times\">").unwrap_or((page, ""));
    let (_, after) = rest.split_once("</section>").unwrap_or(("", ""));
    [before, after].concat()
}

#[test]
fn the_number_of_threads_does_not_show() {
    for name in KERNELS.into_iter().step_by(3) {
        let path = kernel(name, "");
        for command in
            [&["report", &*path][..], &["report", &path, "--format", "html"], &["check", &path]]
        {
            let run =
                |jobs: &str| osier(&[command, &["--jobs", jobs]].concat()).with_status(0).stdout;
            assert!(untimed_page(&run("1")) == untimed_page(&run("3")), "{command:?}");
        }
        for command in ["report", "check"] {
            let run = |jobs: &str| {
                osier(&[command, &path, "--format", "json", "--jobs", jobs]).with_status(0).stdout
            };
            assert_eq!(untimed(&run("1")), untimed(&run("3")), "{command} {path}");
        }
    }
}

#[test]
fn exported_mappings_are_judged_by_several_threads_too() {
    let folder = scratch();
    let path = kernel("sort", "");
    let whole = osier(&["opt", &path, "--emit", "mapping"]).with_status(0).stdout;
    let mapping = file(&folder, "sort.map", &whole);
    let run = |jobs: &str| {
        osier(&["check", &path, "--mapping", &mapping, "--jobs", jobs]).with_status(0).stdout
    };
    assert_eq!(run("1"), run("3"));
    assert!(run("3").contains("  held "));
    // Wrong in every function: the command reports the first, whichever thread found one first.
    let wrong = file(&folder, "wrong.map", whole.replace("version after\n", "version aft\n"));
    let line =
        1 + whole.lines().position(|line| line == "version after").expect("a second version");
    for jobs in ["1", "3"] {
        let ended = osier(&["check", &path, "--mapping", &wrong, "--jobs", jobs]).with_status(2);
        assert!(
            ended.stderr.contains(&format!("wrong.map:{line}: expected `version after`")),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn the_times_of_several_threads_say_what_they_are() {
    let path = kernel("sort", "");
    let one = osier(&["report", &path, "--jobs", "1"]).with_status(0).stderr;
    assert!(one.contains(" s in all") && !one.contains("threads"), "{one}");
    let three = osier(&["report", &path, "--jobs", "3", "--format", "json"]).with_status(0);
    assert!(three.stderr.contains("(work of 3 threads, added up)"), "{}", three.stderr);
    let report: Value = serde_json::from_str(&three.stdout).expect("JSON");
    assert_eq!(report["time"]["jobs"], 3);
    assert!(report["time"]["elapsed"].as_f64() > Some(0.0));
    osier(&["report", &path, "--jobs", "0"]).with_status(2);
}

#[cfg(target_os = "linux")]
mod interrupted {
    use crate::harness::{DEADLINE, Running, file, osier, root, scratch};
    use std::fs;
    use std::process::{Command, Output, Stdio};
    use std::time::{Duration, Instant};

    /// Whether the process handles SIGINT.
    fn listens(process: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .expect("a line of signals");
        u64::from_str_radix(caught.trim(), 16).expect("a mask") & 2 != 0
    }

    /// Whether `env` has made way for the command.
    fn is_osier(process: u32) -> bool {
        let executed = fs::read_link(format!("/proc/{process}/exe")).expect("a process");
        executed == fs::canonicalize(env!("CARGO_BIN_EXE_osier")).expect("the command is a file")
    }

    /// Runs the command and sends SIGINT as soon as `ready` accepts the process.
    ///
    /// The command begins with the default action of SIGINT. A process that a script starts in the
    /// background, and one under `nohup`, ignores the signal and passes that on to its children.
    fn interrupted(args: &[&str], ready: fn(u32) -> bool) -> Output {
        signalled("INT", args, ready)
    }

    /// Like [`interrupted`], with another signal.
    fn signalled(signal: &str, args: &[&str], ready: impl Fn(u32) -> bool) -> Output {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_osier")]).args(args);
        command.current_dir(root());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command);
        let process = running.process().id();
        let started = Instant::now();
        while !ready(process) {
            let ended = running.process().try_wait().expect("the process can be waited for");
            assert!(ended.is_none(), "the command ended before the signal: {ended:?}");
            assert!(started.elapsed() < DEADLINE, "the command is not ready for the signal");
            std::thread::sleep(Duration::from_millis(5));
        }
        let sent =
            Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).status();
        assert!(sent.expect("there is a `kill`").success());
        running.output()
    }

    fn stderr(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A module of so many functions that an interrupt comes before the last.
    fn many() -> String {
        let body = "(%a: i32) -> i32 {\nentry:\n  %z = const.i32 0\n  jump head(%a, %z)\nhead(%i: i32, %s: i32):\n  \
                    %m = mul.i32 %a, %a\n  %t = add.i32 %s, %m\n  %one = const.i32 1\n  %n = sub.i32 %i, %one\n  \
                    br_if %n, head(%n, %t), done\ndone:\n  return %t\n}\n";
        (0..20_000).map(|number| format!("func @f{number}{body}")).collect()
    }

    #[test]
    fn an_interrupted_report_covers_complete_functions_and_writes_no_file() {
        let folder = scratch();
        let path = file(&folder, "many.oir", many());
        let out = file(&folder, "out.json", "the previous contents");
        for args in [
            &["report", &*path, "--format", "json", "-o", &out][..],
            &["report", &path, "--format", "json", "--jobs", "1"],
            &["check", &path, "--format", "json"],
        ] {
            let output = interrupted(args, listens);
            assert_eq!(output.status.code(), Some(130), "{args:?} {}", stderr(&output));
            let document: serde_json::Value =
                serde_json::from_slice(&output.stdout).expect("a whole document");
            assert_eq!(document["interrupted"], true);
            let done = document["functions"].as_array().expect("a list").len();
            assert!(
                done < 20_000 && stderr(&output).contains(&format!("interrupted: {done} of 20000")),
                "{args:?}"
            );
        }
        assert_eq!(fs::read_to_string(&out).expect("readable"), "the previous contents");
        assert_eq!(
            fs::read_dir(folder.path()).expect("readable").count(),
            2,
            "nothing is left behind"
        );
    }

    /// A seed that marks the processes of a test, and of no other run of it.
    fn seed() -> String {
        format!("7700770077{}", std::process::id())
    }

    /// The number of processes that judge native code with this seed.
    fn children(seed: &str) -> usize {
        processes(&[seed, "--native-cases"])
    }

    /// The number of processes whose command has these words.
    fn processes(needed: &[&str]) -> usize {
        let is_child = |process: &fs::DirEntry| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            needed.iter().all(|word| words.contains(&word.as_bytes()))
        };
        fs::read_dir("/proc").expect("processes").filter_map(Result::ok).filter(is_child).count()
    }

    /// A service ends a job by SIGTERM, and children that run native code must not outlive it.
    #[test]
    fn a_fuzzer_ended_by_a_service_reports_its_figures_and_leaves_no_child() {
        let seed = seed();
        let args = ["fuzz", "--engine", "jit", "--time", "1000", "--jobs", "2", "--seed", &seed];
        let args = [&args[..], &["--format", "json"]].concat();
        let output = signalled("TERM", &args, |process| listens(process) && children(&seed) > 0);
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("a whole document");
        assert_eq!(document["interrupted"], true);
        assert_eq!(children(&seed), 0, "children are left behind");
    }

    /// A killed command has no time to kill its children.
    #[test]
    fn a_killed_fuzzer_leaves_no_child() {
        use std::os::unix::process::ExitStatusExt;
        let seed = seed() + "1";
        let args = ["fuzz", "--engine", "jit", "--time", "1000", "--jobs", "2", "--seed", &seed];
        let has_child = || children(&seed) > 0;
        let output = signalled("KILL", &args, |process| listens(process) && has_child());
        assert_eq!(output.status.signal(), Some(9));
        let started = Instant::now();
        while has_child() {
            assert!(started.elapsed() < DEADLINE, "children are left behind");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_killed_replay_leaves_no_process() {
        use std::os::unix::process::ExitStatusExt;
        let folder = scratch();
        let case = serde_json::json!({
            "module": "func @f() {\nentry:\n  jump again\nagain:\n  jump again\n}\n", "entry": "f",
            "arguments": [[]], "fuel": 1_u64 << 40, "steps": [["gvn"]], "rewrites": u64::MAX,
            "level": "avail", "seed": 3,
        });
        let record = serde_json::json!({
            "schema": 1, "key": "state-any-0", "oracle": "state", "guilty": null, "place": "",
            "message": "", "reproduce": "", "options": ["--seed", "3"], "case_time": 500,
            "instructions": 2, "case": case, "test": null,
        });
        let path = file(&folder, "endless.json", record.to_string());
        let has_child = || processes(&["--for-replay", &path]) > 0;
        let output = signalled("KILL", &["fuzz", "--replay", &path], |_| has_child());
        assert_eq!(output.status.signal(), Some(9));
        let started = Instant::now();
        while has_child() {
            assert!(started.elapsed() < DEADLINE, "a process is left behind");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_interrupted_fuzzer_reports_its_figures() {
        let args = ["fuzz", "--time", "1000", "--jobs", "2", "--format", "json"];
        let output = interrupted(&args, listens);
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("a whole document");
        assert_eq!(document["interrupted"], true);
        assert!(stderr(&output).ends_with("osier: interrupted\n"), "{}", stderr(&output));
    }

    #[test]
    fn a_program_that_runs_ends_by_the_signal() {
        use std::os::unix::process::ExitStatusExt;
        let folder = scratch();
        let path = file(
            &folder,
            "forever.oir",
            "func @f() {\nentry:\n  jump again\nagain:\n  jump again\n}\n",
        );
        let output = interrupted(&["run", &path, "--invoke", "f"], is_osier);
        assert_eq!(output.status.signal(), Some(2));
    }

    /// A profile of a server, or of a run that takes too long, is that of the run so far.
    #[test]
    fn an_interrupted_run_writes_its_profile_and_its_figures() {
        let folder = scratch();
        let module = "cli/tests/cli/golden/forever.oir";
        let profile = folder.path().join("forever.profile").display().to_string();
        for engine in ["interp", "jit"] {
            let options = ["run", "--engine", engine, "--stats", "--profile", &profile, module];
            let output = interrupted(&options, listens);
            assert_eq!(output.status.code(), Some(130), "{engine} {}", stderr(&output));
            let told = stderr(&output);
            let json = told.strip_suffix("osier: interrupted\n").expect("the end of the run");
            let stats: serde_json::Value = serde_json::from_str(json).expect("figures");
            assert_eq!(stats["interrupted"], true, "{engine} {stats}");
            let written = fs::read_to_string(&profile).expect("a profile");
            assert!(written.starts_with("{\"profile\":1,"), "{engine} {written}");
            assert_eq!(osier(&["report", "--profile", &profile, module]).status, 0);
        }
        let options = ["run", "--engine", "tiered", "--stats", module];
        let output = interrupted(&options, listens);
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(stderr(&output).contains("\"interrupted\": true"), "{}", stderr(&output));
    }
}
