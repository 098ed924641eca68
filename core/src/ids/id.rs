//! Composition and decoding of ids, and the lowest and highest id of an instant.

use crate::clock::{UnixMicros, human};
use crate::error::Explain;
use crate::ids::layout::{Field, Layout, TickError};
use crate::ids::position::{NodeBits, Position, Tick};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A node: the part of an id that identifies its generator. Two servers of a system never issue ids as the same node at
/// the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// The datacenter id: 0 to the layout's largest datacenter id.
    pub datacenter: u32,
    /// The worker id: 0 to the layout's largest worker id.
    pub worker_id: u32,
    /// The rollback value: 0 to the layout's largest rollback value.
    pub rollback: u32,
}

impl Node {
    /// Returns whether the node has this datacenter and worker id. The rollback value does not matter.
    pub fn is_of(self, datacenter: u32, worker_id: u32) -> bool {
        (self.datacenter, self.worker_id) == (datacenter, worker_id)
    }
}

/// The fields of an id. Serializes as the JSON of `snowflake_decode_json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Decoded {
    /// The id, 0 to the layout's largest id.
    pub id: u64,
    /// The instant at which the id's tick begins.
    pub timestamp: UnixMicros,
    /// The datacenter id: 0 to the layout's largest datacenter id.
    pub datacenter_id: u32,
    /// The worker id: 0 to the layout's largest worker id.
    pub worker_id: u32,
    /// The rollback value: 0 to the layout's largest rollback value; 0 in a layout without rollback bits.
    pub rollback: u32,
    /// The sequence number within the tick: 0 to the layout's largest sequence number.
    pub sequence: u32,
}

/// The reason why fields do not form an id, or why an id cannot be decoded.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum IdError {
    #[error("id {id} is negative")]
    #[explain(detail = "Ids of every layout are 0 or more: the sign bit is never used.")]
    Negative { id: i64 },
    #[error("id {id} has bits beyond layout \"{layout}\"")]
    #[explain(detail = "The layout's largest id is {}.", layout.largest_id())]
    #[explain(hint = "Name the layout that the id was made with.")]
    Foreign { id: i64, layout: Layout },
    #[error("{field} {value} is out of range for layout \"{layout}\"")]
    #[explain(detail = "It must be 0 to {}.", layout.max(*field))]
    Field { field: Field, value: i64, layout: Layout },
    #[error("interval {} is not a whole number of ticks of layout \"{layout}\"", seconds(*micros))]
    #[explain(detail = "A tick of the layout is {} long, and the layout has {} ticks.",
              human(Duration::from_micros(layout.unit())), layout.max(Field::Ticks))]
    #[explain(hint = "Give a positive interval that is a multiple of a tick.")]
    Span { micros: i64, layout: Layout },
    #[error(transparent)]
    Tick(#[from] TickError),
}

/// Returns a positive or negative duration as text.
fn seconds(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    format!("{sign}{}", human(Duration::from_micros(micros.unsigned_abs())))
}

impl Layout {
    /// Returns the node with these bits. Returns None if bits of other fields are set.
    pub fn node_of(&self, node_bits: NodeBits) -> Option<Node> {
        let decoded = self.decode(i64::try_from(node_bits.0).ok()?).ok()?;
        let Decoded { datacenter_id: datacenter, worker_id, rollback, .. } = decoded;
        Some(Node { datacenter, worker_id, rollback })
    }

    /// Returns the bits of a node, shifted to their place in an id.
    pub fn place(&self, node: Node) -> Result<NodeBits, IdError> {
        let Node { datacenter, worker_id, rollback } = node;
        self.check(Field::Datacenter, datacenter.into())?;
        self.check(Field::Worker, worker_id.into())?;
        self.check(Field::Rollback, rollback.into())?;
        let part = |value: u32, field| u64::from(value) << self.shift(field);
        Ok(NodeBits(
            part(datacenter, Field::Datacenter)
                | part(worker_id, Field::Worker)
                | part(rollback, Field::Rollback),
        ))
    }

    /// Returns the fields of an id.
    pub fn decode(&self, id: i64) -> Result<Decoded, IdError> {
        let bits = u64::try_from(id).map_err(|_| IdError::Negative { id })?;
        if bits > self.largest_id() {
            return Err(IdError::Foreign { id, layout: *self });
        }
        let part = |field| self.part(bits >> self.shift(field), field);
        Ok(Decoded {
            id: bits,
            timestamp: self.instant(Tick(bits >> self.tick_shift())),
            datacenter_id: part(Field::Datacenter),
            worker_id: part(Field::Worker),
            rollback: part(Field::Rollback),
            sequence: part(Field::Sequence),
        })
    }

    /// Returns the id of these fields: the inverse of [`Layout::decode`].
    pub fn compose(&self, at: UnixMicros, node: Node, sequence: u32) -> Result<u64, IdError> {
        let node_bits = self.place(node)?;
        self.check(Field::Sequence, sequence.into())?;
        let position = Position(self.first_of(self.tick(at)?).0 | u64::from(sequence));
        Ok(self.id(position, node_bits))
    }

    /// Returns the smallest id of an instant's tick: the lower bound of a search by time.
    pub fn min_id(&self, at: UnixMicros) -> Result<u64, TickError> {
        Ok(self.tick(at)?.0 << self.tick_shift())
    }

    /// Returns the largest id of an instant's tick: the inclusive upper bound of a search by time.
    pub fn max_id(&self, at: UnixMicros) -> Result<u64, TickError> {
        Ok(self.min_id(at)? | ((1 << self.tick_shift()) - 1))
    }

    /// Returns the difference of two ids whose times are `micros` microseconds apart and whose other fields are equal.
    pub fn ids_in(&self, micros: i64) -> Result<u64, IdError> {
        let ticks = u64::try_from(micros).ok().filter(|micros| micros.is_multiple_of(self.unit()));
        match ticks.map(|micros| micros / self.unit()) {
            Some(ticks) if (1..=self.max(Field::Ticks)).contains(&ticks) => Ok(ticks << self.tick_shift()),
            _ => Err(IdError::Span { micros, layout: *self }),
        }
    }

    /// Checks that a value fits a field.
    pub fn check(&self, field: Field, value: i64) -> Result<(), IdError> {
        match u64::try_from(value) {
            Ok(value) if value <= self.max(field) => Ok(()),
            _ => Err(IdError::Field { field, value, layout: *self }),
        }
    }

    /// Returns the value of a field from the lowest bits of `bits`. The field must not be the ticks, which can have more
    /// than 31 bits.
    #[allow(clippy::cast_possible_truncation, reason = "masked to 31 bits")]
    fn part(&self, bits: u64, field: Field) -> u32 {
        (bits & self.max(field)) as u32
    }
}
