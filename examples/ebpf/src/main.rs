//! Judges and measures the back end.
//!
//!     osier-ebpf tests             the tests of the runtime itself, over this back end
//!     osier-ebpf random SEED N     random programs in every mode, against the runtime's own
//!     osier-ebpf table [slow]      the table of the README

use osier_ebpf::{bench, fuzz, kernels, theirs};
use std::process::ExitCode;

fn random(args: &[String]) -> Result<(), String> {
    let number = |at: usize| -> Result<u64, String> {
        let text = args.get(at).ok_or("usage: random SEED COUNT")?;
        text.parse().map_err(|_| format!("`{text}` is no number"))
    };
    let (seed, count) = (number(0)?, number(1)?);
    let (mut counts, mut failed) = (fuzz::Counts::default(), 0);
    for seed in seed..seed + count {
        if let Err(what) = fuzz::compare(seed, &mut counts) {
            println!("seed {seed}: {what}");
            failed += 1;
        }
    }
    println!("{counts:?}");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} programs differ")) }
}

fn table(args: &[String]) -> Result<(), String> {
    let slow = args.first().is_some_and(|arg| arg == "slow");
    let mut straight = vec![kernels::nothing()];
    straight.extend([67, 134, 334, 667].map(kernels::straight));
    straight.extend([334, 667].map(kernels::asking));
    bench::table(&straight, 5, slow, &mut |line| println!("{line}"))?;
    println!();
    bench::table(&kernels::kernels(), 7, slow, &mut |line| println!("{line}"))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let made = match args.first().map(String::as_str) {
        Some("tests") => theirs::run(),
        Some("random") => random(&args[1..]),
        Some("table") => table(&args[1..]),
        _ => Err("usage: osier-ebpf tests | random SEED COUNT | table [slow]".to_owned()),
    };
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("osier-ebpf: {what}");
            ExitCode::FAILURE
        }
    }
}
