//! Tells in words why the certificate claims that two values are equal.

use crate::explain::words::Told;
use ir::rules::RULES;
use ir::text::print_literal;
use ir::{Imm, Opcode, Value};
use std::collections::BTreeMap;
use transition::certificate::{By, Certificate, NO_TERM, Term, TermId, TermKind};
use transition::{Pair, Side};

/// The claims of a certificate, arranged for look-up by value and by class.
pub(super) struct CertificateClaims<'a> {
    told: &'a Told<'a>,
    certificate: &'a Certificate,
    /// By side: the term of each value.
    terms: Pair<BTreeMap<Value, TermId>>,
    /// By side: the values of each class, in ascending order.
    classes: Pair<BTreeMap<TermId, Vec<Value>>>,
}

impl<'a> CertificateClaims<'a> {
    /// Cost: near linear in the values of the certificate.
    pub(super) fn new(told: &'a Told<'a>, certificate: &'a Certificate) -> CertificateClaims<'a> {
        let values = |side: Side| &certificate.sides[side as usize].values;
        let terms = Pair::from_fn(|side| values(side).iter().copied().collect());
        let classes = Pair::from_fn(|side| {
            let mut classes: BTreeMap<TermId, Vec<Value>> = BTreeMap::new();
            for (value, term) in values(side) {
                if let Some(term) = certificate.terms.get(*term as usize) {
                    classes.entry(term.class).or_default().push(*value);
                }
            }
            classes
        });
        CertificateClaims { told, certificate, terms, classes }
    }

    /// The term of a value; [`NO_TERM`] without a claim.
    pub(super) fn term(&self, side: Side, value: Value) -> TermId {
        self.terms[side].get(&value).copied().unwrap_or(NO_TERM)
    }

    /// At most `most` values of the other version that are claimed to equal a value; the value of
    /// the same id comes first. A class may have as many values as the version.
    pub(super) fn alike(&self, side: Side, value: Value, most: usize) -> Vec<Value> {
        let term = self.get(self.term(side, value));
        let class = term.and_then(|term| self.classes[side.other()].get(&term.class));
        let Some(class) = class else { return Vec::new() };
        let same = class.binary_search(&value).is_ok().then_some(value);
        let others = class.iter().copied().filter(|other| *other != value);
        same.into_iter().chain(others).take(most).collect()
    }

    /// The constant that a value always holds, in the text form.
    pub(super) fn constant(&self, side: Side, value: Value) -> Option<String> {
        let term = self.get(self.term(side, value))?;
        literal(self.get(term.class)?)
    }

    fn get(&self, id: TermId) -> Option<&'a Term> {
        self.certificate.terms.get(id as usize)
    }

    /// The reason why two terms stand for equal contents. `None` without such a claim in the
    /// certificate.
    pub(super) fn why(&self, a: TermId, b: TermId) -> Option<String> {
        let (first, second) = (self.get(a)?, self.get(b)?);
        if first.class != second.class {
            return None;
        }
        if a == b {
            return Some(self.same(first));
        }
        let reasons: Vec<String> =
            [first, second].into_iter().filter_map(|term| self.by(term)).collect();
        Some(match reasons.is_empty() {
            true => self.same(first),
            false => reasons.join("; "),
        })
    }

    /// Why two values of one term are equal.
    fn same(&self, term: &Term) -> String {
        match &term.kind {
            TermKind::Argument(index) => format!("both are argument {index} of the call"),
            TermKind::Param => "a block parameter that both versions bind alike".to_owned(),
            TermKind::Result(inst, _) => {
                format!("both are the result of {}, which both execute", self.told.inst(*inst))
            }
            TermKind::MemoryAtEntry | TermKind::MemoryParam | TermKind::MemoryAfter(_) => {
                "memory is equal".to_owned()
            }
            TermKind::Op { opcode: Opcode::Const, .. } => "both are this constant".to_owned(),
            TermKind::Op { opcode, .. } => {
                format!("both are {} of operands that are equal", opcode.name())
            }
        }
    }

    /// The reason why a term belongs to its class. `None` for the first term of the class.
    fn by(&self, term: &Term) -> Option<String> {
        let class = || self.get(term.class).and_then(literal);
        Some(match &term.by {
            By::Itself => return None,
            By::Folding => match class() {
                Some(constant) => format!("the operation on constants gives {constant}"),
                None => "an operation on constants".to_owned(),
            },
            By::Sum { .. } => "both add the same constant to the same value".to_owned(),
            By::Rule { rule, .. } => match RULES.get(*rule as usize) {
                Some(rule) => format!("by the rule {}", rule.name),
                None => "by a rule that the embedder declares".to_owned(),
            },
            By::Apart { .. } => "the store before this read writes another place".to_owned(),
            By::Stored { .. } => {
                "this read gives back the contents of the store before it".to_owned()
            }
            By::Covers { .. } => "this store overwrites an earlier one".to_owned(),
            By::Swaps { .. } => "two stores to different places, in either order".to_owned(),
            By::Merged { .. } => {
                "on every way into the block, this read has the same contents".to_owned()
            }
        })
    }
}

/// The literal of a term that is a constant.
fn literal(term: &Term) -> Option<String> {
    match &term.kind {
        TermKind::Op { opcode: Opcode::Const, ty, imm: Imm::Bits(bits), .. } => {
            Some(print_literal(*ty, *bits))
        }
        _ => None,
    }
}
