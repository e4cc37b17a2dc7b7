//! Telling two computations apart: both are evaluated for chosen contents of the leaves.
//!
//! An entry that is not proved may still be right. When it computes something else than is wanted for some
//! contents of the leaves, it is refuted.

use super::lines::Bindings;
use super::product::Product;
use crate::verdict::Witness;
use ir::certificate::{NO_TERM, TermId, TermKind, is_well_typed};
use ir::eval::{eval, is_evaluated, sign_extend};
use ir::mapping::{Entry, Operand};
use ir::{Imm, Opcode, Point, Type};
use smallvec::SmallVec;

/// How many valuations are tried.
const VALUATIONS: u32 = 8;

/// Terms evaluated for lines that bind leaves, over all entries; beyond, what is not proved is not refuted.
const MAX_EVALUATED: usize = 1 << 26;

/// What is special in integers; floats take random bits.
const EDGES: [u64; 12] = [0, 1, 2, 3, 7, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, u64::MAX, u64::MAX - 1];

/// The contents of every term under each valuation, made when first asked for.
#[derive(Default)]
pub(super) struct Witnesses {
    /// By valuation and term; `None` where evaluation traps.
    tables: Vec<Vec<Option<u64>>>,
    evaluated: usize,
}

impl Witnesses {
    fn tables(&mut self, product: &Product<'_, '_>) -> &[Vec<Option<u64>>] {
        if self.tables.is_empty() {
            let leaf = |valuation: u32| move |id: TermId, ty: Option<Type>| Some(leaf_bits(product, valuation, id, ty));
            self.tables = (0..VALUATIONS).map(|v| evaluate(product, leaf(v))).collect();
        }
        &self.tables
    }

    /// Contents that tell two classes apart.
    pub(super) fn tell_apart(&mut self, product: &Product<'_, '_>, [a, b]: [TermId; 2]) -> Option<Witness> {
        self.tables(product).iter().zip(0..).find_map(|(table, valuation)| {
            let of = |id: TermId| table.get(id as usize).copied().flatten();
            let (expected, found) = (of(a)?, of(b)?);
            (expected != found).then_some(Witness { valuation, expected, found: Some(found) })
        })
    }

    /// Contents for which an entry computes something else than the target version has.
    pub(super) fn refute(
        &mut self,
        product: &Product<'_, '_>,
        source: usize,
        point: Point,
        entry: &Entry,
        bindings: &mut Bindings,
    ) -> Option<Witness> {
        let (from, to) = (&product.versions[source], &product.versions[1 - source]);
        let line = product.lines[source].from(from, point.inst())?;
        bindings.enter(from, &line);
        self.tables(product);
        if !bindings.is_empty() {
            self.evaluated += VALUATIONS as usize * product.terms.len();
        }
        if self.evaluated > MAX_EVALUATED {
            return None;
        }
        self.tables.iter().zip(0..).find_map(|(table, valuation)| {
            let of = |table: &[Option<u64>], id: TermId| table.get(id as usize).copied().flatten();
            let far = (!bindings.is_empty()).then(|| {
                evaluate(product, |id, ty| match bindings.get(id) {
                    Some(bound) => of(table, bound),
                    None => Some(leaf_bits(product, valuation, id, ty)),
                })
            });
            let results = run(product, source, entry, table);
            entry.assigns.iter().filter(|a| to.f.has_value(a.value)).find_map(|assign| {
                let class = to.class(assign.value);
                let expected = of(far.as_deref().unwrap_or(table), class)?;
                let found = read(product, source, assign.from, table, &results)?;
                (found != Some(expected)).then_some(Witness { valuation, expected, found })
            })
        })
    }
}

/// What an operand holds: the outer option when it is known, the inner when it does not trap.
fn read(
    product: &Product<'_, '_>,
    source: usize,
    operand: Operand,
    table: &[Option<u64>],
    results: &[Option<Option<u64>>],
) -> Option<Option<u64>> {
    match operand {
        Operand::Step(index) => results.get(index as usize).copied().flatten(),
        Operand::Source(value) => {
            let class = product.versions[source].class(value);
            table.get(class as usize).copied().flatten().map(Some)
        }
    }
}

