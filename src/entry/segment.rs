//! `segment_nextval`.

use crate::pg::report::raise;
use crate::pg::tag::tag_of;
use crate::pg::text::{bytes_of, is_plain};
use crate::segment;
use crate::segment::cache::{self, CachedTag};
use crate::segment::error::SegmentError;
use pgrx::{extension_sql, pg_guard, pg_sys};
use snowflake_ids_core::sequence::definition::MAX_TAG_BYTES;

const NAME: &str = "segment_nextval";

entry!(
    segment_nextval_wrapper,
    pg_finfo_segment_nextval_wrapper,
    guarded,
    // SAFETY: called by the server, with what it passes.
    |call| unsafe { at_once(call) },
    // SAFETY: as above.
    |call| unsafe { next(call) }
);

/// The next id, where the session knows the tag and its buffers have some.
///
/// # Safety
/// Called with what the server passes to a function with one text argument.
#[inline]
unsafe fn at_once(call: pg_sys::FunctionCallInfo) -> Option<i64> {
    // SAFETY: as above. `fn_extra` belongs to the function, and holds null or what was put there below, which is
    // never freed.
    unsafe {
        let argument = (*call).args.as_ptr().read();
        if argument.isnull || (*call).flinfo.is_null() || !is_plain(argument.value.cast_mut_ptr()) {
            return None;
        }
        let tag = bytes_of(argument.value);
        let seen = &raw mut (*(*call).flinfo).fn_extra;
        // The tag of the last row is mostly this row's, too.
        let cached = match (*seen).cast::<CachedTag>().as_ref() {
            Some(cached) if *cached.tag == *tag => cached,
            // Longer ones are no tags, and take long to look for.
            _ if tag.len() > MAX_TAG_BYTES => return None,
            _ => {
                let cached = cache::find(tag)?;
                *seen = std::ptr::from_ref(cached).cast_mut().cast();
                cached
            }
        };
        segment::next_at_once(cached)
    }
}

/// The same, whatever it takes.
///
/// # Safety
/// As above.
unsafe fn next(call: pg_sys::FunctionCallInfo) -> i64 {
    // SAFETY: as above.
    let argument = unsafe { (*call).args.as_ptr().read() };
    if argument.isnull {
        raise(SegmentError::NoTag);
    }
    // SAFETY: the argument is a text.
    let tag = unsafe { tag_of(argument.value) };
    let tag = tag.unwrap_or_else(|error| raise(SegmentError::BadTag(error)));
    segment::next(NAME, tag).unwrap_or_else(|failure| raise(failure))
}

extension_sql!(
    "
/* The next id of a tag: dense, and growing from call to call of a session. */
CREATE FUNCTION segment_nextval(tag text) RETURNS bigint
VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'segment_nextval_wrapper';

/* The same for tools that take a default with \"nextval\" in it for a sequence's, and the tag for the sequence. */
CREATE FUNCTION segment_id(tag text) RETURNS bigint
VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'segment_nextval_wrapper';
COMMENT ON FUNCTION segment_id IS 'the same as segment_nextval(tag)';
",
    name = "segment_nextval",
    requires = ["nextval_support"]
);
