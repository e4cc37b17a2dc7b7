//! The optimization passes of Osier and the registry of pipelines.