/// Runs the steps of an entry.
fn run(product: &Product<'_, '_>, source: usize, entry: &Entry, table: &[Option<u64>]) -> Vec<Option<Option<u64>>> {
    let mut results: Vec<Option<Option<u64>>> = Vec::new();
    let mut types: Vec<Option<Type>> = Vec::new();
    for step in &entry.steps {
        let type_of = |arg: &Operand| match arg {
            Operand::Step(index) => types.get(*index as usize).copied().flatten(),
            Operand::Source(value) => {
                let f = product.versions[source].f;
                f.has_value(*value).then(|| f.value_type(*value))
            }
        };
        let operand_types: Option<SmallVec<[Type; 3]>> = step.args.iter().map(type_of).collect();
        let fits = operand_types.is_some_and(|t| step.accepts(&t));
        let args = step.args.iter().map(|a| read(product, source, *a, table, &results));
        let args: Option<SmallVec<[Option<u64>; 3]>> = args.collect();
        let result = args.filter(|_| fits).map(|args| {
            let args: SmallVec<[u64; 3]> = args.into_iter().collect::<Option<_>>()?;
            match step.opcode {
                Opcode::Const => Some(step.bits),
                opcode => eval(opcode, step.ty, step.operand_ty, &args).ok(),
            }
        });
        results.push(result);
        types.push(step.opcode.result_type(step.ty));
    }
    results
}

/// Evaluates every term, when `leaf` tells the contents of leaves.
fn evaluate(product: &Product<'_, '_>, leaf: impl Fn(TermId, Option<Type>) -> Option<u64>) -> Vec<Option<u64>> {
    let mut table: Vec<Option<u64>> = Vec::with_capacity(product.terms.len());
    for id in 0..product.terms.len() as TermId {
        let Some(term) = product.terms.get(id) else { break };
        let bits = match &term.kind {
            TermKind::Op { opcode, ty, imm, args } => {
                let bits = args.iter().map(|a| table.get(*a as usize).copied().flatten());
                let bits: Option<SmallVec<[u64; 4]>> = bits.collect();
                let source = args.first().and_then(|a| product.terms.ty(*a)).unwrap_or(*ty);
                // A checker without that check sees terms that are no operations (`weakened_checkers_do_not_panic`).
                let types: SmallVec<[Option<Type>; 4]> = args.iter().map(|a| product.terms.ty(*a)).collect();
                let fits = is_well_typed(*opcode, *ty, imm, &types);
                bits.filter(|_| fits).and_then(|bits| operate(*opcode, *ty, source, imm, &bits))
            }
            _ => leaf(id, term.ty),
        };
        table.push(bits);
    }
    table
}

fn operate(opcode: Opcode, ty: Type, source: Type, imm: &Imm, args: &[u64]) -> Option<u64> {
    if let Imm::Bits(bits) = imm {
        return Some(*bits);
    }
    if is_evaluated(opcode) {
        return eval(opcode, ty, source, args).ok();
    }
    // What a read finds is any function of what it reads.
    let key = match imm {
        Imm::Address(memory, offset) => u64::from(memory.as_u32()) ^ offset.rotate_left(32),
        Imm::Memory(memory) => u64::from(memory.as_u32()),
        Imm::Global(global) => u64::from(global.as_u32()) | 1 << 40,
        _ => 0,
    };
    let bits = args.iter().fold(mix(key ^ opcode as u64), |hash, arg| mix(hash ^ arg));
    let result = opcode.result_type(ty)?;
    let narrow = match opcode {
        Opcode::Uload8 => bits & 0xff,
        Opcode::Uload16 => bits & 0xffff,
        Opcode::Uload32 => bits & 0xffff_ffff,
        Opcode::Sload8 => sign_extend(bits, 8) as u64,
        Opcode::Sload16 => sign_extend(bits, 16) as u64,
        Opcode::Sload32 => sign_extend(bits, 32) as u64,
        _ => bits,
    };
    Some(narrow & result.mask())
}

/// What a leaf holds under a valuation: special integers under the even ones, anything under the others.
fn leaf_bits(product: &Product<'_, '_>, valuation: u32, id: TermId, ty: Option<Type>) -> u64 {
    // Leaves that only one version binds may stand for the same thing in both under two names: they all hold the
    // same, so that what is told apart differs whichever are the same (`leaves_of_one_version_refute_nothing`).
    let is_shared = product.versions.iter().all(|v| v.binders.get(id as usize).copied().flatten().is_some());
    let is_param = matches!(product.terms.kind(id), Some(TermKind::Param | TermKind::MemoryParam));
    let id = if is_shared || !is_param { id } else { NO_TERM };
    let bits = mix(u64::from(id) ^ u64::from(valuation) << 32);
    match ty {
        None => bits,
        Some(ty) if ty.is_int() && valuation.is_multiple_of(2) => {
            EDGES[(bits % EDGES.len() as u64) as usize] & ty.mask()
        }
        Some(ty) => bits & ty.mask(),
    }
}

/// Scatters bits (the finalizer of SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
