//! Why code could not be made or used.

use ir::Point;
use std::fmt;

/// Why a version could not be compiled. Nothing is left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompileError {
    /// No memory for code is left.
    OutOfMemory,
    /// The function has more values in one place than the exchange with native code has room for.
    TooManyValues {
        /// The name of the function.
        function: String,
        /// Words needed.
        needed: usize,
        /// Words there are.
        limit: usize,
    },
    /// It is not well-formed, or has another signature than the function it is to be a version of.
    Invalid {
        /// The name of the function.
        function: String,
        /// What is wrong.
        what: String,
    },
    /// Cranelift refuses it.
    Codegen {
        /// The name of the function.
        function: String,
        /// What it says.
        what: String,
    },
    /// An OSR point cannot be put into it.
    Point {
        /// The name of the function.
        function: String,
        /// Why.
        what: String,
    },
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::OutOfMemory => f.write_str("no memory for code is left"),
            CompileError::TooManyValues { function, needed, limit } => {
                write!(
                    f,
                    "@{function} passes {needed} values at once, and native code passes at most {limit}"
                )
            }
            CompileError::Invalid { function, what } => {
                write!(f, "@{function} is no such version: {what}")
            }
            CompileError::Codegen { function, what } => {
                write!(f, "@{function} cannot be compiled: {what}")
            }
            CompileError::Point { function, what } => {
                write!(f, "an OSR point cannot be put into @{function}: {what}")
            }
        }
    }
}

impl std::error::Error for CompileError {}

/// Why a transition could not be compiled. Nothing is left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContinueError {
    /// The mapping, or continuation, leads from another version than the one that is left. It may
    /// be stale.
    OtherSource {
        /// The name of the function.
        function: String,
    },
    /// The mapping leads to another version than the one to go on in.
    OtherTarget {
        /// The name of the function.
        function: String,
    },
    /// The version to go on in was compiled by another engine.
    OtherEngine {
        /// The name of the function.
        function: String,
    },
    /// The mapping has no entry at the point.
    NoEntry {
        /// The name of the function.
        function: String,
        /// The point.
        at: Point,
    },
    /// The entry does not fit the versions, or its compensation code cannot run.
    NotBuilt {
        /// The name of the function.
        function: String,
        /// What is wrong.
        what: String,
    },
    /// The code cannot be made.
    Compile(CompileError),
}

impl fmt::Display for ContinueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContinueError::OtherSource { function } => {
                write!(
                    f,
                    "the transition is one from another version of @{function} than the one that runs"
                )
            }
            ContinueError::OtherTarget { function } => {
                write!(f, "the mapping leads to another version of @{function} than the one given")
            }
            ContinueError::OtherEngine { function } => {
                write!(f, "the version of @{function} to go on in was compiled by another engine")
            }
            ContinueError::NoEntry { function, at } => {
                write!(f, "there is no entry before {} of @{function}", at.inst())
            }
            ContinueError::NotBuilt { function, what } => {
                write!(f, "a transition of @{function} cannot be made: {what}")
            }
            ContinueError::Compile(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ContinueError {}
