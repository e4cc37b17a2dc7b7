//! Judges of OSR mappings: state oracle, program generator.
