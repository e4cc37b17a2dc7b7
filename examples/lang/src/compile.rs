//! The compiler from the tree to bytecode, in one pass over the tree.

mod expressions;

use crate::bytecode::{Capture, Constant, Handler, Op, Pc, Program, Proto, Reg};
use crate::heap::{MAX_GLOBALS, Shapes};
use crate::mentions::{assigns, mentioned};
use crate::syntax::{Expr, ExprKind, FuncDef, Offset, Stmt, SyntaxError};
use crate::value::NIL;
use std::collections::{HashMap, HashSet};

/// Compiles a program.
///
/// # Errors
/// Names that are not defined, and functions that are too large.
pub fn compile(
    text: &str,
    statements: &[Stmt],
    shapes: &mut Shapes,
) -> Result<Program, SyntaxError> {
    let mut globals = HashMap::new();
    for statement in statements {
        if let Stmt::Var(name, _) | Stmt::Func(FuncDef { name, .. }) = statement {
            let next = globals.len() as u32;
            globals.entry(name.clone()).or_insert(next);
        }
    }
    if globals.len() > MAX_GLOBALS as usize {
        return Err(SyntaxError::new(text, 0, format!("more than {MAX_GLOBALS} variables")));
    }
    let mut compiler = Compiler {
        shapes,
        globals,
        protos: Vec::new(),
        around: Vec::new(),
        functions: HashMap::new(),
    };
    let main =
        FuncDef { name: "main".to_owned(), params: vec![], body: statements.to_vec(), at: 0 };
    let made =
        compiler.function(&main).map_err(|(at, what)| SyntaxError::new(text, at as usize, what))?;
    compiler.protos.push(made);
    let globals = compiler.globals.len() as u32;
    let mut sets = vec![0; globals as usize];
    for op in compiler.protos.iter().flat_map(|proto| &proto.code) {
        if let Op::SetGlobal(_, global) = op {
            sets[*global as usize] += 1;
        }
    }
    let mut functions = compiler.functions;
    functions.retain(|global, _| sets[*global as usize] == 1);
    Ok(Program { protos: compiler.protos, globals, functions })
}

type Compiled<T> = Result<T, (Offset, String)>;

struct Compiler<'a> {
    shapes: &'a mut Shapes,
    globals: HashMap<String, u32>,
    /// By variable of the outermost level that a definition sets: the function.
    functions: HashMap<u32, u32>,
    protos: Vec<Proto>,
    /// The functions around the instruction, the innermost last.
    around: Vec<Unit>,
}

/// A function that is being compiled.
#[derive(Default)]
struct Unit {
    proto: Proto,
    locals: Vec<Variable>,
    /// The names of `proto.captures`.
    captured: Vec<String>,
    /// The names that inner functions mention. Variables of these names are in cells.
    shared: HashSet<String>,
    depth: u32,
    next: u32,
    loops: Vec<LoopJumps>,
}

struct Variable {
    name: String,
    register: Reg,
    is_cell: bool,
}

#[derive(Default)]
struct LoopJumps {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

/// Where the value of a name is.
enum Home {
    Register(Reg),
    Cell(Reg),
    Up(u32),
    Global(u32),
}

impl Compiler<'_> {
    fn unit(&mut self) -> &mut Unit {
        self.around.last_mut().expect("a function is being compiled")
    }

    fn emit(&mut self, at: Offset, op: Op) -> usize {
        let proto = &mut self.unit().proto;
        proto.code.push(op);
        proto.places.push(at);
        proto.code.len() - 1
    }

    fn here(&mut self) -> Pc {
        self.unit().proto.code.len() as Pc
    }

    fn patch(&mut self, jumps: &[usize]) {
        let here = self.here();
        for jump in jumps {
            *self.unit().proto.code[*jump].target().expect("it jumps") = here;
        }
    }

