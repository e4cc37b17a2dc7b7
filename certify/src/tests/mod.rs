//! Small pairs of versions, one for each kind of reason in a certificate.

use crate::{Certifier, Side};
use ir::edit::{Applied, Editor, Fuel, Pass, apply};
use ir::rules::RULES;
use ir::{Block, Edge, Function, Inst, Opcode, Point, Type, Value};
use osr::{Level, VersionPair, synthesize};
use smallvec::smallvec;
use transition::certificate::{By, Certificate, EntryFacts, NO_TERM, TermId, TermKind};
use transition::mapping::{Assign, Entry, Mapping, Operand, Step};

mod entries;
mod leaves;
mod limits;
mod memory;

/// A pass made of one closure.
struct Edit<F: Fn(&mut Editor<'_>)>(F);

impl<F: Fn(&mut Editor<'_>)> Pass for Edit<F> {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        assert!(editor.plan("by_hand"));
        (self.0)(editor);
    }
}

fn function(text: &str) -> Function {
    let module = ir::text::parse_module(text).unwrap_or_else(|e| panic!("{}", e[0]));
    assert!(ir::verifier::verify_module(&module).is_empty());
    let (_, body) = module.defined().last().expect("a function");
    body.clone()
}

fn edited(base: &Function, edit: impl Fn(&mut Editor<'_>)) -> Applied {
    apply(base, &Edit(edit), &mut Fuel::UNLIMITED.clone())
}

fn value(f: &Function, name: &str) -> Value {
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    let results = f.all_insts().flat_map(|i| f.inst(i).results.to_vec());
    params
        .chain(results)
        .find(|v| f.value_name(*v) == Some(name))
        .unwrap_or_else(|| panic!("no %{name}"))
}

fn block(f: &Function, name: &str) -> Block {
    f.blocks().find(|b| f.block_name(*b) == Some(name)).unwrap_or_else(|| panic!("no {name}"))
}

fn inst(f: &Function, name: &str) -> Inst {
    f.defining_inst(value(f, name)).expect("an instruction")
}

fn certified(base: &Function, applied: &Applied) -> Certificate {
    let pair = VersionPair::new(base, applied.function(), applied.log()).expect("the log replays");
    Certifier::new(&pair.correspondence()).into_certificate()
}

/// The certificate of a version with itself.
fn alone(base: &Function) -> Certificate {
    certified(base, &edited(base, |_| ()))
}

fn term(certificate: &Certificate, side: usize, value: Value) -> TermId {
    let values = &certificate.sides[side].values;
    values.binary_search_by_key(&value, |(v, _)| *v).map_or(NO_TERM, |at| values[at].1)
}

fn class(certificate: &Certificate, side: usize, value: Value) -> TermId {
    certificate.terms.get(term(certificate, side, value) as usize).map_or(NO_TERM, |t| t.class)
}

fn constant(certificate: &Certificate, class: TermId) -> Option<u64> {
    match certificate.terms.get(class as usize)?.kind {
        TermKind::Op { opcode: Opcode::Const, imm: ir::Imm::Bits(bits), .. } => Some(bits),
        _ => None,
    }
}

fn rule_of(certificate: &Certificate, term: TermId) -> &'static str {
    match &certificate.terms[term as usize].by {
        By::Rule { rule, .. } => RULES[*rule as usize].name,
        other => panic!("term {term} is where it is by {other:?}"),
    }
}
