//! Bit layouts of snowflake ids: the fields of a 64-bit id.
//!
//! An id is `0 | ticks | datacenter | worker | rollback | sequence`, most significant bit first. Sonyflake and pgEdge
//! use another order, `0 | ticks | sequence | datacenter | worker | rollback`. The *position* of an id is its ticks and
//! its sequence, without the node. Each node issues its positions in ascending order; see [`Layout::id`].

mod bits;
pub mod change;
mod field;
mod text;

pub use bits::Layout;
pub use field::{Field, LayoutError, Order, PRESETS, TickError, Widths};
