//! Named generators: what the row of one says of its ids.
//!
//! A name stands for a layout and for rules. What issues is the counter of the layout, which all named generators of that
//! layout share. So a row may be changed, dropped and made again at any time: no id comes twice in a layout.

use crate::error::{EXCERPT_CHARS, Explain, Kind, excerpt};
use crate::generator::rules::{Rules, SequenceStart};
use crate::ids::layout::{Layout, LayoutError, PRESETS};
use crate::ids::shard::{MAX_MODULUS, Shard};
use std::num::NonZeroU32;

/// The longest name, in characters.
pub const MAX_NAME_CHARS: usize = 128;
/// The longest name, in bytes of any encoding that Postgres knows.
pub const MAX_NAME_BYTES: usize = 4 * MAX_NAME_CHARS;
/// The most ids that a session may take at once.
pub const MAX_CACHE: u32 = 1_000_000;

/// A row, as it is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct GeneratorRow<'a> {
    /// As text, or a preset's name.
    pub layout: &'a str,
    /// Into how many parts all ids are divided by their hash.
    pub modulus: Option<i32>,
    /// The part that the ids are of.
    pub remainder: Option<i32>,
    /// The start of the sequence of a fresh tick; None: as the setting says.
    pub sequence_start: Option<&'a str>,
    /// Number of ids a session takes at once; None: as the setting says.
    pub cache: Option<i32>,
}

/// A named generator's layout and rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The layout of the ids.
    pub layout: Layout,
    /// The shard whose ids it gives; None: as the setting says.
    pub shard: Option<Shard>,
    /// The start of the sequence of a fresh tick; None: as the setting says.
    pub sequence_start: Option<SequenceStart>,
    /// Number of ids a session takes at once; None: as the setting says.
    pub cache: Option<NonZeroU32>,
}

impl Named {
    /// Returns what a row says.
    ///
    /// # Errors
    /// [`NamedError`], which names the column at fault.
    pub fn new(row: &GeneratorRow<'_>) -> Result<Self, NamedError> {
        let layout: Layout = row.layout.parse()?;
        let sequence_start = row.sequence_start.map(start_of).transpose()?;
        let cache = row.cache.map(cache_of).transpose()?;
        Ok(Self { layout, shard: shard_of(&layout, row)?, sequence_start, cache })
    }

    /// Checks that the name is not another layout's.
    pub fn check_name(&self, name: &str) -> Result<(), NamedError> {
        let is_preset = PRESETS.iter().any(|(preset, _)| *preset == name);
        match name.parse::<Layout>() {
            Ok(layout) if !(is_preset && layout == self.layout) => {
                Err(NamedError::Layoutlike { name: excerpt(name), layout: Box::new(layout) })
            }
            _ => Ok(()),
        }
    }

    /// The rules of a session, with this generator's where it has some.
    #[inline]
    #[must_use]
    pub fn rules(&self, of_session: Rules) -> Rules {
        Rules { start: self.sequence_start.unwrap_or(of_session.start), ..of_session }
    }
}

/// Returns whether bytes of so many characters can be a name.
pub fn check_name(bytes: &[u8], chars: usize) -> Result<(), NamedError> {
    // In each encoding that a database can have, such a byte is that character.
    if bytes.is_empty() {
        Err(NamedError::NoName)
    } else if bytes.len() > MAX_NAME_BYTES || chars > MAX_NAME_CHARS {
        Err(NamedError::LongName { bytes: bytes.len() })
    } else if bytes.iter().any(u8::is_ascii_control) {
        Err(NamedError::ControlName)
    } else {
        Ok(())
    }
}

fn shard_of(layout: &Layout, row: &GeneratorRow<'_>) -> Result<Option<Shard>, NamedError> {
    let (modulus, remainder) = match (row.modulus, row.remainder) {
        (None, None) => return Ok(None),
        (Some(modulus), Some(remainder)) => (i64::from(modulus), remainder),
        (modulus, _) => return Err(NamedError::Half { has_modulus: modulus.is_some() }),
    };
    let room = room_of(layout);
    if modulus < 1 || modulus > room.into() {
        return Err(NamedError::Modulus { modulus, room, layout: Box::new(*layout) });
    }
    let shard = Shard::new(modulus, remainder.into());
    shard.map(Some).map_err(|_| NamedError::Remainder { remainder, modulus })
}

