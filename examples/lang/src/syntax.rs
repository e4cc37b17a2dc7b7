//! The syntax of Wicker: from text to a tree, with the combinators of `winnow`.
//!
//! ```text
//! func squares(n) {
//!     var list = [];
//!     for i in 0..n { push(list, {value: i * i}); }
//!     return list;
//! }
//! print(squares(4)[3].value);
//! ```
//!
//! Each function below parses one construct and leaves the input behind it. A failure is final
//! (`ErrMode::Cut`) and names the construct that was expected; the place is where the input
//! stopped. Expressions nest at most [`MAX_NESTING`] deep, so that no text overflows the stack of
//! the parser.
//!
//! Why `winnow`: it is MIT, maintained (1.0.5), builds with Rust 1.65, and other crates of the
//! workspace bring it anyway. Parsers are plain functions, so a limit on nesting is a counter in
//! the input.

use crate::bytecode::{Arith, Compare};
pub use crate::error::SyntaxError;
use winnow::ascii::till_line_ending;
use winnow::combinator::{alt, opt, peek, preceded, repeat};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Stateful};
use winnow::token::{any, one_of, take_while};

/// The most statements and expressions around another.
pub const MAX_NESTING: u32 = 200;

/// Where a construct begins, in bytes from the start of the text.
pub type Offset = u32;

/// An operator with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOp {
    /// An operation on two numbers.
    Arith(Arith),
    /// A comparison: whether the operands change places, and whether the result is negated.
    Compare(Compare, bool, bool),
    /// `and`: the first operand if it is `false` or `nil`.
    And,
    /// `or`
    Or,
}

/// Operators by their text and binding power. A longer operator comes before its prefix.
const BINARY: &[(&str, BinaryOp, u8)] = &[
    ("or", BinaryOp::Or, 1),
    ("and", BinaryOp::And, 2),
    ("==", BinaryOp::Compare(Compare::Eq, false, false), 3),
    ("!=", BinaryOp::Compare(Compare::Eq, false, true), 3),
    ("<<", BinaryOp::Arith(Arith::Shl), 7),
    (">>", BinaryOp::Arith(Arith::Shr), 7),
    ("<=", BinaryOp::Compare(Compare::Le, false, false), 3),
    (">=", BinaryOp::Compare(Compare::Le, true, false), 3),
    ("<", BinaryOp::Compare(Compare::Lt, false, false), 3),
    (">", BinaryOp::Compare(Compare::Lt, true, false), 3),
    ("|", BinaryOp::Arith(Arith::Or), 4),
    ("^", BinaryOp::Arith(Arith::Xor), 5),
    ("&", BinaryOp::Arith(Arith::And), 6),
    ("+", BinaryOp::Arith(Arith::Add), 8),
    ("-", BinaryOp::Arith(Arith::Sub), 8),
    ("*", BinaryOp::Arith(Arith::Mul), 9),
    ("//", BinaryOp::Arith(Arith::FloorDiv), 9),
    ("/", BinaryOp::Arith(Arith::Div), 9),
    ("%", BinaryOp::Arith(Arith::Mod), 9),
];

const KEYWORDS: &[&str] = &[
    "and", "break", "catch", "continue", "else", "false", "for", "func", "if", "in", "nil", "or",
    "return", "throw", "true", "try", "var", "while",
];

/// An expression and where it begins.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Where it begins.
    pub at: Offset,
    /// Its kind.
    pub kind: ExprKind,
}

/// The kinds of expressions.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// `nil`
    Nil,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// A variable.
    Name(String),
    /// `[a, b]`
    Array(Vec<Expr>),
    /// `{name: a}`
    Object(Vec<(String, Expr)>),
    /// `func (a) { .. }`
    Func(Box<FuncDef>),
    /// `-a`
    Negate(Box<Expr>),
    /// `!a`
    Not(Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `f(a)`
    Call(Box<Expr>, Vec<Expr>),
    /// `o:m(a)`, the call of `o.m` with `o` and `a`.
    Method(Box<Expr>, String, Vec<Expr>),
    /// `o.name`
    Field(Box<Expr>, String),
    /// `a[i]`
    Index(Box<Expr>, Box<Expr>),
}

