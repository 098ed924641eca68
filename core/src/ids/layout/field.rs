//! The fields of an id, and how wide each may be.

use std::fmt;

/// A part of a layout, as errors and docs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Time since the epoch, in units.
    Ticks,
    /// The datacenter, the more significant part of the worker's identity.
    Datacenter,
    /// The worker within its datacenter.
    Worker,
    /// Counts how often the worker switched because its clock stepped back.
    Rollback,
    /// Numbers the ids of one tick.
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

/// Where the sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Below the worker: ids of one tick lie together by worker (Twitter and most others).
    SequenceLast,
    /// Above the worker: ids of one tick lie in order of their sequence (Sonyflake, pgEdge).
    SequenceFirst,
}

/// Widths of the fields in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Widths {
    /// 1 to 62.
    pub ticks: u8,
    /// 0 to 31.
    pub datacenter: u8,
    /// 0 to 31.
    pub worker: u8,
    /// 0 to 8.
    pub rollback: u8,
    /// 1 to 31.
    pub sequence: u8,
}

impl Widths {
    /// The width of one field.
    pub const fn of(&self, field: Field) -> u8 {
        match field {
            Field::Ticks => self.ticks,
            Field::Datacenter => self.datacenter,
            Field::Worker => self.worker,
            Field::Rollback => self.rollback,
            Field::Sequence => self.sequence,
        }
    }

    /// The largest value a field holds.
    pub const fn max(&self, field: Field) -> u64 {
        mask(self.of(field))
    }

    /// The widths of all fields together.
    pub(super) fn sum(self) -> u32 {
        [self.ticks, self.datacenter, self.worker, self.rollback, self.sequence].map(u32::from).iter().sum()
    }
}

const fn mask(bits: u8) -> u64 {
    (1 << bits) - 1
}

/// The range of each width, in the order in which a layout is checked.
pub(super) const RANGES: [(Field, u8, u8); 5] = [
    (Field::Ticks, 1, 62),
    (Field::Datacenter, 0, 31),
    (Field::Worker, 0, 31),
    (Field::Rollback, 0, 8),
    (Field::Sequence, 1, 31),
];
