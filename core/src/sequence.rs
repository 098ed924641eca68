//! Sequences of dense ids: tags, their buffers in memory, and what is reserved for them.

pub mod bound_sequence;
pub mod counts;
pub mod definition;
pub mod directory;
pub mod floors;
pub mod own;
pub mod places;
pub mod privilege;
pub mod request;
pub mod requested;
pub mod reservation;
pub mod segment;
pub mod slot;
pub mod step;
pub mod tag_rows;
