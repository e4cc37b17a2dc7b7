//! The tests of the whole library, in one binary: one link, and tests of all files side by side.
//!
//! `cargo test --test suite versions::` runs the tests of one file or folder. A file that is not
//! named here fails `every_test_file_has_a_suite`.

mod bad_inputs;
mod blame;
mod certified;
mod continuations;
mod declared;
mod embed;
mod explain;
mod external;
mod figures;
mod frame_states;
mod fuzz;
mod hosted;
mod inlining;
mod landings;
mod levels;
mod limits;
mod moved;
mod objects;
mod on_demand;
mod passes_corpus;
mod passes_random;
mod profile;
mod regions;
mod replay;
mod rules;
mod source;
mod speculation;
mod state_oracle_random;
mod state_points;
mod stay;
mod tiers;
mod trial;
mod versions;
