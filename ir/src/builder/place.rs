//! Placement of parameters for variables, and the source of every read of a variable.
//!
//! The placer processes one variable at a time, in three steps:
//!
//! 1. It finds the join points of the definitions (the iterated dominance frontier).
//! 2. It finds the join points that some read reaches, by a backward search from the reads. It
//!    never creates a parameter that no read could reach.
//! 3. It determines the argument for each edge into these join points.
//!
//! The result is correct but not minimal; [`super::prune`] makes it minimal.

use super::joins::{JoinEdges, Tree};
use super::variables::{Variable, VariableAccess, Variables};
use crate::builder::BuildError;
use crate::entity::{Block, Value};
use crate::function::Function;
use crate::types::Type;
use cranelift_entity::{EntityRef, SecondaryMap};

/// The source of a read of a variable, or of an argument of a created parameter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ReadSource {
    /// A value that the client created.
    Value(Value),
    /// The created parameter with this index in [`Placement::params`].
    Param(u32),
    /// The zero of a type, which the entry block creates.
    Zero(Type),
    /// The zero of a type, which the unreachable block that uses it creates.
    LocalZero(Type),
}

/// A parameter created for a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct MadeParam {
    pub(super) block: Block,
    pub(super) variable: Variable,
    pub(super) ty: Type,
    /// The index of its first argument. `Placement::args[first_arg..]` has one argument for each
    /// predecessor edge of the block.
    pub(super) first_arg: u32,
}

/// The created parameters, and the source of every read.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) params: Vec<MadeParam>,
    pub(super) args: Vec<ReadSource>,
    /// By placeholder of a read: the source of the read.
    pub(super) reads: SecondaryMap<Value, Option<ReadSource>>,
}

impl Placement {
    /// The arguments of a created parameter, in the order of the block's predecessor edges.
    pub(super) fn args_of(&self, function: &Function, param: u32) -> &[ReadSource] {
        let MadeParam { block, first_arg, .. } = self.params[param as usize];
        &self.args[first_arg as usize..][..function.predecessors(block).len()]
    }

    /// Follows placeholders of reads to a source that is not a placeholder.
    pub(super) fn settle(&self, source: ReadSource) -> ReadSource {
        let mut source = source;
        while let ReadSource::Value(value) = source {
            match self.reads[value] {
                Some(next) => source = next,
                None => break,
            }
        }
        source
    }
}

/// The state of the current variable at one place.
#[derive(Clone, Copy, Default, Debug)]
struct PlaceState {
    /// The round that wrote the mark. A mark from an earlier round is empty.
    round: u32,
    set_to: Option<Value>,
    joins: bool,
    param: Option<u32>,
}

#[derive(Debug)]
struct Placer<'a> {
    function: &'a Function,
    tree: Tree,
    joins: JoinEdges,
    /// By place: the mark of the current variable.
    marks: Vec<PlaceState>,
    round: u32,
    variable: Variable,
    ty: Type,
    /// The preorder walk, cut where the nearest dominating site changes: (first place, site).
    segments: Vec<(u32, u32)>,
    placement: Placement,
    limit: usize,
}

/// The number of join edges that may be visited for each argument that the limit allows. It bounds
/// the time spent on joins that turn out to be unnecessary.
const WORK_PER_ARG: u64 = 16;

/// Places the parameters of all variables. Cost: near-linear in the number of blocks, edges,
/// accesses and joins.
///
/// # Errors
/// [`BuildError::TooLarge`] when more than `limit` arguments would be needed.
pub(super) fn place_params(
    function: &Function,
    variables: &Variables,
    limit: usize,
) -> Result<Placement, BuildError> {
    let tree = Tree::new(function);
    let mut reads = SecondaryMap::new();
    reads.resize(function.value_bound()); // exactly: growth would double it
    let mut placer = Placer {
        function,
        joins: JoinEdges::new(function, &tree),
        marks: vec![PlaceState::default(); tree.block.len()],
        tree,
        round: 0,
        variable: Variable::new(0),
        ty: Type::I32,
        segments: Vec::new(),
        placement: Placement { params: Vec::new(), args: Vec::new(), reads },
        limit,
    };
    let accesses = variables.by_variable();
    for group in accesses.chunk_by(|a, b| a.variable == b.variable) {
        placer.place_variable(group[0].variable, variables, group)?;
    }
    placer.settle_reads(&accesses);
    Ok(placer.placement)
}

