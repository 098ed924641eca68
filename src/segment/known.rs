//! The existence of a tag, as far as a session can tell by itself.

use crate::pg::catalog::Unseen;
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Sought, View};
use crate::pg::tag::TagText;
use crate::store::tables::{RECEIVED, REGISTRY_SERVER, SEGMENT};
use snowflake_ids_core::sequence::directory::Tag;

/// What a session knows of a tag that has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownTag {
    /// There is a row of it.
    Yes,
    /// There is none.
    No,
    /// It can't be seen from here: the table is locked, or ids come from registries on other servers, which may have it.
    Unsure,
}

/// Looks, without waiting; None where the extension is not. Only within a transaction.
pub fn look(tag: &Tag) -> Option<KnownTag> {
    let found =
        match rows::has(&SEGMENT, Wait::No, View::Committed, &[(c"tag", Sought::Text(&TagText(*tag)))]) {
            Ok(true) => Ok(KnownTag::Yes),
            Ok(false) => look_elsewhere(tag),
            Err(unseen) => Err(unseen),
        };
    match found {
        Ok(known) => Some(known),
        Err(Unseen::Locked) => Some(KnownTag::Unsure),
        Err(Unseen::NoTable) => None,
    }
}

/// Ids that this database has received of a tag say that one of its registries has it.
fn look_elsewhere(tag: &Tag) -> Result<KnownTag, Unseen> {
    let mut registries = Vec::new();
    rows::look(&REGISTRY_SERVER, Wait::No, &[], |row| registries.extend(row.tag(c"identity")))?;
    if registries.is_empty() {
        return Ok(KnownTag::No);
    }
    for identity in registries {
        let columns = [(c"identity", Sought::Text(&identity)), (c"tag", Sought::Text(&TagText(*tag)))];
        if rows::has(&RECEIVED, Wait::No, View::Committed, &columns)? {
            return Ok(KnownTag::Yes);
        }
    }
    Ok(KnownTag::Unsure)
}
