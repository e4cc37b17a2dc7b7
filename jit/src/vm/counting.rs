//! Counting: the places whose visits the interpreter counts, and when a place is hot.

use super::state::VmState;
use super::stop::RunStop;
use super::watch::{CountedBase, CountedPlace, VisitedPlace};
use interp::VersionId;
use ir::cfg::Cfg;
use ir::loops::{Loop, LoopForest};
use ir::{Block, Func, Function, Imm, Inst, InstData, Module, Point};
use std::collections::BTreeMap;
use std::sync::Arc;

impl VmState {
    /// Lets the interpreter count from zero, if anything is to be watched.
    pub(super) fn count_visits(&mut self) {
        if self.policy.watch.counts() {
            self.machine.count_visits();
        }
    }

    /// Starts to count the calls and loops of a function, before a transition leads into its base:
    /// a run that comes by a transition may be in a loop without a call
    /// (`a_hot_loop_of_an_inner_frame_ends_no_outer_frame`). No effect if they are counted already.
    /// Linear in the function.
    pub(super) fn count_places_of(&mut self, func: Func, base: VersionId) -> Result<(), RunStop> {
        if self.machine.counts_visits() && !self.policy.watch.counted.contains_key(&base) {
            let (entry, calls) = self.begin_counting(func, base)?;
            self.machine.pause_after(base, entry, calls);
        }
        Ok(())
    }

    /// Starts to count the loops of a function, at its first call. Returns whether the function is
    /// hot at this call. Linear in the function.
    fn first_call(&mut self, func: Func, base: VersionId) -> Result<bool, RunStop> {
        let (entry, calls) = self.begin_counting(func, base)?;
        // This call counts.
        let left = if calls == 1 { u32::MAX } else { calls - 1 };
        self.machine.pause_after(base, entry, left);
        Ok(calls == 1)
    }

    /// Asks the tiering for the numbers of visits that count as hot, and starts to count loops.
    /// Returns the first instruction of the function, and the number of calls after which the
    /// function is hot.
    fn begin_counting(&mut self, func: Func, base: VersionId) -> Result<(Inst, u32), RunStop> {
        let counts = self.policy.watch.threshold.is_some();
        let module = Arc::clone(&self.modules.current);
        let mut places = Vec::new();
        let hot = self.ask(|tiering, _| {
            Ok(counted(&module, func, |inst, place| {
                places.push((inst, place.instructions));
                if counts { tiering.hot_after(place).max(1) } else { u32::MAX }
            }))
        })?;
        let first = hot.first().copied();
        self.policy.watch.counted.insert(base, CountedBase { places, asked: Vec::new() });
        self.machine.count_blocks(base, hot.into_iter().skip(1));
        Ok(first.expect("the entry is a counted place"))
    }

    /// The instructions that the interpreter has executed in a function, as [`CountedPlace`]
    /// estimates them. Linear in its loops.
    pub(super) fn interpreted(&mut self, func: Func) -> u64 {
        let base = self.modules.base(func);
        let counted = base.and_then(|base| Some((base, self.policy.watch.counted.get(&base)?)));
        let Some((base, counted)) = counted else { return 0 };
        let mut executed = |(inst, instructions): &(Inst, usize)| {
            self.machine.visits(base, *inst).saturating_mul(*instructions as u64)
        };
        counted.places.iter().map(&mut executed).fold(0, u64::saturating_add)
    }

    /// Whether the run has paused because a place is hot. Records the visits of a hot loop.
    pub(super) fn is_hot(&mut self) -> Result<bool, RunStop> {
        if !self.machine.is_due() {
            return Ok(false);
        }
        let view = self.machine.view().expect("jit: a paused run has an activation");
        let (func, version, inst) = (view.func(), view.version(), view.inst());
        let is_base = self.modules.base(func) == Some(version);
        if is_base && !self.policy.watch.counted.contains_key(&version) {
            return self.first_call(func, version);
        }
        let is_entry = self.machine.code(version).pc_of(Point::before(inst)) == Some(0);
        if !is_base && is_entry || self.policy.watch.threshold.is_none() {
            return Ok(false);
        }
        let counted = self.policy.watch.counted.get_mut(&version).filter(|_| !is_entry);
        if let Some(counted) = counted {
            counted.note_hot(inst, self.machine.visits(version, inst));
        }
        Ok(true)
    }

    /// The visits of all functions that the interpreter has called, in ascending order.
    pub(super) fn visits(&mut self) -> Vec<VisitedPlace> {
        let module = Arc::clone(&self.modules.current);
        let mut visited = Vec::new();
        for (func, _) in module.defined() {
            let base = self.modules.base(func);
            let counted = base.and_then(|base| Some((base, self.policy.watch.counted.get(&base)?)));
            let Some((base, CountedBase { places, .. })) = counted else { continue };
            for (index, (inst, instructions)) in places.iter().enumerate() {
                let (header, instructions) = ((index > 0).then_some(*inst), *instructions);
                let visits = self.machine.visits(base, *inst);
                visited.push(VisitedPlace { func, header, instructions, visits });
            }
        }
        visited
    }
}

