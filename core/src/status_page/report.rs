//! What a page tells: plain data, as the views and shared memory have it.

use super::tags::Tags;
use crate::clock::UnixMicros;
use crate::history::Sample;
use crate::layout::Layout;
use std::time::Duration;

/// All of it.
#[derive(Debug)]
pub struct Report {
    /// When it was read.
    pub at: UnixMicros,
    /// Which server this is.
    pub server: Server,
    /// The layout of the server's ids.
    pub layout: Layout,
    /// What goes on; None where the library was not loaded at server start.
    pub running: Option<Running>,
}

/// Which server this is.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// The setting `cluster_name`; may be empty.
    pub cluster_name: String,
    /// The database that was asked.
    pub database: String,
    /// The role that asked: the page shows what it may see.
    pub role: String,
    /// The server's version.
    pub postgres: String,
    /// The extension's.
    pub extension: String,
    /// The cluster, as `pg_control_system` has it.
    pub system_identifier: u64,
    /// The timeline that it writes or replays.
    pub timeline: u32,
    /// Whether it replays another server's log.
    pub is_standby: bool,
}

/// What goes on.
#[derive(Debug)]
pub struct Running {
    /// The view `status`.
    pub status: Status,
    /// The settings that say how much is much.
    pub limits: Limits,
    /// Whether the launcher runs.
    pub has_launcher: bool,
    /// How many tags have a place in shared memory, in all databases.
    pub places_used: u64,
    /// The view `status_history`, the earliest first.
    pub history: Vec<Sample>,
    /// The view `segment_status`.
    pub tags: Tags,
    /// The view `generator_status`.
    pub generators: Listing<Generator>,
    /// The view `series_status`.
    pub series: Listing<Series>,
    /// The view `registry_status`.
    pub registries: Listing<Registry>,
    /// The view `sequence_status`.
    pub sequences: Listing<Sequence>,
}

/// Settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// `max_drift`.
    pub max_drift: Duration,
    /// `lease_duration`.
    pub lease_duration: Duration,
    /// `max_tags`.
    pub max_tags: u64,
    /// `sample_interval`; zero where nothing is sampled.
    pub sample_interval: Duration,
}

/// The first rows of a view, and how many it has.
#[derive(Clone, Debug, Default)]
pub struct Listing<T> {
    /// The first ones.
    pub rows: Vec<T>,
    /// How many there are.
    pub total: u64,
}

/// The row of the view `status`; its columns are explained in docs/views.md.
#[expect(missing_docs, reason = "they are those of the view")]
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub datacenter_id: Option<i32>,
    pub worker_id: Option<i32>,
    pub rollback: Option<i32>,
    pub last_id: Option<i64>,
    pub last_timestamp: Option<UnixMicros>,
    pub drift: Duration,
    pub ids_issued: u64,
    pub full_ticks: u64,
    pub steps_back: u64,
    pub largest_step_back: Duration,
    pub steps_forward: u64,
    pub clock_ahead: Duration,
    pub switches: u64,
    pub high_water_mark: Option<UnixMicros>,
    pub reservations: u64,
    pub reserved_by_callers: u64,
    pub scope: String,
    pub lease_expires_at: Option<UnixMicros>,
    pub leased_from: Option<String>,
    pub years_left: f64,
    pub state: String,
}

impl Status {
    /// Whether nothing keeps this server from issuing ids that it should issue.
    pub fn is_well(&self) -> bool {
        matches!(self.state.as_str(), "ready" | "idle" | "in recovery")
    }
}

/// A row of `generator_status`.
#[expect(missing_docs, reason = "they are those of the view")]
#[derive(Clone, Debug, Default)]
pub struct Generator {
    pub name: String,
    pub layout: String,
    pub shard: Option<String>,
    pub last_timestamp: Option<UnixMicros>,
    pub drift: Option<Duration>,
    pub years_left: Option<f64>,
    pub fits: Option<bool>,
    pub state: String,
}

/// A row of `series_status`.
#[expect(missing_docs, reason = "they are those of the view")]
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub name: String,
    pub kind: String,
    pub key_type: String,
    pub keys: Option<u64>,
    pub all_keys_counted: Option<bool>,
    pub reset: Option<String>,
    pub restricted: bool,
}

/// A row of `registry_status`.
#[expect(missing_docs, reason = "they are those of the view")]
#[derive(Clone, Debug, Default)]
pub struct Registry {
    pub server: String,
    pub state: String,
    pub calls: u64,
    pub failures: u64,
    pub failures_in_a_row: u64,
    pub last_answer: Option<UnixMicros>,
    pub last_duration: Option<Duration>,
    pub last_failure: Option<UnixMicros>,
    pub error: Option<String>,
    pub retry_at: Option<UnixMicros>,
}

/// A row of `sequence_status`.
#[expect(missing_docs, reason = "they are those of the view")]
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    pub sequence: String,
    pub kind: String,
    pub tag: Option<String>,
    pub generator: Option<String>,
    pub increment: i64,
    pub owner: Option<String>,
    pub bound_at: Option<UnixMicros>,
}
