//! One verdict for a column. The shell reads facts of columns and sequences; this module decides whether a column can take
//! ids, or whether its sequence is bound instead, and returns the steps. All ways to attach a column ask this module: the plan of
//! a schema, `attach`, and the binding of a sequence.

pub mod bound;
pub mod change;
pub mod default;
pub mod error;
pub mod facts;
pub mod new_column;
pub mod node;
pub mod notice;
pub mod other_layout;
pub mod plan;
pub mod series;
pub mod steps;
pub mod tag;
pub mod verdict;
