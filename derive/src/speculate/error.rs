//! Errors for lists of assumptions that a version cannot make.

use super::{Assumption, Expected};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{FrameStateError, FrameStates, Function, Inst, Module, Point, Type, Value, reference};
use std::fmt;

/// Why a version cannot make a list of assumptions. Fields name an assumption by its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpeculateError {
    /// The version lacks the instruction of the place.
    NoSuchPoint {
        /// The assumption.
        assumption: usize,
        /// The instruction.
        inst: Inst,
    },
    /// The version lacks the value, or the value is not available at the place.
    NotAvailable {
        /// The assumption.
        assumption: usize,
        /// The value.
        value: Value,
    },
    /// The bits do not fit the type of the value, or are a reference that is no constant of the
    /// module.
    DoesNotFit {
        /// The assumption.
        assumption: usize,
        /// The bits.
        bits: u64,
        /// The type.
        ty: Type,
    },
    /// The assumption claims that a value differs from some bits, but the value is no integer.
    NotComparable {
        /// The assumption.
        assumption: usize,
        /// The type of the value.
        ty: Type,
    },
    /// The value is a constant with other bits.
    NeverHolds {
        /// The assumption.
        assumption: usize,
        /// The bits of the constant.
        bits: u64,
    },
    /// No slot of the frame state that covers the place has the value, which is available there:
    /// often it is the value that a register had before ([`FrameStates::not_named`]).
    NotNamed {
        /// The assumption.
        assumption: usize,
        /// The value.
        value: Value,
        /// The point of the frame state.
        state: Point,
    },
    /// The frame states do not fit the version.
    States(FrameStateError),
    /// An earlier assumption of the version would lose its exit.
    LosesExit {
        /// The instruction of the earlier assumption.
        inst: Inst,
    },
}

impl fmt::Display for SpeculateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpeculateError::NoSuchPoint { assumption, inst } => {
                write!(f, "assumption {assumption}: the version has no {inst}")
            }
            SpeculateError::NotAvailable { assumption, value } => {
                write!(f, "assumption {assumption}: {value} is not available there")
            }
            SpeculateError::DoesNotFit { assumption, bits, ty } => {
                write!(f, "assumption {assumption}: {bits:#x} does not fit {ty}")
            }
            SpeculateError::NotComparable { assumption, ty } => {
                write!(
                    f,
                    "assumption {assumption}: only integers can be assumed to differ, not {ty}"
                )
            }
            SpeculateError::NeverHolds { assumption, bits } => {
                write!(f, "assumption {assumption}: the value is the constant {bits:#x}")
            }
            SpeculateError::NotNamed { assumption, value, state } => {
                let state = state.inst();
                write!(f, "assumption {assumption}: no slot of the state at {state} has {value}")
            }
            SpeculateError::States(error) => error.fmt(f),
            SpeculateError::LosesExit { inst } => {
                write!(f, "the assumption {inst}, which the version makes already, loses its exit")
            }
        }
    }
}

impl std::error::Error for SpeculateError {}

/// Checks that a version can make the assumptions.
pub(crate) fn check_all(
    module: &Module,
    version: &Function,
    assumptions: &[Assumption],
) -> Result<(), SpeculateError> {
    let cfg = Cfg::new(version);
    let dom = DomTree::new(version, &cfg);
    for (assumption, Assumption { at, value, expected, .. }) in assumptions.iter().enumerate() {
        let (inst, value, bits) = (at.inst(), *value, expected.bits());
        if !version.has_inst(inst) {
            return Err(SpeculateError::NoSuchPoint { assumption, inst });
        }
        let is_reached = cfg.is_reachable(version.inst_block(inst));
        // Dominance says nothing about unreachable code.
        if !version.has_value(value) || (is_reached && !dom.available_at(version, value, *at)) {
            return Err(SpeculateError::NotAvailable { assumption, value });
        }
        let ty = version.value_type(value);
        let may_be_bits = !ty.is_ref() || reference::is_constant(module.funcs.len(), ty, bits);
        if bits & !ty.mask() != 0 || !may_be_bits {
            return Err(SpeculateError::DoesNotFit { assumption, bits, ty });
        }
        if matches!(expected, Expected::IsNot(_)) && !ty.is_int() {
            return Err(SpeculateError::NotComparable { assumption, ty });
        }
        if let Some(bits) = version.constant(value).filter(|known| !expected.holds(*known)) {
            return Err(SpeculateError::NeverHolds { assumption, bits });
        }
    }
    Ok(())
}

/// Checks that each assumption is about a value that a register has at its place. The version has
/// all places and values.
pub(super) fn check_named(
    states: &FrameStates,
    version: &Function,
    assumptions: &[Assumption],
) -> Result<(), SpeculateError> {
    for (assumption, Assumption { at, value, .. }) in assumptions.iter().enumerate() {
        if let Some(state) = states.not_named(version, *at, *value) {
            return Err(SpeculateError::NotNamed { assumption, value: *value, state });
        }
    }
    Ok(())
}
