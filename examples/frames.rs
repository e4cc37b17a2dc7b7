//! temporary
use osier::driver::{Format, NoObserver, load};
use osier::inlining::{CalleeLandings, InlinePlan, NotInlined, inline};
use passes::InlinePolicy;
use std::collections::BTreeMap;
fn main() {
    let file = std::env::args().nth(1).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let format = if file.ends_with(".oir") { Format::Oir } else { Format::Wasm };
    let module = load(format, &bytes).unwrap();
    let o2 = passes::parse("O2").unwrap();
    let plan = InlinePlan { first: o2.clone(), policy: InlinePolicy::default(), last: o2 };
    let landings = CalleeLandings::new(&module);
    let mut tot: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut why: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut depth = BTreeMap::new();
    let (mut with, mut without, mut held, mut dropped, mut refuted) = (0, 0, 0, 0, 0);
    let mut growth = (0usize, 0usize);
    for (func, base) in module.defined() {
        match inline(&module, func, &plan, &landings, &mut NoObserver) {
            Ok(i) => {
                with += 1;
                held += i.checked.held;
                dropped += i.checked.all_dropped();
                refuted += i.checked.refuted;
                let g = i.growth();
                growth = (growth.0 + g.0, growth.1 + g.1);
                let e = tot.entry("up").or_default();
                e.0 += i.points[0].len();
                e.1 += i.points[0].len() - i.lost[0].len();
                for (_, r) in &i.lost[0] {
                    *why.entry(("up", r)).or_default() += 1;
                }
                for p in &i.points[1] {
                    let kind = match i.origin(*p) {
                        Some((0, _)) => "down own",
                        Some(_) => "down inlined",
                        None => "down ?",
                    };
                    let e = tot.entry(kind).or_default();
                    e.0 += 1;
                    e.1 += i.down.entry(*p).is_some() as usize;
                    if let Some(e) = i.down.entry(*p) {
                        *depth.entry(e.frames.len()).or_insert(0usize) += 1;
                    }
                }
                for (_, r) in &i.lost[1] {
                    *why.entry(("down", r)).or_default() += 1;
                }
                if std::env::var("VERBOSE").is_ok()
                    && (!i.lost[0].is_empty() || !i.lost[1].is_empty())
                {
                    println!(
                        "{} lost {:?} {:?}",
                        base.name(),
                        i.lost[0].iter().take(4).collect::<Vec<_>>(),
                        i.lost[1].iter().take(4).collect::<Vec<_>>()
                    );
                }
            }
            Err(NotInlined::NoCall) => without += 1,
            Err(e) => println!("{}: {e:?}", base.name()),
        }
    }
    println!(
        "{with} with, {without} without; held {held} dropped {dropped} refuted {refuted}; growth {growth:?}"
    );
    for (k, (a, b)) in tot {
        println!("{k}: {b} of {a} = {:.3} %", 100.0 * b as f64 / a as f64);
    }
    println!("{why:?} depths {depth:?}");
}
