//! Monotonic series: the present number of each key in memory, without a lock on the way of a number (the scheme of `WeChat`'s
//! seqsvr: keys share one stored maximum by sections).
//!
//! | module | holds |
//! | --- | --- |
//! | `hash` | in which section a key is, for ever; where it is in memory, until the next start |
//! | `section` | which numbers a section's keys may have |
//! | `bucket` | the numbers of some keys in 128 bytes |
//! | `keys` | all of them: taking a number |
//!
//! A **section** has one range of numbers, which was taken out of its tag's buffers. The next number of a key is the one after
//! its last, or the first of the range if that is higher; if the range ends before it, the section needs the next range. Two
//! keys of a section may have the same number, one key never has one twice.
//!
//! A key that is not in memory goes on above all that left it: a section's **base** is the highest number with which any of its
//! keys did. After a restart it goes on in the next range of the tag, which is above everything that was reserved before.
//!
//! No number is given twice:
//!
//! - *two takers*: an entry is moved on by one compare-and-swap, and the one that it succeeds for has the number.
//! - *an entry that leaves*: keys come and go under the lock of their bucket. The base is raised to the entry's number before
//!   a compare-and-swap takes that very number away, so that a key that is not there is never below what it had.
//! - *a place that changes hands*: a section has an **owner**, a number that no other time of any section has. A taker knows it
//!   from when it found the section and looks at it again after its compare-and-swap. When the place is given to another
//!   section, the owner changes first, then all entries are swept away, and then the place is opened.

mod bucket;
mod hash;
mod keys;
mod section;

pub use bucket::Bucket;
pub use hash::{Hash, section_of};
pub use keys::{KeyMiss, Keys, MAX_SLOTS, SectionRef};
pub use section::{Section, SectionBounds, SectionNeed, Supplied};
