//! Several versions of a function: composed, direct and rebuilt mappings, judged and compared, and
//! chains of hops through the version graph.
//!
//! The tests compare three mappings between the ends of a chain of versions. The *composed* mapping
//! follows the chain entry by entry. The *rebuilt* mapping is an edge of the graph of all versions,
//! synthesized from the concatenated logs of the steps. The *direct* mapping belongs to a family of
//! the two ends alone, and comes from a single log of all passes in a row.

mod chain;
mod corpus;
mod random;
