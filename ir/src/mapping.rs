//! OSR mappings as data.
