//! Monotonic series. The last number of each key is in shared memory. Taking a number needs no lock. (The scheme is that
//! of `WeChat`'s seqsvr: the keys of a section share one stored maximum.)
//!
//! A hash divides the keys of a series into sections. Each **section** has its own segment tag (a named id range), and
//! takes one range of numbers at a time from the tag's buffers. The next number of a key is the key's last number plus
//! the increment, but at least the first number of the range. If the range ends before the key's next number, the
//! section needs the next range. Two keys of a section may have the same number, but one key never gets a number twice.
//!
//! A key that is not in memory continues above the section's **base**. The base is the highest last number of all
//! evicted keys of the section. After a restart, keys continue in the next range of the tag, which is above all earlier
//! reservations.
//!
//! No number is given twice to a key:
//!
//! - *Two takers* (processes that take a number). One compare-and-swap advances an entry. Only the taker whose
//!   compare-and-swap succeeds gets the number.
//! - *An eviction.* Keys are added and evicted under the lock of their bucket. The base is raised to the entry's number
//!   before a compare-and-swap removes the entry with that same number. A key that is added again therefore never
//!   continues below its last number.
//! - *A slot that another section takes.* A section has an **owner**, a number that is used only once. A taker remembers
//!   the owner from the time when it found the section, and checks the owner after its compare-and-swap. When a slot is
//!   given to another section, the owner is removed first, then all entries, and then the new section is opened.

mod bucket;
mod hash;
mod keys;
mod section;

pub use bucket::Bucket;
pub use hash::{Hash, section_of};
pub use keys::{KeyMiss, Keys, MAX_SLOTS, SectionRef, SweepStep};
pub use section::{Section, SectionBounds, SectionNeed};