/// A function.
#[derive(Clone, PartialEq, Debug)]
pub struct FuncDef {
    /// Its name; empty without one.
    pub name: String,
    /// The names of its parameters.
    pub params: Vec<String>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Where it begins.
    pub at: Offset,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// `var x = e;`
    Var(String, Expr),
    /// `x = e;`, `o.f = e;`, `a[i] = e;`
    Assign(Expr, Expr),
    /// `e;`
    Expr(Expr),
    /// `if c { } else { }`
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// `while c { }`
    While(Expr, Vec<Stmt>),
    /// `for i in a..b { }`: `i` from `a` to below `b`.
    For(String, Expr, Expr, Vec<Stmt>),
    /// `break;`
    Break(Offset),
    /// `continue;`
    Continue(Offset),
    /// `return e;`
    Return(Option<Expr>),
    /// `throw e;`
    Throw(Expr),
    /// `try { } catch e { }`
    Try(Vec<Stmt>, String, Vec<Stmt>),
    /// `func f(a) { }`
    Func(FuncDef),
}

/// The text, and how deep the parser is.
type Input<'a> = Stateful<LocatingSlice<&'a str>, u32>;
type Parsed<T> = ModalResult<T>;

/// Parses a program.
///
/// # Errors
/// The first error.
pub fn parse(text: &str) -> Result<Vec<Stmt>, SyntaxError> {
    if text.len() > u32::MAX as usize / 2 {
        return Err(SyntaxError::new(text, 0, "the program is larger than 2 GiB"));
    }
    let mut input = Stateful { input: LocatingSlice::new(text), state: 0 };
    let mut statements = Vec::new();
    let parsed = loop {
        match blank(&mut input) {
            Ok(()) if input.is_empty() => break Ok(()),
            Ok(()) => match statement(&mut input) {
                Ok(parsed) => statements.push(parsed),
                Err(error) => break Err(error),
            },
            Err(error) => break Err(error),
        }
    };
    match parsed {
        Ok(()) => Ok(statements),
        Err(error) => {
            let what = error.into_inner().map_or("incomplete".to_owned(), |e| e.to_string());
            let what = if what.is_empty() { "invalid syntax".to_owned() } else { what };
            Err(SyntaxError::new(text, input.current_token_start(), what.replace('\n', ", ")))
        }
    }
}

fn expected<T>(what: &'static str) -> Parsed<T> {
    let mut error = ContextError::new();
    error.push(StrContext::Expected(StrContextValue::Description(what)));
    Err(ErrMode::Cut(error))
}

/// Blanks and comments, which run from `#` to the end of the line.
fn blank(i: &mut Input<'_>) -> Parsed<()> {
    let space = take_while(1.., |c: char| c.is_ascii_whitespace()).void();
    let comment = ('#', till_line_ending).void();
    repeat::<_, _, (), _, _>(0.., alt((space, comment))).parse_next(i)
}

fn offset(i: &mut Input<'_>) -> Parsed<Offset> {
    blank(i)?;
    Ok(i.current_token_start() as u32)
}

/// Skips a sign if it comes next.
fn eat(i: &mut Input<'_>, sign: &'static str) -> Parsed<bool> {
    blank(i)?;
    Ok(opt(sign).parse_next(i)?.is_some())
}

fn need(i: &mut Input<'_>, sign: &'static str) -> Parsed<()> {
    match eat(i, sign)? {
        true => Ok(()),
        false => expected(sign),
    }
}

/// The word that comes next, if one does.
fn word<'a>(i: &mut Input<'a>) -> Parsed<Option<&'a str>> {
    blank(i)?;
    let start = peek(one_of(|c: char| c.is_ascii_alphabetic() || c == '_'));
    let rest = take_while(1.., |c: char| c.is_ascii_alphanumeric() || c == '_');
    opt(preceded(start, rest)).parse_next(i)
}

/// Skips a keyword if it comes next.
fn eat_word(i: &mut Input<'_>, keyword: &str) -> Parsed<bool> {
    let is_next = peek(word).parse_next(i)? == Some(keyword);
    if is_next {
        word(i)?;
    }
    Ok(is_next)
}

fn name(i: &mut Input<'_>) -> Parsed<String> {
    match peek(word).parse_next(i)? {
        Some(found) if !KEYWORDS.contains(&found) => {
            word(i)?;
            Ok(found.to_owned())
        }
        _ => expected("a name"),
    }
}

/// Parses something nested, one level deeper.
fn nested<T>(i: &mut Input<'_>, inner: impl FnOnce(&mut Input<'_>) -> Parsed<T>) -> Parsed<T> {
    if i.state >= MAX_NESTING {
        return expected("less nesting: statements and expressions nest at most 200 deep");
    }
    i.state += 1;
    let parsed = inner(i);
    i.state -= 1;
    parsed
}

fn block(i: &mut Input<'_>) -> Parsed<Vec<Stmt>> {
    need(i, "{")?;
    let mut statements = Vec::new();
    while !eat(i, "}")? {
        statements.push(statement(i)?);
    }
    Ok(statements)
}

