//! Settings with checks. An invalid value in the configuration keeps the server from starting.

use super::encoding::legible;
use pgrx::guc::{GucCheckError, GucEnum, GucValue};
use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgLogLevel, PgSqlErrorCode, pg_sys};
use snowflake_ids_core::Explain;
use snowflake_ids_core::error::{MAX_TEXT_BYTES, check_length};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::RangeInclusive;

/// The parts of a setting's definition that are common to all types of settings.
pub struct About {
    /// The full name, including `snowflake_ids.`.
    pub name: &'static CStr,
    /// One line, for `pg_settings.short_desc`.
    pub short: &'static CStr,
    /// Further explanation, for `pg_settings.extra_desc`.
    pub long: &'static CStr,
    /// The context in which the setting may be changed.
    pub context: GucContext,
}

/// The reason why a value is refused.
pub struct BadValue {
    /// The fault, as a sentence.
    pub detail: String,
    /// A way to correct the fault, as a sentence.
    pub hint: Option<String>,
}

/// A check of a text setting. The check must not panic.
pub trait Rule {
    /// Returns an error if the value is not valid.
    fn check(value: &str) -> Result<(), BadValue>;

    /// Receives each new value that has passed the check; an empty text if the setting is unset.
    fn assign(_value: &str) {}
}

/// Defines a setting that holds an integer within a range.
pub fn define_int(
    about: About,
    setting: &'static GucSetting<i32>,
    range: RangeInclusive<i32>,
    flags: GucFlags,
) {
    let About { name, short, long, context } = about;
    let (min, max) = range.into_inner();
    define(name, || GucRegistry::define_int_guc(name, short, long, setting, min, max, context, flags));
}

pub fn define_bool(about: About, setting: &'static GucSetting<bool>) {
    let About { name, short, long, context } = about;
    let flags = GucFlags::default();
    define(name, || GucRegistry::define_bool_guc(name, short, long, setting, context, flags));
}

/// Defines a setting that holds one of several words.
pub fn define_enum<T: GucEnum>(about: About, setting: &'static GucSetting<T>) {
    let About { name, short, long, context } = about;
    let flags = GucFlags::default();
    define(name, || GucRegistry::define_enum_guc(name, short, long, setting, context, flags));
}

/// Defines a text setting with a check.
pub fn define_text<R: Rule>(about: About, setting: &'static GucSetting<Option<CString>>, _: R) {
    let About { name, short, long, context } = about;
    let (flags, check, assign) =
        (GucFlags::default(), Some(check_text::<R> as TextHook), Some(assign_text::<R> as AssignHook));
    define(name, || {
        // SAFETY: the hooks are guarded against panics.
        unsafe {
            GucRegistry::define_string_guc_with_hooks(
                name, short, long, setting, context, flags, check, assign, None,
            );
        }
    });
}

/// Defines a setting, and stops the server start if the configured value is not valid. Postgres itself would only warn and
/// use the default, and the server would then create ids of another layout.
fn define(name: &CStr, define: impl FnOnce()) {
    let given = shown(name);
    define();
    let Some(value) = given.and_then(|value| CString::new(value).ok()) else { return };
    // SAFETY: both texts outlive the call, which checks the value and reports errors itself.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_POSTMASTER,
            pg_sys::GucSource::PGC_S_FILE,
            pg_sys::GucAction::GUC_ACTION_SET,
            false,
            PgLogLevel::ERROR as c_int,
            false,
        );
    }
}

/// Sets a setting until the current GUC nest level ends.
pub fn set_for_now(name: &CStr, value: &CStr) {
    set(name, value, pg_sys::GucAction::GUC_ACTION_SAVE);
}

/// Runs `work`, whose statements get no query id. So `pg_stat_statements` does not list them as statements of the user.
pub fn without_query_ids<T>(work: impl FnOnce() -> T) -> T {
    during([(c"compute_query_id", c"off")], pg_sys::GucContext::PGC_SUSET, work)
}

/// Runs `work`, whose kept statements are planned once, with nested loops over indexes. While tables are small, the server would
/// plan to read them whole. For an array as a parameter it would plan each run, because it cannot estimate the array's length.
/// Where there is no index, a sequential scan seems so expensive that the server would compile the plan. `work` must not change
/// these settings. The variables are set directly, because the settings would take as long as some statements.
pub(super) fn planned_by_indexes<T>(work: impl FnOnce() -> T) -> T {
    struct Saved([bool; 4], c_int);
    impl Drop for Saved {
        fn drop(&mut self) {
            let Self([scans, hashes, merges, compiles], mode) = *self;
            // SAFETY: only the main thread of a process plans statements.
            unsafe {
                pg_sys::enable_seqscan = scans;
                pg_sys::enable_hashjoin = hashes;
                pg_sys::enable_mergejoin = merges;
                pg_sys::jit_enabled = compiles;
                pg_sys::plan_cache_mode = mode;
            }
        }
    }
    let generic = pg_sys::PlanCacheMode::PLAN_CACHE_MODE_FORCE_GENERIC_PLAN.cast_signed();
    // SAFETY: as above.
    let _saved = unsafe {
        let methods = [
            (&raw mut pg_sys::enable_seqscan).replace(false),
            (&raw mut pg_sys::enable_hashjoin).replace(false),
            (&raw mut pg_sys::enable_mergejoin).replace(false),
            (&raw mut pg_sys::jit_enabled).replace(false),
        ];
        Saved(methods, (&raw mut pg_sys::plan_cache_mode).replace(generic))
    };
    work()
}

/// Runs `work`, for which the server prints expressions in one form, whatever the session has set.
pub fn with_printed_forms<T>(work: impl FnOnce() -> T) -> T {
    let values = [(c"standard_conforming_strings", c"on"), (c"quote_all_identifiers", c"off")];
    during(values, pg_sys::GucContext::PGC_USERSET, work)
}

