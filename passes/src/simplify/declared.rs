//! Rewrites by the rules that the embedder declares ([`ir::rules::declared`]).

use super::SimplifiedValues;
use ir::edit::Editor;
use ir::rules::declared::{DeclaredRule, ModuleRules, RulePart};
use ir::{Function, Inst, InstSpec, Value};
use number::{RuleRoot, match_declared};
use smallvec::SmallVec;
use std::convert::Infallible;
use std::sync::Arc;

/// A rule that fits an instruction.
pub(super) struct DeclaredRewrite {
    rules: Arc<ModuleRules>,
    number: u32,
    variables: SmallVec<[Value; 4]>,
}

impl DeclaredRewrite {
    /// The first rule that fits an instruction and pays.
    pub(super) fn find(function: &Function, inst: Inst) -> Option<DeclaredRewrite> {
        let rules = function.rules()?;
        let data = function.inst(inst);
        let result = data.result()?;
        if function.users(result).is_empty() {
            return None;
        }
        let root = RuleRoot { opcode: data.opcode, ty: data.ty, imm: data.imm, args: &data.args };
        rules.of(data.opcode).find_map(|(number, rule)| {
            let found = match_declared(&SimplifiedValues(function), rule, root)?;
            // New operations pay only if the inner operations of the left side become dead.
            let is_shared = |value: &Value| function.users(*value).len() > 1;
            let pays = rule.right.operations.is_empty() || !found.inner.iter().any(is_shared);
            let (rules, variables) = (Arc::clone(rules), found.variables);
            pays.then_some(DeclaredRewrite { rules, number, variables })
        })
    }

    /// Replaces the result of `inst`. Returns the outermost new operation, if any was made.
    pub(super) fn apply(&self, ed: &mut Editor<'_>, inst: Inst) -> Option<Inst> {
        let rule: &DeclaredRule = self.rules.numbered(self.number)?;
        let result = ed.func().inst(inst).result().expect("a matched instruction has one result");
        let made = rule.right.compute(|part| {
            Ok::<Value, Infallible>(match part {
                RulePart::Variable(number) => self.variables[number],
                RulePart::Constant(ty, bits) => ed.add_value(InstSpec::constant(ty, bits), inst),
                RulePart::Operation(_, operation, args) => {
                    let (opcode, ty, imm) = (operation.opcode, operation.ty, operation.imm);
                    ed.add_value(InstSpec::new(opcode, ty, imm, args), inst)
                }
            })
        });
        let Ok(after) = made;
        ed.replace_all(result, after);
        // Operations of rules do not trap.
        ed.delete(inst);
        ed.func().defining_inst(after).filter(|_| !rule.right.operations.is_empty())
    }
}