fn statement(i: &mut Input<'_>) -> Parsed<Stmt> {
    nested(i, |i| {
        let at = offset(i)?;
        let keyword = peek(word).parse_next(i)?.filter(|word| KEYWORDS.contains(word));
        match keyword {
            Some("if" | "while" | "for" | "try" | "break" | "continue") => control(i, at),
            Some("var") => {
                word(i)?;
                let name = name(i)?;
                need(i, "=")?;
                ended(i, |i| Ok(Stmt::Var(name, expr(i)?)))
            }
            Some("return") => {
                word(i)?;
                if eat(i, ";")? {
                    return Ok(Stmt::Return(None));
                }
                ended(i, |i| Ok(Stmt::Return(Some(expr(i)?))))
            }
            Some("throw") => {
                word(i)?;
                ended(i, |i| Ok(Stmt::Throw(expr(i)?)))
            }
            Some("func") => {
                word(i)?;
                let name = name(i)?;
                Ok(Stmt::Func(function(i, name, at)?))
            }
            _ => ended(i, simple),
        }
    })
}

fn ended(i: &mut Input<'_>, inner: impl FnOnce(&mut Input<'_>) -> Parsed<Stmt>) -> Parsed<Stmt> {
    let parsed = inner(i)?;
    need(i, ";")?;
    Ok(parsed)
}

/// An assignment or an expression.
fn simple(i: &mut Input<'_>) -> Parsed<Stmt> {
    let target = expr(i)?;
    let is_place =
        matches!(target.kind, ExprKind::Name(_) | ExprKind::Field(..) | ExprKind::Index(..));
    if is_place && eat(i, "=")? {
        return Ok(Stmt::Assign(target, expr(i)?));
    }
    Ok(Stmt::Expr(target))
}

/// A statement that decides where the run continues.
fn control(i: &mut Input<'_>, at: Offset) -> Parsed<Stmt> {
    match word(i)? {
        Some("if") => {
            let (condition, then) = (expr(i)?, block(i)?);
            let otherwise = match eat_word(i, "else")? {
                false => Vec::new(),
                true if peek(word).parse_next(i)? == Some("if") => vec![statement(i)?],
                true => block(i)?,
            };
            Ok(Stmt::If(condition, then, otherwise))
        }
        Some("while") => Ok(Stmt::While(expr(i)?, block(i)?)),
        Some("for") => {
            let name = name(i)?;
            if !eat_word(i, "in")? {
                return expected("in");
            }
            let from = expr(i)?;
            need(i, "..")?;
            Ok(Stmt::For(name, from, expr(i)?, block(i)?))
        }
        Some("try") => {
            let body = block(i)?;
            if !eat_word(i, "catch")? {
                return expected("catch");
            }
            Ok(Stmt::Try(body, name(i)?, block(i)?))
        }
        Some("break") => ended(i, |_| Ok(Stmt::Break(at))),
        _ => ended(i, |_| Ok(Stmt::Continue(at))),
    }
}

fn function(i: &mut Input<'_>, name_of: String, at: Offset) -> Parsed<FuncDef> {
    need(i, "(")?;
    let mut params = Vec::new();
    while !eat(i, ")")? {
        if !params.is_empty() {
            need(i, ",")?;
        }
        params.push(name(i)?);
    }
    Ok(FuncDef { name: name_of, params, body: block(i)?, at })
}

fn expr(i: &mut Input<'_>) -> Parsed<Expr> {
    nested(i, |i| climb(i, 0))
}

/// An expression of operators that bind at least this strongly (precedence climbing).
fn climb(i: &mut Input<'_>, least: u8) -> Parsed<Expr> {
    let mut left = unary(i)?;
    let mut length = 0;
    while let Some((op, power)) = peek(operator).parse_next(i)?.filter(|found| found.1 >= least) {
        operator(i)?;
        let right = nested(i, |i| climb(i, power + 1))?;
        let at = left.at;
        left = Expr { at, kind: ExprKind::Binary(op, Box::new(left), Box::new(right)) };
        // A chain nests to the left.
        length += 1;
        if length > 1000 {
            return expected("fewer operators in one expression: at most 1000");
        }
    }
    Ok(left)
}

fn operator(i: &mut Input<'_>) -> Parsed<Option<(BinaryOp, u8)>> {
    blank(i)?;
    if let Some(found) = peek(word).parse_next(i)? {
        let known = BINARY.iter().find(|(text, ..)| *text == found);
        if known.is_some() {
            word(i)?;
        }
        return Ok(known.map(|(_, op, power)| (*op, *power)));
    }
    for (text, op, power) in BINARY {
        let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_word && opt(*text).parse_next(i)?.is_some() {
            return Ok(Some((*op, *power)));
        }
    }
    Ok(None)
}

