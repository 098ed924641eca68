//! The settings `snowflake_ids.*`: definitions, checks and current values. docs/settings.md explains each setting.

use crate::pg::guc::{self, About, BadValue, Rule, read};
use crate::pg::process::PerProcess;
use crate::pg::report::report;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{GucContext, GucFlags, GucSetting, PostgresGucEnum};
use snowflake_ids_core::error::sentence;
use snowflake_ids_core::registry::lease::Policy;
use snowflake_ids_core::server::issuer::{DEFAULT_SLOTS, MAX_SLOTS};
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{ClockRollback, Explain, Field, Layout, Rules, SequenceStart, Shard, ShardError};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

#[derive(Clone, Copy, PostgresGucEnum)]
enum RollbackChoice {
    #[name = c"error"]
    Error,
    #[name = c"wait"]
    Wait,
    #[name = c"switch"]
    Switch,
}

#[derive(Clone, Copy, PostgresGucEnum)]
enum PolicyChoice {
    #[name = c"reuse"]
    Reuse,
    #[name = c"disposable"]
    Disposable,
    #[name = c"queue"]
    Queue,
}

#[derive(Clone, Copy, PostgresGucEnum)]
enum StartChoice {
    #[name = c"zero"]
    Zero,
    #[name = c"random"]
    Random,
    #[name = c"rotate"]
    Rotate,
}

#[derive(Clone, Copy, PostgresGucEnum)]
enum NewColumnsChoice {
    #[name = c"off"]
    Off,
    #[name = c"snowflake"]
    Snowflake,
    #[name = c"segment"]
    Segment,
    #[name = c"bound"]
    Bound,
}

static LAYOUT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(DEFAULT_LAYOUT));
static DATACENTER_ID: GucSetting<i32> = GucSetting::<i32>::new(0);
static WORKER_ID: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"auto"));
static WORKER_ID_POLICY: GucSetting<PolicyChoice> = GucSetting::<PolicyChoice>::new(PolicyChoice::Reuse);
static LEASE_DURATION: GucSetting<i32> = GucSetting::<i32>::new(24 * 60 * 60);
static MAX_CLOCK_SKEW: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static REGISTRY_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(3_000);
static MAX_CLOCK_JUMP: GucSetting<i32> = GucSetting::<i32>::new(60 * 60 * 1_000);
static RESERVE: GucSetting<i32> = GucSetting::<i32>::new(3_000);
static MAX_DRIFT: GucSetting<i32> = GucSetting::<i32>::new(60_000);
static CLOCK_ROLLBACK: GucSetting<RollbackChoice> = GucSetting::<RollbackChoice>::new(RollbackChoice::Wait);
static CLOCK_WAIT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(1_000);
static SEQUENCE_START: GucSetting<StartChoice> = GucSetting::<StartChoice>::new(StartChoice::Zero);
static CACHE: GucSetting<i32> = GucSetting::<i32>::new(1);
static SHARD: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
/// The parsed value of `snowflake_ids.shard`.
static SHARD_NOW: PerProcess<Cell<Option<Shard>>> = PerProcess::new(Cell::new(None));
static MAX_GENERATORS: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_SLOTS);
static MAX_TAGS: GucSetting<i32> = GucSetting::<i32>::new(1_024);
static SERIES_MEMORY: GucSetting<i32> = GucSetting::<i32>::new(16 * 1_024);
static SEGMENT_PREFETCH: GucSetting<i32> = GucSetting::<i32>::new(10);
static SEGMENT_TARGET_DURATION: GucSetting<i32> = GucSetting::<i32>::new(15 * 60);
static SEGMENT_WAIT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static SAMPLE_INTERVAL: GucSetting<i32> = GucSetting::<i32>::new(10);
static MAX_BOUND_SEQUENCES: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static SEGMENT_AUTO_CREATE: GucSetting<bool> = GucSetting::<bool>::new(false);
static NEW_COLUMNS: GucSetting<NewColumnsChoice> = GucSetting::<NewColumnsChoice>::new(NewColumnsChoice::Off);

const LAYOUT_NAME: &CStr = c"snowflake_ids.layout";
const DEFAULT_LAYOUT: &CStr = c"41/5/5/12 epoch=2020-01-01";

/// The highest number of ids that a session may take in one step.
const MAX_CACHE: i32 = 1_000_000;

