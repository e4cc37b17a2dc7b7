//! Finds the places at which the two versions of a pair are not proved alike: the anchor and its
//! operand, the two terms, and the action that made the versions differ.
//!
//! The operands of an anchor often differ because of something further up. Example: `%c` is `neg
//! %b` in both versions, and a pass has replaced `%b` by `%a`. The operand of the call is `%c` in
//! both, and the action to blame is about `%b`. So the search climbs from the operand, through
//! definitions that both versions have. It ends where no operand differs.

use super::words::Told;
use crate::blame::History;
use crate::listing::NamedVersion;
use crate::schema::UnprovedPlace;
use check::UnprovedAnchor;
use check::verdict::Place;
use derive::driver::{Derived, Proved};
use ir::{Block, Edge, Function, Imm, Inst, Module, Opcode, Value, ValueDef};
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::{Certificate, NO_TERM, TermId, TermKind};
use transition::{Pair, Side};

/// Definitions that the search for the cause looks at.
const MAX_STEPS: usize = 256;

/// The depth to which a term is spelled out.
const DEPTH: usize = 3;

/// The places at which two versions are not proved alike, in the order in which the checker met
/// them: at most `most`. Cost: linear in the versions and the certificate; and in the log, for each
/// place.
///
/// # Panics
/// If `certified` was made from other versions.
pub fn unproved(
    module: &Module,
    base: &Function,
    derived: &Derived,
    certified: &Proved,
    most: usize,
) -> Vec<UnprovedPlace> {
    if certified.unproved.is_empty() {
        return Vec::new();
    }
    let told = Told {
        base: NamedVersion::new(module, base),
        opt: NamedVersion::new(module, &derived.function),
        history: History { base, opt: &derived.function, log: &derived.log },
    };
    let differences = Differences::new(&told, &certified.certificate);
    certified.unproved.iter().take(most).map(|unproved| differences.told(unproved)).collect()
}

/// The claims of a certificate, arranged for look-up.
pub(super) struct Differences<'a> {
    told: &'a Told<'a>,
    certificate: &'a Certificate,
    /// By side: the term of each value.
    terms: Pair<BTreeMap<Value, TermId>>,
}

impl<'a> Differences<'a> {
    pub(super) fn new(told: &'a Told<'a>, certificate: &'a Certificate) -> Differences<'a> {
        let terms = |side: Side| certificate.sides[side as usize].values.iter().copied().collect();
        Differences { told, certificate, terms: Pair::from_fn(terms) }
    }

    /// Describes one place.
    pub(super) fn told(&self, unproved: &UnprovedAnchor) -> UnprovedPlace {
        let UnprovedAnchor { anchor, finding, classes } = *unproved;
        let operands = match finding.at {
            Place::Operand(inst, index) => self.operands(inst, index),
            Place::Term(leaf) => self.bound_to(leaf),
            _ => None,
        };
        let roots = operands.map(|operands| self.roots(operands));
        let term = |side: Side| classes.map(|classes| self.term(classes[side], DEPTH));
        let value = |side: Side| operands.map(|values| self.told.value(values[side]));
        let history = &self.told.history;
        let of_values = roots.and_then(|Pair { before, after }| {
            let both = || Some(before).filter(|_| before == after).and(history.of_value(before));
            history.of_replaced(before, after).or_else(both).or_else(|| history.of_value(after))
        });
        let blame = of_values.or_else(|| history.of_inst(anchor));
        UnprovedPlace {
            check: finding.check.name(),
            anchor: self.told.inst(anchor),
            at: finding.at.to_string(),
            base: value(Side::Before),
            opt: value(Side::After),
            base_term: term(Side::Before),
            opt_term: term(Side::After),
            blame: blame.map(|number| self.told.done(number)),
        }
    }

    fn f(&self, side: Side) -> &'a Function {
        match side {
            Side::Before => self.told.base.version,
            Side::After => self.told.opt.version,
        }
    }

    /// An operand of a common instruction, by version.
    fn operands(&self, inst: Inst, index: u32) -> Option<Pair<Value>> {
        let of = |side: Side| {
            let f = self.f(side);
            f.has_inst(inst).then(|| f.inst(inst).args.get(index as usize).copied()).flatten()
        };
        Some(Pair::new(of(Side::Before)?, of(Side::After)?))
    }

