//! The verifier: every rule a well-formed module keeps.