/// The counted places of a function, each with the number that `hot_after` gives: first its entry,
/// then the headers of loops. Linear in the function.
///
/// # Panics
/// If the function has no body.
fn counted(
    module: &Module,
    func: Func,
    mut hot_after: impl FnMut(Inst, CountedPlace<'_>) -> u32,
) -> Vec<(Inst, u32)> {
    let body = module.body(func).expect("jit: the function of an activation has a body");
    let cfg = Cfg::new(body);
    let forest = LoopForest::new(body, &cfg);
    let sizes = executed(module, body, &cfg, &forest);
    let size = |place| sizes.get(&place).map_or(1, |size| size.ceil().max(1.0) as usize);
    let entry = body.first_inst(body.entry());
    let calls = CountedPlace { func, body, header: None, instructions: size(None) };
    let mut places = vec![(entry, hot_after(entry, calls))];
    for one in forest.loops() {
        let header = body.first_inst(forest.header(one));
        let place = CountedPlace { header: Some(header), instructions: size(Some(one)), ..calls };
        places.push((header, hot_after(header, place)));
    }
    places
}

/// By loop: an estimate of the instructions that a visit of its header executes in the loop outside
/// inner loops; under `None`, the instructions that a call executes outside loops. The estimate
/// assumes that branches take all their sides, and loops all their exits, equally often. Linear in
/// the function, times the depth of loops.
fn executed(
    module: &Module,
    body: &Function,
    cfg: &Cfg,
    forest: &LoopForest,
) -> BTreeMap<Option<Loop>, f64> {
    let mut sizes: BTreeMap<Option<Loop>, f64> = BTreeMap::new();
    // By block: the visits per visit of the innermost header around the block. For a header: per
    // visit of the header around its loop.
    let mut visits: BTreeMap<Block, f64> = BTreeMap::from([(body.entry(), 1.0)]);
    for &block in cfg.rpo() {
        let within = forest.innermost(block);
        let coming = visits.get(&block).copied().unwrap_or(0.0);
        let is_header = within.is_some_and(|one| forest.header(one) == block);
        let here = if is_header { 1.0 } else { coming };
        let insts = body.block_insts(block).map(|inst| body.inst(inst));
        let size: usize = match within {
            Some(_) => insts.map(|inst| weight(module, inst)).sum(),
            None => insts.count(),
        };
        *sizes.entry(within).or_default() += here * size as f64;
        let targets = body.successors(block);
        for target in targets {
            let to = target.block;
            let around = forest.innermost(to).filter(|one| forest.header(*one) == to);
            if around.is_some_and(|one| forest.contains(one, block)) {
                continue;
            }
            let (mut part, mut from) = (here / targets.len() as f64, within);
            while let Some(left) = from.filter(|one| !forest.contains(*one, to)) {
                let entered = visits.get(&forest.header(left)).copied().unwrap_or(0.0);
                part = entered / forest.exits(left).len().max(1) as f64;
                from = forest.parent(left);
            }
            *visits.entry(to).or_default() += part;
        }
    }
    sizes
}

/// The most instructions of a short function.
const SHORT: usize = 60;

/// The instructions that an instruction of a loop counts for.
fn weight(module: &Module, data: &InstData) -> usize {
    let callee = match data.imm {
        Imm::Func(func) => module.body(func).map_or(0, Function::inst_count),
        _ => 0,
    };
    1 + if callee <= SHORT { callee } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{counted, executed};
    use ir::cfg::Cfg;
    use ir::loops::LoopForest;
    use ir::text::parse_module;

    /// A loop of six rounds around a branch, with another loop in one side of the branch.
    const NESTED: &str = "
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%zero)
head(%i: i32):
  br_if %n, left, right
left:
  %a = const.i32 1
  %b = const.i32 2
  %c = const.i32 3
  jump next
right:
  jump inner(%n)
inner(%k: i32):
  %one = const.i32 1
  %less = sub.i32 %k, %one
  br_if %less, inner(%less), next
next:
  %two = const.i32 1
  %j = add.i32 %i, %two
  br_if %j, head(%j), done
done:
  return %j
}
";

    #[test]
    fn a_visit_executes_a_half_of_two_sides() {
        let module = parse_module(NESTED).expect("well-formed");
        let (func, body) = module.defined().next().expect("one function");
        let cfg = Cfg::new(body);
        let forest = LoopForest::new(body, &cfg);
        let sizes: Vec<f64> = executed(&module, body, &cfg, &forest).into_values().collect();
        // Outside: entry and done. The outer loop: head, half of left and of right, next. The
        // inner loop: all of it.
        assert_eq!(sizes, [3.0, 1.0 + 2.0 + 0.5 + 3.0, 3.0]);
        let mut places = Vec::new();
        counted(&module, func, |_, place| {
            places.push((place.header.is_some(), place.instructions));
            1
        });
        assert_eq!(places, [(false, 3), (true, 7), (true, 3)]);
    }
}
