//! Global value numbering.
//!
//! *Does*: finds values that are always equal, through block parameters and around loops, and
//! replaces each by an equal value that dominates it: operations on equal operands, operations that
//! the rules of [`ir::rules`] prove equal, parameters that receive one value on every edge, and
//! parameters of a block that receive the same values. It replaces a value that is always one
//! constant by the constant, and folds the branches that this decides.
//!
//! *Does not*: number reads of memory, globals or sizes, each of which is equal to no other value;
//! add operations other than constants; recognize a parameter that receives `f(x)` or `f(y)` as `f`
//! of a parameter that receives `x` or `y` (both would have to be parameters of one block, and
//! certificates have no term for that); share constants between blocks (`cse` gives the reason);
//! keep a value alive for long to save an operation that only inverts another.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no value is dominated by another of its class, with three exceptions: constants
//! repeated in other blocks; operations that may trap, dominated only by values that do not prove
//! that they do not; and results dominated by a value far above that is computed otherwise and no
//! longer live.
//!
//! *Actions emitted*: `fold_branch`, `remove_unreachable`, `add` (constants), `replace_all`,
//! `delete`, `remove_block_param`.
//!
//! *Effect on mappings*: links the removed value with the remaining one, whose live range may grow.
//! The certifier numbers values with the same crate ([`number`]), so it proves the replacements
//! made here.
//!
//! *Why correct*: after the last round, every edge that may be taken passes to a parameter a value
//! of the parameter's class, by induction over the edges taken. A term is a function of its leaves,
//! whose definitions dominate it. If `a` dominates `b` and both have one class, no leaf was defined
//! again since `a`: otherwise a path from that definition to `b` would avoid `a`. An operation that
//! may trap goes only if an operation of the same term (not only of the same class) has executed,
//! or if its new operands exclude the trap.
//!
//! *Cost*: near linear in the size of the function, times the turns of the loops around an
//! instruction ([`number::NumberingRound::walk`]).

mod classes;
mod form;

use crate::scopes::{DominatorScopes, walk_scopes};
use classes::ValueNumbering;
use ir::cfg::Cfg;
use ir::edit::{Editor, Pass};
use ir::{Block, Function, Inst, InstSpec, Type, Value, ValueDef};
use number::{NO_TERM, NumberingRound, TermIndex};
use std::collections::{BTreeSet, HashMap};

/// The number of times that the pass numbers the function again after it has folded branches. Fewer
/// edges mean more dominance, so a new numbering may find more.
const MAX_FOLDINGS: usize = 3;

/// Users of a value examined to see whether the value is live elsewhere anyway: a bound on cost.
const MAX_USERS: usize = 16;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Gvn;

