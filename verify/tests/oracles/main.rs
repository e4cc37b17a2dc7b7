//! The judges that execute, one kind of wrong mapping per test: the state oracle, and chains of
//! hops.

mod case;
mod hops;
mod provided;
mod runs;
mod wrong;
