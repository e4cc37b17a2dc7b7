//! The verifier: it checks every rule of a well-formed module.
//!
//! *Proves* the properties that the interpreter, the analyses, the passes and the JIT rely on. They
//! may then index, unwrap and dispatch without further checks. *Does not* examine meaning: the
//! checker of mappings decides whether two versions compute the same. *Trusts* [`crate::cfg`] and
//! [`crate::dom`] for dominance, and the opcode table for the type rules. It recomputes the derived
//! lists of a function (users, predecessors, the order of instructions) and compares them.
//!
//! The verifier reports all findings at once, sorted. It withholds two kinds of findings that would
//! be meaningless. It does not check dominance when the graph itself is broken (a `CFG-LAYOUT`,
//! `CFG-LIST`, `CFG-TERM` or `CFG-TARGET-1` finding). It does not check properties of a missing
//! entity, because the absence is its own finding. Unreachable code must keep every rule except
//! dominance.
//!
//! *Cost*: near linear in the size of the module (lists are compared sorted).
//!
//! | rule | requirement |
//! |---|---|
//! | MOD-NAME-1 | the names of functions are unique, and those of globals, memories and tables |
//! | MOD-NAME-2 | a body has the name of its declaration |
//! | MOD-SIG-1 | the signature of a function is declared |
//! | MOD-SIG-2 | a body has the signature of its declaration |
//! | MOD-SIG-3 | each signature is declared once |
//! | MOD-BODY-1 | a function that is not imported has a body, or awaits one |
//! | MOD-BODY-2 | an imported function has no body |
//! | MOD-BODY-3 | a body belongs to a declared function |
//! | MOD-EFFECT-1 | an imported function alone has a declared effect, except `allocates`; one that is `pure` or `reads` returns one number, a `pure` one takes no `ref`, and one that `allocates` is (i32, i64, ...) -> (ref) |
//! | MOD-GLOBAL-1 | the initial bits of a global fit its type; a reference to a function is to a declared one |
//! | MOD-INIT-1 | an expression for a global, the place of a segment or an entry reads immutable globals of its type that are declared before, and leaves one result |
//! | MOD-MEM-1 | a memory has at most 65536 pages, at the start at most its maximum |
//! | MOD-HOST-1 | a host memory is neither imported nor exported, and has no maximum; without an address it has no pages |
//! | MOD-HOST-2 | the pages of a host memory begin at a multiple of 65536 and end at most at 2^64; no two host memories share a byte |
//! | MOD-TABLE-1 | a table has at most 10000000 entries at the start, and at most its maximum |
//! | MOD-TABLE-2 | a table holds references |
//! | MOD-TABLE-3 | no code writes a fixed table, and it is neither imported nor exported |
//! | MOD-DATA-1 | a data segment writes a declared memory |
//! | MOD-DATA-2 | a data segment lies in the initial size of its memory, unless the memory is imported |
//! | MOD-DATA-3 | no data segment writes a host memory |
//! | MOD-ELEM-1 | an element segment writes a declared table |
//! | MOD-ELEM-2 | an element segment lies in the initial size of its table, unless the table is imported |
//! | MOD-ELEM-3 | an element segment holds declared functions |
//! | MOD-ELEM-4 | an element segment holds references, of the type of the table it writes |
//! | MOD-EXPORT-1 | an export refers to a declared entity |
//! | MOD-EXPORT-2 | the names of exports are unique |
//! | MOD-START-1 | the start function is declared |
//! | MOD-START-2 | the start function takes and returns nothing |
//! | CFG-LAYOUT-1 | the layout has the entry block, and every block once |
//! | CFG-LIST-1 | every instruction is on the list of one block, linked in both directions, with ascending order numbers |
//! | CFG-TERM-1 | a block ends in a terminator |
//! | CFG-TERM-2 | a terminator is the last instruction of its block |
//! | CFG-TARGET-1 | a target is a block of the function |
//! | CFG-TARGET-2 | an instruction has as many targets as its opcode requires |
//! | CFG-ARGS-1 | a target has one argument for each parameter of its block |
//! | CFG-ARGS-2 | an argument of a target has the type of the parameter |
//! | CFG-EDGE-1 | the list of predecessors of a block holds exactly the edges that lead to it |
//! | CFG-ENTRY-1 | no edge leads to the entry block |
//! | CFG-ENTRY-2 | the parameters of the entry block have the types in the signature |
//! | SSA-ONE-1 | a value has one definition, the recorded one |
//! | SSA-ONE-2 | every recorded value has a definition |
//! | SSA-DEF-1 | an operand is a value of the function |
//! | SSA-DOM-1 | in reachable code a use is dominated by its definition |
//! | USE-LIST-1 | the users of a value are exactly the instructions that use it, once for each operand |
//! | TYPE-CTRL-1 | the opcode allows the controlling type |
//! | TYPE-OPERAND-1 | an instruction has as many operands as its type rule requires |
//! | TYPE-OPERAND-2 | an operand has the type that the type rule requires |
//! | TYPE-RESULT-1 | an instruction has as many results as its type rule requires |
//! | TYPE-RESULT-2 | a result has the type that the type rule requires |
//! | IMM-1 | an immediate is of the kind that its opcode requires |
//! | IMM-2 | the bits of a constant fit its type; an `externref` is null |
//! | IMM-3 | an immediate refers to a declared entity |
//! | IMM-4 | a global that is set is mutable |
//! | IMM-5 | the controlling type is that of the global or table |
//! | IMM-6 | a table holds the type of the table or segment copied from |
//! | IMM-7 | a load or store names a host memory exactly if it has a 64-bit address |
//! | IMM-8 | no operation but loads and stores is on a host memory |
//! | IMM-9 | the declared effect of a function allows the instruction that calls it |
//! | NAME-1 | a name is given to a value or block of the function |

