//! What is wrong with the ids of a table.
//!
//! The ids come from one or several sources, such as the same table on several servers, each in ascending order. They are
//! merged and looked at one after the other, so that it takes the same memory for any number of ids: what is noted is
//! bounded ([`listing`]), and so is what is known of nodes ([`nodes`]). In every layout the time comes first, so that the
//! days come one after the other, too.
//!
//! | module | holds |
//! | --- | --- |
//! | [`merge`] | several sources in one order |
//! | [`group`] | all rows with the same id |
//! | [`subject`] | what the ids are to be: snowflake ids of a layout, or numbers of a tag |
//! | [`nodes`] | how many ids each node has given |
//! | [`finding`] | what is found, in words |
//! | [`listing`] | as much of it as is shown |
//! | [`column_default`] | what the default of a column says of its ids |

pub mod column_default;
pub mod finding;
pub mod group;
pub mod listing;
pub mod merge;
pub mod nodes;
pub mod subject;

pub use finding::{Finding, Sort, Unfit};
pub use group::{Place, Places};
pub use merge::{AuditError, Source, Stored, Unsorted};
pub use subject::{Numbers, Snowflakes, Subject};

use group::Group;
use listing::Listing;
use merge::{Merge, Row};
use subject::Review;

/// So many ids are between one report of progress and the next.
pub const PROGRESS: u64 = 10_000_000;

/// How many findings of a sort may be shown.
pub const MAX_FINDINGS: usize = 100_000;

/// Looks at all ids of the sources, and gives what is found: as it is met, then what concerns all. Of each sort of finding
/// no more than `most` are listed. `progress` is called after every [`PROGRESS`] ids with how many there were by then.
///
/// # Errors
/// Those of the sources; a source whose ids do not ascend.
pub fn audit<S: Source>(
    sources: Vec<S>,
    subject: &Subject,
    most: usize,
    mut progress: impl FnMut(u64),
) -> Result<Vec<Finding>, AuditError<S::Error>> {
    let mut merge = Merge::begin(sources)?;
    let mut listing = Listing::new(most);
    let mut review = Review::new(subject);
    let (mut group, mut total, mut nulls) = (Group::default(), 0_u64, 0_u64);
    while let Some(Row { id, place }) = merge.lowest()? {
        total += 1;
        if total % PROGRESS == 0 {
            progress(total);
        }
        let Some(id) = id else {
            nulls += 1;
            continue;
        };
        if group.is_of(id) {
            group.add(place);
            continue;
        }
        review.look(&group, &mut listing);
        group.begin(id, place);
    }
    review.look(&group, &mut listing);
    review.end(&mut listing);
    if nulls > 0 {
        listing.add(Finding::Null { rows: nulls });
    }
    listing.add(Finding::Total { rows: total });
    Ok(listing.end())
}
