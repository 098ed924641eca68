//! The function `snowflake_nextval`.

use crate::named::{self, CachedGenerator};
use crate::pg::report::{raise, report};
use crate::pg::text::{bytes_of, is_plain, length_of};
use crate::snowflake;
use pgrx::{extension_sql, pg_guard, pg_sys};
use snowflake_ids_core::generator::named::{MAX_NAME_BYTES, NamedError};
use std::ffi::c_void;

entry!(
    snowflake_nextval_wrapper,
    pg_finfo_snowflake_nextval_wrapper,
    guarded,
    |_| snowflake::next_at_once(),
    |_| next(named::own())
);
entry!(
    snowflake_nextval_of_generator_wrapper,
    pg_finfo_snowflake_nextval_of_generator_wrapper,
    guarded_of_generator,
    // SAFETY: the server calls this function with its argument.
    |call| snowflake::next_of_at_once(unsafe { cached(call)? }),
    // SAFETY: the server calls this function with its argument.
    |call| next(unsafe { looked_up(call) })
);

fn next(of: &CachedGenerator) -> i64 {
    snowflake::next("snowflake_nextval", of).unwrap_or_else(|error| raise(report(error)))
}

/// Returns the generator that the argument names, if the generator is in the session's cache.
///
/// # Safety
/// `call` is the server's call of a strict function with a text argument.
#[inline]
pub(super) unsafe fn cached(call: pg_sys::FunctionCallInfo) -> Option<&'static CachedGenerator> {
    // SAFETY: `fn_extra` belongs to the called function. It is null or the reference stored below, which is never
    // freed.
    unsafe {
        let function = (*call).flinfo.as_mut()?;
        let seen = function.fn_extra;
        if seen.addr() & CONSTANT != 0 {
            return seen.map_addr(|address| address & !CONSTANT).cast::<CachedGenerator>().as_ref();
        }
        let argument = (*call).args.as_ptr().read();
        if !is_plain(argument.value.cast_mut_ptr()) {
            return None;
        }
        let name = bytes_of(argument.value);
        // Consecutive rows mostly name the same generator, so `fn_extra` keeps the generator of the previous row.
        match seen.cast::<CachedGenerator>().as_ref() {
            Some(cached) if cached.name() == name => Some(cached),
            _ => {
                let cached = named::find(name)?;
                let constant = if is_constant(function.fn_expr) { CONSTANT } else { 0 };
                function.fn_extra = std::ptr::from_ref(cached)
                    .cast_mut()
                    .cast::<c_void>()
                    .map_addr(|address| address | constant);
                Some(cached)
            }
        }
    }
}

/// A flag in the low bit of the stored address. The flag means that the argument is a constant, so later calls need not
/// compare the name.
const CONSTANT: usize = 1;
const _: () = assert!(align_of::<CachedGenerator>() > CONSTANT);

/// Returns whether the first argument of a call is a constant. A parameter does not count, because its value may change.
///
/// # Safety
/// The expression is a node or null.
#[cold]
#[allow(clippy::cast_ptr_alignment, reason = "the server allocates nodes, aligned for all of them")]
unsafe fn is_constant(expression: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag of a node names its struct; the arguments of a call are a list of nodes.
    unsafe {
        let call = expression.cast::<pg_sys::FuncExpr>();
        !call.is_null() && (*call).xpr.type_ == pg_sys::NodeTag::T_FuncExpr && {
            let first = pg_sys::list_nth((*call).args, 0).cast::<pg_sys::Node>();
            !first.is_null() && (*first).type_ == pg_sys::NodeTag::T_Const
        }
    }
}

/// Returns the generator that the argument names. Fails if the generator does not exist.
///
/// # Safety
/// `call` is the server's call of a strict function with a text argument.
pub(super) unsafe fn looked_up(call: pg_sys::FunctionCallInfo) -> &'static CachedGenerator {
    // SAFETY: the argument is a text, and lives as long as the call.
    let name = unsafe {
        let name = (*call).args.as_ptr().read().value;
        match length_of(name) {
            0..=MAX_NAME_BYTES => Ok(bytes_of(name)),
            bytes => Err(NamedError::LongName { bytes }),
        }
    };
    name.and_then(named::look_up).unwrap_or_else(|error| raise(report(error)))
}

extension_sql!(
    "
/* Returns the next id. It is unique across all servers, and increases within a session. */
CREATE FUNCTION snowflake_nextval() RETURNS bigint
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';

/* Does the same. Some tools take a default that contains \"nextval\" for one of a sequence. */
CREATE FUNCTION snowflake_id() RETURNS bigint
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';
COMMENT ON FUNCTION snowflake_id() IS 'the same as snowflake_nextval()';

/* Returns the next id of a named generator. It is unique across all servers within the generator's layout. */
CREATE FUNCTION snowflake_nextval(generator text) RETURNS bigint
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_of_generator_wrapper';

/* Does the same. Some tools take a default that contains \"nextval\" for one of a sequence with this name. */
CREATE FUNCTION snowflake_id(generator text) RETURNS bigint
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_id(text) IS 'the same as snowflake_nextval(generator)';
",
    name = "snowflake_nextval",
    requires = ["nextval_support"]
);
