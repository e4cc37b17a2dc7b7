//! The meaning of operations on values.