fn unary(i: &mut Input<'_>) -> Parsed<Expr> {
    let at = offset(i)?;
    let sign = opt(one_of(['-', '!'])).parse_next(i)?;
    match sign {
        None => postfix(i),
        Some(sign) => {
            let inner = nested(i, unary)?;
            let kind = match (sign, &inner.kind) {
                ('-', ExprKind::Number(number)) => ExprKind::Number(-number),
                ('-', _) => ExprKind::Negate(Box::new(inner)),
                _ => ExprKind::Not(Box::new(inner)),
            };
            Ok(Expr { at, kind })
        }
    }
}

fn list(i: &mut Input<'_>, end: &'static str) -> Parsed<Vec<Expr>> {
    let mut items = Vec::new();
    while !eat(i, end)? {
        if !items.is_empty() {
            need(i, ",")?;
        }
        items.push(expr(i)?);
    }
    Ok(items)
}

fn postfix(i: &mut Input<'_>) -> Parsed<Expr> {
    let mut left = primary(i)?;
    let mut length = 0;
    loop {
        length += 1;
        if length > 1000 {
            return expected("fewer calls and accesses in one expression: at most 1000");
        }
        let at = offset(i)?;
        let is_range = peek(opt("..")).parse_next(i)?.is_some();
        let kind = if eat(i, "(")? {
            ExprKind::Call(Box::new(left), list(i, ")")?)
        } else if eat(i, "[")? {
            let index = expr(i)?;
            need(i, "]")?;
            ExprKind::Index(Box::new(left), Box::new(index))
        } else if !is_range && eat(i, ".")? {
            ExprKind::Field(Box::new(left), name(i)?)
        } else if eat(i, ":")? {
            let method = name(i)?;
            need(i, "(")?;
            ExprKind::Method(Box::new(left), method, list(i, ")")?)
        } else {
            return Ok(left);
        };
        left = Expr { at, kind };
    }
}

fn primary(i: &mut Input<'_>) -> Parsed<Expr> {
    let at = offset(i)?;
    if let Some(found) = peek(word).parse_next(i)? {
        let kind = match found {
            "nil" => ExprKind::Nil,
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "func" => {
                word(i)?;
                let function = function(i, String::new(), at)?;
                return Ok(Expr { at, kind: ExprKind::Func(Box::new(function)) });
            }
            found if KEYWORDS.contains(&found) => return expected("an expression"),
            found => ExprKind::Name(found.to_owned()),
        };
        word(i)?;
        return Ok(Expr { at, kind });
    }
    let kind = match opt(peek(any)).parse_next(i)? {
        Some('(') => {
            need(i, "(")?;
            let inner = expr(i)?;
            need(i, ")")?;
            inner.kind
        }
        Some('[') => {
            need(i, "[")?;
            ExprKind::Array(list(i, "]")?)
        }
        Some('{') => {
            need(i, "{")?;
            ExprKind::Object(fields(i)?)
        }
        Some('"') => ExprKind::Text(string(i)?),
        Some(c) if c.is_ascii_digit() => ExprKind::Number(number(i)?),
        _ => return expected("an expression"),
    };
    Ok(Expr { at, kind })
}

fn fields(i: &mut Input<'_>) -> Parsed<Vec<(String, Expr)>> {
    let mut fields: Vec<(String, Expr)> = Vec::new();
    while !eat(i, "}")? {
        if !fields.is_empty() {
            need(i, ",")?;
        }
        let name = name(i)?;
        if fields.iter().any(|(other, _)| *other == name) {
            return expected("each field once");
        }
        need(i, ":")?;
        fields.push((name, expr(i)?));
    }
    Ok(fields)
}

fn string(i: &mut Input<'_>) -> Parsed<String> {
    let mut text = String::new();
    '"'.parse_next(i)?;
    loop {
        match opt(any).parse_next(i)? {
            Some('"') => return Ok(text),
            Some('\\') => match opt(any).parse_next(i)? {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(c @ ('"' | '\\')) => text.push(c),
                _ => return expected("\\n, \\t, \\\" or \\\\"),
            },
            Some('\n') | None => return expected("the end of the string on its line"),
            Some(c) => text.push(c),
        }
    }
}

/// A decimal number. `0..n` is a range: its `0` has no point.
fn number(i: &mut Input<'_>) -> Parsed<f64> {
    let digits = |c: char| c.is_ascii_digit();
    let fraction = ('.', take_while(1.., digits));
    let exponent = (one_of(['e', 'E']), opt(one_of(['-', '+'])), take_while(1.., digits));
    let text = (take_while(1.., digits), opt(fraction), opt(exponent)).take().parse_next(i)?;
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => expected("a number"),
    }
}
