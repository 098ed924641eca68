//! Columns that take ids: reads the facts on which the core's verdict rests, carries out its steps, and follows changes of a
//! column's type.
#![allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]

pub mod bind;
pub mod changes;
pub mod facts;
pub mod new_columns;
pub mod node;
pub mod owned;
pub mod schema;
pub mod series;
pub mod steps;
pub mod tags;
