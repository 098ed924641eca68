//! Limits of questions and answers that every server keeps.

use std::time::Duration;

/// The longest question and the longest answer, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// The longest text in a question, but for those that have limits of their own, in characters.
pub const MAX_TEXT_CHARS: usize = 255;
/// Of how many tags ids are asked for at most.
pub const MAX_WANTS: usize = 1_024;
/// Number of worker ids that are excepted at most.
pub const MAX_EXCEPT: usize = 65_536;
/// Number of rows that are handed over at most.
pub const MAX_ROWS: usize = 65_536;
/// Number of rows an answer has at most: the rest is asked for again.
pub const PAGE_ROWS: usize = 8_192;
/// And how many bytes, unless its only row has more.
pub const PAGE_BYTES: usize = MAX_BYTES / 4;
/// Number of registries that serve the same tags at most.
pub const MAX_REGISTRIES: u32 = 1_000;
/// Time that rows that are locked are waited for at most: a quarter of the longest `registry_timeout`.
pub const MAX_TIMEOUT: Duration = Duration::from_mins(15);
/// For how long a worker id is leased at most.
pub const MAX_LEASE: Duration = Duration::from_hours(31 * 24);
