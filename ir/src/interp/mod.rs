//! The interpreter: the reference meaning.
