//! The text form: printer and parser.
