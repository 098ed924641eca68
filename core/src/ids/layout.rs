//! Bit layouts of snowflake ids: which bits of a 64-bit id say when, who and which.
//!
//! An id is `0 | ticks | datacenter | worker | rollback | sequence`, most significant bit first, or, where
//! the system imitated does it so (Sonyflake, pgEdge), `0 | ticks | sequence | datacenter | worker |
//! rollback`. Its *position* is ticks and sequence without the rest, an integer that only grows while one
//! worker issues ids; see [`Layout::id`].

mod bits;
pub mod change;
mod field;
mod text;

pub use bits::Layout;
pub use field::{Field, LayoutError, Order, PRESETS, TickError, Widths};
