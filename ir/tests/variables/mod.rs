//! SSA construction from variables, compared with direct execution of the programs.

mod laws;
mod programs;
mod shapes;
mod states;
