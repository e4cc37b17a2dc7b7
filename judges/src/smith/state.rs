//! The ends of calls and the states of instances that are compared.

use ir::TrapKind;
use std::collections::BTreeMap;
use std::fmt;

/// The end of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CallEnd {
    /// With these results.
    Returned(Vec<u64>),
    /// With a trap.
    Trapped(TrapKind),
    /// At a limit of the engine; the limits of the engines differ.
    Unfinished,
    /// Not at all: the engine rejected the call.
    Refused(String),
}

impl fmt::Display for CallEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallEnd::Returned(results) => {
                f.write_str("returned")?;
                results.iter().try_for_each(|r| write!(f, " {r:#x}"))
            }
            CallEnd::Trapped(kind) => write!(f, "trap {kind}"),
            CallEnd::Unfinished => f.write_str("a limit"),
            CallEnd::Refused(message) => write!(f, "rejected: {message}"),
        }
    }
}

/// The exported globals, memories and tables of an instance, by index. For references it records
/// only whether they are null, since the engines represent them differently.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct InstanceState {
    pub(super) globals: BTreeMap<u32, u64>,
    pub(super) memories: BTreeMap<u32, Vec<u8>>,
    pub(super) tables: BTreeMap<u32, Vec<bool>>,
}

/// The first difference of two states.
pub(super) fn difference(ours: &InstanceState, theirs: &InstanceState) -> Option<String> {
    if ours == theirs {
        return None;
    }
    for (index, mine) in &ours.globals {
        let other = theirs.globals.get(index);
        if other != Some(mine) {
            return Some(format!("global {index}: {mine:#x} and {other:x?}"));
        }
    }
    for (index, mine) in &ours.memories {
        let Some(other) = theirs.memories.get(index) else { continue };
        if mine.len() != other.len() {
            return Some(format!("memory {index}: {} and {} bytes", mine.len(), other.len()));
        }
        if let Some(at) = mine.iter().zip(other).position(|(a, b)| a != b) {
            return Some(format!("memory {index} at {at}: {:#x} and {:#x}", mine[at], other[at]));
        }
    }
    for (index, mine) in &ours.tables {
        let Some(other) = theirs.tables.get(index) else { continue };
        if mine.len() != other.len() {
            return Some(format!("table {index}: {} and {} entries", mine.len(), other.len()));
        }
        if let Some(at) = mine.iter().zip(other).position(|(a, b)| a != b) {
            return Some(format!("table {index} at {at}: one of the references is null"));
        }
    }
    Some("one of them has something the other does not have".to_owned())
}