/// The settings that are fixed at server start.
#[derive(Clone, Copy)]
pub struct Config {
    pub layout: Layout,
    /// The datacenter id and worker id in the ids of this server; the datacenter id alone if `worker_id` is `auto`.
    pub identity: Identity,
    /// Number of tags that keep a slot while no call waits for their ids.
    pub max_tags: usize,
    /// The limit for layouts in use besides the server's own layout, and for named generators in a database.
    pub max_generators: usize,
    /// Bytes of shared memory for the keys of monotonic series.
    pub series_memory: usize,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Checks that the settings that are fixed at server start fit together, and stores the result for [`config`].
pub fn check() -> Result<(), Box<ErrorReport>> {
    let config = checked()?;
    CONFIG.get_or_init(|| config);
    Ok(())
}

/// Returns the settings that are fixed at server start; None before [`check`].
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

/// Parses a worker id; None for `auto` and for text that is no number.
fn parse_worker(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|&worker: &u32| i32::try_from(worker).is_ok())
}

/// Checks that a datacenter id or worker id fits the layout.
fn fits(layout: &Layout, field: Field, value: i64) -> Result<(), Box<ErrorReport>> {
    layout.check(field, value).map_err(|error| {
        let setting = format!("snowflake_ids.{field}_id");
        let report = report(&error).set_hint(format!(
            "Set {setting} to a number from 0 to {}, or use a layout with a wider {field}.",
            layout.max(field)
        ));
        Box::new(report)
    })
}

/// Sets the layout for the next server start with ALTER SYSTEM.
pub fn set_layout_at_next_start(layout: &Layout) {
    guc::alter_system(LAYOUT_NAME, &layout.to_string());
}

/// Returns the layout that the configuration sets, on a server that did not preload the library.
pub fn layout_text_without_preload() -> String {
    guc::shown(LAYOUT_NAME).unwrap_or_else(|| DEFAULT_LAYOUT.to_string_lossy().into_owned())
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    read(setting).unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the allowed clock drift and the start of sequences for ids of this session.
#[inline]
pub fn rules() -> Rules {
    Rules {
        max_drift: u64::from(read(&MAX_DRIFT).cast_unsigned()) * 1_000,
        start: match read(&SEQUENCE_START) {
            StartChoice::Zero => SequenceStart::Zero,
            StartChoice::Random => SequenceStart::Random,
            StartChoice::Rotate => SequenceStart::Rotate,
        },
    }
}

/// Returns the action to take when the clock is behind the last id by more than `max_drift`.
pub fn rollback() -> ClockRollback {
    match read(&CLOCK_ROLLBACK) {
        RollbackChoice::Error => ClockRollback::Error,
        RollbackChoice::Wait => ClockRollback::Wait,
        RollbackChoice::Switch => ClockRollback::Switch,
    }
}

/// Returns the policy by which a worker id is chosen for a lease.
pub fn worker_id_policy() -> Policy {
    match read(&WORKER_ID_POLICY) {
        PolicyChoice::Reuse => Policy::Reuse,
        PolicyChoice::Disposable => Policy::Disposable,
        PolicyChoice::Queue => Policy::Queue,
    }
}

/// Returns the duration of a lease of a worker id.
pub fn lease_duration() -> Duration {
    Duration::from_secs(read(&LEASE_DURATION).unsigned_abs().into())
}

/// Returns the largest accepted difference between this server's clock and the registry's.
pub fn max_clock_skew() -> Duration {
    Duration::from_millis(read(&MAX_CLOCK_SKEW).unsigned_abs().into())
}

/// Returns the longest wait for a registry's answer.
pub fn registry_timeout() -> Duration {
    Duration::from_millis(read(&REGISTRY_TIMEOUT).unsigned_abs().into())
}

/// Returns the largest sudden step forward of the clock that the time in ids follows.
pub fn max_clock_jump() -> Duration {
    Duration::from_millis(read(&MAX_CLOCK_JUMP).unsigned_abs().into())
}

/// Returns how far the high-water mark is raised ahead of the clock.
pub fn reserve() -> Duration {
    Duration::from_millis(read(&RESERVE).unsigned_abs().into())
}

/// Returns the longest time that a call sleeps until the clock has caught up.
pub fn clock_wait_timeout() -> Duration {
    Duration::from_millis(read(&CLOCK_WAIT_TIMEOUT).unsigned_abs().into())
}

/// Returns the number of ids that this session takes in one step.
#[inline]
pub fn cache() -> NonZeroU32 {
    NonZeroU32::new(read(&CACHE).cast_unsigned()).unwrap_or(NonZeroU32::MIN)
}

/// Returns the shard for named generators that have no shard of their own; None if such generators may issue every id.
#[inline]
pub fn shard() -> Option<Shard> {
    SHARD_NOW.get()
}

/// Returns the used share of a segment, in percent, at which the next segment is fetched.
pub fn segment_prefetch() -> u8 {
    u8::try_from(read(&SEGMENT_PREFETCH)).unwrap_or(100)
}

/// Returns the time for which a segment should last.
pub fn segment_target_duration() -> Duration {
    Duration::from_secs(read(&SEGMENT_TARGET_DURATION).unsigned_abs().into())
}

/// Returns the longest time that a call waits for ids of a tag.
pub fn segment_wait_timeout() -> Duration {
    Duration::from_millis(read(&SEGMENT_WAIT_TIMEOUT).unsigned_abs().into())
}

/// Returns the interval at which the launcher samples the statistics counters; zero if it takes no samples.
pub fn sample_interval() -> Duration {
    Duration::from_secs(read(&SAMPLE_INTERVAL).unsigned_abs().into())
}

/// Returns the highest number of bound sequences that a database can have.
pub fn max_bound_sequences() -> i64 {
    read(&MAX_BOUND_SEQUENCES).into()
}

/// Returns whether calls of this session create unknown tags.
pub fn segment_auto_create() -> bool {
    read(&SEGMENT_AUTO_CREATE)
}

/// Returns the source of ids for new serial and identity columns: a kind of ids, or a bound sequence. None leaves these
/// columns to their own sequences.
pub fn new_columns() -> Option<&'static str> {
    match read(&NEW_COLUMNS) {
        NewColumnsChoice::Off => None,
        NewColumnsChoice::Snowflake => Some("snowflake"),
        NewColumnsChoice::Segment => Some("segment"),
        NewColumnsChoice::Bound => Some("bound"),
    }
}