    fn register(&mut self, at: Offset) -> Compiled<Reg> {
        let unit = self.unit();
        let register = unit.next;
        if register >= 240 {
            return Err((at, "a function has more than 240 variables and operands".to_owned()));
        }
        unit.next += 1;
        unit.proto.registers = unit.proto.registers.max(unit.next);
        Ok(register as Reg)
    }

    fn function(&mut self, def: &FuncDef) -> Compiled<Proto> {
        if def.params.len() > MOST_ARGUMENTS {
            return Err((def.at, format!("more than {MOST_ARGUMENTS} parameters")));
        }
        let mut unit = Unit::default();
        unit.proto.name.clone_from(&def.name);
        unit.proto.params = def.params.len() as u8;
        mentioned(&def.body, false, &mut unit.shared);
        self.around.push(unit);
        for name in &def.params {
            let register = self.register(def.at)?;
            self.unit().locals.push(Variable { name: name.clone(), register, is_cell: false });
        }
        for index in 0..def.params.len() {
            let unit = self.unit();
            let Variable { name, register, .. } = &unit.locals[index];
            let register = *register;
            if unit.shared.contains(name) {
                self.emit(def.at, Op::NewCell(register, register));
                self.unit().locals[index].is_cell = true;
            }
        }
        self.statements(&def.body)?;
        let nil = self.register(def.at)?;
        self.constant(def.at, nil, Constant::Word(NIL));
        self.emit(def.at, Op::Return(nil));
        let unit = self.around.pop().expect("it was pushed");
        match unit.proto.code.len() > 1 << 20 {
            true => Err((def.at, "a function has more than 2^20 instructions".to_owned())),
            false => Ok(unit.proto),
        }
    }

    fn constant(&mut self, at: Offset, to: Reg, constant: Constant) {
        let constants = &mut self.unit().proto.constants;
        let known = constants.iter().position(|known| *known == constant);
        let index = known.unwrap_or_else(|| {
            constants.push(constant);
            constants.len() - 1
        });
        self.emit(at, Op::Const(to, index as u32));
    }

    fn block(&mut self, body: &[Stmt]) -> Compiled<()> {
        let (locals, next) = (self.unit().locals.len(), self.unit().next);
        self.unit().depth += 1;
        self.statements(body)?;
        let unit = self.unit();
        unit.depth -= 1;
        unit.locals.truncate(locals);
        unit.next = next;
        Ok(())
    }

    fn statements(&mut self, body: &[Stmt]) -> Compiled<()> {
        for statement in body {
            let (locals, next) = (self.unit().locals.len(), self.unit().next);
            self.statement(statement)?;
            // Operands are free again, unless a variable was declared.
            if self.unit().locals.len() == locals {
                self.unit().next = next;
            }
        }
        Ok(())
    }

    fn is_variable(&mut self, register: Reg) -> bool {
        self.unit().locals.iter().any(|variable| variable.register == register)
    }

    fn is_outermost(&self) -> bool {
        self.around.len() == 1 && self.around[0].depth == 0
    }

    /// Declares a variable whose value is in a register of its own.
    fn declare(&mut self, at: Offset, name: &str, register: Reg) {
        let is_cell = self.unit().shared.contains(name);
        if is_cell {
            self.emit(at, Op::NewCell(register, register));
        }
        self.unit().locals.push(Variable { name: name.to_owned(), register, is_cell });
    }

