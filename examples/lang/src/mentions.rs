//! The names that statements mention.

use crate::syntax::{Expr, ExprKind, Stmt};
use std::collections::HashSet;

/// Collects the names that functions within these statements mention.
pub(crate) fn mentioned(body: &[Stmt], is_inner: bool, names: &mut HashSet<String>) {
    for statement in body {
        if let (Stmt::Assign(Expr { kind: ExprKind::Name(name), .. }, _), true) =
            (statement, is_inner)
        {
            names.insert(name.clone());
        }
        if let Stmt::Func(def) = statement {
            mentioned(&def.body, true, names);
        }
        let (exprs, blocks) = parts(statement);
        exprs.into_iter().for_each(|expr| mentioned_in(expr, is_inner, names));
        blocks.into_iter().for_each(|block| mentioned(block, is_inner, names));
    }
}

fn mentioned_in(expr: &Expr, is_inner: bool, names: &mut HashSet<String>) {
    let mut each = |inner: &Expr| mentioned_in(inner, is_inner, names);
    match &expr.kind {
        ExprKind::Name(name) if is_inner => _ = names.insert(name.clone()),
        ExprKind::Array(items) => items.iter().for_each(each),
        ExprKind::Object(fields) => fields.iter().for_each(|(_, value)| each(value)),
        ExprKind::Func(def) => mentioned(&def.body, true, names),
        ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Field(inner, _) => each(inner),
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) => {
            [a, b].into_iter().for_each(|e| each(e))
        }
        ExprKind::Call(callee, args) | ExprKind::Method(callee, _, args) => {
            each(callee);
            args.iter().for_each(each);
        }
        _ => {}
    }
}

/// The expressions and blocks of a statement.
fn parts(statement: &Stmt) -> (Vec<&Expr>, Vec<&[Stmt]>) {
    match statement {
        Stmt::Var(_, e) | Stmt::Expr(e) | Stmt::Throw(e) | Stmt::Return(Some(e)) => {
            (vec![e], vec![])
        }
        Stmt::Assign(a, b) => (vec![a, b], vec![]),
        Stmt::If(c, then, otherwise) => (vec![c], vec![then, otherwise]),
        Stmt::While(c, body) => (vec![c], vec![body]),
        Stmt::For(_, from, to, body) => (vec![from, to], vec![body]),
        Stmt::Try(body, _, handler) => (vec![], vec![body, handler]),
        Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return(None) | Stmt::Func(_) => (vec![], vec![]),
    }
}

/// Whether statements assign to a name.
pub(crate) fn assigns(body: &[Stmt], name: &str) -> bool {
    body.iter().any(|statement| match statement {
        Stmt::Assign(Expr { kind: ExprKind::Name(of), .. }, _) => of == name,
        other => parts(other).1.into_iter().any(|block| assigns(block, name)),
    })
}
