//! The editor and the action log.
