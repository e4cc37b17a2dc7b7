//! Operations on values, compared with independent definitions.

mod conversions;
mod floats;
mod integers;
