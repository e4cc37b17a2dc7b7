//! All the claims to prove.

use crate::batch::{FoldingCase, folded, gives, never_trap, safe_divisors};
use crate::declared;
use crate::goal::SolverGoal;
use crate::masks;
use crate::meaning::{Meaning, SmtDefinitions, SmtValue, has_meaning};
use crate::rewrite;
use crate::typing::{Instance, Right, Typing, VariableTypes, instances, typings};
use ir::eval::is_evaluated;
use ir::rules::declared::DeclaredRule;
use ir::rules::{RULES, Reach, Rule, reach};
use ir::{Opcode, Type};
use std::fmt;
use std::io;

/// The subject of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ClaimSubject {
    /// A rule of [`ir::rules::RULES`].
    Rule,
    /// The masks behind the guards of rules.
    Masks,
    /// [`Opcode::is_commutative`].
    Commutativity,
    /// Divisions that [`ir::Function::may_trap`] says cannot trap.
    Division,
    /// The results of [`ir::eval`].
    Folding,
    /// A rule that an embedder declares.
    Declared,
}

impl fmt::Display for ClaimSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClaimSubject::Rule => "rule",
            ClaimSubject::Masks => "masks",
            ClaimSubject::Commutativity => "commutativity",
            ClaimSubject::Division => "division",
            ClaimSubject::Folding => "folding",
            ClaimSubject::Declared => "declared rule",
        })
    }
}

/// The most operations on constants in one query: with many more, the time of cvc5 grows more than
/// linearly.
const CASES: usize = 1500;

/// The statement of a claim.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Both sides of a rule are equal.
    Rule(Instance),
    /// The result has only bits that the masks of the operands allow, by this mask rule.
    Masks(Typing, Reach),
    /// The computed masks equal the masks of [`Statement::Masks`], for operand masks from a seed.
    ComputedMasks(Typing, u64),
    /// Swapping the operands changes nothing.
    Swap(Typing),
    /// Dividing by these constants never traps.
    Divisors(Typing, Vec<u64>),
    /// The operation gives the results of the cases.
    Cases(Typing, Vec<FoldingCase>),
    /// Both sides of a declared rule are equal.
    Declared(DeclaredRule),
}

/// One statement at one choice of types.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its subject.
    pub subject: ClaimSubject,
    /// The name of the rule or operation.
    pub name: String,
    /// The types, in the order of operands or of the rule's variables.
    pub types: String,
    /// The statement.
    pub body: Statement,
}

/// Every claim, in a fixed order. `seed` determines the `random` random constants of each
/// operation, which come in addition to the boundary values.
pub fn claims(seed: u64, random: usize) -> Vec<Claim> {
    let mut found: Vec<Claim> = RULES.iter().flat_map(rule_claims).collect();
    let all = |which: fn(Opcode) -> bool| {
        Opcode::ALL.iter().copied().filter(move |o| which(*o)).flat_map(typings)
    };
    for typing in all(|o| has_meaning(o) && reach(o) != Reach::Any) {
        found.push(of_operation(
            ClaimSubject::Masks,
            &typing,
            "",
            Statement::Masks(typing.clone(), reach(typing.opcode)),
        ));
    }
    for typing in all(|o| has_meaning(o) && reach(o) != Reach::Any) {
        found.push(of_operation(
            ClaimSubject::Masks,
            &typing,
            " computed",
            Statement::ComputedMasks(typing.clone(), seed),
        ));
    }
    for typing in all(Opcode::is_commutative) {
        found.push(of_operation(
            ClaimSubject::Commutativity,
            &typing,
            "",
            Statement::Swap(typing.clone()),
        ));
    }
    for typing in all(|o| matches!(o, Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem)) {
        let divisors = safe_divisors(&typing, seed);
        found.push(of_operation(
            ClaimSubject::Division,
            &typing,
            "",
            Statement::Divisors(typing.clone(), divisors),
        ));
    }
    for typing in all(is_evaluated) {
        for cases in folded(&typing, seed, random).chunks(CASES) {
            found.push(of_operation(
                ClaimSubject::Folding,
                &typing,
                "",
                Statement::Cases(typing.clone(), cases.to_vec()),
            ));
        }
    }
    found
}

/// The claims of one rule.
pub fn rule_claims(rule: &Rule) -> Vec<Claim> {
    let claim = |instance: Instance| {
        let types = format!("{} -> {}", variables(instance.variables), instance.left[0].ty());
        Claim {
            subject: ClaimSubject::Rule,
            name: rule.name.to_owned(),
            types,
            body: Statement::Rule(instance),
        }
    };
    instances(rule).into_iter().map(claim).collect()
}

