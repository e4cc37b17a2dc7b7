//! Liveness.
