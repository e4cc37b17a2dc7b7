//! Several versions of functions: composed, direct and rebuilt mappings judged and compared, and
//! chains of hops through the graph of versions.
//!
//! Three mappings between the ends of a chain of versions: *composed*, entry by entry, along the
//! chain; *rebuilt*, an edge of the graph of all versions, made from the concatenated logs of the
//! steps; *direct*, the pair of the two ends alone, in a family of its own, from the one log of all
//! passes run in a row.

mod chain;
mod corpus;
mod random;
