//! Global value numbering.
//!
//! *Does*: finds values that are always equal, through block parameters and around loops, and
//! replaces each by one that dominates it: operations on equal operands, operations that the rules
//! of [`ir::rules`] show equal, parameters that receive one value on every edge, parameters of a
//! block that receive the same. What is always one constant becomes that, and branches this decides
//! are folded.
//!
//! *Does not*: look at memory, globals or sizes: what is read is equal to nothing; make new
//! operations, but for constants; see that a parameter that receives `f(x)` or `f(y)` is `f` of one
//! that receives `x` or `y` (it would have to be a parameter of the same block, and certificates
//! have no term for it); share constants between blocks (see `cse`, which says why); keep a value
//! alive for long to save an operation that undoes what was done to it.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no value is dominated by one of its class, but constants by those of other
//! blocks, operations that may trap by values that do not show that they did not, and results of
//! operations by what is computed otherwise, far above, and not needed any more.
//!
//! *Actions emitted*: `fold_branch`, `remove_unreachable`, `add` (constants), `replace_all`,
//! `delete`, `remove_block_param`.
//!
//! *Effect on mappings*: links the removed value with the one that stays, which may thereby live
//! longer. Certificates are found by a numbering of the same strength, so that what is replaced
//! here is proved there.
//!
//! *Why correct*: when the search ends, every edge that may be taken brings to a parameter what its
//! class says, by induction over the edges taken; a term is a function of its leaves, and the
//! definitions of those dominate it. If `a` dominates `b` and both have one class, no leaf was
//! defined again since `a` was: a path from there to `b` would avoid `a`. What may trap goes only
//! if an operation of the same term, not only of the same class, has executed, or if its operands
//! have come to exclude it.
//!
//! *Cost*: near linear in the size of the function, times the rounds of numbering (two or three in
//! most).

mod number;
mod table;

use ir::cfg::Cfg;
use ir::edit::{Editor, Pass};
use ir::{Block, Function, Inst, InstSpec, Type, Value, ValueDef};
use number::Numbering;
use std::collections::HashMap;
use table::{NONE, Term};

/// How often everything is numbered again after branches were folded: less graph means more
/// dominance.
const MAX_FOLDINGS: usize = 3;

/// Users of a value that are looked at to see whether it is needed somewhere anyway.
const MAX_USERS: usize = 16;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Gvn;

impl Pass for Gvn {
    fn name(&self) -> &'static str {
        "gvn"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for folding in 0.. {
            let numbering = Numbering::new(ed.func());
            let decided = numbering.decided();
            if decided.is_empty() || folding == MAX_FOLDINGS {
                let changes = Search::run(ed.func(), &numbering);
                replace(ed, &changes);
                return;
            }
            for edge in decided {
                if !ed.plan("known-branch") {
                    return;
                }
                ed.fold_branch(edge.inst, edge.index);
            }
            if !remove_unreachable(ed) {
                return;
            }
        }
    }
}

fn remove_unreachable(ed: &mut Editor<'_>) -> bool {
    let cfg = Cfg::new(ed.func());
    let unreachable: Vec<Block> = ed.func().blocks().filter(|b| !cfg.is_reachable(*b)).collect();
    let planned = unreachable.is_empty() || ed.plan("unreachable");
    if planned && !unreachable.is_empty() {
        ed.remove_unreachable(&unreachable);
    }
    planned
}

/// What replaces a value.
#[derive(Clone, Copy, Debug)]
enum After {
    /// A value that dominates it.
    Value(Value),
    /// The new constant with this number.
    Made(usize),
}

/// One value to replace.
#[derive(Clone, Copy, Debug)]
struct Change {
    rule: &'static str,
    before: Value,
    after: After,
    /// Makes the constant first: its number is the next one.
    makes: Option<(Type, u64)>,
    /// Whether the instruction has executed in another place when it comes to it, and so does not
    /// trap.
    is_repeated: bool,
}

fn replace(ed: &mut Editor<'_>, changes: &[Change]) {
    let mut made: Vec<Value> = Vec::new();
    for change in changes {
        if !ed.plan(change.rule) {
            return;
        }
        let def = ed.func().value_def(change.before);
        if let Some((ty, bits)) = change.makes {
            let place = match def {
                ValueDef::Result(inst, _) => inst,
                ValueDef::Param(block, _) => ed.func().first_inst(block),
            };
            made.push(ed.add_value(InstSpec::constant(ty, bits), place));
        }
        let after = match change.after {
            After::Value(value) => value,
            After::Made(number) => made[number],
        };
        ed.replace_all(change.before, after);
        match def {
            ValueDef::Param(block, index) => ed.remove_block_param(block, index as usize),
            ValueDef::Result(inst, _) => {
                if change.is_repeated || !ed.func().may_trap(inst) {
                    ed.delete(inst);
                }
            }
        }
    }
}

/// What a value that is available stands for.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// Its class.
    Class = 0,
    /// Its term: what it is computed as.
    Term = 1,
}

/// A walk down the dominator tree with the values that dominate the place it is at.
struct Search<'a, 'f> {
    f: &'f Function,
    numbering: &'a Numbering<'f>,
    /// By role and term.
    leaders: [Vec<Option<Value>>; 2],
    /// What was entered on the way down, to be taken out on the way up.
    entered: Vec<(Role, Term)>,
    /// The constants of the block at hand. Asked, never iterated.
    local: HashMap<(Type, u64), After>,
    made: usize,
    changes: Vec<Change>,
}

