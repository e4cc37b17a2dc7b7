//! Reads a table of rules.
//!
//! ```text
//! table    = { [ function | rule ] [ ";" comment ] newline }
//! function = "func" "@" name "(" [ type { "," type } ] ")" "->" type
//! rule     = ( "rule" | "axiom" ) name "(" [ variable { "," variable } ] ")" ":" term "=>" term
//! variable = name ":" type
//! term     = name | literal | operation "(" [ term { "," term } ] ")"
//! operation = mnemonic [ "." type ] | "@" name
//! ```

use super::{
    DeclaredRule, DeclaredSide, MAX_OPERATIONS, RuleError, RuleFault, RuleFunction, RuleOperand,
    RuleOperation, RuleTable, allows,
};
use crate::entity::Func;
use crate::eval::accepts;
use crate::inst::Imm;
use crate::opcode::Opcode;
use crate::text::parse_literal;
use crate::types::Type;
use std::collections::{BTreeSet, VecDeque};

/// The most variables of a rule.
const MAX_VARIABLES: usize = 16;

/// Reads a table.
pub(super) fn table(text: &str) -> Result<RuleTable, Vec<RuleError>> {
    let (mut table, mut errors) = (RuleTable::default(), Vec::new());
    let mut names: BTreeSet<String> = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        let code = line.split(';').next().unwrap_or_default();
        let mut reader = RuleReader { rest: code.trim(), operations: 0 };
        if reader.rest.is_empty() {
            continue;
        }
        let mut name = String::new();
        let read = reader.line(&mut table, number, &mut name);
        let is_new = names.insert(name.clone());
        let repeated = || Err(RuleFault::Syntax("an earlier line has this name".to_owned()));
        if let Err(fault) = read.and_then(|()| if is_new { Ok(()) } else { repeated() }) {
            errors.push(RuleError { line: number, name, fault });
        }
    }
    if errors.is_empty() { Ok(table) } else { Err(errors) }
}

/// A term as it is written.
enum Written {
    Leaf(String),
    Operation { opcode: Opcode, ty: Type, imm: Imm, operands: Vec<Written> },
}

struct RuleReader<'t> {
    rest: &'t str,
    /// The operations of the rule so far.
    operations: usize,
}

fn syntax<T>(reason: impl Into<String>) -> Result<T, RuleFault> {
    Err(RuleFault::Syntax(reason.into()))
}

impl<'t> RuleReader<'t> {
    fn line(
        &mut self,
        table: &mut RuleTable,
        line: u32,
        name: &mut String,
    ) -> Result<(), RuleFault> {
        match self.word() {
            "func" => {
                self.punct("@")?;
                let function = self.function(line)?;
                *name = format!("@{}", function.name);
                table.functions.push(function);
            }
            kind @ ("rule" | "axiom") => {
                *name = self.name("a name of the rule")?.to_owned();
                let rule = self.rule(name, kind == "axiom", line, &table.functions)?;
                table.rules.push(rule);
            }
            _ => return syntax("a line begins with `func`, `rule` or `axiom`"),
        }
        match self.rest {
            "" => Ok(()),
            rest => syntax(format!("`{}` is too much", shortened(rest))),
        }
    }

    fn function(&mut self, line: u32) -> Result<RuleFunction, RuleFault> {
        let name = self.name("a name of the function")?.to_owned();
        let params = self.list(|reader| reader.ty())?;
        self.punct("->")?;
        let result = self.ty()?;
        let fits = Opcode::CallPure.allows_type(result) && !params.contains(&Type::Ref);
        match fits {
            true => Ok(RuleFunction { name, params, result, line }),
            false => {
                Err(RuleFault::Types("a pure function takes no `ref`, and gives a number".into()))
            }
        }
    }