/// The claim of a declared rule that is no axiom.
pub fn declared_claim(rule: &DeclaredRule) -> Claim {
    let types: Vec<String> =
        rule.variables.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    let (name, types) = (rule.name.clone(), types.join(", "));
    let (subject, body) = (ClaimSubject::Declared, Statement::Declared(rule.clone()));
    Claim { subject, name, types, body }
}

fn variables(types: VariableTypes) -> String {
    let named = [("X", types.x), ("Y", types.y), ("C", types.c), ("D", types.d)];
    let named = named.iter().filter_map(|(name, ty)| ty.map(|ty| format!("{name}: {ty}")));
    named.collect::<Vec<String>>().join(", ")
}

fn of_operation(subject: ClaimSubject, typing: &Typing, what: &str, body: Statement) -> Claim {
    let operands: Vec<&str> = typing.operands.iter().map(|t| t.name()).collect();
    let types = format!("{} -> {}", operands.join(", "), typing.result);
    Claim { subject, name: format!("{}{what}", typing.opcode.name()), types, body }
}

impl Claim {
    /// The SMT-LIB logic of the claim.
    pub(crate) fn logic(&self) -> &'static str {
        let is_float = |t: &Typing| t.result.is_float() || t.operands.iter().any(|t| t.is_float());
        let has_float = match &self.body {
            Statement::Rule(instance) => {
                let moved = instance.rule.opcode == Opcode::Select;
                let types = instance.variables;
                !moved && [types.x, types.y].into_iter().flatten().any(Type::is_float)
            }
            Statement::Masks(t, _) | Statement::ComputedMasks(t, _) | Statement::Swap(t) => {
                is_float(t)
            }
            Statement::Divisors(t, _) | Statement::Cases(t, _) => is_float(t),
            // Values of float types are moved only, as bits.
            Statement::Declared(_) => false,
        };
        if has_float { "QF_BVFP" } else { "QF_BV" }
    }

    /// Writes the claim, or returns the reason why it fails without a solver.
    pub(crate) fn goal(
        &self,
        definitions: &mut SmtDefinitions<'_>,
    ) -> io::Result<Result<SolverGoal, String>> {
        match &self.body {
            Statement::Rule(instance) => rewrite::goal(definitions, instance),
            Statement::Masks(typing, reach) => masks::within(definitions, typing, *reach).map(Ok),
            Statement::ComputedMasks(typing, seed) => {
                masks::computed(definitions, typing, *seed).map(Ok)
            }
            Statement::Swap(typing) => swapped(definitions, typing).map(Ok),
            Statement::Divisors(typing, divisors) => {
                never_trap(definitions, typing, divisors).map(Ok)
            }
            Statement::Cases(typing, cases) => gives(definitions, typing, cases).map(Ok),
            Statement::Declared(rule) => declared::goal(definitions, rule).map(Ok),
        }
    }

    /// The operations on constants that the claim covers.
    pub fn cases(&self) -> &[FoldingCase] {
        match &self.body {
            Statement::Cases(_, cases) => cases,
            _ => &[],
        }
    }

    /// The number of statements about single constants; 1 if the claim covers all values.
    pub fn size(&self) -> usize {
        match &self.body {
            Statement::Cases(_, cases) => cases.len(),
            Statement::Divisors(_, divisors) => divisors.len(),
            _ => 1,
        }
    }

    /// Whether the rule makes ill-formed code at these types.
    pub fn is_ill_formed(&self) -> bool {
        matches!(&self.body, Statement::Rule(i) if matches!(i.right, Right::IllFormed(_)))
    }
}

/// The goal that swapping the operands of an operation does not change its result.
fn swapped(definitions: &mut SmtDefinitions<'_>, typing: &Typing) -> io::Result<SolverGoal> {
    let x = definitions.variable("X", typing.operands[0])?;
    let y = definitions.variable("Y", typing.operands[1])?;
    let one = definitions.apply(typing, &[x, y])?;
    let other = definitions.apply(typing, &[y, x])?;
    let t = definitions.terms();
    let result = |meaning: &Meaning| match meaning.value {
        SmtValue::Bits(term) | SmtValue::Number(term) => term,
    };
    let mut all = vec![t.equal(result(&one), result(&other))];
    all.extend(one.traps.iter().zip(&other.traps).map(|((_, a), (_, b))| t.equal(*a, *b)));
    let shown = vec![("X".to_owned(), x), ("Y".to_owned(), y)];
    Ok(SolverGoal { holds: Some(t.and(&all)), shown, ..SolverGoal::default() })
}
