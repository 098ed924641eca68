//! The settings: `snowflake_ids.*`. What they mean to users is in docs/settings.md.

use crate::error::explained;
use crate::pg::guc::{self, About, Check, Problem, read};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{GucContext, GucFlags, GucSetting, PostgresGucEnum};
use snowflake_ids_core::{ClockRollback, Explain, Field, Layout, Node, Rules, SequenceStart};
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
    /// Known, so that it is refused with a reason; not offered.
    #[name = c"switch"]
    #[hidden = true]
    Switch,
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
static WORKER_ID: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
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
    /// The server's identity in them; None until an operator chose one.
    pub node: Option<Node>,
    /// How many tags can be in use at once.
    pub max_segments: usize,
}

/// Defines every setting. A wrong value in `postgresql.conf` keeps the server from starting.
pub fn define() {
    define_identity();
    define_behaviour();
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
        long: c"A server without one generates no ids.",
        context: GucContext::Postmaster,
    };
    guc::define_text::<WorkerCheck>(about, &WORKER_ID);
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
        long: c"error fails at once; wait waits up to max_wait, then fails.",
        context: GucContext::Suset,
    };
    guc::define_enum::<_, RollbackCheck>(about, &CLOCK_ROLLBACK);
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
    guc::define_enum::<_, AnyStart>(about, &SEQUENCE_START);
    let about = About {
        name: c"snowflake_ids.cache",
        short: c"Sets how many ids a session takes at once.",
        long: c"More is faster; ids of a session then keep the time at which they were taken.",
        context: GucContext::Userset,
    };
    guc::define_int(about, &CACHE, 1..=MAX_CACHE, GucFlags::default());
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
        if text.is_empty() || parse_worker(text).is_some() {
            return Ok(());
        }
        let detail = if text.eq_ignore_ascii_case("auto") {
            "Leased worker ids are not part of this version."
        } else {
            "A worker id is a whole number from 0 to the largest that the layout holds."
        };
        let hint = Some("Set a number that no other server has.".to_owned());
        Err(Problem { detail: detail.to_owned(), hint })
    }
}

fn parse_worker(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|&worker: &u32| i32::try_from(worker).is_ok())
}

struct RollbackCheck;

impl Check<RollbackChoice> for RollbackCheck {
    fn check(choice: RollbackChoice) -> Result<(), Problem> {
        match choice {
            RollbackChoice::Error | RollbackChoice::Wait => Ok(()),
            RollbackChoice::Switch => Err(Problem {
                detail: "Switching to another worker id is not part of this version.".into(),
                hint: Some("Use wait or error.".into()),
            }),
        }
    }
}

struct AnyStart;

impl Check<StartChoice> for AnyStart {
    fn check(_: StartChoice) -> Result<(), Problem> {
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
    let node = worker.map(|worker| Node { datacenter: datacenter.cast_unsigned(), worker, rollback: 0 });
    let max_segments = usize::try_from(read(&MAX_SEGMENTS)).unwrap_or(1);
    Ok(Config { layout, node, max_segments })
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
        // Switch is refused when it is set.
        RollbackChoice::Wait | RollbackChoice::Switch => ClockRollback::Wait,
    }
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
