//! The settings `snowflake_ids.*`: definitions, checks and current values. docs/settings.md explains each setting.

use crate::pg::guc::{self, About, BadValue, Rule, read};
use crate::pg::per_process::PerProcess;
use crate::pg::report::report;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{GucContext, GucFlags, GucSetting, PostgresGucEnum};
use snowflake_ids_core::error::sentence;
use snowflake_ids_core::server::issuer::{DEFAULT_SLOTS, MAX_SLOTS};
use snowflake_ids_core::server::lease::Policy;
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{ClockRollback, Explain, Field, Layout, Rules, SequenceStart, Shard, ShardError};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

/// Declares an enum for each setting whose value is a word, and the conversion of the enum to the core's type.
macro_rules! choices {
    ($($choice:ident => $core:ident { $($variant:ident = $word:tt),* })*) => {$(
        #[derive(Clone, Copy, PostgresGucEnum)]
        enum $choice {
            $(#[name = $word] $variant,)*
        }

        impl From<$choice> for $core {
            #[inline]
            fn from(choice: $choice) -> Self {
                match choice { $($choice::$variant => Self::$variant,)* }
            }
        }
    )*};
}

choices! {
    RollbackChoice => ClockRollback { Error = c"error", Wait = c"wait", Switch = c"switch" }
    PolicyChoice => Policy { Reuse = c"reuse", Disposable = c"disposable", Queue = c"queue" }
    StartChoice => SequenceStart { Zero = c"zero", Random = c"random", Rotate = c"rotate" }
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

/// Declares a variable with a default for each setting, and a function that defines all settings in the server. Each entry
/// below has the setting's name and context, the function of `guc` that defines the setting, with that function's further
/// arguments, and the two descriptions in `pg_settings`.
macro_rules! settings {
    ($($variable:ident: $type:ty = $default:expr, $name:expr, $context:ident, $define:ident($($check:expr),*),
        $short:literal,
        $long:literal;)*) => {
        $(static $variable: GucSetting<$type> = GucSetting::<$type>::new($default);)*

        /// Defines all settings. A wrong value in `postgresql.conf` keeps the server from starting.
        pub fn define() {
            $(
                let about = About { name: $name, short: $short, long: $long, context: GucContext::$context };
                guc::$define(about, &$variable $(, $check)*);
            )*
            guc::reserve_prefix(c"snowflake_ids");
        }
    };
}

const NO_UNIT: GucFlags = GucFlags::empty();
const KB: GucFlags = GucFlags::UNIT_KB;
const MS: GucFlags = GucFlags::UNIT_MS;
const S: GucFlags = GucFlags::UNIT_S;

settings! {
    LAYOUT: Option<CString> = Some(DEFAULT_LAYOUT), LAYOUT_NAME, Postmaster, define_text(LayoutCheck),
        c"Sets the bit layout, unit and epoch of this server's snowflake ids.",
        c"Either widths in bits, as ticks/datacenter/worker/sequence, with optional unit= and epoch=, or the name of a preset layout.";
    DATACENTER_ID: i32 = -1, c"snowflake_ids.datacenter_id", Postmaster, define_int(-1..=i32::MAX, NO_UNIT),
        c"Sets the datacenter part of this server's identity.",
        c"No two servers that generate ids may have the same datacenter and worker. -1: chosen or leased with the worker, or 0 if worker_id is set.";
    WORKER_ID: Option<CString> = Some(c"auto"), c"snowflake_ids.worker_id", Postmaster, define_text(WorkerCheck),
        c"Sets the worker part of this server's identity.",
        c"Either a number that no other server has, or auto to lease a worker id from the registry.";
    WORKER_ID_POLICY: PolicyChoice = PolicyChoice::Reuse, c"snowflake_ids.worker_id_policy", Sighup, define_enum(),
        c"Sets how the worker id to lease is chosen.",
        c"reuse and queue lease the previous worker id again. Without one, reuse leases any free id, and queue leases the id that has been free longest. disposable leases a never used id at each start.";
    LEASE_DURATION: i32 = 24 * 60 * 60, c"snowflake_ids.lease_duration", Sighup, define_int(60..=i32::MAX, S),
        c"Sets the duration of the lease of a worker id.",
        c"The registry may be unavailable for up to this time.";
    MAX_CLOCK_SKEW: i32 = 5_000, c"snowflake_ids.max_clock_skew", Sighup, define_int(0..=i32::MAX, MS),
        c"Sets how far the clock may differ from the registry's when a worker id is leased.",
        c"If the difference is larger, no worker id is leased.";
    REGISTRY_TIMEOUT: i32 = 3_000, c"snowflake_ids.registry_timeout", Sighup, define_int(100..=3_600_000, MS),
        c"Sets the longest wait for the answer of a registry on another server.",
        c"If there are several registries, the next one is asked after a fifth of this time.";
    REGISTRY_DOWN_TIMEOUT: i32 = 200, c"snowflake_ids.registry_down_timeout", Userset, define_int(1..=i32::MAX, MS),
        c"Sets the longest time that a call waits for ids of a tag whose registry is known not to answer.",
        c"Until the registry answers, calls fail soon, instead of each waiting for segment_wait_timeout.";
    MAX_DRIFT: i32 = 60_000, c"snowflake_ids.max_drift", Suset, define_int(0..=i32::MAX, MS),
        c"Sets how far ids may run ahead of the clock.",
        c"It limits how large a backward step of the clock is tolerated, and how far bursts of ids run ahead of the clock.";
    CLOCK_ROLLBACK: RollbackChoice = RollbackChoice::Wait, c"snowflake_ids.clock_rollback", Suset, define_enum(),
        c"Sets what happens when the clock has stepped back by more than max_drift.",
        c"error fails at once; wait waits up to clock_wait_timeout and then fails; switch issues ids under another rollback value or worker id.";
    CLOCK_WAIT_TIMEOUT: i32 = 1_000, c"snowflake_ids.clock_wait_timeout", Userset, define_int(0..=i32::MAX, MS),
        c"Sets the longest time that a call waits for the clock.",
        c"With 0, calls never wait.";
    SEQUENCE_START: StartChoice = StartChoice::Zero, c"snowflake_ids.sequence_start", Suset, define_enum(),
        c"Sets where the sequence of each new tick starts.",
        c"At low rates, random and rotate spread ids evenly over shards that are chosen by id % n.";
    CACHE: i32 = 1, c"snowflake_ids.cache", Userset, define_int(1..=MAX_CACHE, NO_UNIT),
        c"Sets how many ids a session takes at once.",
        c"A higher value is faster, but an id then has the time at which the session took its batch.";
    SHARD: Option<CString> = Some(c""), c"snowflake_ids.shard", Sighup, define_text(ShardCheck),
        c"Sets the shard whose ids named generators issue.",
        c"The value is remainder/modulus, as for a hash partition, such as 3/16. With an empty value, ids of every shard are issued.";
    MAX_CLOCK_JUMP: i32 = 60 * 60 * 1_000, c"snowflake_ids.max_clock_jump", Sighup, define_int(1_000..=i32::MAX, MS),
        c"Sets the largest sudden step forward of the clock that ids follow.",
        c"After a larger step, the time in ids advances by the time that has really passed.";
    RESERVE: i32 = 3_000, c"snowflake_ids.reserve", Sighup, define_int(100..=3_600_000, MS),
        c"Sets the time span that is reserved ahead in the state file.",
        c"The file is synced about once in this time. After a crash, ids start up to this time ahead of the clock.";
    MAX_GENERATORS: i32 = DEFAULT_SLOTS, c"snowflake_ids.max_generators", Postmaster, define_int(0..=MAX_SLOTS, NO_UNIT),
        c"Sets how many named generators a database can have.",
        c"It also limits how many layouts, besides the server's own, all databases together use at once. One database alone gets at most half of this number, rounded up.";
    MAX_TAGS: i32 = 1_024, c"snowflake_ids.max_tags", Postmaster, define_int(1..=1_000_000, NO_UNIT),
        c"Sets how many segment tags of all databases have ids ready in shared memory.",
        c"It sets the size of a cache: more tags may exist. Each slot takes about 2 kB of shared memory.";
    SERIES_MEMORY: i32 = 16 * 1_024, c"snowflake_ids.series_memory", Postmaster, define_int(0..=i32::MAX, KB),
        c"Sets the size of the shared memory for keys of monotonic series of all databases.",
        c"When it is full, keys that were not used lately are evicted. With 0, monotonic series give no numbers.";
    SEGMENT_PREFETCH: i32 = 10, c"snowflake_ids.segment_prefetch", Sighup, define_int(0..=100, NO_UNIT),
        c"Sets the used share of a segment, in percent, at which the next segment is fetched.",
        c"With 0, the next segment is fetched at the first id of each segment.";
    SEGMENT_TARGET_DURATION: i32 = 15 * 60, c"snowflake_ids.segment_target_duration", Sighup, define_int(1..=i32::MAX, S),
        c"Sets how long a segment should last.",
        c"A segment that lasts less than this time doubles the step. A segment that lasts twice this time or longer halves it.";
    SEGMENT_WAIT_TIMEOUT: i32 = 5_000, c"snowflake_ids.segment_wait_timeout", Userset, define_int(1..=i32::MAX, MS),
        c"Sets the longest time that a call waits for ids of a tag.",
        c"A call waits only when both segments of the tag are used up.";
    SEGMENT_AUTO_CREATE: bool = false, c"snowflake_ids.segment_auto_create", Suset, define_bool(),
        c"Creates unknown segment tags when they are first used.",
        c"The tags get the defaults of snowflake_ids.segment_create. All sessions see them at once.";
    MAX_BOUND_SEQUENCES: i32 = 10_000, c"snowflake_ids.max_bound_sequences", Sighup, define_int(0..=i32::MAX, NO_UNIT),
        c"Sets how many bound sequences a database can have.",
        c"bind_sequence and attach refuse to bind more.";
    NEW_COLUMNS: NewColumnsChoice = NewColumnsChoice::Off, c"snowflake_ids.new_columns", Userset, define_enum(),
        c"Sets the kind of ids for the serial and identity columns of CREATE TABLE and ADD COLUMN.",
        c"snowflake and segment attach the columns, bound binds their sequences, and off changes nothing. Columns narrower than bigint need the kind segment.";
    SAMPLE_INTERVAL: i32 = 10, c"snowflake_ids.sample_interval", Sighup, define_int(0..=3_600, S),
        c"Sets the interval at which this server's counters are sampled for snowflake_ids.status_history.",
        c"The last 360 samples are kept, which cover one hour at 10 s. With 0, no samples are taken.";
}

/// The parsed value of `snowflake_ids.shard`.
static SHARD_NOW: PerProcess<Cell<Option<Shard>>> = PerProcess::new(Cell::new(None));

const LAYOUT_NAME: &CStr = c"snowflake_ids.layout";
const DEFAULT_LAYOUT: &CStr = c"41/5/5/12 epoch=2020-01-01";

/// The highest number of ids that a session may take in one step.
const MAX_CACHE: i32 = 1_000_000;

/// The settings that are fixed at server start.
#[derive(Clone, Copy)]
pub struct Config {
    pub layout: Layout,
    /// The datacenter id and worker id in the ids of this server; at most the datacenter id if `worker_id` is `auto`.
    pub identity: Identity,
    /// The number of tags that can have a slot while no call waits for ids.
    pub max_tags: usize,
    /// The highest number of layouts in use besides the server's own layout; also the highest number of named generators in
    /// one database.
    pub max_generators: usize,
    /// The size of the shared memory for the keys of monotonic series, in bytes.
    pub series_memory: usize,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Checks that the settings that are fixed at server start fit together, and stores these settings for [`config`].
pub fn check() -> Result<(), Box<ErrorReport>> {
    let layout: Layout = text(&LAYOUT).parse().map_err(report)?;
    let datacenter = u32::try_from(read(&DATACENTER_ID)).ok();
    fits(&layout, Field::Datacenter, datacenter.unwrap_or(0).into())?;
    let worker_id = parse_worker_id(&text(&WORKER_ID));
    fits(&layout, Field::Worker, worker_id.unwrap_or(0).into())?;
    let identity = match worker_id {
        Some(worker_id) => Identity::Fixed { datacenter: datacenter.unwrap_or(0), worker_id },
        None => Identity::Leased { datacenter },
    };
    let max_tags = usize::try_from(read(&MAX_TAGS)).unwrap_or(1);
    let max_generators = usize::try_from(read(&MAX_GENERATORS)).unwrap_or(0);
    let series_memory = usize::try_from(read(&SERIES_MEMORY)).unwrap_or(0).saturating_mul(1_024);
    CONFIG.get_or_init(|| Config { layout, identity, max_tags, max_generators, series_memory });
    Ok(())
}

/// Returns the settings that are fixed at server start; None before [`check`].
pub fn config() -> Option<&'static Config> {
    CONFIG.get()
}

/// Parses a worker id; None for `auto` and for text that is no number.
fn parse_worker_id(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|&worker_id: &u32| i32::try_from(worker_id).is_ok())
}

/// Checks that a datacenter id or worker id fits the layout.
fn fits(layout: &Layout, field: Field, value: i64) -> Result<(), Box<ErrorReport>> {
    layout.check(field, value).map_err(|error| {
        let setting = format!("snowflake_ids.{field}_id");
        let report = report(error).set_hint(format!(
            "Set {setting} to a number from 0 to {}, or use a layout with a wider {field}.",
            layout.max(field)
        ));
        Box::new(report)
    })
}

/// Sets the layout for the next server start, as ALTER SYSTEM does.
pub fn set_layout_at_next_start(layout: &Layout) {
    guc::alter_system(LAYOUT_NAME, &layout.to_string());
}

/// Returns the text of the configured layout on a server that did not preload the library.
pub fn layout_text_without_preload() -> String {
    guc::shown(LAYOUT_NAME).unwrap_or_else(|| DEFAULT_LAYOUT.to_string_lossy().into_owned())
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    read(setting).unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the rules for ids of this session: how far ids may run ahead of the clock, and where the sequence numbers of each
/// new tick start.
#[inline]
pub fn rules() -> Rules {
    Rules {
        max_drift: u64::from(read(&MAX_DRIFT).cast_unsigned()) * 1_000,
        start: read(&SEQUENCE_START).into(),
    }
}

/// Returns the action to take when the clock is behind the last id by more than `max_drift`.
pub fn rollback() -> ClockRollback {
    read(&CLOCK_ROLLBACK).into()
}

/// Returns the policy by which a worker id is chosen for a lease.
pub fn worker_id_policy() -> Policy {
    read(&WORKER_ID_POLICY).into()
}

/// Declares functions that return settings as durations. `settings!` above describes the settings.
macro_rules! durations {
    ($($name:ident = $unit:ident($setting:ident);)*) => {$(
        pub fn $name() -> Duration {
            Duration::$unit(read(&$setting).unsigned_abs().into())
        }
    )*};
}

durations! {
    lease_duration = from_secs(LEASE_DURATION);
    max_clock_skew = from_millis(MAX_CLOCK_SKEW);
    registry_timeout = from_millis(REGISTRY_TIMEOUT);
    registry_down_timeout = from_millis(REGISTRY_DOWN_TIMEOUT);
    max_clock_jump = from_millis(MAX_CLOCK_JUMP);
    reserve = from_millis(RESERVE);
    clock_wait_timeout = from_millis(CLOCK_WAIT_TIMEOUT);
    segment_target_duration = from_secs(SEGMENT_TARGET_DURATION);
    segment_wait_timeout = from_millis(SEGMENT_WAIT_TIMEOUT);
    sample_interval = from_secs(SAMPLE_INTERVAL);
}

/// Returns the number of ids that this session takes in one step.
#[inline]
pub fn cache() -> NonZeroU32 {
    NonZeroU32::new(read(&CACHE).cast_unsigned()).unwrap_or(NonZeroU32::MIN)
}

/// Returns the shard for named generators that have no shard of their own; None if such generators may issue ids of every
/// shard.
#[inline]
pub fn shard() -> Option<Shard> {
    SHARD_NOW.get()
}

/// Returns the used part of a segment, in percent, at which the next segment is fetched.
pub fn segment_prefetch() -> u8 {
    u8::try_from(read(&SEGMENT_PREFETCH)).unwrap_or(100)
}

/// Returns the highest number of bound sequences that a database can have.
pub fn max_bound_sequences() -> i64 {
    read(&MAX_BOUND_SEQUENCES).into()
}

/// Returns whether calls of this session create unknown tags.
pub fn segment_auto_create() -> bool {
    read(&SEGMENT_AUTO_CREATE)
}

/// Returns the value of `snowflake_ids.new_columns`: the source of ids for new serial and identity columns. None means that
/// these columns keep taking numbers from their own sequences.
pub fn new_columns() -> Option<&'static str> {
    match read(&NEW_COLUMNS) {
        NewColumnsChoice::Off => None,
        NewColumnsChoice::Snowflake => Some("snowflake"),
        NewColumnsChoice::Segment => Some("segment"),
        NewColumnsChoice::Bound => Some("bound"),
    }
}

struct LayoutCheck;

impl Rule for LayoutCheck {
    fn check(text: &str) -> Result<(), BadValue> {
        text.parse::<Layout>().map(drop).map_err(|error| problem(&error))
    }
}

/// Converts an error of the core to the reason why the value of a setting is refused.
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
        if is_auto(text) || parse_worker_id(text).is_some() {
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
