//! The definition of each setting: its name, who may set it and when, its range, and what it is for.

use super::values::{
    CACHE, CLOCK_ROLLBACK, CLOCK_WAIT_TIMEOUT, DATACENTER_ID, LAYOUT, LAYOUT_NAME, LEASE_DURATION,
    MAX_BOUND_SEQUENCES, MAX_CACHE, MAX_CLOCK_JUMP, MAX_CLOCK_SKEW, MAX_DRIFT, MAX_GENERATORS, MAX_TAGS,
    REGISTRY_TIMEOUT, RESERVE, SAMPLE_INTERVAL, SEGMENT_AUTO_CREATE, SEGMENT_PREFETCH,
    SEGMENT_TARGET_DURATION, SEGMENT_WAIT_TIMEOUT, SEQUENCE_START, SERIES_MEMORY, SHARD, SHARD_NOW,
    WORKER_ID, WORKER_ID_POLICY, parse_worker,
};
use crate::pg::guc::{self, About, BadValue, Rule};
use crate::pg::report::sentence;
use pgrx::{GucContext, GucFlags};
use snowflake_ids_core::server::issuer::MAX_PLACES;
use snowflake_ids_core::{Explain, Layout, Shard, ShardError};

/// Defines every setting. A wrong value in `postgresql.conf` keeps the server from starting.
pub fn define() {
    define_identity();
    define_leases();
    define_behaviour();
    define_shard();
    define_clock();
    define_generators();
    define_segments();
    define_sequences();
    define_status();
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
        short: c"Sets which worker id is taken.",
        long: c"reuse takes the former one, disposable a new one at each start, queue the one that was free longest.",
        context: GucContext::Sighup,
    };
    guc::define_enum(about, &WORKER_ID_POLICY);
    let about = About {
        name: c"snowflake_ids.lease_duration",
        short: c"Sets how far ahead a worker id is leased.",
        long: c"That is how long the registry may be away.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &LEASE_DURATION, 60..=i32::MAX, GucFlags::UNIT_S);
    let about = About {
        name: c"snowflake_ids.max_clock_skew",
        short: c"Sets how far the clock may differ from the registry's when a worker id is leased.",
        long: c"Beyond that none is taken.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &MAX_CLOCK_SKEW, 0..=i32::MAX, GucFlags::UNIT_MS);
    let about = About {
        name: c"snowflake_ids.registry_timeout",
        short: c"Sets the longest time that the answer of a registry on another server is waited for.",
        long: c"Where there are several registries, another one is asked after a fifth of it.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &REGISTRY_TIMEOUT, 100..=3_600_000, GucFlags::UNIT_MS);
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
        long: c"error fails at once; wait waits up to clock_wait_timeout, then fails; switch issues as another worker.",
        context: GucContext::Suset,
    };
    guc::define_enum(about, &CLOCK_ROLLBACK);
    let about = About {
        name: c"snowflake_ids.clock_wait_timeout",
        short: c"Sets the longest time that a call waits for the clock.",
        long: c"0 never waits.",
        context: GucContext::Userset,
    };
    guc::define_int(about, &CLOCK_WAIT_TIMEOUT, 0..=i32::MAX, GucFlags::UNIT_MS);
    let about = About {
        name: c"snowflake_ids.sequence_start",
        short: c"Sets the first sequence of a fresh tick.",
        long: c"random and rotate spread ids made at low rates evenly when a shard is chosen by id % n.",
        context: GucContext::Suset,
    };
    guc::define_enum(about, &SEQUENCE_START);
    let about = About {
        name: c"snowflake_ids.cache",
        short: c"Sets how many ids a session takes at once.",
        long: c"More is faster; ids of a session then keep the time at which they were taken.",
        context: GucContext::Userset,
    };
    guc::define_int(about, &CACHE, 1..=MAX_CACHE, GucFlags::default());
}

/// Which ids named generators issue.
fn define_shard() {
    let about = About {
        name: c"snowflake_ids.shard",
        short: c"Sets the shard whose ids named generators issue.",
        long: c"remainder/modulus, as hash partitions have them, such as 3/16; empty: every id.",
        context: GucContext::Sighup,
    };
    guc::define_text::<ShardCheck>(about, &SHARD);
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

/// What concerns named generators.
fn define_generators() {
    let about = About {
        name: c"snowflake_ids.max_generators",
        short: c"Sets how many named generators a database can have.",
        long: c"So many layouts beside the server's own can be in use at once, in all databases together. One database takes at most half of what is free.",
        context: GucContext::Postmaster,
    };
    guc::define_int(about, &MAX_GENERATORS, 0..=MAX_PLACES, GucFlags::default());
}

/// What concerns ids of tags.
fn define_segments() {
    let about = About {
        name: c"snowflake_ids.max_tags",
        short:
            c"Sets how many segment tags keep their ids at hand in shared memory, in all databases together.",
        long: c"It sizes a cache: there may be more tags. Each takes about 2 kB of shared memory.",
        context: GucContext::Postmaster,
    };
    guc::define_int(about, &MAX_TAGS, 1..=1_000_000, GucFlags::default());
    let about = About {
        name: c"snowflake_ids.series_memory",
        short: c"Sets how much shared memory the keys of monotonic series take, in all databases together.",
        long: c"The keys that were not used for longest leave it. 0 takes none, and such series give no numbers.",
        context: GucContext::Postmaster,
    };
    guc::define_int(about, &SERIES_MEMORY, 0..=i32::MAX, GucFlags::UNIT_KB);
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

/// What concerns bound sequences.
fn define_sequences() {
    let about = About {
        name: c"snowflake_ids.max_bound_sequences",
        short: c"Sets how many sequences a database can have bound.",
        long: c"bind_sequence and attach refuse to bind more.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &MAX_BOUND_SEQUENCES, 0..=i32::MAX, GucFlags::default());
}

/// What the server tells of itself.
fn define_status() {
    let about = About {
        name: c"snowflake_ids.sample_interval",
        short: c"Sets how often the counters of this server are read for the curves of the last hour.",
        long: c"360 readings are kept, which are an hour at 10 s. 0 takes none.",
        context: GucContext::Sighup,
    };
    guc::define_int(about, &SAMPLE_INTERVAL, 0..=3_600, GucFlags::UNIT_S);
}

struct LayoutCheck;

impl Rule for LayoutCheck {
    fn check(text: &str) -> Result<(), BadValue> {
        text.parse::<Layout>().map(drop).map_err(|error| problem(&error))
    }
}

/// Returns what an error of the core says of a value.
fn problem(error: &impl Explain) -> BadValue {
    let mut detail = sentence(&format!("{error}."));
    if let Some(more) = error.detail() {
        detail = format!("{detail} {more}");
    }
    BadValue { detail, hint: error.hint() }
}

struct ShardCheck;

impl ShardCheck {
    /// None of a text that is empty.
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
