//! The file format.

use super::{FUEL, LOOP, both, kernel, parsed, profiled};
use interp::Program;
use osier::profile::{FORMAT, Profile};

#[test]
fn a_file_gives_the_profile_that_was_written() {
    for name in ["vm", "calls", "words"] {
        let module = kernel(name);
        let entry = module.lookup("_start").expect("it is exported");
        let [profile, _] = both(&module, &Program::new(&module), entry, &[], FUEL);
        assert!(profile.functions.len() > 5, "{name}");
        let text = profile.write(&module);
        assert_eq!(Profile::read(&text, &module), Ok(profile), "{name}");
    }
}

/// A change of a file, and the message that follows.
fn refused(from: &str, to: &str, message: &str) {
    let module = parsed(LOOP);
    let text = profiled(&module, &[50]).write(&module);
    assert!(text.contains(from), "{from} is not in {text}");
    let error = Profile::read(&text.replacen(from, to, 1), &module).expect_err(to);
    assert_eq!(error.to_string(), message, "{from} to {to}");
}

#[test]
fn files_that_do_not_fit_are_refused_by_name() {
    let module = parsed(LOOP);
    let text = profiled(&module, &[50]).write(&module);
    let error = Profile::read(&text, &parsed(&LOOP.replace("ugt", "ult"))).expect_err("it differs");
    assert_eq!(error.to_string(), "the profile is of another module: the body of f differs");
    let format = format!("\"profile\":{FORMAT}");
    refused(&format, "\"profile\":2", "the profile has format 2; this program reads format 1");
    let other = "the profile is of another module: ";
    refused("\"func\":0", "\"func\":9", &format!("{other}this one has no function one"));
    refused("\"func\":0", "\"func\":4294967295", &format!("{other}this one has no function one"));
    let f = |what: &str| format!("f: {what}");
    refused("\"at\":5,", "\"at\":50,", &f("it has no instruction 50"));
    refused("\"at\":5,", "\"at\":4,", &f("instruction 4: ugt is no branch"));
    refused("\"at\":5,", "\"at\":11,", &f("instruction 11: it occurs twice"));
    refused("[0,50]", "[0,50,1]", &f("instruction 5: 3 sides for 2 targets"));
    refused("[0,50]", "[0]", &f("instruction 5: 1 sides for 2 targets"));
    refused("\"at\":8", "\"at\":9", &f("instruction 9: add is no indirect call"));
    refused(
        "\"index\":0",
        "\"index\":4294967296",
        &f("instruction 8: 0x100000000 does not fit i32"),
    );
    refused(
        "\"func\":0,\"calls\":50",
        "\"func\":7,\"calls\":50",
        &f("instruction 8: the module has no function 7"),
    );
    refused("[\"0x32\"]", "[]", &f("0 arguments for 1 parameters"));
    refused("[\"0x32\"]", "[\"0x100000000\"]", &f("0x100000000 does not fit i32"));
    refused("\"at\":3,", "\"at\":4,", &f("instruction 4: ugt is no load"));
    refused("\"0x64\"", "\"0x6400000000\"", &f("instruction 3: 0x6400000000 does not fit i32"));
}

#[test]
fn text_that_is_no_profile_is_refused() {
    let module = parsed(LOOP);
    let good = profiled(&module, &[50]).write(&module);
    let twice = format!("{good}{good}");
    let deep = "[".repeat(100_000);
    let line = good.lines().nth(1).expect("a function");
    let doubled = good.replacen(line, &format!("{line}\n{line}"), 1);
    for text in ["", "{}", "[]", "\u{0}", &deep, &twice, &good[..good.len() / 2], &doubled[..]] {
        let error = Profile::read(text, &module).expect_err(text).to_string();
        assert!(error.starts_with("it is not a profile: ") || error.contains("twice"), "{error}");
        assert!(error.len() < 1_000, "{error}");
    }
    let unknown = good.replacen("\"calls\":", "\"calls\":1,\"more\":", 1);
    assert!(Profile::read(&unknown, &module).is_err());
    let signed = good.replacen("\"0x64\"", "\"0x+64\"", 1);
    assert!(Profile::read(&signed, &module).is_err());
}
