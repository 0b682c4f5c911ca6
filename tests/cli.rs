//! The binary, as people use it.
