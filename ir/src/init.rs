//! Values that a module computes when it is instantiated: the initial value of a global, and the
//! place of a segment.
//!
//! Example: a dynamic library imports the global `__memory_base`, writes its data at that address,
//! and has a global with the address of its second variable, `__memory_base + 16`. The embedder
//! alone knows the base, so the module has the expression.

use crate::entity::Global;
use crate::eval::int_binary;
use crate::module::Module;
use crate::opcode::Opcode;
use crate::types::Type;
use cranelift_entity::EntityRef;

/// A value of a module that is known when the module is instantiated, at the latest. The constant
/// expressions of WebAssembly with its proposal of extended constant expressions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InitExpr {
    /// Bits.
    Bits(u64),
    /// The result of operations on a stack, in postfix order. The verifier checks them
    /// (`MOD-INIT-1`).
    Computed(Box<[InitOp]>),
}

/// An operation of an [`InitExpr`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitOp {
    /// Pushes bits.
    Bits(u64),
    /// Pushes the value of an immutable global, declared before the global that the expression is
    /// for.
    Global(Global),
    /// Pops two integers and pushes their sum, modulo the width of the type.
    Add,
    /// Pops two integers and pushes the difference: the lower one minus the upper one.
    Sub,
    /// Pops two integers and pushes their product.
    Mul,
}

impl InitOp {
    /// The three operations on two operands, with their names in the text form.
    pub const BINARY: [(InitOp, &'static str); 3] =
        [(InitOp::Add, "add"), (InitOp::Sub, "sub"), (InitOp::Mul, "mul")];

    /// The operation that does what an opcode does; `None` if there is none.
    pub fn of(opcode: Opcode) -> Option<InitOp> {
        InitOp::BINARY.into_iter().map(|(op, _)| op).find(|op| op.opcode() == Some(opcode))
    }

    fn opcode(self) -> Option<Opcode> {
        match self {
            InitOp::Add => Some(Opcode::Add),
            InitOp::Sub => Some(Opcode::Sub),
            InitOp::Mul => Some(Opcode::Mul),
            InitOp::Bits(_) | InitOp::Global(_) => None,
        }
    }
}

impl From<u64> for InitExpr {
    fn from(bits: u64) -> InitExpr {
        InitExpr::Bits(bits)
    }
}

impl InitExpr {
    /// The value of a global.
    pub fn of_global(global: Global) -> InitExpr {
        InitExpr::Computed(Box::new([InitOp::Global(global)]))
    }

    /// The bits, if they are known before the instantiation.
    pub fn known(&self) -> Option<u64> {
        match self {
            InitExpr::Bits(bits) => Some(*bits),
            InitExpr::Computed(_) => None,
        }
    }

    /// The operations: one for known bits.
    pub fn ops(&self) -> impl Iterator<Item = InitOp> {
        let (bits, ops) = match self {
            InitExpr::Bits(bits) => (Some(InitOp::Bits(*bits)), &[][..]),
            InitExpr::Computed(ops) => (None, &ops[..]),
        };
        bits.into_iter().chain(ops.iter().copied())
    }

    /// The globals that the expression reads.
    pub fn globals(&self) -> impl Iterator<Item = Global> {
        self.ops().filter_map(|op| match op {
            InitOp::Global(global) => Some(global),
            _ => None,
        })
    }

    /// The value, of a type, where `global` tells the values of globals. Cost: linear in the
    /// operations.
    ///
    /// # Panics
    /// If the verifier rejects the expression.
    pub fn evaluate(&self, ty: Type, global: impl Fn(Global) -> u64) -> u64 {
        let mut stack: Vec<u64> = Vec::new();
        for op in self.ops() {
            let bits = match (op, op.opcode()) {
                (InitOp::Bits(bits), _) => bits,
                (InitOp::Global(read), _) => global(read),
                (_, opcode) => {
                    let (y, x) = (stack.pop(), stack.pop());
                    let ((x, y), opcode) =
                        x.zip(y).zip(opcode).expect("init: the verifier checks for two operands");
                    int_binary(opcode, ty, x, y).expect("init: sums and products do not trap")
                }
            };
            stack.push(bits);
        }
        stack.pop().expect("init: the verifier checks for a result")
    }

    /// What is wrong with the expression as one of a type in a module, at a place that may read the
    /// first `readable` globals. `None` if it is well formed.
    pub(crate) fn fault(&self, module: &Module, ty: Type, readable: usize) -> Option<String> {
        let InitExpr::Computed(ops) = self else { return None };
        let mut depth = 0_usize;
        for op in ops {
            match op {
                InitOp::Bits(bits) if bits & !ty.mask() != 0 => {
                    return Some(format!("{bits:#x} does not fit {ty}"));
                }
                InitOp::Bits(_) if ty == Type::FuncRef => {
                    return Some("a function in an expression".to_owned());
                }
                InitOp::Bits(_) => depth += 1,
                InitOp::Global(global) => {
                    let decl = module.globals.get(*global).filter(|_| global.index() < readable);
                    match decl {
                        None => return Some(format!("{global} is not declared before")),
                        Some(decl) if decl.mutable => return Some(format!("{global} is mutable")),
                        Some(decl) if decl.ty != ty => {
                            return Some(format!("{global} is of {}, not of {ty}", decl.ty));
                        }
                        Some(_) => depth += 1,
                    }
                }
                InitOp::Add | InitOp::Sub | InitOp::Mul => {
                    if !matches!(ty, Type::I32 | Type::I64) {
                        return Some(format!("arithmetic of {ty}"));
                    }
                    if depth < 2 {
                        return Some("an operation without two operands".to_owned());
                    }
                    depth -= 1;
                }
            }
        }
        (depth != 1).then(|| format!("{depth} results"))
    }
}