    /// The parameter that binds a leaf, in each version.
    fn bound_to(&self, leaf: TermId) -> Option<Pair<Value>> {
        let of = |side: Side| {
            let mut values = self.terms[side].iter();
            values.find(|(_, term)| **term == leaf).map(|(value, _)| *value)
        };
        Some(Pair::new(of(Side::Before)?, of(Side::After)?))
    }

    /// The class of a value; [`NO_TERM`] without a claim.
    fn class(&self, side: Side, value: Value) -> TermId {
        let term = self.terms[side].get(&value);
        let term = term.and_then(|term| self.certificate.terms.get(*term as usize));
        term.map_or(NO_TERM, |term| term.class)
    }

    fn differ(&self, pair: Pair<Value>) -> bool {
        self.class(Side::Before, pair.before) != self.class(Side::After, pair.after)
    }

    /// The values furthest up that make two values differ. The search continues through the
    /// operands of alike definitions, and through the arguments of common parameters.
    fn roots(&self, mut values: Pair<Value>) -> Pair<Value> {
        let mut seen = BTreeSet::new();
        while seen.len() < MAX_STEPS && seen.insert((values.before, values.after)) {
            let above = self.above(values).into_iter();
            let next = above.filter(|pair| !seen.contains(&(pair.before, pair.after)));
            match next.into_iter().find(|pair| self.differ(*pair)) {
                Some(pair) => values = pair,
                None => break,
            }
        }
        values
    }

    /// The pairs of operands of two values, if their definitions are alike.
    fn above(&self, Pair { before, after }: Pair<Value>) -> Vec<Pair<Value>> {
        let [a, b] = Side::BOTH.map(|side| self.f(side));
        match (a.value_def(before), b.value_def(after)) {
            (ValueDef::Result(x, _), ValueDef::Result(y, _)) => {
                let (x, y) = (a.inst(x), b.inst(y));
                let is_alike = x.opcode == y.opcode && x.args.len() == y.args.len();
                let pairs = x.args.iter().zip(&y.args).filter(|_| is_alike);
                pairs.map(|(v, w)| Pair::new(*v, *w)).collect()
            }
            (ValueDef::Param(x, n), ValueDef::Param(y, m)) if x == y => self.arguments(x, [n, m]),
            _ => Vec::new(),
        }
    }

    /// The arguments that a block receives for two of its parameters, over the edges that both
    /// versions have.
    fn arguments(&self, block: Block, [n, m]: [u32; 2]) -> Vec<Pair<Value>> {
        let [a, b] = Side::BOTH.map(|side| self.f(side));
        let in_both = |edge: &&Edge| b.predecessors(block).contains(edge);
        let edges = a.predecessors(block).iter().filter(in_both);
        let argument =
            |f: &Function, edge: Edge, n: u32| f.target(edge).args.get(n as usize).copied();
        edges.filter_map(|e| Some(Pair::new(argument(a, *e, n)?, argument(b, *e, m)?))).collect()
    }

    /// A term, spelled out to some depth.
    fn term(&self, id: TermId, depth: usize) -> String {
        let Some(term) = self.certificate.terms.get(id as usize) else { return "no term".into() };
        match &term.kind {
            TermKind::Argument(index) => format!("argument {index}"),
            TermKind::Param => {
                let value = Side::BOTH.into_iter().find_map(|side| {
                    let mut values = self.terms[side].iter();
                    values.find(|(_, of)| **of == id).map(|(value, _)| *value)
                });
                value.map_or_else(|| format!("leaf {id}"), |value| self.told.value(value))
            }
            TermKind::Result(inst, index) => format!("result {index} of {inst}"),
            TermKind::MemoryAtEntry => "memory at entry".into(),
            TermKind::MemoryParam => format!("memory {id}"),
            TermKind::MemoryAfter(inst) => format!("memory after {inst}"),
            TermKind::Op { opcode: Opcode::Const, ty, imm: Imm::Bits(bits), .. } => {
                ir::text::print_literal(*ty, *bits)
            }
            TermKind::Op { .. } if depth == 0 => format!("term {id}"),
            TermKind::Op { opcode, ty, args, .. } => {
                let args: Vec<String> = args.iter().map(|arg| self.term(*arg, depth - 1)).collect();
                format!("{}.{ty}({})", opcode.name(), args.join(", "))
            }
        }
    }
}
