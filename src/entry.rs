//! What the server calls by name: functions that are called for every row, triggers, and the beginnings of workers.
//!
//! The former have entries written by hand. What pgrx wraps around a function, a guard with room for an error report and two switches of the memory
//! context, costs a fifth of an id. The common case needs neither: it calls nothing of the server's that could
//! fail, and allocates nothing. Everything else is left to a guarded function.

#![allow(unsafe_code, reason = "entries written by hand")]

mod copy;
mod segment;
mod sequence;
mod series;
mod series_nextval;
mod snowflake;
mod trigger;
mod uuid;
mod worker;
