//! What ids a column has: snowflake ids of a layout, or numbers of a tag.

use crate::pg::column::Column;
use crate::pg::rows;
use crate::pg::tag::TagText;
use crate::segment::error::SegmentError;
use crate::segment::{own, privilege};
use crate::store::tables::{REGISTRY_SERVER, SEGMENT};
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::Layout;
use snowflake_ids_core::audit::Numbers;
use snowflake_ids_core::audit::column_default::{Origin, origin};
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::privilege::Action;

/// What the ids of a column are.
pub enum Kind {
    /// Snowflake ids of a layout.
    Snowflakes(Layout),
    /// Numbers of a tag.
    Numbers(Box<Tag>),
}

/// A default that is longer names neither a tag nor a generator.
const LONGEST_DEFAULT: i32 = 4_096;

/// What the default of a column names.
pub fn origin_of(column: &Column) -> Result<Option<Origin>, Box<ErrorReport>> {
    Ok(column.default_expression(LONGEST_DEFAULT)?.and_then(|expression| origin(&expression)))
}

/// Fails where there is no such tag, or the current role may not see how far it came.
pub fn check(tag: &Tag) -> Result<(), SegmentError> {
    privilege::check(tag, Action::Look)?;
    if registries_are_in_use() || row(tag).is_some() { Ok(()) } else { Err(SegmentError::unknown(tag)) }
}

/// What the numbers of a tag are by now. Of one that registries on other servers keep it is not known, nor how far all that
/// draw from them have come.
pub fn numbers(tag: &Tag) -> Numbers {
    let any = Numbers { increment: 1, remainder: 0, highest: None };
    if registries_are_in_use() {
        return any;
    }
    // What a transaction hands out of a tag that it has changed is in the row when it commits.
    row(tag).map_or(any, |row| Numbers { highest: row.highest.max(own::issued(tag)), ..row })
}

fn row(tag: &Tag) -> Option<Numbers> {
    let mut found = None;
    let read = |row: &rows::Row<'_>| {
        let [increment, remainder] = [c"increment", c"remainder"].map(|column| row.number(column));
        // One that starts over each day has no highest.
        let highest = row.number(c"max_id").filter(|_| row.has_no_text(c"reset"));
        let [increment, remainder] = [increment.unwrap_or(1), remainder.unwrap_or(0)];
        found = Some(Numbers { increment, remainder, highest });
    };
    rows::of_tag(&SEGMENT, &TagText(*tag), None, read).ok().and(found)
}

fn registries_are_in_use() -> bool {
    let mut in_use = false;
    // Locked by who changes it: then it is not known.
    rows::each(&REGISTRY_SERVER, false, |_| in_use = true).is_err() || in_use
}
