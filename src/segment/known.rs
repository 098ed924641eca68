//! Whether a tag exists, as far as a session can tell by itself.

use crate::pg::catalog::Source;
use crate::pg::rows;
use crate::pg::tag::TagText;
use snowflake_ids_core::directory::Tag;

/// What a session knows of a tag that has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// There is a row of it.
    Yes,
    /// There is none.
    No,
    /// It can't be seen from here: the table is locked, or ids come from registries on other servers, which may have it.
    Unsure,
}

/// Looks, without waiting. Only within a transaction.
pub fn look(source: Source, tag: &Tag) -> Known {
    match rows::has(source, &[(c"tag", TagText(*tag))]) {
        Some(true) => Known::Yes,
        Some(false) => look_elsewhere(tag).unwrap_or(Known::Unsure),
        None => Known::Unsure,
    }
}

/// Ids that this database has received of a tag say that one of its registries has it.
fn look_elsewhere(tag: &Tag) -> Option<Known> {
    let registries = rows::texts(Source::look_up(c"registry_server")?, c"identity")?;
    if registries.is_empty() {
        return Some(Known::No);
    }
    let received = Source::look_up(c"received")?;
    let of = |identity: TagText| {
        rows::has(received, &[(c"identity", identity), (c"tag", TagText(*tag))]) == Some(true)
    };
    registries.into_iter().any(of).then_some(Known::Yes)
}
