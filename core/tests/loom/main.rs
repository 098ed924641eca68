//! Tests of the core's lock-free parts under every interleaving. Run by `make loom`.

#![cfg(loom)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod generator;
mod model;
#[cfg(feature = "guards")]
mod safe_position;
mod segment;
#[cfg(feature = "guards")]
mod series;
#[cfg(feature = "guards")]
mod without;
