//! The bodies of a module's functions, and bodies that come later.
//!
//! A virtual machine declares functions that it may never compile, such as the functions of a
//! library. Such a function is declared *later* ([`Module::define_later`]), and its body is
//! supplied once, when something needs it ([`Module::supply`]). All clones of the module have the
//! body from then on, so no module, program or machine is made anew.

use crate::chunked::ChunkedMap;
use crate::entity::{Func, Table};
use crate::function::Function;
use crate::module::{Module, written_tables};
use crate::verifier::{Finding, verify_function};
use cranelift_entity::EntityRef;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The body of one function.
#[derive(Clone, Debug, Default)]
enum Body {
    /// The function is imported.
    #[default]
    Absent,
    /// The body, which all clones of the module share: machines that grow by a function at a time
    /// clone their module each time.
    Here(Arc<Function>),
    /// The body once it is supplied, for all clones of the module.
    Later(Arc<OnceLock<Arc<Function>>>),
}

impl Body {
    fn function(&self) -> Option<&Arc<Function>> {
        match self {
            Body::Absent => None,
            Body::Here(function) => Some(function),
            Body::Later(cell) => cell.get(),
        }
    }
}

/// The bodies of all functions. For an imported function the entry is absent, or missing at the end
/// of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bodies(ChunkedMap<Func, Body>);

impl Bodies {
    fn of(&self, func: Func) -> &Body {
        self.0.get(func).unwrap_or(&Body::Absent)
    }

    fn set(&mut self, func: Func, body: Body) {
        while self.0.len() <= func.index() {
            self.0.push(Body::Absent);
        }
        self.0[func] = body;
    }

    /// The functions that have a body or await one, whether the module declares them or not.
    pub(crate) fn functions(&self) -> impl Iterator<Item = Func> {
        self.0.iter().filter(|(_, body)| !matches!(body, Body::Absent)).map(|(func, _)| func)
    }

    /// The bodies that exist, whether the module declares their functions or not.
    pub(crate) fn existing(&self) -> impl Iterator<Item = &Function> {
        self.0.values().filter_map(|body| body.function().map(Arc::as_ref))
    }

    /// The bodies declared as later, supplied or not. A module that keeps only its declarations
    /// keeps these.
    fn later(&self) -> Bodies {
        let mut later = Bodies::default();
        for (func, body) in self.0.iter().filter(|(_, body)| matches!(body, Body::Later(_))) {
            later.set(func, body.clone());
        }
        later
    }
}

/// Why a body is not taken up ([`Module::supply`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SupplyError {
    /// The function awaits no body: it has a body, is imported, or is not declared.
    NotAwaited {
        /// The function.
        func: Func,
    },
    /// The body has another name or signature than the declaration.
    OtherDeclaration {
        /// The name and the signature of the declaration.
        declared: String,
        /// The name and the signature of the body.
        body: String,
    },
    /// The body writes a table that is declared fixed: code may rely on its entries already.
    WritesFixed {
        /// The name of the table.
        table: String,
    },
    /// The verifier rejects the body.
    Invalid {
        /// The verifier's findings; not empty.
        findings: Vec<Finding>,
    },
}

impl fmt::Display for SupplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SupplyError::NotAwaited { func } => write!(f, "{func} awaits no body"),
            SupplyError::OtherDeclaration { declared, body } => {
                write!(f, "the declaration is {declared}, the body {body}")
            }
            SupplyError::WritesFixed { table } => {
                write!(f, "the body writes @{table}, which is fixed")
            }
            SupplyError::Invalid { findings } => {
                let shown: Vec<String> = findings.iter().take(3).map(ToString::to_string).collect();
                write!(f, "the body is not valid: {}", shown.join("; "))
            }
        }
    }
}

impl std::error::Error for SupplyError {}

impl Module {
    /// The body of a function. `None` if the function is imported, or awaits its body.
    pub fn body(&self, func: Func) -> Option<&Function> {
        self.shared_body(func).map(Arc::as_ref)
    }

    /// The body of a function, shared by all clones of the module that have it. `None` as for
    /// [`Module::body`].
    pub fn shared_body(&self, func: Func) -> Option<&Arc<Function>> {
        self.bodies.of(func).function()
    }

