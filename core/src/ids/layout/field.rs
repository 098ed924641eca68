//! The fields of an id, their widths, the layouts of other systems, and errors of layouts.

use crate::clock::UnixMicros;
use crate::error::Explain;
use std::fmt;

/// A field of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The time since the epoch, in units of the layout.
    Ticks,
    /// The datacenter id.
    Datacenter,
    /// The worker id within the datacenter.
    Worker,
    /// A number that the server changes when the server's clock steps back, so that ids do not repeat.
    Rollback,
    /// The sequence number. Ids of one node in the same tick have different sequence numbers.
    Sequence,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ticks => "ticks",
            Self::Datacenter => "datacenter",
            Self::Worker => "worker",
            Self::Rollback => "rollback",
            Self::Sequence => "sequence",
        })
    }
}

/// The position of the sequence among the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The sequence is below the node: ids of one tick are grouped by node (Twitter and most others).
    SequenceLast,
    /// The sequence is above the node: ids of one tick are ordered by sequence number (Sonyflake, pgEdge).
    SequenceFirst,
}

/// The widths of the fields, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Widths {
    /// The width of the ticks: 1 to 62.
    pub ticks: u8,
    /// The width of the datacenter id: 0 to 31.
    pub datacenter: u8,
    /// The width of the worker id: 0 to 31.
    pub worker_id: u8,
    /// The width of the rollback value: 0 to 8.
    pub rollback: u8,
    /// The width of the sequence number: 1 to 31.
    pub sequence: u8,
}

impl Widths {
    /// Returns the width of a field.
    pub const fn of(&self, field: Field) -> u8 {
        match field {
            Field::Ticks => self.ticks,
            Field::Datacenter => self.datacenter,
            Field::Worker => self.worker_id,
            Field::Rollback => self.rollback,
            Field::Sequence => self.sequence,
        }
    }

    /// Returns the largest value of a field.
    pub const fn max(&self, field: Field) -> u64 {
        (1 << self.of(field)) - 1
    }

    pub(super) fn sum(self) -> u32 {
        [self.ticks, self.datacenter, self.worker_id, self.rollback, self.sequence]
            .map(u32::from)
            .iter()
            .sum()
    }
}

/// The smallest and the largest width of each field, in the order in which the widths are checked.
pub(super) const RANGES: [(Field, u8, u8); 5] = [
    (Field::Ticks, 1, 62),
    (Field::Datacenter, 0, 31),
    (Field::Worker, 0, 31),
    (Field::Rollback, 0, 8),
    (Field::Sequence, 1, 31),
];

/// The presets: names and layouts of other systems. The values come from the source code or documentation of these
/// systems. A preset never changes, because SQL functions that take a layout as text are IMMUTABLE.
///
/// Some systems (Baidu, `ShardingSphere`) compute their epoch in the time zone of the process. The presets of these
/// systems assume UTC. Users write an explicit `epoch=` if the process had another time zone. Instagram's 41 tick bits
/// include the sign bit of a bigint. The preset has the other 40 bits: non-negative ids, which end in 2046. Mastodon's
/// preset leaves out the sign bit likewise. `CockroachDB` counts 10 us; its lowest bit of time is the preset's sequence.
pub const PRESETS: [(&str, &str); 19] = [
    ("twitter", "41/5/5/12 epoch=2010-11-04T01:42:54.657Z"),
    ("leaf", "41/0/10/12 epoch=2010-11-04T01:42:54.657Z"),
    ("bwmarrin", "41/0/10/12 epoch=2010-11-04T01:42:54.657Z"),
    ("shardingsphere", "41/0/10/12 epoch=2016-11-01"),
    ("baidu", "28/0/22/13 unit=1s epoch=2016-05-20"),
    ("stateless", "38/0/15/10 epoch=2017-12-21"),
    ("cosid", "41/0/10/12 epoch=2019-12-24T16:00:00Z"),
    ("cosid_second", "31/0/10/22 unit=1s epoch=2019-12-24T16:00:00Z"),
    ("javascript", "41/0/3/9 epoch=2019-12-24T16:00:00Z"),
    ("javascript_second", "31/0/3/19 unit=1s epoch=2019-12-24T16:00:00Z"),
    ("yitter", "51/0/6/6 epoch=2020-02-19T18:20:02Z"),
    ("sonyflake", "39/8s/0/16 unit=10ms epoch=2025-01-01"),
    ("sonyflake_v1", "39/8s/0/16 unit=10ms epoch=2014-09-01"),
    ("discord", "41/5/5/12 epoch=2015-01-01"),
    ("instagram", "40/0/13/10 epoch=2011-08-24T21:07:01.721Z"),
    ("pgedge", "41/12s/0/10 epoch=2023-01-01"),
    ("cockroachdb", "47/1s/0/15 unit=20us epoch=2015-01-01"),
    ("mastodon", "47/0/0/16 epoch=1970-01-01"),
    ("spreadsheet", "38/0/3/8 unit=10ms epoch=2026-01-01"),
];

pub(super) fn preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// The reason why a layout is not valid.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum LayoutError {
    #[error("{field} width {width} is out of range")]
    #[explain(detail = "The {field} width must be {min} to {max} bits.")]
    Width { field: Field, width: u32, min: u8, max: u8 },
    #[error("layout of {sum} bits is too wide")]
    #[explain(detail = "Ticks, datacenter, worker, rollback and sequence may have at most 63 bits in total.")]
    #[explain(hint = "Use fewer bits for at least one of these fields.")]
    Sum { sum: u32 },
    #[error("unit \"{unit}\" is neither a fraction of a second nor whole seconds")]
    #[explain(detail = "Valid units are, for example, 1ms, 10ms, 100us, 1s and 2s, up to 1 day.")]
    #[explain(hint = "Write a whole number followed by us, ms or s.")]
    Unit { unit: String },
    #[error("epoch \"{epoch}\" is not a valid instant")]
    #[explain(
        detail = "{reason}.",
        hint = "Write a date or an instant in UTC, such as 2020-01-01 or 2010-11-04T01:42:54.657Z."
    )]
    Epoch { epoch: String, reason: &'static str },
    #[error("ticks width {ticks} reaches beyond the year 294246")]
    #[explain(detail = "The last tick of a layout must be a valid timestamp.")]
    #[explain(hint = "Use fewer bits for ticks, or a shorter unit.")]
    TooLong { ticks: u8 },
    #[error("layout \"{text}\" is not valid")]
    #[explain(detail = "{reason}.")]
    #[explain(hint = "Write ticks/datacenter/worker/sequence, such as 41/5/5/12 or \"28/0/22/13 unit=1s \
                      epoch=2016-05-20\", or the name of a preset: {}.", PRESETS.map(|(name, _)| name).join(", "))]
    Syntax { text: String, reason: String },
}

/// The reason why an instant has no tick in a layout.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum TickError {
    #[error("{at} is before the epoch of the layout")]
    #[explain(detail = "The layout begins at {epoch}.")]
    BeforeEpoch { at: UnixMicros, epoch: UnixMicros },
    #[error("{at} is after the last tick of the layout")]
    #[explain(detail = "The layout ends at {last}.")]
    AfterLast { at: UnixMicros, last: UnixMicros },
}
