//! Columns that take ids: reads the facts on which the core's verdict rests.
#![allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]

pub mod facts;
