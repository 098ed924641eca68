//! The planner support function that lets COPY FROM insert rows in batches. The function acts while COPY FROM plans its
//! defaults and its WHERE clause, and replaces each call of an id function by a call of the COPY variant: a STABLE function
//! with the same entry point. `docs/architecture.md` says why the id functions themselves are VOLATILE.

use super::snowflake::{snowflake_nextval_of_generator_wrapper, snowflake_nextval_wrapper};
use super::tag::segment_nextval_wrapper;
use crate::bound::{self, Number};
use crate::pg::{catalog, copying, extension, role, utility};
use pgrx::{extension_sql, pg_guard, pg_sys};

/// The key of a COPY variant whose ids are not recorded.
const NOT_RECORDED: usize = 1;

/// Defines the COPY variant of an entry point. The argument at this place is the key.
macro_rules! copy_variant {
    ($entry:ident, $info:ident, $of:path, $place:literal) => {
        info!($info);

        #[unsafe(no_mangle)]
        extern "C-unwind" fn $entry(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
            let id = $of(call);
            // SAFETY: the planner support function below has made this call, because SQL has no value of type `internal`. The
            // number that the key points to stays until the process ends.
            unsafe {
                let key = (*call).args.as_ptr().add($place).read().value.value();
                if key != NOT_RECORDED {
                    bound::copied(
                        &*std::ptr::with_exposed_provenance::<Number>(key),
                        id.value().cast_signed() as i64,
                    );
                }
            }
            id
        }
    };
}

copy_variant!(
    snowflake_nextval_in_copy_wrapper,
    pg_finfo_snowflake_nextval_in_copy_wrapper,
    snowflake_nextval_wrapper,
    0
);
copy_variant!(
    snowflake_nextval_of_generator_in_copy_wrapper,
    pg_finfo_snowflake_nextval_of_generator_in_copy_wrapper,
    snowflake_nextval_of_generator_wrapper,
    1
);
copy_variant!(
    segment_nextval_in_copy_wrapper,
    pg_finfo_segment_nextval_in_copy_wrapper,
    segment_nextval_wrapper,
    1
);

info!(pg_finfo_nextval_support_wrapper);

/// Answers a planner request about a call of an id function.
#[unsafe(no_mangle)]
extern "C-unwind" fn nextval_support_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    const NO_ANSWER: pg_sys::Datum = pg_sys::Datum::null();
    if !utility::copies_in() {
        return NO_ANSWER;
    }
    // SAFETY: only the planner calls this function, because users have no value of type `internal`. The argument is a
    // request, and the request's node tag names its struct. A request for COPY's own expressions has no `root`. A request
    // for a query inside the COPY, such as a query of a trigger, has a `root`.
    unsafe {
        let request: *const pg_sys::SupportRequestSimplify =
            (*call).args.as_ptr().read().value.cast_mut_ptr();
        let simplifies = (*request).type_ == pg_sys::NodeTag::T_SupportRequestSimplify;
        if simplifies && (*request).root.is_null() { copy_variant_of((*request).fcall) } else { NO_ANSWER }
    }
}

/// Returns a call of the COPY variant. Returns null if there is no COPY variant, or if the role lacks EXECUTE on the function or
/// on its COPY variant.
///
/// # Safety
/// The planner makes this request for a call of a function that has the support function above.
#[pg_guard]
unsafe extern "C-unwind" fn copy_variant_of(call: *mut pg_sys::FuncExpr) -> pg_sys::Datum {
    const NONE: pg_sys::Datum = pg_sys::Datum::null();
    // SAFETY: the caller is within a transaction. The new call has its own list, which holds the old call's arguments.
    unsafe {
        let types = if (*call).args.is_null() {
            "pg_catalog.internal"
        } else {
            "pg_catalog.text,pg_catalog.internal"
        };
        let is_of_tag = || {
            let name = catalog::function_name((*call).funcid);
            name.is_none_or(|name| !name.to_bytes().starts_with(b"snowflake_"))
        };
        let name = match (*call).funcresulttype {
            pg_sys::UUIDOID => "snowflake_uuid_in_copy",
            pg_sys::TEXTOID => "snowflake_uuid_text_in_copy",
            _ if !(*call).args.is_null() && is_of_tag() => "segment_nextval_in_copy",
            _ => "snowflake_nextval_in_copy",
        };
        // By default everyone may call the COPY variant, so the caller's privilege on the original function has to be
        // checked.
        let copy_variant = extension::function(&format!("pg_catalog.{name}({types})"));
        let Some(copy_variant) = copy_variant else { return NONE };
        if !role::may_execute((*call).funcid) || !role::may_execute(copy_variant) {
            return NONE;
        }
        utility::record_planned();
        // The key is where the ids are recorded; 1 if they are not.
        let of_column = copying::column_of(call);
        let number = of_column.and_then(|(table, column)| bound::number_of_column(table, column));
        let key = number.map_or(NOT_RECORDED, |number| std::ptr::from_ref(number).expose_provenance());
        let size = i32::try_from(size_of::<pg_sys::Datum>()).unwrap_or_default();
        let key = pg_sys::makeConst(
            pg_sys::INTERNALOID,
            -1,
            pg_sys::InvalidOid,
            size,
            pg_sys::Datum::from(key),
            false,
            true,
        );
        let arguments = pg_sys::lappend(pg_sys::list_copy((*call).args), key.cast());
        let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        let (collation, input) = ((*call).funccollid, (*call).inputcollid);
        pg_sys::makeFuncExpr(copy_variant, (*call).funcresulttype, arguments, collation, input, form).into()
    }
}

extension_sql!(
    "
CREATE FUNCTION nextval_support(internal) RETURNS internal
STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'nextval_support_wrapper';
COMMENT ON FUNCTION nextval_support IS 'planner support function for ids as column defaults, so that COPY still inserts in batches';

/* SQL cannot call these functions, because it has no value of type internal. */
CREATE FUNCTION snowflake_nextval_in_copy(internal) RETURNS bigint
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_in_copy_wrapper';
COMMENT ON FUNCTION snowflake_nextval_in_copy(internal) IS 'called by COPY FROM in place of snowflake_nextval()';
CREATE FUNCTION snowflake_nextval_in_copy(generator text, internal) RETURNS bigint
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_of_generator_in_copy_wrapper';
COMMENT ON FUNCTION snowflake_nextval_in_copy(text, internal) IS 'called by COPY FROM in place of snowflake_nextval(generator)';
CREATE FUNCTION segment_nextval_in_copy(tag text, internal) RETURNS bigint
STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'segment_nextval_in_copy_wrapper';
COMMENT ON FUNCTION segment_nextval_in_copy IS 'called by COPY FROM in place of segment_nextval(tag)';
",
    name = "nextval_support"
);