fn during<'a, T>(
    values: impl IntoIterator<Item = (&'a CStr, &'a CStr)>,
    context: pg_sys::GucContext::Type,
    work: impl FnOnce() -> T,
) -> T {
    // SAFETY: the caller is within a transaction. Its end also resets the settings of all nest levels.
    let nest_level = unsafe { pg_sys::NewGUCNestLevel() };
    for (name, value) in values {
        set_as(name, value, context, pg_sys::GucAction::GUC_ACTION_SAVE);
    }
    let done = work();
    // SAFETY: ends the nest level that was begun above.
    unsafe { pg_sys::AtEOXact_GUC(false, nest_level) };
    done
}

/// Sets a setting until the end of the transaction, like SET LOCAL.
pub fn set_for_transaction(name: &CStr, value: &CStr) {
    set(name, value, pg_sys::GucAction::GUC_ACTION_LOCAL);
}

fn set(name: &CStr, value: &CStr, action: pg_sys::GucAction::Type) {
    set_as(name, value, pg_sys::GucContext::PGC_USERSET, action);
}

fn set_as(name: &CStr, value: &CStr, context: pg_sys::GucContext::Type, action: pg_sys::GucAction::Type) {
    // SAFETY: both texts outlive the call.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            context,
            pg_sys::GucSource::PGC_S_SESSION,
            action,
            true,
            0,
            false,
        );
    }
}

/// Sets a setting for the lifetime of this process. The value overrides role, database and configuration.
pub fn impose(name: &CStr, value: &CStr) {
    // SAFETY: both texts outlive the call.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
    }
}

/// Returns the value of any setting, or None if nothing has set it. Also works before the setting is defined. Returns only
/// the beginning of a value that is longer than [`MAX_TEXT_BYTES`].
pub fn shown(name: &CStr) -> Option<String> {
    // SAFETY: the name outlives the call. The value is copied before the setting can change.
    unsafe {
        let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        if value.is_null() {
            return None;
        }
        let bytes = CStr::from_ptr(value).to_bytes();
        // One byte above the limit is enough for the check to refuse the value.
        let bytes = bytes.get(..=MAX_TEXT_BYTES).unwrap_or(bytes);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Writes a setting with ALTER SYSTEM, which checks the caller's privileges.
pub fn alter_system(name: &CStr, value: &str) {
    let statement = format!("ALTER SYSTEM SET {} = '{}'", name.to_string_lossy(), value.replace('\'', "''"));
    let Ok(statement) = CString::new(statement) else { return };
    // SAFETY: the parser turns the text into one ALTER SYSTEM node, in the current memory context.
    unsafe {
        let parsed = pg_sys::pg_parse_query(statement.as_ptr());
        let raw = pg_sys::list_nth(parsed, 0).cast::<pg_sys::RawStmt>();
        pg_sys::AlterSystemSetConfigFile((*raw).stmt.cast());
    }
}

/// Refuses undefined settings with this prefix, such as misspelt names. Postgres 14 only warns about them.
pub fn reserve_prefix(prefix: &CStr) {
    // SAFETY: the prefix outlives the call.
    unsafe {
        #[cfg(feature = "pg14")]
        pg_sys::EmitWarningsOnPlaceholders(prefix.as_ptr());
        #[cfg(not(feature = "pg14"))]
        pg_sys::MarkGUCPrefixReserved(prefix.as_ptr());
    }
}

/// Reads a setting with a plain load. pgrx's accessor looks up the current thread, which takes as long as creating an
/// id.
#[inline]
pub fn read<T: GucValue>(setting: &GucSetting<T>) -> T {
    // SAFETY: only the main thread of a process reads and changes settings, and the server keeps the value valid.
    unsafe { T::from_raw(*setting.as_ptr()) }
}

type TextHook =
    unsafe extern "C-unwind" fn(*mut *mut c_char, *mut *mut c_void, pg_sys::GucSource::Type) -> bool;
type AssignHook = unsafe extern "C-unwind" fn(*const c_char, *mut c_void);

unsafe extern "C-unwind" fn check_text<R: Rule>(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the server passes null or text that ends in a zero byte.
    unsafe {
        pgrx_extern_c_guard(|| {
            (*value).is_null() || accept(short_text(CStr::from_ptr(*value)).and_then(|text| R::check(&text)))
        })
    }
}

unsafe extern "C-unwind" fn assign_text<R: Rule>(value: *const c_char, _extra: *mut c_void) {
    // SAFETY: the server passes null or text that ends in a zero byte.
    unsafe {
        pgrx_extern_c_guard(|| {
            let text =
                if value.is_null() { Cow::Borrowed("") } else { CStr::from_ptr(value).to_string_lossy() };
            R::assign(&text);
        });
    }
}

/// Returns the text if it is short enough to be checked.
fn short_text(text: &CStr) -> Result<Cow<'_, str>, BadValue> {
    let fits = check_length("value", text.count_bytes(), MAX_TEXT_BYTES);
    fits.map_err(|error| BadValue { detail: error.detail().unwrap_or_default(), hint: None })?;
    Ok(text.to_string_lossy())
}

/// Passes the result of a check to the server.
fn accept(found: Result<(), BadValue>) -> bool {
    let Err(BadValue { detail, hint }) = found else { return true };
    let error = GucCheckError::default()
        .with_errcode(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE as c_int)
        .with_detail(legible(&detail));
    let error = match hint {
        Some(hint) => error.with_hint(legible(&hint)),
        None => error,
    };
    // SAFETY: called within a check hook. The server reads the error right after the check.
    unsafe { error.apply() };
    false
}
