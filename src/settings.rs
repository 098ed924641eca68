//! The settings: `snowflake_ids.*`. What they mean to users is in docs/settings.md.

use crate::error::explained;
use crate::pg::guc::{self, About, Check, Problem, read};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{GucContext, GucFlags, GucSetting, PostgresGucEnum};
use snowflake_ids_core::lease::Policy;
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::{ClockRollback, Explain, Field, Layout, Rules, SequenceStart};
use std::ffi::{CStr, CString};
use std::num::NonZeroU32;
use std::time::Duration;

/// `snowflake_ids.clock_rollback`.
#[derive(Clone, Copy, PostgresGucEnum)]
enum RollbackChoice {
    #[name = c"error"]
    Error,
    #[name = c"wait"]
    Wait,
    #[name = c"switch"]
    Switch,
}

/// `snowflake_ids.worker_id_policy`.
#[derive(Clone, Copy, PostgresGucEnum)]
enum PolicyChoice {
    #[name = c"reuse"]
    Reuse,
    #[name = c"disposable"]
    Disposable,
    #[name = c"queue"]
    Queue,
}

/// `snowflake_ids.sequence_start`.
#[derive(Clone, Copy, PostgresGucEnum)]
enum StartChoice {
    #[name = c"zero"]
    Zero,
    #[name = c"random"]
    Random,
    #[name = c"rotate"]
    Rotate,
}

static LAYOUT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(DEFAULT_LAYOUT));
static DATACENTER_ID: GucSetting<i32> = GucSetting::<i32>::new(0);
static WORKER_ID: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"auto"));
static WORKER_ID_POLICY: GucSetting<PolicyChoice> = GucSetting::<PolicyChoice>::new(PolicyChoice::Reuse);
static DATABASE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static LEASE_HORIZON: GucSetting<i32> = GucSetting::<i32>::new(24 * 60 * 60);
static MAX_CLOCK_SKEW: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static MAX_CLOCK_JUMP: GucSetting<i32> = GucSetting::<i32>::new(60 * 60 * 1_000);
static RESERVE: GucSetting<i32> = GucSetting::<i32>::new(3_000);
static MAX_DRIFT: GucSetting<i32> = GucSetting::<i32>::new(60_000);
static CLOCK_ROLLBACK: GucSetting<RollbackChoice> = GucSetting::<RollbackChoice>::new(RollbackChoice::Wait);
static MAX_WAIT: GucSetting<i32> = GucSetting::<i32>::new(1_000);
static SEQUENCE_START: GucSetting<StartChoice> = GucSetting::<StartChoice>::new(StartChoice::Zero);
static CACHE: GucSetting<i32> = GucSetting::<i32>::new(1);
static MAX_SEGMENTS: GucSetting<i32> = GucSetting::<i32>::new(1_024);
static SEGMENT_PREFETCH: GucSetting<i32> = GucSetting::<i32>::new(10);
static SEGMENT_TARGET_DURATION: GucSetting<i32> = GucSetting::<i32>::new(15 * 60);
static SEGMENT_WAIT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static SEGMENT_AUTO_CREATE: GucSetting<bool> = GucSetting::<bool>::new(false);

const LAYOUT_NAME: &CStr = c"snowflake_ids.layout";
const DEFAULT_LAYOUT: &CStr = c"41/5/5/12 epoch=2020-01-01";

/// The most ids that a session may take at once.
const MAX_CACHE: i32 = 1_000_000;

/// What server start makes of the settings that can't change later.
#[derive(Clone, Copy)]
pub struct Config {
    /// The layout of the server's ids.
    pub layout: Layout,
    /// Who the server is to issue as.
    pub identity: Identity,
    /// How many tags can be in use at once.
    pub max_segments: usize,
}

/// Defines every setting. A wrong value in `postgresql.conf` keeps the server from starting.
pub fn define() {
    define_identity();
    define_leases();
    define_behaviour();
    define_clock();
    define_segments();
    guc::reserve_prefix(c"snowflake_ids");
}