    fn rule(
        &mut self,
        name: &str,
        is_axiom: bool,
        line: u32,
        functions: &[RuleFunction],
    ) -> Result<DeclaredRule, RuleFault> {
        let variables = self.list(|reader| {
            let name = reader.name("a name of a variable")?.to_owned();
            // Another name could be read as a literal, and two rules would have one text
            // (`every_error_of_a_table_is_located_and_named`).
            let is_literal = Type::ALL.iter().any(|ty| parse_literal(&name, *ty).is_some());
            if is_literal || !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                return syntax(format!("`{}` is no name of a variable", shortened(&name)));
            }
            reader.punct(":")?;
            Ok((name, reader.ty()?))
        })?;
        let names: BTreeSet<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        if names.len() != variables.len() || variables.len() > MAX_VARIABLES {
            return syntax(format!("at most {MAX_VARIABLES} variables, each with its own name"));
        }
        self.punct(":")?;
        let left = self.term(functions)?;
        self.punct("=>")?;
        let right = self.term(functions)?;
        let Written::Operation { opcode, ty, .. } = left else {
            return syntax("the left side is no operation");
        };
        let ty = opcode.result_type(ty).ok_or_else(|| RuleFault::Types("no result".to_owned()))?;
        let left = flat(left, ty, &variables, functions)?;
        let right = flat(right, ty, &variables, functions)?;
        let (name, text) = (name.to_owned(), String::new());
        let mut rule = DeclaredRule { name, is_axiom, variables, left, right, line, text };
        check(&rule)?;
        rule.normalize(functions);
        Ok(rule)
    }

    /// Reads a term. The recursion is as deep as the operations are many.
    fn term(&mut self, functions: &[RuleFunction]) -> Result<Written, RuleFault> {
        let is_call = self.rest.starts_with('@');
        if is_call {
            self.punct("@")?;
        }
        let word = self.taken(|c| c.is_alphanumeric() || "_.-+:".contains(c));
        if word.is_empty() {
            return syntax(format!("`{}` is no term", shortened(self.rest)));
        }
        if !self.rest.starts_with('(') {
            return match is_call {
                true => syntax("a call has its arguments in `(` and `)`"),
                false => Ok(Written::Leaf(word.to_owned())),
            };
        }
        self.operations += 1;
        if self.operations > MAX_OPERATIONS {
            let reason = format!("a rule has at most {MAX_OPERATIONS} operations");
            return Err(RuleFault::Operation(reason));
        }
        let (opcode, ty, imm) = match is_call {
            true => called(word, functions)?,
            false => mnemonic(word)?,
        };
        let operands = self.list(|reader| reader.term(functions))?;
        Ok(Written::Operation { opcode, ty, imm, operands })
    }

    /// Reads a list in parentheses.
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, RuleFault>,
    ) -> Result<Vec<T>, RuleFault> {
        self.punct("(")?;
        let mut items = Vec::new();
        while !self.rest.starts_with(')') {
            if !items.is_empty() {
                self.punct(",")?;
            }
            items.push(item(self)?);
        }
        self.punct(")")?;
        Ok(items)
    }

    fn ty(&mut self) -> Result<Type, RuleFault> {
        let word = self.word();
        Type::from_name(word).map_or_else(|| syntax(format!("`{word}` is no type")), Ok)
    }

    fn name(&mut self, what: &str) -> Result<&'t str, RuleFault> {
        match self.word() {
            "" => syntax(format!("`{}` is not {what}", shortened(self.rest))),
            word => Ok(word),
        }
    }

    fn word(&mut self) -> &'t str {
        self.taken(|c| c.is_alphanumeric() || "_-.".contains(c))
    }

    fn taken(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c: char| !fits(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn punct(&mut self, wanted: &str) -> Result<(), RuleFault> {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest.trim_start();
                Ok(())
            }
            None => syntax(format!("`{wanted}` is missing before `{}`", shortened(self.rest))),
        }
    }
}

/// The start of a text, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

fn called(name: &str, functions: &[RuleFunction]) -> Result<(Opcode, Type, Imm), RuleFault> {
    let Some(at) = functions.iter().position(|f| f.name == name) else {
        return Err(RuleFault::Function(format!("no earlier line declares @{name}")));
    };
    Ok((Opcode::CallPure, functions[at].result, Imm::Func(Func::from_u32(at as u32))))
}