impl<'a, 'f> Search<'a, 'f> {
    /// The changes, in an order in which each is right after those before it.
    fn run(f: &'f Function, numbering: &'a Numbering<'f>) -> Vec<Change> {
        let leaders = [0, 1].map(|_| vec![None; numbering.table.len()]);
        let (entered, local, changes) = (Vec::new(), HashMap::new(), Vec::new());
        let mut search = Search { f, numbering, leaders, entered, local, made: 0, changes };
        // A block still to be entered, or the number of terms to go back to once its subtree is
        // done.
        enum Step {
            Enter(Block),
            Leave(usize),
        }
        let mut steps = vec![Step::Enter(f.entry())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(block) => {
                    steps.push(Step::Leave(search.entered.len()));
                    search.visit(block);
                    steps.extend(
                        numbering.dom.children(block).iter().rev().map(|b| Step::Enter(*b)),
                    );
                }
                Step::Leave(count) => {
                    for (role, term) in search.entered.drain(count..) {
                        search.leaders[role as usize][term as usize] = None;
                    }
                }
            }
        }
        search.changes
    }

    fn visit(&mut self, block: Block) {
        self.local.clear();
        for &param in self.f.block_params(block) {
            self.look_at(param, None, block == self.f.entry());
        }
        for inst in self.f.block_insts(block) {
            let data = self.f.inst(inst);
            match (data.result(), data.constant()) {
                (Some(result), Some(bits)) => self.visit_constant(result, (data.ty, bits)),
                // Of effects every result is its own leaf: nothing replaces one.
                _ => data
                    .results
                    .iter()
                    .for_each(|v| self.look_at(*v, Some(inst), !data.opcode.is_effect_free())),
            }
        }
    }

    fn visit_constant(&mut self, result: Value, bits: (Type, u64)) {
        match self.local.get(&bits) {
            Some(&after) => self.change("equal-constant", result, after, None, false),
            None => {
                self.local.insert(bits, After::Value(result));
            }
        }
    }

    fn look_at(&mut self, value: Value, inst: Option<Inst>, stays: bool) {
        let (term, class) = (self.numbering.term(value), self.numbering.class(value));
        if term == NONE {
            return;
        }
        let leader = self.leader(Role::Term, term).or_else(|| self.near_leader(class, value, inst));
        if stays {
            self.enter(Role::Class, class, value);
        } else if let Some(bits) = self.numbering.table.known(class) {
            self.known(value, bits);
        } else if let Some(leader) = leader {
            let traps = |i: Inst| self.f.may_trap(i);
            let is_repeated = inst.is_some_and(|i| traps(i) && self.has_executed(leader, i));
            let is_left = inst.is_some_and(traps) && !is_repeated && self.f.users(value).is_empty();
            if !is_left {
                self.change("dominating-equal", value, After::Value(leader), None, is_repeated);
            }
        } else {
            self.enter(Role::Class, class, value);
            self.enter(Role::Term, term, value);
        }
    }

    /// A value of a class, computed otherwise, that replacing `value` by would not keep alive for
    /// long. Without this the stack pointer a function is called with, and at its end computes
    /// again from that of its frame, lives throughout most functions, and three in five of their
    /// points have to keep it.
    fn near_leader(&self, class: Term, value: Value, inst: Option<Inst>) -> Option<Value> {
        let leader = self.leader(Role::Class, class)?;
        let Some(inst) = inst else { return Some(leader) };
        let home = self.f.inst_block(inst);
        let is_below = |user: &Inst| match self.f.inst_block(*user) {
            block if block == home => self.f.stands_before(inst, *user),
            block => self.numbering.dom.dominates(home, block),
        };
        let is_near = self.f.value_block(leader) == home
            || self.f.inst(inst).args.iter().any(|v| self.numbering.class(*v) == class)
            || self.f.users(value).is_empty()
            || self.f.users(leader).iter().take(MAX_USERS).any(is_below);
        is_near.then_some(leader)
    }

    /// Whether the instruction behind a value computes with equal operands what another does.
    fn has_executed(&self, leader: Value, inst: Inst) -> bool {
        self.f
            .defining_inst(leader)
            .is_some_and(|i| self.f.inst(i).opcode == self.f.inst(inst).opcode)
    }

    /// A value that is always one constant.
    fn known(&mut self, value: Value, bits: u64) {
        // A dead result is left to `adce`.
        if self.f.users(value).is_empty() {
            return;
        }
        let constant = (self.f.value_type(value), bits);
        let makes = Some(constant).filter(|c| !self.local.contains_key(c));
        if makes.is_some() {
            self.local.insert(constant, After::Made(self.made));
            self.made += 1;
        }
        self.change("constant", value, self.local[&constant], makes, false);
    }

    fn leader(&self, role: Role, term: Term) -> Option<Value> {
        self.leaders[role as usize][term as usize]
    }

    fn enter(&mut self, role: Role, term: Term, value: Value) {
        let slot = &mut self.leaders[role as usize][term as usize];
        if slot.is_none() {
            *slot = Some(value);
            self.entered.push((role, term));
        }
    }

    fn change(
        &mut self,
        rule: &'static str,
        before: Value,
        after: After,
        makes: Option<(Type, u64)>,
        is_repeated: bool,
    ) {
        self.changes.push(Change { rule, before, after, makes, is_repeated });
    }
}
