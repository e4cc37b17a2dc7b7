//! Matches operations on classes with the patterns of rewrite rules.

use super::table::Table;
use ir::Opcode;
use ir::rules::{Guard, Pat, RULES, Rule};
use smallvec::SmallVec;
use transition::certificate::{TermId, TermKind};

/// Terms of an operand's class that are tried for an inner operation of a pattern.
const MAX_MEMBERS: usize = 16;

/// The rules by the operation they are about, in the order of the table.
#[derive(Debug)]
pub(super) struct RuleIndex {
    /// The rules of the opcode numbered `n` are `numbers[start[n]..start[n + 1]]`.
    start: Vec<u32>,
    numbers: Vec<u32>,
}

impl Default for RuleIndex {
    fn default() -> RuleIndex {
        let mut numbers: Vec<u32> = (0..RULES.len() as u32).collect();
        // A stable sort keeps the rules of one operation in the order of the table.
        numbers.sort_by_key(|n| RULES[*n as usize].opcode);
        let before =
            |op: usize| numbers.partition_point(|n| (RULES[*n as usize].opcode as usize) < op);
        RuleIndex { start: (0..=Opcode::ALL.len()).map(|op| before(op) as u32).collect(), numbers }
    }
}

impl RuleIndex {
    /// The indices of the rules about an operation.
    pub(super) fn of(&self, opcode: Opcode) -> std::ops::Range<usize> {
        self.start[opcode as usize] as usize..self.start[opcode as usize + 1] as usize
    }

    /// The rule at an index, with its number in the table.
    pub(super) fn get(&self, place: usize) -> (u32, &'static Rule) {
        (self.numbers[place], &RULES[self.numbers[place] as usize])
    }
}

/// A rule matched with classes: the classes and constants that its variables stand for.
#[derive(Clone, Debug)]
pub(super) struct Match {
    pub(super) x: Option<TermId>,
    pub(super) y: Option<TermId>,
    pub(super) c: Option<u64>,
    pub(super) d: Option<u64>,
    /// As in a certificate: bit i says that the operands of operation i are swapped.
    pub(super) swapped: u8,
    pub(super) inner: SmallVec<[TermId; 2]>,
    guard: Guard,
}

impl Default for Match {
    fn default() -> Match {
        Match {
            x: None,
            y: None,
            c: None,
            d: None,
            swapped: 0,
            inner: SmallVec::new(),
            guard: Guard::Always,
        }
    }
}

/// Operands still to match, operation by operation.
type Goals = SmallVec<[(TermId, Pat); 6]>;

impl Match {
    /// Matches a rule with operands; `None` if no choice of terms fits. Cost: at most `MAX_MEMBERS`
    /// terms for each inner operation, in each order.
    pub(super) fn find(table: &Table, rule: &Rule, args: &[TermId]) -> Option<Match> {
        let mut goals = Goals::new();
        Match { guard: rule.guard, ..Match::default() }.with_operands(
            table,
            rule.opcode,
            rule.operands,
            args,
            &mut goals,
            0,
        )
    }

    /// Matches the operands of one more operation and then the remaining goals. A commutative
    /// operation is tried in both orders. The recursion is as deep as the pattern.
    fn with_operands(
        &self,
        table: &Table,
        opcode: Opcode,
        pats: &'static [Pat],
        args: &[TermId],
        goals: &mut Goals,
        at: usize,
    ) -> Option<Match> {
        if args.len() != pats.len() {
            return None;
        }
        // Backtracking: the goals of this operation stand at the end of the list, and go before
        // another order is tried or the caller tries another term.
        let known = goals.len();
        goals.extend(args.iter().copied().zip(pats.iter().copied()));
        let mut found = self.solve(table, goals, at);
        goals.truncate(known);
        if found.is_none() && opcode.is_commutative() {
            goals.extend(args.iter().rev().copied().zip(pats.iter().copied()));
            let mut other = self.clone();
            // Operation number 0 is the outermost; each inner one adds itself to `inner` first. So
            // the length of `inner` is the number of this operation.
            other.swapped |= 1 << other.inner.len();
            found = other.solve(table, goals, at);
            goals.truncate(known);
        }
        found
    }

    /// Matches the goals from `at` on.
    fn solve(&self, table: &Table, goals: &mut Goals, at: usize) -> Option<Match> {
        let mut found = self.clone();
        for next in at..goals.len() {
            let (class, pat) = goals[next];
            let Pat::Op(opcode, pats) = pat else {
                found.bind(table, class, pat)?;
                continue;
            };
            // A class that is a constant also holds the operations that fold to it. Patterns match
            // such an operand by its bits alone.
            if table.constant(class).is_some() {
                return None;
            }
            // The first term of the class for which all remaining goals match too. A term that fits
            // the operation but not the rest of the pattern leads to the next one.
            return table.members(class).take(MAX_MEMBERS).find_map(|id| {
                match &table.terms[id as usize].kind {
                    TermKind::Op { opcode: o, args, .. } if *o == opcode => {
                        let mut inner = found.clone();
                        inner.inner.push(id);
                        inner.with_operands(table, opcode, pats, args, goals, next + 1)
                    }
                    _ => None,
                }
            });
        }
        // The guard is checked last, inside the search: another term of an operand's class may
        // satisfy it (`a_guard_may_choose_the_term`).
        found.guard_holds(table).then_some(found)
    }

    fn bind(&mut self, table: &Table, class: TermId, pat: Pat) -> Option<()> {
        let constant = || table.constant(class);
        let fits = match pat {
            Pat::X => *self.x.get_or_insert(class) == class,
            Pat::Y => *self.y.get_or_insert(class) == class,
            Pat::Zero => constant() == Some(0),
            Pat::One => constant() == Some(1),
            Pat::Ones => constant().is_some_and(|b| table.ty(class).is_some_and(|t| b == t.mask())),
            Pat::NonZero => constant().is_some_and(|b| b != 0),
            Pat::Bits(bits) => constant() == Some(bits),
            Pat::C => constant().is_some_and(|b| *self.c.get_or_insert(b) == b),
            Pat::D => constant().is_some_and(|b| *self.d.get_or_insert(b) == b),
            Pat::Op(..) => false,
        };
        fits.then_some(())
    }

    fn guard_holds(&self, table: &Table) -> bool {
        let possible = self.x.map_or(u64::MAX, |x| table.mask(x));
        match self.guard {
            Guard::Always => true,
            Guard::XIsBool => possible & !1 == 0,
            Guard::CCoversX => self.c.is_some_and(|c| possible & !c == 0),
        }
    }
}
