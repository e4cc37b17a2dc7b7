//! From action log to OSR mapping: point correspondence, reconstruction, live+ fixpoint.