/// Defines all settings. A wrong value in `postgresql.conf` keeps the server from starting.
pub fn define() {
    define_identity();
    define_leases();
    define_behaviour();
    define_tags();
    guc::reserve_prefix(c"snowflake_ids");
}

/// Defines the settings of the server's identity, which is fixed while the server runs.
fn define_identity() {
    let about = postmaster(
        LAYOUT_NAME,
        c"Sets the bit layout, unit and epoch of this server's snowflake ids.",
        c"Either widths in bits, as ticks/datacenter/worker/sequence, with optional unit= and epoch=, or the name of a preset layout.",
    );
    guc::define_text::<LayoutCheck>(about, &LAYOUT);
    let about = postmaster(
        c"snowflake_ids.datacenter_id",
        c"Sets the datacenter part of this server's identity.",
        c"No two servers that generate ids may have the same datacenter and worker.",
    );
    guc::define_int(about, &DATACENTER_ID, 0..=i32::MAX, GucFlags::default());
    let about = postmaster(
        c"snowflake_ids.worker_id",
        c"Sets the worker part of this server's identity.",
        c"Either a number that no other server has, or auto to lease a worker id from the registry.",
    );
    guc::define_text::<WorkerCheck>(about, &WORKER_ID);
}

fn define_leases() {
    let about = sighup(c"snowflake_ids.worker_id_policy", c"Sets how the worker id to lease is chosen.", c"reuse and queue lease the previous worker id again. Without one, reuse leases any free id, and queue leases the id that has been free longest. disposable leases a never used id at each start.");
    guc::define_enum(about, &WORKER_ID_POLICY);
    let about = sighup(
        c"snowflake_ids.lease_duration",
        c"Sets the duration of the lease of a worker id.",
        c"The registry may be unavailable for up to this time.",
    );
    guc::define_int(about, &LEASE_DURATION, 60..=i32::MAX, GucFlags::UNIT_S);
    let about = sighup(
        c"snowflake_ids.max_clock_skew",
        c"Sets how far the clock may differ from the registry's when a worker id is leased.",
        c"If the difference is larger, no worker id is leased.",
    );
    guc::define_int(about, &MAX_CLOCK_SKEW, 0..=i32::MAX, GucFlags::UNIT_MS);
    let about = sighup(
        c"snowflake_ids.registry_timeout",
        c"Sets the longest wait for the answer of a registry on another server.",
        c"If there are several registries, the next one is asked after a fifth of this time.",
    );
    guc::define_int(about, &REGISTRY_TIMEOUT, 100..=3_600_000, GucFlags::UNIT_MS);
}

