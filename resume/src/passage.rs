//! Passages: the compensation code of an entry alone, in front of code that stands elsewhere.
//!
//! Many exits lead to the start of one version. Each is a passage, a few instructions long, which
//! leaves with the parameters of that version; the version itself is compiled once.

use crate::continuation::ContinuationError;
use crate::frames::Compensation;
use check::{CheckedEntry, ContinuationFault};
use ir::{Function, FunctionBuilder, Imm, InstSpec, Opcode, OsrPoint, Signature, Type, Value};
use smallvec::SmallVec;
use transition::VersionKey;
use transition::mapping::Operand;

/// Makes a function of the compensation code of an entry that lands at the start of `target`. Its
/// parameters are the values that the entry requires, in order. It ends in the exit of OSR point 0,
/// with the values of all parameters of the target, in order. Cost: linear in the entry.
///
/// # Errors
/// [`ContinuationError`]: [`ContinuationError::NotProvided`] for a parameter that the entry does
/// not provide, and [`ContinuationError::Refused`] for an entry that lands elsewhere.
pub fn passage(
    name: &str,
    source: &Function,
    target: &Function,
    entry: CheckedEntry<'_>,
) -> Result<Function, ContinuationError> {
    let keys = (VersionKey::of(source), VersionKey::of(target));
    if (entry.source(), entry.target()) != keys {
        return Err(ContinuationError::OtherVersions);
    }
    let entry = entry.entry();
    let ty = |value: &Value| match source.has_value(*value) {
        true => Ok(source.value_type(*value)),
        false => Err(ContinuationError::NotInSource(*value)),
    };
    let params: Vec<Type> = entry.requires.iter().map(ty).collect::<Result<_, _>>()?;
    let results = target.signature().results.clone();
    let signature = Signature { params: params.iter().copied().collect(), results };
    let mut builder = FunctionBuilder::new(name, signature);
    let block = builder.create_block();
    let taken = params.iter().map(|ty| builder.append_param(block, *ty)).collect();
    builder.switch_to(block);
    let mut code = Compensation::new(entry, taken);
    code.emit(&mut builder)?;
    let given = |param: &Value| {
        let at = entry.assigns.binary_search_by_key(param, |assign| assign.value);
        let from: Operand = at.map(|at| entry.assigns[at].from).map_err(|_| *param)?;
        code.value(from).map_err(|_| *param)
    };
    let params = target.block_params(target.entry()).iter();
    let values: SmallVec<[Value; 8]> =
        params.map(given).collect::<Result<_, _>>().map_err(ContinuationError::NotProvided)?;
    builder.insert(InstSpec {
        imm: Imm::Exit(OsrPoint::from_u32(0)),
        ..InstSpec::terminator(Opcode::OsrExit, &values, Vec::new())
    });
    let function = builder.finish().expect("its block ends in an exit").function;
    let checked: Result<(), ContinuationFault> = check::passage(&function, source, target, entry);
    checked.map_err(ContinuationError::Refused)?;
    Ok(function)
}
