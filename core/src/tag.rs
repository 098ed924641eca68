//! Tags (named ranges of dense ids): their buffers in shared memory, and the reservation of their ids.

pub mod clock_sweep;
pub mod counts;
pub mod definition;
pub mod directory;
pub mod high_water_marks;
pub mod privilege;
pub mod rate;
pub mod request_bitmap;
pub mod reservation;
pub mod segment;
pub mod serial;
pub mod slot;
pub mod step;
pub mod tag_rows;
pub mod tickets;
pub mod transaction_tags;