    fn statement(&mut self, statement: &Stmt) -> Compiled<()> {
        match statement {
            Stmt::Var(name, value) if self.is_outermost() => {
                let value_in = self.expr(value)?;
                let global = self.globals[name];
                self.emit(value.at, Op::SetGlobal(value_in, global));
            }
            Stmt::Var(name, value) => {
                let register = self.register(value.at)?;
                self.expr_to(value, register)?;
                self.unit().next = u32::from(register) + 1;
                self.declare(value.at, name, register);
            }
            Stmt::Func(def) if self.is_outermost() => {
                let register = self.register(def.at)?;
                self.closure(def, register)?;
                let global = self.globals[&def.name];
                self.functions.insert(global, self.protos.len() as u32 - 1);
                self.emit(def.at, Op::SetGlobal(register, global));
            }
            Stmt::Func(def) => {
                // The function may mention itself, so its variable comes first.
                let register = self.register(def.at)?;
                self.constant(def.at, register, Constant::Word(NIL));
                self.declare(def.at, &def.name, register);
                let made = self.register(def.at)?;
                self.closure(def, made)?;
                self.store(def.at, &def.name, made)?;
                self.unit().next = u32::from(register) + 1;
            }
            Stmt::Assign(target, value) => self.assign(target, value)?,
            Stmt::Expr(expr) => _ = self.expr(expr)?,
            Stmt::If(condition, then, otherwise) => self.branch_on(condition, then, otherwise)?,
            Stmt::While(condition, body) => self.while_loop(condition, body)?,
            Stmt::For(name, from, to, body) => self.for_loop(name, from, to, body)?,
            Stmt::Break(at) | Stmt::Continue(at) => {
                let jump = self.emit(*at, Op::Jump(0));
                let is_break = matches!(statement, Stmt::Break(_));
                let Some(jumps) = self.unit().loops.last_mut() else {
                    return Err((*at, "this is outside of a loop".to_owned()));
                };
                if is_break { &mut jumps.breaks } else { &mut jumps.continues }.push(jump);
            }
            Stmt::Return(value) => {
                let nothing = Expr { at: 0, kind: ExprKind::Nil };
                let value = value.as_ref().unwrap_or(&nothing);
                let register = self.expr(value)?;
                self.emit(value.at, Op::Return(register));
            }
            Stmt::Throw(value) => {
                let register = self.expr(value)?;
                self.emit(value.at, Op::Throw(register));
            }
            Stmt::Try(body, name, handler) => self.try_block(body, name, handler)?,
        }
        Ok(())
    }

    fn branch_on(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) -> Compiled<()> {
        let to_else = self.branch(condition, false)?;
        self.block(then)?;
        if otherwise.is_empty() {
            self.patch(&to_else);
            return Ok(());
        }
        let to_end = self.emit(condition.at, Op::Jump(0));
        self.patch(&to_else);
        self.block(otherwise)?;
        self.patch(&[to_end]);
        Ok(())
    }

    fn while_loop(&mut self, condition: &Expr, body: &[Stmt]) -> Compiled<()> {
        let header = self.here();
        let next = self.unit().next;
        let out = self.branch(condition, false)?;
        self.unit().next = next;
        self.unit().loops.push(LoopJumps::default());
        self.block(body)?;
        let jumps = self.unit().loops.pop().expect("it was pushed");
        self.patch(&jumps.continues);
        self.emit(condition.at, Op::JumpBack(header));
        self.patch(&out);
        self.patch(&jumps.breaks);
        Ok(())
    }

    fn for_loop(&mut self, name: &str, from: &Expr, to: &Expr, body: &[Stmt]) -> Compiled<()> {
        let (locals, next) = (self.unit().locals.len(), self.unit().next);
        let (counter, end) = (self.register(from.at)?, self.register(to.at)?);
        self.expr_to(from, counter)?;
        self.expr_to(to, end)?;
        let out = self.emit(from.at, Op::JumpNotLt(counter, end, 0));
        let header = self.here();
        // A body that changes its variable does not change the number of rounds.
        if self.unit().shared.contains(name) || assigns(body, name) {
            let own = self.register(from.at)?;
            self.emit(from.at, Op::Move(own, counter));
            self.declare(from.at, name, own);
        } else {
            self.declare(from.at, name, counter);
        }
        self.unit().loops.push(LoopJumps::default());
        self.block(body)?;
        let jumps = self.unit().loops.pop().expect("it was pushed");
        self.patch(&jumps.continues);
        self.emit(from.at, Op::ForNext(counter, end, header));
        self.patch(&[out]);
        self.patch(&jumps.breaks);
        let unit = self.unit();
        unit.locals.truncate(locals);
        unit.next = next;
        Ok(())
    }