/// The largest modulus of a layout: a tick has an id for each shard, on average.
fn room_of(layout: &Layout) -> u32 {
    (1_u32 << layout.sequence_bits()).min(MAX_MODULUS)
}

fn start_of(text: &str) -> Result<SequenceStart, NamedError> {
    match text {
        "zero" => Ok(SequenceStart::Zero),
        "random" => Ok(SequenceStart::Random),
        "rotate" => Ok(SequenceStart::Rotate),
        _ => Err(NamedError::Start { text: excerpt(text) }),
    }
}

fn cache_of(cache: i32) -> Result<NonZeroU32, NamedError> {
    let count = u32::try_from(cache).ok().filter(|count| *count <= MAX_CACHE).and_then(NonZeroU32::new);
    count.ok_or(NamedError::Cache { cache })
}

/// Reason why there is no named generator, or can be none of these terms.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamedError {
    #[error("generator \"{name}\" does not exist")]
    Unknown { name: String },
    #[error("generator name must not be empty")]
    NoName,
    #[error("generator name is too long")]
    LongName { bytes: usize },
    #[error("generator name has a control character in it")]
    ControlName,
    #[error("generator name \"{name}\" says a layout")]
    Layoutlike { name: String, layout: Box<Layout> },
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("modulus and remainder must be given together")]
    Half { has_modulus: bool },
    #[error("modulus {modulus} is out of range")]
    Modulus { modulus: i64, room: u32, layout: Box<Layout> },
    #[error("remainder {remainder} is out of range")]
    Remainder { remainder: i32, modulus: i64 },
    #[error("unrecognized value for sequence_start: \"{text}\"")]
    Start { text: String },
    #[error("cache {cache} is out of range")]
    Cache { cache: i32 },
}

impl Explain for NamedError {
    fn kind(&self) -> Kind {
        match self {
            Self::Unknown { .. } => Kind::Undefined,
            _ => Kind::BadArgument,
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { .. } => "There is no row of this name in snowflake_ids.generator.".into(),
            Self::NoName => format!("A name has 1 to {MAX_NAME_CHARS} characters."),
            Self::LongName { bytes } => format!(
                "It has {bytes} bytes; a name has at most {MAX_NAME_CHARS} characters, in {MAX_NAME_BYTES} bytes."
            ),
            Self::ControlName => "It would break the lines that messages are written in.".into(),
            Self::Layoutlike { layout, .. } => {
                format!("Functions that take a layout or a generator would take it for layout \"{layout}\".")
            }
            Self::Layout(error) => return error.detail(),
            Self::Half { has_modulus: true } => "There is a modulus, and no remainder.".into(),
            Self::Half { has_modulus: false } => "There is a remainder, and no modulus.".into(),
            Self::Modulus { room: MAX_MODULUS, .. } => format!("It must be 1 to {MAX_MODULUS}."),
            Self::Modulus { room, layout, .. } => {
                format!("It must be 1 to {room}: so many ids has a tick of layout \"{layout}\".")
            }
            Self::Remainder { modulus, .. } => {
                format!("It must be 0 to {}: modulus {modulus} leaves no other.", modulus - 1)
            }
            Self::Start { .. } => "It says where the sequence of a fresh tick starts.".into(),
            Self::Cache { .. } => format!("It must be 1 to {MAX_CACHE}."),
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { name } if name.len() <= EXCERPT_CHARS && !name.contains('\'') => {
                format!("Create it with SELECT snowflake_ids.generator_create('{name}').")
            }
            Self::Unknown { .. } => "Create it with snowflake_ids.generator_create.".into(),
            Self::NoName | Self::LongName { .. } | Self::ControlName => {
                "Name the generator after what its ids are for, for example \"web\".".into()
            }
            Self::Layoutlike { .. } => {
                "Choose another name. That of a known system is for a generator of its layout.".into()
            }
            Self::Layout(error) => return error.hint(),
            Self::Half { .. } | Self::Remainder { .. } => {
                "Give both, as FOR VALUES WITH (modulus, remainder) of a hash partition has them.".into()
            }
            Self::Modulus { .. } => "Take a smaller modulus, or a layout with a wider sequence.".into(),
            Self::Start { .. } => "Known values are zero, random and rotate.".into(),
            Self::Cache { .. } => return None,
        })
    }
}