fn define_behaviour() {
    let about = suset(
        c"snowflake_ids.max_drift",
        c"Sets how far ids may run ahead of the clock.",
        c"It limits how large a backward step of the clock is tolerated, and how far bursts of ids run ahead of the clock.",
    );
    guc::define_int(about, &MAX_DRIFT, 0..=i32::MAX, GucFlags::UNIT_MS);
    let about = suset(c"snowflake_ids.clock_rollback", c"Sets what happens when the clock has stepped back by more than max_drift.", c"error fails at once; wait waits up to clock_wait_timeout and then fails; switch issues ids under another rollback value or worker id.");
    guc::define_enum(about, &CLOCK_ROLLBACK);
    let about = userset(
        c"snowflake_ids.clock_wait_timeout",
        c"Sets the longest time that a call waits for the clock.",
        c"With 0, calls never wait.",
    );
    guc::define_int(about, &CLOCK_WAIT_TIMEOUT, 0..=i32::MAX, GucFlags::UNIT_MS);
    let about = suset(
        c"snowflake_ids.sequence_start",
        c"Sets where the sequence of each new tick starts.",
        c"At low rates, random and rotate spread ids evenly over shards that are chosen by id % n.",
    );
    guc::define_enum(about, &SEQUENCE_START);
    let about = userset(
        c"snowflake_ids.cache",
        c"Sets how many ids a session takes at once.",
        c"A higher value is faster, but an id then has the time at which the session took its batch.",
    );
    guc::define_int(about, &CACHE, 1..=MAX_CACHE, GucFlags::default());
    let about = sighup(
        c"snowflake_ids.shard",
        c"Sets the shard whose ids named generators issue.",
        c"The value is remainder/modulus, as for a hash partition, such as 3/16. With an empty value, ids of every shard are issued.",
    );
    guc::define_text::<ShardCheck>(about, &SHARD);
    let about = sighup(
        c"snowflake_ids.max_clock_jump",
        c"Sets the largest sudden step forward of the clock that ids follow.",
        c"After a larger step, the time in ids advances by the time that has really passed.",
    );
    guc::define_int(about, &MAX_CLOCK_JUMP, 1_000..=i32::MAX, GucFlags::UNIT_MS);
    let about = sighup(
        c"snowflake_ids.reserve",
        c"Sets the time span that is reserved ahead in the state file.",
        c"The file is synced about once in this time. After a crash, ids start up to this time ahead of the clock.",
    );
    guc::define_int(about, &RESERVE, 100..=3_600_000, GucFlags::UNIT_MS);
    let about = postmaster(c"snowflake_ids.max_generators", c"Sets how many named generators a database can have.", c"It also limits how many layouts, besides the server's own, all databases together use at once. One database alone gets at most half of this number, rounded up.");
    guc::define_int(about, &MAX_GENERATORS, 0..=MAX_SLOTS, GucFlags::default());
}