    /// Gives a function a body, in place of its present body. The verifier rejects a body of an
    /// imported function, and one of a function that the module does not declare.
    pub fn define(&mut self, func: Func, body: impl Into<Arc<Function>>) {
        self.bodies.set(func, Body::Here(body.into()));
    }

    /// Declares that the body of a function comes later, in place of its present body.
    pub fn define_later(&mut self, func: Func) {
        self.bodies.set(func, Body::Later(Arc::default()));
    }

    /// Takes the body of a function away: before the function becomes an imported one, say.
    pub fn undefine(&mut self, func: Func) {
        self.bodies.set(func, Body::Absent);
    }

    /// Whether the body of a function comes later and has not come yet. Constant cost.
    pub fn awaits_body(&self, func: Func) -> bool {
        matches!(self.bodies.of(func), Body::Later(cell) if cell.get().is_none())
    }

    /// Whether a function was declared with [`Module::define_later`]. Constant cost.
    pub fn is_later(&self, func: Func) -> bool {
        matches!(self.bodies.of(func), Body::Later(_))
    }

    /// Whether a function has the same body in two modules: none, one that is shared or still to
    /// come for both together, or one that `same` accepts.
    #[doc(hidden)]
    pub fn has_body_of(
        &self,
        func: Func,
        other: &Module,
        same: impl FnOnce(&Function, &Function) -> bool,
    ) -> bool {
        match (self.bodies.of(func), other.bodies.of(func)) {
            (Body::Later(one), Body::Later(two)) => Arc::ptr_eq(one, two),
            (Body::Later(_), _) | (_, Body::Later(_)) => false,
            (one, two) => match (one.function(), two.function()) {
                (Some(one), Some(two)) => Arc::ptr_eq(one, two) || same(one, two),
                (one, two) => one.is_none() && two.is_none(),
            },
        }
    }

    /// Supplies the body of a function that awaits it. The body is verified first, in this module.
    /// Linear in the body, whatever the size of the module. A machine that runs the module takes
    /// the body up at the next call of the function. To compile it or to enter it before, supply it
    /// through the machine: `jit::Vm::supply`, `Callback::supply` or `Tier::supply`.
    ///
    /// # Errors
    /// If the function awaits no body, or the body does not fit. Nothing has changed then.
    pub fn supply(&self, func: Func, body: impl Into<Arc<Function>>) -> Result<(), SupplyError> {
        let body = body.into();
        let Some((decl, Body::Later(cell))) =
            self.funcs.get(func).map(|d| (d, self.bodies.of(func)))
        else {
            return Err(SupplyError::NotAwaited { func });
        };
        let signature = &self.sigs[decl.sig];
        if body.name() != decl.name || body.signature() != signature {
            let declared = format!("@{} {signature}", decl.name);
            let body = format!("@{} {}", body.name(), body.signature());
            return Err(SupplyError::OtherDeclaration { declared, body });
        }
        let findings = verify_function(self, &body);
        if !findings.is_empty() {
            return Err(SupplyError::Invalid { findings });
        }
        // A whole module has this as a rule of its tables, for which all bodies are read.
        let is_fixed = |table: &Table| self.tables[*table].fixed;
        if let Some(table) = written_tables(&body).find(is_fixed) {
            return Err(SupplyError::WritesFixed { table: self.tables[table].name.clone() });
        }
        cell.set(body).map_err(|_| SupplyError::NotAwaited { func })
    }

    /// The first functions, up to a number, whose declarations and bodies the two modules have in
    /// common since one is a clone of the other. More functions may be equal. Costs the number of
    /// functions divided by 64.
    pub fn shared_functions(&self, other: &Module) -> usize {
        self.funcs.shared_with(&other.funcs).min(self.bodies.0.shared_with(&other.bodies.0))
    }

    /// The declarations alone, and the bodies that come later or have come. Linear in the
    /// declarations.
    #[doc(hidden)]
    pub fn without_bodies(&self) -> Module {
        Module { bodies: self.bodies.later(), ..self.clone() }
    }

    /// The body of a function, for tests that damage it.
    #[cfg(test)]
    pub(crate) fn damaged_body(&mut self, func: Func) -> Option<&mut Function> {
        match self.bodies.0.get_mut(func)? {
            Body::Here(function) => Some(Arc::make_mut(function)),
            Body::Absent | Body::Later(_) => None,
        }
    }
}