/// What makes ids unique: fixed while the server runs.
fn define_identity() {
    let about = About {
        name: LAYOUT_NAME,
        short: c"Sets the bit layout, unit and epoch of this server's snowflake ids.",
        long:
            c"Widths ticks/datacenter/worker/sequence with unit= and epoch=, or the name of a known system.",
        context: GucContext::Postmaster,
    };
    guc::define_text::<LayoutCheck>(about, &LAYOUT);
    let about = About {
        name: c"snowflake_ids.datacenter_id",
        short: c"Sets the datacenter part of this server's identity.",
        long: c"Datacenter and worker together must differ between all servers that generate ids.",
        context: GucContext::Postmaster,
    };
    guc::define_int(about, &DATACENTER_ID, 0..=i32::MAX, GucFlags::default());
    let about = About {
        name: c"snowflake_ids.worker_id",
        short: c"Sets the worker part of this server's identity.",
        long: c"A number that no other server has, or auto for one that is leased from the registry.",
        context: GucContext::Postmaster,
    };
    guc::define_text::<WorkerCheck>(about, &WORKER_ID);
}

/// What concerns worker ids from the registry.
fn define_leases() {
    let about = About {
        name: c"snowflake_ids.worker_id_policy",
        short: c"Sets which worker id is leased.",
        long: c"reuse takes the former one, disposable a new one at each start, queue the one that was free longest.",
        context: GucContext::Sighup,
    };
    guc::define_enum::<_, Any>(about, &WORKER_ID_POLICY);
    let about = About {
        name: c"snowflake_ids.database",
        short: c"Sets the database that holds the registry of worker ids.",
        long: c"Empty: the first in which the extension was created.",
        context: GucContext::Sighup,
    };
    guc::define_text::<Any>(about, &DATABASE);
    let about = About {
        name: c"snowflake_ids.lease_horizon",
        short: c"Sets how far ahead a worker id is leased.",
        long: c"That is how long the registry may be away.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &LEASE_HORIZON, 60..=i32::MAX, GucFlags::UNIT_S);
    let about = About {
        name: c"snowflake_ids.max_clock_skew",
        short: c"Sets how far the clock may differ from the registry's when a worker id is leased.",
        long: c"Beyond that none is taken.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &MAX_CLOCK_SKEW, 0..=i32::MAX, GucFlags::UNIT_MS);
}

/// What users may tune.
fn define_behaviour() {
    let about = About {
        name: c"snowflake_ids.max_drift",
        short: c"Sets how far ids may run ahead of the clock.",
        long: c"Bounds the steps back of the clock that are passed over and the time that bursts borrow.",
        context: GucContext::Suset,
    };
    guc::define_int(about, &MAX_DRIFT, 0..=i32::MAX, GucFlags::UNIT_MS);
    let about = About {
        name: c"snowflake_ids.clock_rollback",
        short: c"Sets what happens when the clock stepped back by more than max_drift.",
        long: c"error fails at once; wait waits up to max_wait, then fails; switch issues as another worker.",
        context: GucContext::Suset,
    };
    guc::define_enum::<_, Any>(about, &CLOCK_ROLLBACK);
    let about = About {
        name: c"snowflake_ids.max_wait",
        short: c"Sets the longest time that a call waits for the clock.",
        long: c"0 never waits.",
        context: GucContext::Userset,
    };
    guc::define_int(about, &MAX_WAIT, 0..=i32::MAX, GucFlags::UNIT_MS);
    let about = About {
        name: c"snowflake_ids.sequence_start",
        short: c"Sets the first sequence of a fresh tick.",
        long: c"random and rotate spread ids made at low rates evenly when a shard is chosen by id % n.",
        context: GucContext::Suset,
    };
    guc::define_enum::<_, Any>(about, &SEQUENCE_START);
    let about = About {
        name: c"snowflake_ids.cache",
        short: c"Sets how many ids a session takes at once.",
        long: c"More is faster; ids of a session then keep the time at which they were taken.",
        context: GucContext::Userset,
    };
    guc::define_int(about, &CACHE, 1..=MAX_CACHE, GucFlags::default());
}

/// How the clock is followed, and time reserved.
fn define_clock() {
    let about = About {
        name: c"snowflake_ids.max_clock_jump",
        short: c"Sets the largest sudden step forward of the clock that ids follow.",
        long: c"Beyond it they go on with the time that has really passed.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &MAX_CLOCK_JUMP, 1_000..=i32::MAX, GucFlags::UNIT_MS);
    let about = About {
        name: c"snowflake_ids.reserve",
        short: c"Sets the stretch of time that is reserved ahead in the state file.",
        long: c"The file is synced about once in that time; after a crash ids start that far ahead of the clock.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &RESERVE, 100..=3_600_000, GucFlags::UNIT_MS);
}

/// What concerns ids of tags.
fn define_segments() {
    let about = About {
        name: c"snowflake_ids.max_segments",
        short: c"Sets how many segment tags can be in use at once, in all databases together.",
        long: c"Each takes about 1.2 kB of shared memory.",
        context: GucContext::Postmaster,
    };
    guc::define_int(about, &MAX_SEGMENTS, 1..=1_000_000, GucFlags::default());
    let about = About {
        name: c"snowflake_ids.segment_prefetch",
        short: c"Sets the share of a segment, in percent, after which the next one is fetched.",
        long: c"0 fetches the next one with the first id of each.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &SEGMENT_PREFETCH, 0..=100, GucFlags::default());
    let about = About {
        name: c"snowflake_ids.segment_target_duration",
        short: c"Sets how long a segment should last.",
        long: c"A segment that lasts less doubles the next step, one that lasts twice as long halves it.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &SEGMENT_TARGET_DURATION, 1..=i32::MAX, GucFlags::UNIT_S);
    let about = About {
        name: c"snowflake_ids.segment_wait_timeout",
        short: c"Sets the longest time that a call waits for ids of a tag.",
        long: c"A call waits only when both segments of the tag are used up.",
        context: GucContext::Userset,
    };
    guc::define_int(about, &SEGMENT_WAIT_TIMEOUT, 1..=i32::MAX, GucFlags::UNIT_MS);
    let about = About {
        name: c"snowflake_ids.segment_auto_create",
        short: c"Creates unknown segment tags when they are first used.",
        long: c"They get the defaults of snowflake_ids.segment_create, at once and for all sessions.",
        context: GucContext::Suset,
    };
    guc::define_bool(about, &SEGMENT_AUTO_CREATE);
}

struct LayoutCheck;

impl Check<&str> for LayoutCheck {
    fn check(text: &str) -> Result<(), Problem> {
        match text.parse::<Layout>() {
            Ok(_) => Ok(()),
            Err(error) => {
                let mut detail = sentence(&format!("{error}."));
                if let Some(more) = error.detail() {
                    detail = format!("{detail} {more}");
                }
                Err(Problem { detail, hint: error.hint() })
            }
        }
    }
}

struct WorkerCheck;

impl Check<&str> for WorkerCheck {
    fn check(text: &str) -> Result<(), Problem> {
        if is_auto(text) || parse_worker(text).is_some() {
            return Ok(());
        }
        let detail = "A worker id is a whole number from 0 to the largest that the layout holds, or auto.";
        let hint = "Set auto, or a number that no other server has.";
        Err(Problem { detail: detail.to_owned(), hint: Some(hint.to_owned()) })
    }
}

fn is_auto(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("auto")
}

fn parse_worker(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|&worker: &u32| i32::try_from(worker).is_ok())
}

/// What the server checks itself.
struct Any;

impl<T> Check<T> for Any {
    fn check(_: T) -> Result<(), Problem> {
        Ok(())
    }
}

/// A message as the sentence that a DETAIL is.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The settings of server start, checked against each other.
pub fn checked() -> Result<Config, Box<ErrorReport>> {
    let layout: Layout = text(&LAYOUT).parse().map_err(|error| Box::new(explained(&error)))?;
    let datacenter = read(&DATACENTER_ID);
    fits(&layout, Field::Datacenter, datacenter.into())?;
    let worker = parse_worker(&text(&WORKER_ID));
    fits(&layout, Field::Worker, worker.unwrap_or(0).into())?;
    let datacenter = datacenter.cast_unsigned();
    let identity = match worker {
        Some(worker) => Identity::Fixed { datacenter, worker },
        None => Identity::Leased { datacenter },
    };
    let max_segments = usize::try_from(read(&MAX_SEGMENTS)).unwrap_or(1);
    Ok(Config { layout, identity, max_segments })
}

/// Whether the setting of a field fits the layout, which may have been set after it.
fn fits(layout: &Layout, field: Field, value: i64) -> Result<(), Box<ErrorReport>> {
    layout.check(field, value).map_err(|error| {
        let setting = format!("snowflake_ids.{field}_id");
        let report = explained(&error).set_hint(format!(
            "Set {setting} to a number from 0 to {}, or take a layout with a wider {field}.",
            layout.max(field)
        ));
        Box::new(report)
    })
}

/// The layout setting of a server that did not preload the library, as `postgresql.conf` gives it.
pub fn layout_text_without_preload() -> String {
    guc::shown(LAYOUT_NAME).unwrap_or_else(|| DEFAULT_LAYOUT.to_string_lossy().into_owned())
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    read(setting).unwrap_or_default().to_string_lossy().into_owned()
}

/// What the generator may do for this session.
#[inline]
pub fn rules() -> Rules {
    Rules {
        max_drift: u64::from(read(&MAX_DRIFT).unsigned_abs()) * 1_000,
        start: match read(&SEQUENCE_START) {
            StartChoice::Zero => SequenceStart::Zero,
            StartChoice::Random => SequenceStart::Random,
            StartChoice::Rotate => SequenceStart::Rotate,
        },
    }
}

/// What to do when the clock is behind by more than the rules allow.
pub fn rollback() -> ClockRollback {
    match read(&CLOCK_ROLLBACK) {
        RollbackChoice::Error => ClockRollback::Error,
        RollbackChoice::Wait => ClockRollback::Wait,
        RollbackChoice::Switch => ClockRollback::Switch,
    }
}

/// Which worker id to lease.
pub fn worker_id_policy() -> Policy {
    match read(&WORKER_ID_POLICY) {
        PolicyChoice::Reuse => Policy::Reuse,
        PolicyChoice::Disposable => Policy::Disposable,
        PolicyChoice::Queue => Policy::Queue,
    }
}

/// The database that holds the registry; empty: the first with the extension.
pub fn database() -> String {
    text(&DATABASE)
}

/// How far ahead a worker id is leased.
pub fn lease_horizon() -> Duration {
    Duration::from_secs(read(&LEASE_HORIZON).unsigned_abs().into())
}

/// How far the clock may differ from the registry's, in microseconds.
pub fn max_clock_skew() -> u64 {
    u64::from(read(&MAX_CLOCK_SKEW).unsigned_abs()) * 1_000
}

/// The largest step forward of the clock that is followed, in microseconds.
pub fn max_clock_jump() -> u64 {
    u64::from(read(&MAX_CLOCK_JUMP).unsigned_abs()) * 1_000
}

/// The stretch of time that is reserved ahead, in microseconds.
pub fn reserve() -> u64 {
    u64::from(read(&RESERVE).unsigned_abs()) * 1_000
}

/// The longest a call sleeps for the clock.
pub fn max_wait() -> Duration {
    Duration::from_millis(read(&MAX_WAIT).unsigned_abs().into())
}

/// How many ids this session takes at once.
#[inline]
pub fn cache() -> NonZeroU32 {
    NonZeroU32::new(read(&CACHE).unsigned_abs()).unwrap_or(NonZeroU32::MIN)
}

/// The share of a segment, in percent, after which the next one is fetched.
pub fn segment_prefetch() -> u8 {
    u8::try_from(read(&SEGMENT_PREFETCH)).unwrap_or(100)
}

/// How long a segment should last.
pub fn segment_target_duration() -> Duration {
    Duration::from_secs(read(&SEGMENT_TARGET_DURATION).unsigned_abs().into())
}

/// The longest that a call waits for ids of a tag.
pub fn segment_wait_timeout() -> Duration {
    Duration::from_millis(read(&SEGMENT_WAIT_TIMEOUT).unsigned_abs().into())
}

/// Whether this session's calls make the tags that there are not.
pub fn segment_auto_create() -> bool {
    read(&SEGMENT_AUTO_CREATE)
}