fn define_tags() {
    let about = postmaster(
        c"snowflake_ids.max_tags",
        c"Sets how many segment tags of all databases have ids ready in shared memory.",
        c"It sets the size of a cache: more tags may exist. Each slot takes about 2 kB of shared memory.",
    );
    guc::define_int(about, &MAX_TAGS, 1..=1_000_000, GucFlags::default());
    let about = postmaster(
        c"snowflake_ids.series_memory",
        c"Sets the size of the shared memory for keys of monotonic series of all databases.",
        c"When it is full, keys that were not used lately are evicted. With 0, monotonic series give no numbers.",
    );
    guc::define_int(about, &SERIES_MEMORY, 0..=i32::MAX, GucFlags::UNIT_KB);
    let about = sighup(
        c"snowflake_ids.segment_prefetch",
        c"Sets the used share of a segment, in percent, at which the next segment is fetched.",
        c"With 0, the next segment is fetched at the first id of each segment.",
    );
    guc::define_int(about, &SEGMENT_PREFETCH, 0..=100, GucFlags::default());
    let about = sighup(
        c"snowflake_ids.segment_target_duration",
        c"Sets how long a segment should last.",
        c"A segment that lasts less than this time doubles the step. A segment that lasts twice this time or longer halves it.",
    );
    guc::define_int(about, &SEGMENT_TARGET_DURATION, 1..=i32::MAX, GucFlags::UNIT_S);
    let about = userset(
        c"snowflake_ids.segment_wait_timeout",
        c"Sets the longest time that a call waits for ids of a tag.",
        c"A call waits only when both segments of the tag are used up.",
    );
    guc::define_int(about, &SEGMENT_WAIT_TIMEOUT, 1..=i32::MAX, GucFlags::UNIT_MS);
    let about = suset(
        c"snowflake_ids.segment_auto_create",
        c"Creates unknown segment tags when they are first used.",
        c"The tags get the defaults of snowflake_ids.segment_create. All sessions see them at once.",
    );
    guc::define_bool(about, &SEGMENT_AUTO_CREATE);
    let about = sighup(
        c"snowflake_ids.max_bound_sequences",
        c"Sets how many bound sequences a database can have.",
        c"bind_sequence and attach refuse to bind more.",
    );
    guc::define_int(about, &MAX_BOUND_SEQUENCES, 0..=i32::MAX, GucFlags::default());
    let about = userset(
        c"snowflake_ids.new_columns",
        c"Sets the kind of ids for the serial and identity columns of CREATE TABLE and ADD COLUMN.",
        c"snowflake and segment attach the columns, bound binds their sequences, and off changes nothing. Columns narrower than bigint need the kind segment.",
    );
    guc::define_enum(about, &NEW_COLUMNS);
    let about = sighup(
        c"snowflake_ids.sample_interval",
        c"Sets the interval at which this server's counters are sampled for snowflake_ids.status_history.",
        c"The last 360 samples are kept, which cover one hour at 10 s. With 0, no samples are taken.",
    );
    guc::define_int(about, &SAMPLE_INTERVAL, 0..=3_600, GucFlags::UNIT_S);
}

const fn postmaster(name: &'static CStr, short: &'static CStr, long: &'static CStr) -> About {
    About { name, short, long, context: GucContext::Postmaster }
}

const fn sighup(name: &'static CStr, short: &'static CStr, long: &'static CStr) -> About {
    About { name, short, long, context: GucContext::Sighup }
}

const fn suset(name: &'static CStr, short: &'static CStr, long: &'static CStr) -> About {
    About { name, short, long, context: GucContext::Suset }
}

const fn userset(name: &'static CStr, short: &'static CStr, long: &'static CStr) -> About {
    About { name, short, long, context: GucContext::Userset }
}

struct LayoutCheck;

impl Rule for LayoutCheck {
    fn check(text: &str) -> Result<(), BadValue> {
        text.parse::<Layout>().map(drop).map_err(|error| problem(&error))
    }
}

/// Converts an error of the core to the reason for refusing a value.
fn problem(error: &impl Explain) -> BadValue {
    let mut detail = sentence(&format!("{error}."));
    if let Some(more) = error.detail() {
        detail = format!("{detail} {more}");
    }
    BadValue { detail, hint: error.hint() }
}

struct ShardCheck;

impl ShardCheck {
    /// Parses a shard; None for an empty text.
    fn read(text: &str) -> Result<Option<Shard>, ShardError> {
        if text.trim().is_empty() { Ok(None) } else { text.parse().map(Some) }
    }
}

impl Rule for ShardCheck {
    fn check(text: &str) -> Result<(), BadValue> {
        Self::read(text).map(drop).map_err(|error| problem(&error))
    }

    fn assign(text: &str) {
        SHARD_NOW.set(Self::read(text).ok().flatten());
    }
}

struct WorkerCheck;

impl Rule for WorkerCheck {
    fn check(text: &str) -> Result<(), BadValue> {
        if is_auto(text) || parse_worker(text).is_some() {
            return Ok(());
        }
        let detail = "A worker id is a whole number from 0 to the largest that the layout holds, or auto.";
        let hint = "Set auto, or a number that no other server has.";
        Err(BadValue { detail: detail.to_owned(), hint: Some(hint.to_owned()) })
    }
}

fn is_auto(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("auto")
}
