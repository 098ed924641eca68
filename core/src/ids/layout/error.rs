//! Errors of layouts, and of instants without a tick in one.

use super::field::Field;
use super::preset;
use crate::clock::UnixMicros;
use crate::error::{Explain, Kind};

/// Reason why a layout is refused. Every variant names the field at fault.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("{field} width {width} is out of range")]
    Width { field: Field, width: u32, min: u8, max: u8 },
    #[error("ticks, datacenter, worker, rollback and sequence add up to {sum} bits")]
    Sum { sum: u32 },
    #[error("unit \"{unit}\" is neither a fraction of a second nor whole seconds")]
    Unit { unit: String },
    #[error("epoch \"{epoch}\" is not a valid instant")]
    Epoch { epoch: String, reason: &'static str },
    #[error("ticks width {ticks} reaches beyond the year 294246")]
    TooLong { ticks: u8 },
    #[error("layout \"{text}\" is not valid")]
    Syntax { text: String, reason: String },
}

impl Explain for LayoutError {
    fn kind(&self) -> Kind {
        Kind::BadArgument
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Width { field, min, max, .. } => format!("The {field} width must be {min} to {max} bits."),
            Self::Sum { .. } => {
                "An id has 63 bits beside its sign; one that JavaScript can hold has 53.".into()
            }
            Self::Unit { .. } => {
                "Valid units are, for example, 1ms, 10ms, 100us, 1s and 2s, up to 1 day.".into()
            }
            Self::Epoch { reason, .. } => format!("{reason}."),
            Self::TooLong { .. } => "The last tick of a layout must be an instant that can be shown.".into(),
            Self::Syntax { reason, .. } => format!("{reason}."),
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Width { .. } | Self::Sum { .. } => "Take the bits from another field.".into(),
            Self::Unit { .. } => "Write a whole number followed by us, ms or s.".into(),
            Self::Epoch { .. } => {
                "Write a date or an instant in UTC, such as 2020-01-01 or 2010-11-04T01:42:54.657Z.".into()
            }
            Self::TooLong { .. } => "Use fewer ticks or a shorter unit.".into(),
            Self::Syntax { .. } => format!(
                "Write ticks/datacenter/worker/sequence, such as 41/5/5/12 or \"28/0/22/13 unit=1s \
                 epoch=2016-05-20\", or one of {}.",
                preset::names()
            ),
        })
    }
}

/// An instant that has no tick in a layout.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TickError {
    #[error("{at} is before the epoch of the layout")]
    BeforeEpoch { at: UnixMicros, epoch: UnixMicros },
    #[error("{at} is after the last tick of the layout")]
    AfterLast { at: UnixMicros, last: UnixMicros },
}

impl Explain for TickError {
    fn kind(&self) -> Kind {
        Kind::BadArgument
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::BeforeEpoch { epoch, .. } => format!("The layout begins at {epoch}."),
            Self::AfterLast { last, .. } => format!("The layout ends at {last}."),
        })
    }
}
