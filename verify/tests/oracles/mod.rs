//! The judges that run programs, one kind of wrong mapping in each test: the state oracle, and
//! chains of hops.

mod case;
mod exits;
mod hops;
mod provided;
mod runs;
mod tables;
mod wrong;
