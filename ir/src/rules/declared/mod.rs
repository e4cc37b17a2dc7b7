//! Rules that an embedder declares, beside the rules of [`super::RULES`].
//!
//! For example, a language tags integers and boxes numbers:
//!
//! ```text
//! func @box(f64) -> i64
//! func @unbox(i64) -> f64
//! rule untag(x: i64): sshr.i64(or.i64(shl.i64(x, 1), 1), 1) => sshr.i64(shl.i64(x, 1), 1)
//! axiom unbox_box(x: f64): @unbox(@box(x)) => x
//! ```
//!
//! A `rule` consists of operations of this IR. Solvers prove it, apart from the engine: the command
//! `osier-provers rules` writes a file of verdicts, and [`RuleTable::accept`] takes a rule only if
//! the file says *proved* about exactly this rule. An `axiom` is about imported functions that are
//! declared `pure`. Nothing can prove it: the embedder answers for it, as for the declaration
//! itself ([`crate::effect`]). [`ModuleRules::test_axioms`] looks for operands that refute it.
//!
//! [`ModuleRules`] is a seal: passes, the certifier and the checker apply such rules alone. A
//! function has its rules from its base on ([`crate::Function::with_rules`]), and they are part of
//! the key of every version.
//!
//! *Operations* on integers and references are allowed if they cannot trap, so that both sides of a
//! rule trap alike. *Rewriting ends*: the right side is smaller than the left, as in every rule of
//! [`super::RULES`], or it has equally many operations, which cost less. No variable occurs more
//! often on the right than on the left.

mod read;
mod trial;
mod verdicts;

pub use trial::AxiomFailure;
pub use verdicts::{RuleVerdict, verdict_header, verdict_line};

use crate::effect::DeclaredEffect;
use crate::entity::Func;
use crate::inst::Imm;
use crate::module::Module;
use crate::opcode::{Effects, Opcode, Shape};
use crate::text::print_literal;
use crate::types::Type;
use std::fmt::{self, Write};

/// The most operations of both sides of a rule together. Certificates have a bit for each.
pub const MAX_OPERATIONS: usize = 8;

/// An operand in a rule, or the value of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleOperand {
    /// The variable with this number.
    Variable(u8),
    /// A constant.
    Constant(Type, u64),
    /// The result of the operation with this number on the same side.
    Operation(u8),
}

impl RuleOperand {
    /// The variable or constant; otherwise the number of the operation.
    fn part<'r, V>(self) -> Result<RulePart<'r, V>, usize> {
        match self {
            RuleOperand::Variable(number) => Ok(RulePart::Variable(number as usize)),
            RuleOperand::Constant(ty, bits) => Ok(RulePart::Constant(ty, bits)),
            RuleOperand::Operation(number) => Err(number as usize),
        }
    }
}

/// A part of a side, for [`DeclaredSide::compute`].
#[derive(Clone, Copy, Debug)]
pub enum RulePart<'r, V> {
    /// The variable with this number.
    Variable(usize),
    /// A constant.
    Constant(Type, u64),
    /// The operation with this number, and the values of its operands.
    Operation(usize, &'r RuleOperation, &'r [V]),
}

/// An operation in a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleOperation {
    /// The operation: `call_pure` for a call.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The function of a call, nothing for other operations.
    pub imm: Imm,
    /// The operands.
    pub operands: Vec<RuleOperand>,
}

impl RuleOperation {
    /// The type of the result.
    pub fn result(&self) -> Type {
        self.opcode.result_type(self.ty).expect("operations of rules have one result")
    }
}

/// A side of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredSide {
    /// The operations in breadth-first order: an operation comes after the one that uses it. Each
    /// but the first is used once.
    pub operations: Vec<RuleOperation>,
    /// The value of the side: number 0, if it has operations.
    pub value: RuleOperand,
}

