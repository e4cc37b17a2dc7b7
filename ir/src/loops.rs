//! The loop forest.