mod insts;
mod module;
mod rules;
mod structure;
#[cfg(test)]
mod tests;
mod values;

pub use module::MAX_TABLE_ENTRIES;
pub use rules::Rule;

use crate::entity::{Block, Func, Global, Inst, Memory, Sig, Table, Value};
use crate::function::Function;
use crate::module::Module;
use crate::text::FunctionText;
use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

/// The length to which a finding cuts a printed instruction, in bytes. One instruction may have
/// 10^5 targets and a finding for each.
const SHOWN_BYTES: usize = 200;

/// The length to which a finding cuts a name, in bytes.
const SHOWN_NAME_BYTES: usize = 80;

/// The entity that a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Entity {
    /// The module, or the function as a whole.
    Whole,
    /// A signature.
    Sig(Sig),
    /// A memory.
    Memory(Memory),
    /// A table.
    Table(Table),
    /// A global.
    Global(Global),
    /// A function, as its module declares it.
    Func(Func),
    /// An export, by its index.
    Export(usize),
    /// An element segment, by its index.
    Elem(usize),
    /// A data segment, by its index.
    Data(usize),
    /// A block.
    Block(Block),
    /// An instruction.
    Inst(Inst),
    /// A value.
    Value(Value),
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entity::Whole => f.write_str("whole"),
            Entity::Sig(id) => id.fmt(f),
            Entity::Memory(id) => id.fmt(f),
            Entity::Table(id) => id.fmt(f),
            Entity::Global(id) => id.fmt(f),
            Entity::Func(id) => id.fmt(f),
            Entity::Export(index) => write!(f, "export {index}"),
            Entity::Elem(index) => write!(f, "elem {index}"),
            Entity::Data(index) => write!(f, "data {index}"),
            Entity::Block(id) => id.fmt(f),
            Entity::Inst(id) => id.fmt(f),
            Entity::Value(id) => id.fmt(f),
        }
    }
}

/// A violation of a rule, with its location. Findings about a module sort before the findings about
/// its functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The name is shared because one function may have 10^5 findings and a name of a megabyte.
    function: Option<Arc<str>>,
    entity: Entity,
    rule: Rule,
    message: String,
    shown: Option<String>,
}

impl Finding {
    /// The violated rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The entity that the finding is about.
    pub fn entity(&self) -> Entity {
        self.entity
    }

    /// The name of the function that contains the entity; `None` for declarations of the module.
    pub fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// The printed instruction that the finding is about, cut if it is very long.
    pub fn printed_inst(&self) -> Option<&str> {
        self.shown.as_deref()
    }

    /// The violation, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        if let Some(function) = &self.function {
            write!(f, " in @{}", function.escape_debug())?;
        }
        if self.entity != Entity::Whole {
            write!(f, " at {}", self.entity)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.shown {
            Some(shown) => write!(f, "\n    {shown}"),
            None => Ok(()),
        }
    }
}

/// Checks a module and every function body in it. A module without findings is well-formed.
pub fn verify_module(module: &Module) -> Vec<Finding> {
    let mut findings = module::check(module);
    for (_, body) in module.defined() {
        findings.extend(verify_function(module, body));
    }
    findings
}

/// Checks one function against the declarations of its module. It does not check the declarations.
/// A function without findings is well-formed.
pub fn verify_function(module: &Module, function: &Function) -> Vec<Finding> {
    let mut report = FunctionFindings::new(module, function);
    let layout = structure::check(&mut report);
    let definitions = values::check_definitions(&mut report, &layout);
    values::check_uses(&mut report, &layout);
    insts::check(&mut report, &layout);
    if layout.is_sound() {
        values::check_dominance(&mut report, &layout, &definitions);
    }
    report.into_findings()
}

/// The findings about one function so far.
struct FunctionFindings<'a> {
    module: &'a Module,
    function: &'a Function,
    name: Arc<str>,
    /// Created on first use: most functions have no finding to print.
    text: OnceCell<FunctionText<'a>>,
    findings: Vec<Finding>,
}

impl<'a> FunctionFindings<'a> {
    fn new(module: &'a Module, function: &'a Function) -> FunctionFindings<'a> {
        FunctionFindings {
            module,
            function,
            name: function.name().into(),
            text: OnceCell::new(),
            findings: Vec::new(),
        }
    }

    fn text(&self) -> &FunctionText<'a> {
        // The limit keeps findings short; `a_long_name_is_not_repeated_whole` fails without it.
        self.text.get_or_init(|| {
            FunctionText::with_name_limit(self.module, self.function, SHOWN_NAME_BYTES)
        })
    }

    fn add(&mut self, rule: Rule, entity: Entity, message: impl Into<String>) {
        let shown = match entity {
            Entity::Inst(inst) if self.function.has_inst(inst) => {
                Some(self.text().inst_up_to(inst, SHOWN_BYTES))
            }
            _ => None,
        };
        let function = Some(Arc::clone(&self.name));
        self.findings.push(Finding { function, entity, rule, message: message.into(), shown });
    }

    fn inst(&mut self, rule: Rule, inst: Inst, message: impl Into<String>) {
        self.add(rule, Entity::Inst(inst), message);
    }

    /// The text form of a value, cut if it is very long.
    fn value_name(&self, value: Value) -> String {
        self.text().value(value)
    }

    /// The text form of a block, cut if it is very long.
    fn block_name(&self, block: Block) -> String {
        self.text().block(block)
    }

    fn into_findings(self) -> Vec<Finding> {
        sorted(self.findings)
    }
}

fn sorted(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| (a.entity, a.rule, &a.message).cmp(&(b.entity, b.rule, &b.message)));
    findings
}