impl DeclaredSide {
    /// The value of the side, from the inside out. `make` gives the value of a part.
    ///
    /// # Errors
    /// The first error of `make`.
    pub fn compute<V: Clone, E>(
        &self,
        mut make: impl FnMut(RulePart<'_, V>) -> Result<V, E>,
    ) -> Result<V, E> {
        let mut made: Vec<Option<V>> = vec![None; self.operations.len()];
        let mut operands = Vec::new();
        for (number, operation) in self.operations.iter().enumerate().rev() {
            for operand in &operation.operands {
                operands.push(match operand.part() {
                    Ok(leaf) => make(leaf)?,
                    Err(inner) => made[inner].clone().expect("it comes after the operation"),
                });
            }
            made[number] = Some(make(RulePart::Operation(number, operation, &operands))?);
            operands.clear();
        }
        match self.value.part() {
            Ok(leaf) => make(leaf),
            Err(first) => Ok(made[first].take().expect("every operation was made")),
        }
    }

    /// The type of an operand of this side.
    fn type_of(&self, operand: RuleOperand, variables: &[(String, Type)]) -> Type {
        match operand {
            RuleOperand::Variable(number) => variables[number as usize].1,
            RuleOperand::Constant(ty, _) => ty,
            RuleOperand::Operation(number) => self.operations[number as usize].result(),
        }
    }

    fn leaves(&self) -> impl Iterator<Item = RuleOperand> + '_ {
        let operands = self.operations.iter().flat_map(|o| o.operands.iter().copied());
        let all = operands.chain([self.value]);
        all.filter(|operand| !matches!(operand, RuleOperand::Operation(_)))
    }

    /// How often a variable occurs.
    fn count(&self, variable: usize) -> usize {
        let is_it = |leaf: &RuleOperand| *leaf == RuleOperand::Variable(variable as u8);
        self.leaves().filter(is_it).count()
    }

    /// The number of operations and constants, then the cost of the operations. Rewriting lowers
    /// it, in this order.
    fn size(&self) -> (usize, usize) {
        let is_constant = |leaf: &RuleOperand| matches!(leaf, RuleOperand::Constant(..));
        let constants = self.leaves().filter(is_constant).count();
        let cost = |operation: &RuleOperation| match operation.opcode {
            Opcode::CallPure => 16,
            Opcode::Mul | Opcode::SmulOverflows => 4,
            _ => 1,
        };
        (self.operations.len() + constants, self.operations.iter().map(cost).sum())
    }
}

/// A declared rule: `left` may become `right`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredRule {
    /// The name, unique in the table.
    pub name: String,
    /// Whether it is an axiom about functions, for which the embedder answers.
    pub is_axiom: bool,
    /// The names and types of the variables.
    pub variables: Vec<(String, Type)>,
    /// The side that is replaced. Its value is operation 0.
    pub left: DeclaredSide,
    /// The side that replaces it.
    pub right: DeclaredSide,
    /// The line in the table, from 1 on.
    line: u32,
    /// The rule in the normal form of the text, without blanks to choose.
    text: String,
}

impl DeclaredRule {
    /// The rule in normal form: the claim that verdicts are about.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The type of an operand of a side of this rule.
    pub fn type_of(&self, side: &DeclaredSide, operand: RuleOperand) -> Type {
        side.type_of(operand, &self.variables)
    }

    /// Writes the normal form.
    fn normalize(&mut self, functions: &[RuleFunction]) {
        let mut text = if self.is_axiom { "axiom " } else { "rule " }.to_owned();
        let variables: Vec<String> =
            self.variables.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        let (left, right) = (self.print(&self.left, functions), self.print(&self.right, functions));
        let _ = write!(text, "{}({}): {left} => {right}", self.name, variables.join(", "));
        self.text = text;
    }

    fn print(&self, side: &DeclaredSide, functions: &[RuleFunction]) -> String {
        let printed = side.compute(|part: RulePart<'_, String>| {
            let (operation, operands) = match part {
                RulePart::Variable(number) => return Ok(self.variables[number].0.clone()),
                RulePart::Constant(ty, bits) => return Ok(print_literal(ty, bits)),
                RulePart::Operation(_, operation, operands) => (operation, operands),
            };
            let name = match operation.imm {
                Imm::Func(func) => format!("@{}", functions[func.as_u32() as usize].name),
                _ if operation.opcode.has_type_suffix() => {
                    format!("{}.{}", operation.opcode.name(), operation.ty)
                }
                _ => operation.opcode.name().to_owned(),
            };
            Ok::<String, fmt::Error>(format!("{name}({})", operands.join(", ")))
        });
        printed.unwrap_or_default()
    }
}