fn mnemonic(word: &str) -> Result<(Opcode, Type, Imm), RuleFault> {
    let (name, suffix) = word.split_once('.').map_or((word, None), |(name, ty)| (name, Some(ty)));
    let Some(opcode) = Opcode::ALL.iter().copied().find(|o| o.name() == name) else {
        return Err(RuleFault::Operation(format!("`{}` is no operation", shortened(name))));
    };
    if let Err(reason) = allows(opcode) {
        return Err(RuleFault::Operation(format!("`{name}` is {reason}")));
    }
    let ty = match suffix {
        None if !opcode.has_type_suffix() => Some(Type::I32),
        Some(suffix) if opcode.has_type_suffix() => Type::from_name(suffix),
        _ => None,
    };
    match ty.filter(|ty| opcode.allows_type(*ty)) {
        Some(_) if opcode == Opcode::CallPure => {
            Err(RuleFault::Operation("a call is written `@name(...)`".to_owned()))
        }
        Some(ty) => Ok((opcode, ty, Imm::None)),
        None => Err(RuleFault::Types(format!("`{}` has a wrong type", shortened(word)))),
    }
}

/// A side with its operations in breadth-first order. The value has the type `wanted`.
fn flat(
    written: Written,
    wanted: Type,
    variables: &[(String, Type)],
    functions: &[RuleFunction],
) -> Result<DeclaredSide, RuleFault> {
    let mut queue: VecDeque<Written> = VecDeque::new();
    let mut begun = 0;
    let mut operand = |term: Written, wanted: Type, queue: &mut VecDeque<Written>| match term {
        Written::Leaf(word) => leaf(&word, wanted, variables),
        operation => {
            queue.push_back(operation);
            begun += 1;
            Ok(RuleOperand::Operation(begun - 1))
        }
    };
    let value = operand(written, wanted, &mut queue)?;
    let mut operations = Vec::new();
    while let Some(Written::Operation { opcode, ty, imm, operands: written }) = queue.pop_front() {
        let mut operands = Vec::new();
        for (index, term) in written.into_iter().enumerate() {
            // Literals have the controlling type, and in calls the type of the parameter.
            let wanted = match imm {
                Imm::Func(func) => functions[func.as_u32() as usize].params.get(index).copied(),
                _ => Some(ty),
            };
            operands.push(operand(term, wanted.unwrap_or(ty), &mut queue)?);
        }
        operations.push(RuleOperation { opcode, ty, imm, operands });
    }
    let side = DeclaredSide { operations, value };
    for operation in &side.operations {
        let types: Vec<Type> =
            operation.operands.iter().map(|o| side.type_of(*o, variables)).collect();
        let fits = match operation.imm {
            Imm::Func(func) => functions[func.as_u32() as usize].params == types,
            _ => accepts(operation.opcode, operation.ty, &types),
        };
        if !fits {
            let types: Vec<&str> = types.iter().map(|ty| ty.name()).collect();
            let (name, types) = (operation.opcode.name(), types.join(", "));
            return Err(RuleFault::Types(format!("`{name}` takes no operands ({types})")));
        }
    }
    match side.type_of(side.value, variables) {
        ty if ty == wanted => Ok(side),
        ty => Err(RuleFault::Types(format!("the left side has type {wanted}, the right {ty}"))),
    }
}

fn leaf(word: &str, ty: Type, variables: &[(String, Type)]) -> Result<RuleOperand, RuleFault> {
    if let Some(number) = variables.iter().position(|(name, _)| name == word) {
        return Ok(RuleOperand::Variable(number as u8));
    }
    match parse_literal(word, ty) {
        Some(bits) => Ok(RuleOperand::Constant(ty, bits)),
        None => syntax(format!("`{}` is no variable and no literal of {ty}", shortened(word))),
    }
}

/// Checks both sides together.
fn check(rule: &DeclaredRule) -> Result<(), RuleFault> {
    let is_call = |o: &RuleOperation| o.opcode == Opcode::CallPure;
    let has_calls = rule.left.operations.iter().chain(&rule.right.operations).any(is_call);
    if has_calls != rule.is_axiom {
        let reason = match has_calls {
            true => "a rule about functions is an axiom: no solver proves it",
            false => "an axiom is about functions: solvers prove other rules",
        };
        return Err(RuleFault::Operation(reason.to_owned()));
    }
    for (number, (name, _)) in rule.variables.iter().enumerate() {
        let (left, right) = (rule.left.count(number), rule.right.count(number));
        if left == 0 {
            return syntax(format!("the left side does not contain `{name}`"));
        }
        if right > left {
            return Err(RuleFault::Endless(format!("`{name}` occurs more often on the right")));
        }
    }
    if rule.right.size() >= rule.left.size() {
        return Err(RuleFault::Endless("the right side is not smaller than the left".to_owned()));
    }
    Ok(())
}
