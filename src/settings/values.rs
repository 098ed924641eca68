//! The values that the settings have now, and what follows from those of server start.

use crate::pg::guc::{self, read};
use crate::pg::process::PerProcess;
use crate::pg::report::report;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{GucSetting, PostgresGucEnum};
use snowflake_ids_core::registry::lease::Policy;
use snowflake_ids_core::server::issuer::DEFAULT_PLACES;
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{ClockRollback, Field, Layout, Rules, SequenceStart, Shard};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

/// `snowflake_ids.clock_rollback`.
#[derive(Clone, Copy, PostgresGucEnum)]
pub(super) enum RollbackChoice {
    #[name = c"error"]
    Error,
    #[name = c"wait"]
    Wait,
    #[name = c"switch"]
    Switch,
}

/// `snowflake_ids.worker_id_policy`.
#[derive(Clone, Copy, PostgresGucEnum)]
pub(super) enum PolicyChoice {
    #[name = c"reuse"]
    Reuse,
    #[name = c"disposable"]
    Disposable,
    #[name = c"queue"]
    Queue,
}

/// `snowflake_ids.sequence_start`.
#[derive(Clone, Copy, PostgresGucEnum)]
pub(super) enum StartChoice {
    #[name = c"zero"]
    Zero,
    #[name = c"random"]
    Random,
    #[name = c"rotate"]
    Rotate,
}

pub(super) static LAYOUT: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(DEFAULT_LAYOUT));
pub(super) static DATACENTER_ID: GucSetting<i32> = GucSetting::<i32>::new(0);
pub(super) static WORKER_ID: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"auto"));
pub(super) static WORKER_ID_POLICY: GucSetting<PolicyChoice> =
    GucSetting::<PolicyChoice>::new(PolicyChoice::Reuse);
pub(super) static LEASE_DURATION: GucSetting<i32> = GucSetting::<i32>::new(24 * 60 * 60);
pub(super) static MAX_CLOCK_SKEW: GucSetting<i32> = GucSetting::<i32>::new(5_000);
pub(super) static REGISTRY_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(3_000);
pub(super) static MAX_CLOCK_JUMP: GucSetting<i32> = GucSetting::<i32>::new(60 * 60 * 1_000);
pub(super) static RESERVE: GucSetting<i32> = GucSetting::<i32>::new(3_000);
pub(super) static MAX_DRIFT: GucSetting<i32> = GucSetting::<i32>::new(60_000);
pub(super) static CLOCK_ROLLBACK: GucSetting<RollbackChoice> =
    GucSetting::<RollbackChoice>::new(RollbackChoice::Wait);
pub(super) static CLOCK_WAIT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(1_000);
pub(super) static SEQUENCE_START: GucSetting<StartChoice> = GucSetting::<StartChoice>::new(StartChoice::Zero);
pub(super) static CACHE: GucSetting<i32> = GucSetting::<i32>::new(1);
pub(super) static SHARD: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
/// The same, read.
pub(super) static SHARD_NOW: PerProcess<Cell<Option<Shard>>> = PerProcess::new(Cell::new(None));
pub(super) static MAX_GENERATORS: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_PLACES);
pub(super) static MAX_TAGS: GucSetting<i32> = GucSetting::<i32>::new(1_024);
pub(super) static SERIES_MEMORY: GucSetting<i32> = GucSetting::<i32>::new(16 * 1_024);
pub(super) static SEGMENT_PREFETCH: GucSetting<i32> = GucSetting::<i32>::new(10);
pub(super) static SEGMENT_TARGET_DURATION: GucSetting<i32> = GucSetting::<i32>::new(15 * 60);
pub(super) static SEGMENT_WAIT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(5_000);
pub(super) static SAMPLE_INTERVAL: GucSetting<i32> = GucSetting::<i32>::new(10);
pub(super) static MAX_BOUND_SEQUENCES: GucSetting<i32> = GucSetting::<i32>::new(10_000);
pub(super) static SEGMENT_AUTO_CREATE: GucSetting<bool> = GucSetting::<bool>::new(false);

pub(super) const LAYOUT_NAME: &CStr = c"snowflake_ids.layout";
const DEFAULT_LAYOUT: &CStr = c"41/5/5/12 epoch=2020-01-01";

/// The most ids that a session may take at once.
pub(super) const MAX_CACHE: i32 = 1_000_000;

/// What server start makes of the settings that can't change later.
#[derive(Clone, Copy)]
pub struct Config {
    /// The layout of the server's ids.
    pub layout: Layout,
    /// The node that the server is to issue as.
    pub identity: Identity,
    /// Number of tags that can be in use at once.
    pub max_tags: usize,
    /// Number of layouts beside the server's own that can be in use at once, and how many named generators a database can have.
    pub max_generators: usize,
    /// Number of bytes of shared memory that the keys of monotonic series take.
    pub series_memory: usize,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Checks the settings of server start against each other, and keeps what follows from them.
pub fn check() -> Result<(), Box<ErrorReport>> {
    let config = checked()?;
    CONFIG.get_or_init(|| config);
    Ok(())
}

/// Returns what follows from the settings of server start; None before they were checked.
pub fn config() -> Option<&'static Config> {
    CONFIG.get()
}

