//! Control-flow graph orders.