/// A function that axioms are about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleFunction {
    /// The name of the function in the module.
    pub name: String,
    /// The types of its parameters.
    pub params: Vec<Type>,
    /// The type of its result.
    pub result: Type,
    /// The line in the table, from 1 on.
    line: u32,
}

/// Why a table, or a rule of it, is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleFault {
    /// The text is no rule, for this reason.
    Syntax(String),
    /// The operands or the sides have types that do not fit, for this reason.
    Types(String),
    /// The operation is not allowed in rules, for this reason.
    Operation(String),
    /// Rewriting by the rule need not end, for this reason.
    Endless(String),
    /// The verdicts do not name the rule.
    Unproved,
    /// The verdicts are about another rule of this name, this one.
    Changed(String),
    /// The verdict on the rule is another one than *proved*.
    NotProved(RuleVerdict),
    /// The sides differ on these values of the variables, although the verdict says *proved*.
    False(Vec<u64>),
    /// The module declares the function otherwise, for this reason.
    Function(String),
    /// The text is no list of verdicts, for this reason. The line is one of the verdicts.
    Verdicts(String),
}

/// A located error about a table of rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleError {
    /// The line, from 1 on.
    pub line: u32,
    /// The name of the rule or function, if it has one.
    pub name: String,
    /// The reason.
    pub fault: RuleFault,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        match &self.fault {
            RuleFault::Syntax(reason)
            | RuleFault::Types(reason)
            | RuleFault::Operation(reason)
            | RuleFault::Function(reason) => f.write_str(reason),
            RuleFault::Endless(reason) => write!(f, "rewriting need not end: {reason}"),
            RuleFault::Unproved => f.write_str("the verdicts do not name the rule"),
            RuleFault::Changed(other) => write!(f, "the verdicts are about another rule: {other}"),
            RuleFault::NotProved(verdict) => write!(f, "the solvers have not proved it: {verdict}"),
            RuleFault::False(values) => {
                let values: Vec<String> = values.iter().map(|v| format!("{v:#x}")).collect();
                write!(f, "the sides differ on ({})", values.join(", "))
            }
            RuleFault::Verdicts(reason) => write!(f, "no list of verdicts: {reason}"),
        }
    }
}

impl std::error::Error for RuleError {}

/// A table of rules that were read and are well-formed. Nothing applies them before
/// [`RuleTable::accept`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleTable {
    rules: Vec<DeclaredRule>,
    functions: Vec<RuleFunction>,
}

impl RuleTable {
    /// Reads a table. A line is a function, a rule, or empty; a comment begins with `;`. Cost:
    /// near linear in the text.
    ///
    /// # Errors
    /// All errors, in the order of lines.
    pub fn read(text: &str) -> Result<RuleTable, Vec<RuleError>> {
        read::table(text)
    }

    /// The rules, in the order of the text.
    pub fn rules(&self) -> &[DeclaredRule] {
        &self.rules
    }

    /// The functions, in the order of the text. In the rules of a table, a function has its number
    /// in this list.
    pub fn functions(&self) -> &[RuleFunction] {
        &self.functions
    }

    /// Takes the rules over for a module, with the text of the verdicts of the solvers: the file,
    /// or nothing for axioms alone. Every rule is also evaluated at the edges of its types. That
    /// finds most wrong rules with an edited verdict, but it is no proof: the writer of the
    /// verdicts is trusted.
    ///
    /// # Errors
    /// All errors, in the order of lines. No rule is taken over then.
    pub fn accept(&self, verdicts: &str, module: &Module) -> Result<ModuleRules, Vec<RuleError>> {
        let mut errors = Vec::new();
        match verdicts::read(verdicts) {
            Ok(known) => errors.extend(self.rules.iter().filter_map(|rule| known.fault(rule))),
            Err(error) => errors.push(error),
        }
        let mut funcs = Vec::new();
        for function in &self.functions {
            match function.find(module) {
                Ok(func) => funcs.push(func),
                Err(reason) => errors.push(RuleError {
                    line: function.line,
                    name: format!("@{}", function.name),
                    fault: RuleFault::Function(reason),
                }),
            }
        }
        errors.sort_by_key(|error| error.line);
        if errors.is_empty() { Ok(ModuleRules::new(self, &funcs)) } else { Err(errors) }
    }
}

