//! A series: a sequence of numbers for each key. This module decides the numbers that a series may give.
//!
//! The numbers of a gapless series are counted in a table row for each key. An SQL statement changes the row in the caller's
//! transaction. The numbers of a monotonic series come from shared memory.

mod error;
pub(crate) mod key;
mod kind;
mod limits;
pub mod monotonic;
mod recent;

pub use error::SeriesError;
pub use key::{Key, KeyType};
pub use kind::{SeriesKind, SeriesRow};
pub use limits::{
    MAX_KEY_BYTES, MAX_NAME_BYTES, MAX_NAME_CHARS, MAX_SECTIONS, MAX_STEP, MAX_TIME_ZONE_BYTES,
};
pub use recent::Recent;

use crate::error::excerpt;
use crate::tag::serial::{NumberFormat, Reset};
use std::borrow::Cow;

/// The servers among which the numbers of one key form a single sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All servers that share a registry or a Citus cluster.
    Global,
    /// One server: each key is used on a single server.
    Node,
    /// All nodes of a Citus cluster. A key's counter is on the shard that has the key's rows.
    Shard,
}

impl Scope {
    /// Returns the scope in a series' row; `global` if the row has none.
    pub fn new(kind: &str, scope: Option<&str>) -> Result<Self, SeriesError> {
        match scope {
            None | Some("global") => Ok(Self::Global),
            Some("node") if kind == "gapless" => Ok(Self::Node),
            Some("shard") if kind == "gapless" => Ok(Self::Shard),
            Some("node") => Err(SeriesError::GaplessScope { scope: "node" }),
            Some("shard") => Err(SeriesError::GaplessScope { scope: "shard" }),
            Some(other) => Err(SeriesError::Scope { name: excerpt(other) }),
        }
    }
}

/// The properties of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The id of the series' counters. A series that is dropped and created again has another id.
    pub id: i64,
    /// The kind of series.
    pub kind: SeriesKind,
    /// The type of the keys.
    pub key_type: KeyType,
    /// The first number of a key: 0 or more.
    pub start: i64,
    /// The highest number of a key: `start` or more.
    pub max_value: i64,
    /// The period after which keys start over; None for never.
    pub reset: Option<Reset>,
    /// The time zone in which periods begin.
    pub time_zone: String,
    /// The format of numbers as text.
    pub format: NumberFormat,
    /// The servers among which the numbers of one key form a single sequence.
    pub scope: Scope,
}

impl Series {
    /// Returns the series of a row. An error names the invalid column.
    pub fn new(row: &SeriesRow<'_>) -> Result<Self, SeriesError> {
        let kind = SeriesKind::new(row)?;
        if row.key_type.is_empty() {
            return Err(SeriesError::Missing { column: "key_type" });
        }
        let key_type = KeyType::named(row.key_type);
        let key_type = key_type.ok_or_else(|| SeriesError::KeyType { name: excerpt(row.key_type) })?;
        let scope = Scope::new(row.kind, row.scope)?;
        let id = row.id.ok_or(SeriesError::Missing { column: "id" })?;
        let start = row.start.ok_or(SeriesError::Missing { column: "start" })?;
        let max_value = row.max_value.ok_or(SeriesError::Missing { column: "max_value" })?;
        if start < 0 {
            return Err(SeriesError::Start { start });
        } else if max_value < start {
            return Err(SeriesError::MaxValue { max_value, start });
        }
        let reset = row.reset.map(str::parse::<Reset>).transpose()?;
        let format = match row.format {
            Some(format) => NumberFormat::parse(format, reset)?,
            None => NumberFormat::default_for(reset),
        };
        let time_zone = row.time_zone.to_owned();
        Ok(Self { id, kind, key_type, start, max_value, reset, time_zone, format, scope })
    }

    /// Converts a key to the series' key type. A text is parsed, because clients send parameters as text. `name` is the
    /// series' name.
    pub fn key_of<'a>(&self, key: &'a Key, name: &str) -> Result<Cow<'a, Key>, SeriesError> {
        let (series, wanted) = (name.to_owned(), self.key_type);
        match key {
            _ if key.key_type() == wanted => Ok(Cow::Borrowed(key)),
            Key::Text(bytes) => {
                let read = Key::read(bytes, wanted).map(Cow::Owned);
                let key = || excerpt(&String::from_utf8_lossy(bytes));
                read.ok_or_else(|| SeriesError::NoKey { series, wanted, key: key() })
            }
            Key::Bigint(_) | Key::Uuid(_) => {
                Err(SeriesError::OtherType { series, wanted, given: key.key_type() })
            }
        }
    }

    /// Returns true if the series must be used on one server only: other servers would count separately, and give the same
    /// numbers.
    pub fn is_one_servers(&self) -> bool {
        self.kind == SeriesKind::Gapless && self.scope == Scope::Global
    }

    /// Checks that a key can be set to a value. The key's next number is above that value.
    pub fn check_value(&self, value: i64) -> Result<(), SeriesError> {
        let lowest = self.start - 1;
        if (lowest..=self.max_value).contains(&value) {
            return Ok(());
        }
        Err(SeriesError::Value { value, lowest, max_value: self.max_value })
    }

    /// Returns a number as text. `day` is the first day of the number's period, in days since 1970-01-01.
    pub fn write(&self, day: i32, number: i64) -> String {
        self.format.render(day, number)
    }
}

/// Checks that `bytes`, a text of `chars` characters, is a valid name.
pub fn check_name(bytes: &[u8], chars: usize) -> Result<(), SeriesError> {
    // A byte in the range of ASCII control characters is never part of a longer character in a server encoding.
    if bytes.is_empty() {
        Err(SeriesError::NoName)
    } else if bytes.len() > MAX_NAME_BYTES || chars > MAX_NAME_CHARS {
        Err(SeriesError::LongName { bytes: bytes.len() })
    } else if bytes.iter().any(u8::is_ascii_control) {
        Err(SeriesError::ControlName)
    } else {
        Ok(())
    }
}