    fn try_block(&mut self, body: &[Stmt], name: &str, handler: &[Stmt]) -> Compiled<()> {
        let (locals, next) = (self.unit().locals.len(), self.unit().next);
        let register = self.register(0)?;
        let start = self.here();
        self.block(body)?;
        let end = self.here();
        let over = self.emit(0, Op::Jump(0));
        let target = self.here();
        self.unit().proto.handlers.push(Handler { start, end, target, register });
        self.declare(0, name, register);
        self.block(handler)?;
        self.patch(&[over]);
        let unit = self.unit();
        unit.locals.truncate(locals);
        unit.next = next;
        Ok(())
    }

    fn assign(&mut self, target: &Expr, value: &Expr) -> Compiled<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                if let Some(Home::Register(register)) = self.home(name) {
                    return self.expr_to(value, register);
                }
                let register = self.expr(value)?;
                self.store(target.at, name, register)
            }
            ExprKind::Field(of, name) => {
                let (object, value) = (self.expr(of)?, self.expr(value)?);
                let site = self.site(name);
                self.emit(target.at, Op::SetField(object, value, site));
                Ok(())
            }
            ExprKind::Index(of, index) => {
                let (array, index) = (self.expr(of)?, self.expr(index)?);
                let value = self.expr(value)?;
                self.emit(target.at, Op::SetIndex(array, index, value));
                Ok(())
            }
            _ => Err((target.at, "this cannot be assigned to".to_owned())),
        }
    }

    fn site(&mut self, name: &str) -> u32 {
        let number = self.shapes.name(name);
        let sites = &mut self.unit().proto.sites;
        sites.push(number);
        sites.len() as u32 - 1
    }

    fn home(&mut self, name: &str) -> Option<Home> {
        let innermost = self.around.len() - 1;
        self.home_in(innermost, name).or_else(|| self.globals.get(name).map(|g| Home::Global(*g)))
    }

    fn home_in(&mut self, unit: usize, name: &str) -> Option<Home> {
        let of = &self.around[unit];
        if let Some(variable) = of.locals.iter().rev().find(|variable| variable.name == name) {
            let register = variable.register;
            return Some(match variable.is_cell {
                true => Home::Cell(register),
                false => Home::Register(register),
            });
        }
        if let Some(known) = of.captured.iter().position(|captured| captured == name) {
            return Some(Home::Up(known as u32));
        }
        let capture = match self.home_in(unit.checked_sub(1)?, name)? {
            Home::Cell(register) => Capture::Local(register),
            Home::Up(up) => Capture::Up(up),
            Home::Register(_) | Home::Global(_) => return None,
        };
        let of = &mut self.around[unit];
        of.captured.push(name.to_owned());
        of.proto.captures.push(capture);
        Some(Home::Up(of.captured.len() as u32 - 1))
    }

    fn store(&mut self, at: Offset, name: &str, value: Reg) -> Compiled<()> {
        let op = match self.home(name) {
            Some(Home::Register(register)) => Op::Move(register, value),
            Some(Home::Cell(register)) => Op::SetCell(register, value),
            Some(Home::Up(up)) => Op::SetUp(value, up),
            Some(Home::Global(global)) => Op::SetGlobal(value, global),
            None => return Err((at, format!("{name} is not defined"))),
        };
        self.emit(at, op);
        Ok(())
    }

    fn closure(&mut self, def: &FuncDef, to: Reg) -> Compiled<()> {
        let proto = self.function(def)?;
        self.protos.push(proto);
        let number = self.protos.len() as u32 - 1;
        self.emit(def.at, Op::Closure(to, number));
        Ok(())
    }
}

/// The most parameters of a function, and arguments of a call.
pub const MOST_ARGUMENTS: usize = 8;
