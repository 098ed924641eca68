//! COPY FROM inserts rows in batches, unless a default is volatile: such a one could look at the table. Ours never do.
//! They stay VOLATILE all the same: a STABLE default gives all rows of an ALTER TABLE ... ADD COLUMN one id.
//!
//! So while COPY FROM plans its defaults and its WHERE, a support function puts a STABLE twin in their place, with the
//! same entry.

use crate::pg::{catalog, role, utility};
use pgrx::{extension_sql, pg_guard, pg_sys};
use std::ffi::CStr;

info!(pg_finfo_nextval_support_wrapper);

/// Returns what the planner asks about a call of ours.
#[unsafe(no_mangle)]
extern "C-unwind" fn nextval_support_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    const NO_ANSWER: pg_sys::Datum = pg_sys::Datum::null();
    if !utility::copies_in() {
        return NO_ANSWER;
    }
    // SAFETY: called by the planner, with a request: users have no value of type `internal`. Its tag tells which it is. A
    // query within the COPY, as of a trigger's, has a root.
    unsafe {
        let request: *const pg_sys::SupportRequestSimplify =
            (*call).args.as_ptr().read().value.cast_mut_ptr();
        let simplifies = (*request).type_ == pg_sys::NodeTag::T_SupportRequestSimplify;
        if simplifies && (*request).root.is_null() { copy_variant_of((*request).fcall) } else { NO_ANSWER }
    }
}

/// A call of the twin instead of this one; null where it has none that the role may call, or must not be called itself.
///
/// # Safety
/// Called by the planner, with a call of a function that has the support function above.
#[pg_guard]
unsafe extern "C-unwind" fn copy_variant_of(call: *mut pg_sys::FuncExpr) -> pg_sys::Datum {
    const NONE: pg_sys::Datum = pg_sys::Datum::null();
    // SAFETY: as above, within a transaction. The new call has a list of its own, with the arguments of the other.
    unsafe {
        let key_alone: &[pg_sys::Oid] = &[pg_sys::INTERNALOID];
        let types = if (*call).args.is_null() { key_alone } else { &[pg_sys::TEXTOID, pg_sys::INTERNALOID] };
        let is_of_tag = || catalog::function_name((*call).funcid).is_none_or(|name| !is_snowflakes(&name));
        let name = match (*call).funcresulttype {
            pg_sys::UUIDOID => c"snowflake_uuid_in_copy",
            pg_sys::TEXTOID => c"snowflake_uuid_text_in_copy",
            _ if !(*call).args.is_null() && is_of_tag() => c"segment_nextval_in_copy",
            _ => c"snowflake_nextval_in_copy",
        };
        // The twin is for everyone: it is the caller's right to call the original that counts.
        let Some(copy_variant) = catalog::function_beside((*call).funcid, name, types) else { return NONE };
        if !role::may_execute((*call).funcid) || !role::may_execute(copy_variant) {
            return NONE;
        }
        utility::record_planned();
        let size = i32::try_from(size_of::<pg_sys::Datum>()).unwrap_or_default();
        let key = pg_sys::makeConst(
            pg_sys::INTERNALOID,
            -1,
            pg_sys::InvalidOid,
            size,
            pg_sys::Datum::from(1),
            false,
            true,
        );
        let arguments = pg_sys::lappend(pg_sys::list_copy((*call).args), key.cast());
        let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        let (collation, input) = ((*call).funccollid, (*call).inputcollid);
        pg_sys::makeFuncExpr(copy_variant, (*call).funcresulttype, arguments, collation, input, form).into()
    }
}

/// Returns whether a function of this name gives ids of a generator, and not of a tag.
fn is_snowflakes(name: &CStr) -> bool {
    name.to_bytes().starts_with(b"snowflake_")
}

extension_sql!(
    "
CREATE FUNCTION nextval_support(internal) RETURNS internal
STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'nextval_support_wrapper';
COMMENT ON FUNCTION nextval_support IS 'support for ids as defaults: COPY keeps its batches';

/* No SQL can call these: it has no value of type internal. */
CREATE FUNCTION snowflake_nextval_in_copy(internal) RETURNS bigint
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';
COMMENT ON FUNCTION snowflake_nextval_in_copy(internal) IS 'what COPY FROM calls in place of snowflake_nextval()';
CREATE FUNCTION snowflake_nextval_in_copy(generator text, internal) RETURNS bigint
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_nextval_in_copy(text, internal) IS 'what COPY FROM calls in place of snowflake_nextval(generator)';
CREATE FUNCTION segment_nextval_in_copy(tag text, internal) RETURNS bigint
STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'segment_nextval_wrapper';
COMMENT ON FUNCTION segment_nextval_in_copy IS 'what COPY FROM calls in place of segment_nextval(tag)';
",
    name = "nextval_support"
);
