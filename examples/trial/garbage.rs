//! Garbled certificates: the checker must not panic. The command also counts the garbled entries
//! that the checker accepts; garbling may leave an entry correct.

use crate::cases::cases;
use check::relate;
use check::verdict::Options;
use std::io::Write as _;
use transition::Side;
use verify::damage::garble;
use verify::prng::Prng;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many certificates
    #[arg(long, default_value_t = 100_000)]
    certificates: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The size of the programs
    #[arg(long, default_value_t = 6)]
    size: u32,
}

pub(crate) fn run(args: &Args) -> bool {
    let (mut done, mut programs) = (0u64, 0);
    let (mut related, mut held, mut entries) = (0u64, 0u64, 0u64);
    while done < args.certificates {
        let seed = args.seed + programs;
        programs += 1;
        let (program, cases) = cases(seed, args.size);
        let mut prng = Prng::new(seed ^ 0x6a12_ba6e);
        for case in &cases {
            let (certificate, facts) = case.certificate(case.mappings.as_ref());
            for _ in 0..2000 {
                let (mut certificate, mut facts) = (certificate.clone(), facts.clone());
                let mut mappings = case.mappings.clone();
                garble(&mut prng, &mut certificate, &mut facts, &mut mappings);
                done += 1;
                let Ok(relation) = relate(
                    &program.module,
                    case.versions.as_ref(),
                    &certificate,
                    Options::default(),
                ) else {
                    continue;
                };
                related += 1;
                for side in Side::BOTH {
                    let verdicts = relation.judge(
                        side,
                        &mappings[side],
                        &facts[side],
                        &[&mappings[side.other()]],
                    );
                    entries += verdicts.len() as u64;
                    held += verdicts.iter().filter(|v| v.holds()).count() as u64;
                }
            }
        }
    }
    let text = format!(
        "{done} garbled certificates of {programs} programs, no panic; {related} still relate the versions, \
         and of the {entries} garbled entries judged with them {held} hold\n"
    );
    std::io::stdout().write_all(text.as_bytes()).expect("standard output can be written");
    true
}
