//! Dominators.