impl Placer<'_> {
    fn place_variable(
        &mut self,
        variable: Variable,
        variables: &Variables,
        accesses: &[VariableAccess],
    ) -> Result<(), BuildError> {
        self.round += 1;
        (self.variable, self.ty) = (variable, variables.types[variable]);
        // A variable without reads needs no sites and no parameters.
        if accesses.iter().any(|a| a.read.is_some()) {
            let sites = self.sites(accesses)?;
            self.cut_segments(&sites);
        }
        for access in accesses {
            if let Some(read) = access.read {
                let source = match self.tree.place(access.block) {
                    Some(place) => self.at_start(place),
                    None => ReadSource::LocalZero(self.ty),
                };
                self.placement.reads[read] = Some(source);
            }
        }
        self.fill_args()
    }

    /// The places where the variable gets a value, in ascending order: the entry, the blocks that
    /// set it, and the join points of these.
    fn sites(&mut self, accesses: &[VariableAccess]) -> Result<Vec<u32>, BuildError> {
        let mut sites = vec![0];
        for access in accesses.iter().filter(|a| a.set) {
            if let Some(place) = self.tree.place(access.block) {
                self.mark(place).set_to = Some(access.current);
                sites.push(place);
            }
        }
        if !self.dominates_reads(&sites, accesses) {
            let Placer { marks, round, joins, tree, .. } = self;
            let mut is_join = |place: u32| {
                let mark = fresh(&mut marks[place as usize], *round);
                std::mem::replace(&mut mark.joins, true)
            };
            let definitions = sites.clone();
            joins.iterated_frontier(tree, &definitions, &mut sites, &mut is_join);
            if self.joins.work > (self.limit as u64).saturating_mul(WORK_PER_ARG) {
                return Err(BuildError::TooLarge);
            }
        }
        sites.sort_unstable();
        sites.dedup();
        Ok(sites)
    }

    /// Whether a single block sets the variable and dominates all its reads. This is the common
    /// case. No read can then observe a join, so the search for joins is skipped
    /// (`variables_set_once_in_deep_loops_cost_their_uses`).
    fn dominates_reads(&self, sites: &[u32], accesses: &[VariableAccess]) -> bool {
        let &[_, site] = sites else { return false };
        let inside = site + 1..self.tree.end[site as usize];
        let reads = accesses.iter().filter(|a| a.read.is_some());
        reads.filter_map(|a| self.tree.place(a.block)).all(|place| inside.contains(&place))
    }

    fn cut_segments(&mut self, sites: &[u32]) {
        self.segments.clear();
        let segments = &mut self.segments;
        let mut add = |first: u32, site: u32| match segments.last_mut() {
            Some(last) if last.0 == first => last.1 = site,
            _ => segments.push((first, site)),
        };
        let mut open: Vec<u32> = Vec::new();
        for &site in sites {
            // Sites ascend in preorder, so the open sites are exactly the dominators of the current
            // site among all sites. Behind the subtree of a closed site, the site below it on the
            // stack is the nearest one again.
            while let Some(top) = open.pop_if(|top| self.tree.end[*top as usize] <= site) {
                add(self.tree.end[top as usize], open.last().copied().unwrap_or(0));
            }
            add(site, site);
            open.push(site);
        }
        while let Some(top) = open.pop() {
            add(self.tree.end[top as usize], open.last().copied().unwrap_or(0));
        }
    }

    /// The value of the variable at the start of a place.
    fn at_start(&mut self, place: u32) -> ReadSource {
        if self.mark(place).joins {
            ReadSource::Param(self.param_at(place))
        } else if place == 0 {
            ReadSource::Zero(self.ty)
        } else {
            self.at_end(self.tree.idom[place as usize])
        }
    }

    /// The value of the variable at the end of a place.
    fn at_end(&mut self, place: u32) -> ReadSource {
        let segment = self.segments.partition_point(|s| s.0 <= place) - 1;
        let site = self.segments[segment].1;
        match self.mark(site).set_to {
            Some(value) => ReadSource::Value(value),
            None => self.at_start(site),
        }
    }

    /// The parameter for the variable at a join point, created on first use.
    fn param_at(&mut self, place: u32) -> u32 {
        let next = self.placement.params.len() as u32;
        match self.mark(place).param {
            Some(param) => param,
            None => {
                self.mark(place).param = Some(next);
                let block = self.tree.block[place as usize];
                self.placement.params.push(MadeParam {
                    block,
                    variable: self.variable,
                    ty: self.ty,
                    first_arg: u32::MAX,
                });
                next
            }
        }
    }

    /// Determines the missing arguments of parameters. An argument may itself create a parameter,
    /// so the loop continues until all have arguments.
    fn fill_args(&mut self) -> Result<(), BuildError> {
        let first_open = self.placement.params.partition_point(|p| p.first_arg != u32::MAX);
        let mut param = first_open;
        while let Some(MadeParam { block, .. }) = self.placement.params.get(param).copied() {
            let preds = self.function.predecessors(block);
            if self.placement.args.len() + preds.len() > self.limit {
                return Err(BuildError::TooLarge);
            }
            self.placement.params[param].first_arg = self.placement.args.len() as u32;
            for edge in preds {
                let source = match self.tree.place(self.function.inst_block(edge.inst)) {
                    Some(place) => self.at_end(place),
                    None => ReadSource::LocalZero(self.ty),
                };
                self.placement.args.push(source);
            }
            param += 1;
        }
        Ok(())
    }

    /// Replaces placeholders in all reads and arguments by their final sources. The source of a
    /// read dominates it, so chains of placeholders end. Each chain is walked twice and is short
    /// afterwards.
    fn settle_reads(&mut self, accesses: &[VariableAccess]) {
        let mut chain = Vec::new();
        for access in accesses.iter().filter(|a| a.read.is_some()) {
            let mut source = ReadSource::Value(access.read.expect("filtered"));
            while let ReadSource::Value(value) = source {
                let Some(next) = self.placement.reads[value] else { break };
                chain.push(value);
                source = next;
            }
            for value in chain.drain(..) {
                self.placement.reads[value] = Some(source);
            }
        }
        for i in 0..self.placement.args.len() {
            self.placement.args[i] = self.placement.settle(self.placement.args[i]);
        }
    }

    fn mark(&mut self, place: u32) -> &mut PlaceState {
        fresh(&mut self.marks[place as usize], self.round)
    }
}

/// The mark of a place, cleared if it is from an earlier round.
fn fresh(mark: &mut PlaceState, round: u32) -> &mut PlaceState {
    if mark.round != round {
        *mark = PlaceState { round, ..PlaceState::default() };
    }
    mark
}
