//! The function `segment_nextval`.

use crate::pg::report::raise;
use crate::pg::tag_text::tag_of;
use crate::pg::text::{bytes_of, is_plain};
use crate::tag;
use crate::tag::cache::{self, CachedTag};
use crate::tag::error::SegmentError;
use pgrx::{extension_sql, pg_guard, pg_sys};
use snowflake_ids_core::tag::definition::MAX_TAG_BYTES;

const NAME: &str = "segment_nextval";

entry!(
    segment_nextval_wrapper,
    pg_finfo_segment_nextval_wrapper,
    guarded,
    // SAFETY: the server calls this function with its arguments.
    |call| unsafe { at_once(call) },
    // SAFETY: the server calls this function with its arguments.
    |call| unsafe { next(call) }
);

/// Returns the next id if the session has the tag in its cache and the buffers hold an id.
///
/// # Safety
/// `call` is the server's call of a function with one text argument.
#[inline]
unsafe fn at_once(call: pg_sys::FunctionCallInfo) -> Option<i64> {
    // SAFETY: `fn_extra` belongs to the called function. It is null or the reference stored below, which is never
    // freed.
    unsafe {
        let argument = (*call).args.as_ptr().read();
        if argument.isnull || (*call).flinfo.is_null() || !is_plain(argument.value.cast_mut_ptr()) {
            return None;
        }
        let tag = bytes_of(argument.value);
        let seen = &raw mut (*(*call).flinfo).fn_extra;
        // Consecutive rows mostly name the same tag, so `fn_extra` keeps the tag of the previous row.
        let cached = match (*seen).cast::<CachedTag>().as_ref() {
            Some(cached) if *cached.tag == *tag => cached,
            // A longer text cannot be a tag, and its lookup would take long.
            _ if tag.len() > MAX_TAG_BYTES => return None,
            _ => {
                let cached = cache::find(tag)?;
                *seen = std::ptr::from_ref(cached).cast_mut().cast();
                cached
            }
        };
        tag::next_at_once(cached)
    }
}

/// Returns the next id. May wait, and may run SQL.
///
/// # Safety
/// `call` is the server's call of a function with one text argument.
unsafe fn next(call: pg_sys::FunctionCallInfo) -> i64 {
    // SAFETY: the function has one argument.
    let argument = unsafe { (*call).args.as_ptr().read() };
    if argument.isnull {
        raise(SegmentError::NoTag);
    }
    // SAFETY: the argument is a text.
    let tag = unsafe { tag_of(argument.value) };
    let tag = tag.unwrap_or_else(|error| raise(SegmentError::BadTag(error)));
    tag::next(NAME, tag).unwrap_or_else(|failure| raise(failure))
}

extension_sql!(
    "
/* Returns the next id of a tag. Ids of a tag are dense, and increase within a session. */
CREATE FUNCTION segment_nextval(tag text) RETURNS bigint
VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'segment_nextval_wrapper';

/* Does the same. Some tools take a default that contains \"nextval\" for one of a sequence named like the tag. */
CREATE FUNCTION segment_id(tag text) RETURNS bigint
VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'segment_nextval_wrapper';
COMMENT ON FUNCTION segment_id IS 'the same as segment_nextval(tag)';
",
    name = "segment_nextval",
    requires = ["nextval_support"]
);