impl RuleFunction {
    /// The function in a module, which declares it `pure` with this signature.
    fn find(&self, module: &Module) -> Result<Func, String> {
        let func = module.func_named(&self.name).ok_or("the module has no such function")?;
        self.fits(module, func).map(|()| func)
    }

    /// Whether a function of a module is declared like this one.
    fn fits(&self, module: &Module, func: Func) -> Result<(), String> {
        let decl = module.funcs.get(func).filter(|decl| decl.name == self.name);
        let decl = decl.ok_or_else(|| format!("the module has another function as {func}"))?;
        if decl.effect < DeclaredEffect::Pure {
            return Err("the module does not declare the function `pure`".to_owned());
        }
        let found = module.signature(func);
        let fits = found.params[..] == self.params[..] && found.results[..] == [self.result];
        if fits { Ok(()) } else { Err(format!("the module declares it as {found}")) }
    }
}

/// Rules that hold in a module: the solvers have proved them, or the embedder answers for them.
/// [`RuleTable::accept`] alone makes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleRules {
    rules: Vec<DeclaredRule>,
    functions: Vec<(Func, RuleFunction)>,
    /// By opcode of the left side, then by number.
    by_opcode: Vec<(Opcode, u32)>,
}

impl ModuleRules {
    fn new(table: &RuleTable, funcs: &[Func]) -> ModuleRules {
        let mut rules = table.rules.clone();
        for rule in &mut rules {
            let operations = rule.left.operations.iter_mut().chain(&mut rule.right.operations);
            for operation in operations {
                if let Imm::Func(number) = &mut operation.imm {
                    *number = funcs[number.as_u32() as usize];
                }
            }
        }
        let root = |rule: &DeclaredRule| rule.left.operations[0].opcode;
        let mut by_opcode: Vec<(Opcode, u32)> = rules.iter().map(root).zip(0..).collect();
        by_opcode.sort_unstable();
        let functions = funcs.iter().copied().zip(table.functions.iter().cloned()).collect();
        ModuleRules { rules, functions, by_opcode }
    }

    /// The rules, in the order of the table.
    pub fn rules(&self) -> &[DeclaredRule] {
        &self.rules
    }

    /// The rule with this number in certificates, where declared rules follow
    /// [`RULES`](super::RULES).
    pub fn numbered(&self, number: u32) -> Option<&DeclaredRule> {
        self.rules.get((number as usize).checked_sub(super::RULES.len())?)
    }

    /// The rules whose left side is such an operation, with their numbers in certificates. Cost:
    /// logarithmic in the table.
    pub fn of(&self, opcode: Opcode) -> impl Iterator<Item = (u32, &DeclaredRule)> + '_ {
        let first = self.by_opcode.partition_point(|(of, _)| *of < opcode);
        let same = self.by_opcode[first..].iter().take_while(move |(of, _)| *of == opcode);
        same.map(|(_, at)| (super::RULES.len() as u32 + at, &self.rules[*at as usize]))
    }

    /// Whether a module has the functions of the axioms, under the same numbers and as declared.
    /// Cost: linear in the functions.
    ///
    /// # Errors
    /// The first function that differs.
    pub fn fits(&self, module: &Module) -> Result<(), RuleError> {
        for (func, function) in &self.functions {
            let Err(reason) = function.fits(module, *func) else { continue };
            let (line, name) = (function.line, format!("@{}", function.name));
            return Err(RuleError { line, name, fault: RuleFault::Function(reason) });
        }
        Ok(())
    }

    /// The text of all rules, and the numbers of their functions: the contents of a digest.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&str, u32)> + '_ {
        let functions = self.functions.iter().map(|(func, f)| (f.name.as_str(), func.as_u32()));
        self.rules.iter().map(|rule| (rule.text(), 0)).chain(functions)
    }
}

/// Whether rules may contain an operation, and otherwise the reason.
fn allows(opcode: Opcode) -> Result<(), &'static str> {
    use Shape::*;
    match opcode.shape() {
        CallValue if opcode == Opcode::CallPure => Ok(()),
        _ if opcode.can_trap() => Err("an operation that may trap"),
        IntUnary | IntBinary | IntTest | IntCompare | Extend | Wrap | Select | RefTest
        | RefCompare => Ok(()),
        _ if opcode.effects() != Effects::PURE => Err("an operation with an effect"),
        _ => Err("no operation on integers or references"),
    }
}
