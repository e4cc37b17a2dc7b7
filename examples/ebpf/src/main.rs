//! Judges and measures the back end.

use osier_ebpf::interpreter::Profile;
use osier_ebpf::program::Program;
use osier_ebpf::runtime::{Mode, Native, profile};
use osier::inlining::PassPlan;
use osier::passes::parse;
use osier_ebpf::kernels::{self, Kernel};
use rbpf::ebpf;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

fn mix(a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    a.wrapping_mul(31).wrapping_add(b ^ c).wrapping_add(d * e)
}

fn helpers() -> Arc<HashMap<u32, ebpf::Helper>> {
    Arc::new(HashMap::from([(1, mix as ebpf::Helper)]))
}

fn plan(name: &str) -> PassPlan {
    PassPlan::parse(name).expect("known")
}

fn time(mut run: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        let mut n = 0;
        while start.elapsed().as_millis() < 10 {
            for _ in 0..100 {
                run();
            }
            n += 100;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / n as f64);
    }
    best
}

fn row(kernel: &Kernel) {
    let bytes = rbpf::assembler::assemble(&kernel.text).expect("it assembles");
    let program = Arc::new(Program::new(&bytes, |_| 256).expect("it decodes"));
    let helpers = helpers();
    let mut packet = kernel.packet.clone();
    let mut peer = rbpf::EbpfVmRaw::new(Some(&bytes)).expect("verified");
    let peer_packet: &mut [u8] = Box::leak(packet.clone().into());
    peer.register_helper(1, mix).expect("registered");
    let at = Instant::now();
    peer.cranelift_compile().expect("compiled");
    let compiled = at.elapsed();
    let wanted = {
        let copy: &mut [u8] = Box::leak(packet.clone().into());
        peer.execute_program_cranelift(copy).expect("runs")
    };
    let raw = peer_packet.as_mut_ptr();
    let len = peer_packet.len();
    let peer_time = time(|| {
        #[allow(unsafe_code)]
        let again: &'static mut [u8] = unsafe { std::slice::from_raw_parts_mut(raw, len) };
        std::hint::black_box(peer.execute_program_cranelift(again).expect("runs"));
    });
    print!("{:28} peer {:8.1?} {:9.1} ns", kernel.name, compiled, peer_time);
    let mut counts = Profile::default();
    let seen = profile(&program, &helpers, &mut packet, &mut counts).expect("runs");
    assert_eq!(seen, wanted, "{}", kernel.name);
    let modes = [
        ("O0", Mode::Native(plan("O0"))),
        ("O1", Mode::Native(plan("O1"))),
        ("O3", Mode::Native(plan("O3"))),
        ("assuming", Mode::Assuming(parse("O1").expect("known"), counts)),
    ];
    for (name, mode) in modes {
        if name == "assuming" && program.insns.len() > 500 && std::env::args().nth(2).is_none() {
            continue;
        }
        let at = Instant::now();
        let mut ours = Native::new(&program, &helpers, &[], false, &mode).expect("compiles");
        let compiled = at.elapsed();
        assert_eq!(ours.run(&mut packet, &mut []).expect("runs"), wanted, "{} {name}", kernel.name);
        let taken = time(|| _ = std::hint::black_box(ours.run(&mut packet, &mut []).expect("runs")));
        print!(" | {name} {compiled:8.1?} {taken:9.1} ns {:5.2} {:6} B", taken / peer_time, ours.counts().0);
        if std::env::var("CLIF").is_ok_and(|n| n == name) { eprintln!("{}", ours.clif()); }
    }
    println!();
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|arg| arg == "fuzz") {
        let seed: u64 = args[2].parse().expect("a seed");
        let count: u64 = args[3].parse().expect("a count");
        let mut counts = osier_ebpf::fuzz::Counts::default();
        let mut failed = 0;
        for seed in seed..seed + count {
            if let Err(what) = osier_ebpf::fuzz::compare(seed, &mut counts) {
                println!("seed {seed}: {what}");
                failed += 1;
            }
        }
        println!("{counts:?}, {failed} failed");
        return;
    }
    for turns in [67, 134, 334, 667] {
        row(&kernels::straight(turns));
    }
    for kernel in kernels::kernels() {
        if kernel.name != "local call" { row(&kernel); }
    }
}