fn checked() -> Result<Config, Box<ErrorReport>> {
    let layout: Layout = text(&LAYOUT).parse().map_err(|error| Box::new(report(&error)))?;
    let datacenter = read(&DATACENTER_ID);
    fits(&layout, Field::Datacenter, datacenter.into())?;
    let worker = parse_worker(&text(&WORKER_ID));
    fits(&layout, Field::Worker, worker.unwrap_or(0).into())?;
    let datacenter = datacenter.cast_unsigned();
    let identity = match worker {
        Some(worker) => Identity::Fixed { datacenter, worker },
        None => Identity::Leased { datacenter },
    };
    let max_tags = usize::try_from(read(&MAX_TAGS)).unwrap_or(1);
    let max_generators = usize::try_from(read(&MAX_GENERATORS)).unwrap_or(0);
    let series_memory = usize::try_from(read(&SERIES_MEMORY)).unwrap_or(0).saturating_mul(1_024);
    Ok(Config { layout, identity, max_tags, max_generators, series_memory })
}

/// The number that a worker id is set to; None for auto, and for what is no number.
pub(super) fn parse_worker(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|&worker: &u32| i32::try_from(worker).is_ok())
}

/// Returns whether the setting of a field fits the layout, which may have been set after it.
fn fits(layout: &Layout, field: Field, value: i64) -> Result<(), Box<ErrorReport>> {
    layout.check(field, value).map_err(|error| {
        let setting = format!("snowflake_ids.{field}_id");
        let report = report(&error).set_hint(format!(
            "Set {setting} to a number from 0 to {}, or take a layout with a wider {field}.",
            layout.max(field)
        ));
        Box::new(report)
    })
}

/// Has the server be started with another layout from now on.
pub fn set_layout_at_next_start(layout: &Layout) {
    guc::alter_system(LAYOUT_NAME, &layout.to_string());
}

/// The layout setting of a server that did not preload the library, as `postgresql.conf` gives it.
pub fn layout_text_without_preload() -> String {
    guc::shown(LAYOUT_NAME).unwrap_or_else(|| DEFAULT_LAYOUT.to_string_lossy().into_owned())
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    read(setting).unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns what the generator may do for this session.
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

/// Returns what to do when the clock is behind by more than the rules allow.
pub fn rollback() -> ClockRollback {
    match read(&CLOCK_ROLLBACK) {
        RollbackChoice::Error => ClockRollback::Error,
        RollbackChoice::Wait => ClockRollback::Wait,
        RollbackChoice::Switch => ClockRollback::Switch,
    }
}

/// Returns which worker id to lease.
pub fn worker_id_policy() -> Policy {
    match read(&WORKER_ID_POLICY) {
        PolicyChoice::Reuse => Policy::Reuse,
        PolicyChoice::Disposable => Policy::Disposable,
        PolicyChoice::Queue => Policy::Queue,
    }
}

/// Returns how far ahead a worker id is leased.
pub fn lease_duration() -> Duration {
    Duration::from_secs(read(&LEASE_DURATION).unsigned_abs().into())
}

/// Returns how far the clock may differ from the registry's.
pub fn max_clock_skew() -> Duration {
    Duration::from_millis(read(&MAX_CLOCK_SKEW).unsigned_abs().into())
}

/// The longest that the answer of a registry is waited for.
pub fn registry_timeout() -> Duration {
    Duration::from_millis(read(&REGISTRY_TIMEOUT).unsigned_abs().into())
}

/// The largest step forward of the clock that is followed.
pub fn max_clock_jump() -> Duration {
    Duration::from_millis(read(&MAX_CLOCK_JUMP).unsigned_abs().into())
}

/// Returns how far beyond the clock the high-water mark is raised.
pub fn reserve() -> Duration {
    Duration::from_millis(read(&RESERVE).unsigned_abs().into())
}

/// The longest a call sleeps for the clock.
pub fn clock_wait_timeout() -> Duration {
    Duration::from_millis(read(&CLOCK_WAIT_TIMEOUT).unsigned_abs().into())
}

/// Returns the number of ids this session takes at once.
#[inline]
pub fn cache() -> NonZeroU32 {
    NonZeroU32::new(read(&CACHE).unsigned_abs()).unwrap_or(NonZeroU32::MIN)
}

/// The shard whose ids named generators issue that have none of their own; None: every id.
#[inline]
pub fn shard() -> Option<Shard> {
    SHARD_NOW.get()
}

/// The share of a segment, in percent, after which the next one is fetched.
pub fn segment_prefetch() -> u8 {
    u8::try_from(read(&SEGMENT_PREFETCH)).unwrap_or(100)
}

/// Returns the time that a segment should last.
pub fn segment_target_duration() -> Duration {
    Duration::from_secs(read(&SEGMENT_TARGET_DURATION).unsigned_abs().into())
}

/// The longest that a call waits for ids of a tag.
pub fn segment_wait_timeout() -> Duration {
    Duration::from_millis(read(&SEGMENT_WAIT_TIMEOUT).unsigned_abs().into())
}

/// Returns how far apart the readings of the last hour are; zero: none are taken.
pub fn sample_interval() -> Duration {
    Duration::from_secs(read(&SAMPLE_INTERVAL).unsigned_abs().into())
}

/// Returns the number of sequences a database can have bound.
pub fn max_bound_sequences() -> i64 {
    read(&MAX_BOUND_SEQUENCES).into()
}

/// Returns whether this session's calls make the tags that there are not.
pub fn segment_auto_create() -> bool {
    read(&SEGMENT_AUTO_CREATE)
}