impl Pass for Gvn {
    fn name(&self) -> &'static str {
        "gvn"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let mut kept: BTreeSet<Inst> = BTreeSet::new();
        for folding in 0.. {
            let numbering = ValueNumbering::new(ed.func());
            let mut decided = numbering.decided();
            decided.retain(|edge| !kept.contains(&edge.inst));
            if decided.is_empty() || folding == MAX_FOLDINGS {
                let changes = LeaderWalk::run(ed.func(), &numbering);
                replace(ed, &changes);
                return;
            }
            for edge in decided {
                if ed.plan("known-branch") {
                    ed.fold_branch(edge.inst, edge.index);
                } else {
                    kept.insert(edge.inst);
                }
            }
            if !(ed.has_fuel() && remove_unreachable(ed)) {
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

/// The replacement of a value.
#[derive(Clone, Copy, Debug)]
enum After {
    /// An existing value that dominates it.
    Value(Value),
    /// The new constant with this number, in the order of creation.
    Made(usize),
}

/// One value to replace.
#[derive(Clone, Copy, Debug)]
struct ValueChange {
    rule: &'static str,
    before: Value,
    after: After,
    /// The constant to create first, whose number is the next number.
    makes: Option<(Type, u64)>,
    /// Whether an equal instruction always executes before this instruction, which therefore cannot
    /// trap.
    is_repeated: bool,
}

fn replace(ed: &mut Editor<'_>, changes: &[ValueChange]) {
    // A constant whose creation is refused is `None`.
    let mut made: Vec<Option<Value>> = Vec::new();
    for change in changes {
        let is_missing = matches!(change.after, After::Made(number)
            if made.get(number).is_some_and(Option::is_none));
        if is_missing || !ed.plan(change.rule) {
            made.extend(change.makes.map(|_| None));
            continue;
        }
        let def = ed.func().value_def(change.before);
        if let Some((ty, bits)) = change.makes {
            let place = match def {
                ValueDef::Result(inst, _) => inst,
                ValueDef::Param(block, _) => ed.func().first_inst(block),
            };
            made.push(Some(ed.add_value(InstSpec::constant(ty, bits), place)));
        }
        let after = match change.after {
            After::Value(value) => value,
            After::Made(number) => made[number].expect("users of a missing constant are left out"),
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

/// The two keys under which an available value is entered.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// Its class.
    Class = 0,
    /// Its term, which names the operation that computes it.
    Term = 1,
}

/// A walk down the dominator tree with the values that dominate the current block.
struct LeaderWalk<'a, 'f> {
    f: &'f Function,
    numbering: &'a ValueNumbering<'f>,
    /// By role and term: the available value.
    leaders: [Vec<Option<Value>>; 2],
    /// The keys entered on the way down, which the walk removes on the way up.
    entered: Vec<(Role, TermIndex)>,
    /// The constants of the current block. Only looked up, never iterated.
    local: HashMap<(Type, u64), After>,
    made: usize,
    changes: Vec<ValueChange>,
}

impl DominatorScopes for LeaderWalk<'_, '_> {
    fn enter(&mut self, block: Block) {
        self.visit(block);
    }

    fn depth(&self) -> usize {
        self.entered.len()
    }

    fn leave(&mut self, depth: usize) {
        for (role, term) in self.entered.drain(depth..) {
            self.leaders[role as usize][term as usize] = None;
        }
    }
}

impl<'a, 'f> LeaderWalk<'a, 'f> {
    /// The changes, in an order in which each is correct after the changes before it.
    fn run(f: &'f Function, numbering: &'a ValueNumbering<'f>) -> Vec<ValueChange> {
        let leaders = [0, 1].map(|_| vec![None; numbering.table.terms().len()]);
        let (entered, local, changes) = (Vec::new(), HashMap::new(), Vec::new());
        let mut search = LeaderWalk { f, numbering, leaders, entered, local, made: 0, changes };
        walk_scopes(&numbering.graph.dom, f.entry(), &mut search);
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
                (Some(result), Some(bits)) => self.visit_constant(result, data.ty, bits),
                // Each result of an effect is its own leaf, so no other value replaces it.
                _ => data
                    .results
                    .iter()
                    .for_each(|v| self.look_at(*v, Some(inst), !data.opcode.is_effect_free())),
            }
        }
    }

    fn visit_constant(&mut self, result: Value, ty: Type, bits: u64) {
        match self.local.get(&(ty, bits)) {
            Some(&after) => self.change("equal-constant", result, after, None, false),
            None => {
                self.local.insert((ty, bits), After::Value(result));
            }
        }
    }

    fn look_at(&mut self, value: Value, inst: Option<Inst>, stays: bool) {
        let (term, class) = (self.numbering.term(value), self.numbering.class(value));
        if term == NO_TERM {
            return;
        }
        let leader = self.leader(Role::Term, term).or_else(|| self.near_leader(class, value, inst));
        if stays {
            self.offer(Role::Class, class, value);
        } else if let Some(bits) = self.numbering.table.constant(class) {
            self.known(value, bits);
        } else if let Some(leader) = leader {
            let traps = |i: Inst| self.f.may_trap(i);
            let is_repeated = inst.is_some_and(|i| traps(i) && self.has_executed(leader, i));
            let is_left = inst.is_some_and(traps) && !is_repeated && self.f.users(value).is_empty();
            if !is_left {
                self.change("dominating-equal", value, After::Value(leader), None, is_repeated);
            }
        } else {
            self.offer(Role::Class, class, value);
            self.offer(Role::Term, term, value);
        }
    }

    /// A leader of the class that is computed otherwise, if replacing `value` by it does not
    /// lengthen the leader's live range much. The typical case is the stack pointer at the entry of
    /// a function, which the end of the function computes again from its frame. Without this limit,
    /// it is live throughout most functions, and three in five of their points have to keep it.
    fn near_leader(&self, class: TermIndex, value: Value, inst: Option<Inst>) -> Option<Value> {
        let leader = self.leader(Role::Class, class)?;
        let Some(inst) = inst else { return Some(leader) };
        let home = self.f.inst_block(inst);
        let is_below = |user: &Inst| match self.f.inst_block(*user) {
            block if block == home => self.f.stands_before(inst, *user),
            block => self.numbering.graph.dom.dominates(home, block),
        };
        let is_near = self.f.value_block(leader) == home
            || self.f.inst(inst).args.iter().any(|v| self.numbering.class(*v) == class)
            || self.f.users(value).is_empty()
            || self.f.users(leader).iter().take(MAX_USERS).any(is_below);
        is_near.then_some(leader)
    }

    /// Whether the leader proves that `inst` does not trap: both have one class, and the leader is
    /// the result of the same operation. Equal opcodes are enough. Operations of one class have
    /// equal operands, or a rule equates one of them with its operand; the only such rules about
    /// operations that may trap divide by 1.
    fn has_executed(&self, leader: Value, inst: Inst) -> bool {
        self.f
            .defining_inst(leader)
            .is_some_and(|i| self.f.inst(i).opcode == self.f.inst(inst).opcode)
    }

    /// Replaces a value that is always one constant.
    fn known(&mut self, value: Value, bits: u64) {
        // `adce` removes a dead result; a constant for it would be dead too.
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

    fn leader(&self, role: Role, term: TermIndex) -> Option<Value> {
        self.leaders[role as usize][term as usize]
    }

    fn offer(&mut self, role: Role, term: TermIndex, value: Value) {
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
        self.changes.push(ValueChange { rule, before, after, makes, is_repeated });
    }
}
