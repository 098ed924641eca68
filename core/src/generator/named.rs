//! Named generators: the properties in a generator's row.
//!
//! A name identifies a layout and rules. All named generators of one layout share one generator in memory. A
//! generator's row may therefore be changed, or deleted and created again, at any time: no id of a layout is issued
//! twice.

use crate::clock::human;
use crate::error::{END_IT_WITH_COMMIT, EXCERPT_CHARS, Explain, excerpt};
use crate::generator::rules::{Rules, SequenceStart};
use crate::ids::layout::{Layout, LayoutError, PRESETS};
use crate::ids::shard::{MAX_MODULUS, Shard};
use std::num::NonZeroU32;
use std::time::Duration;

/// The largest number of characters in a name.
pub const MAX_NAME_CHARS: usize = 128;
/// The largest number of bytes in a name, in any server encoding.
pub const MAX_NAME_BYTES: usize = 4 * MAX_NAME_CHARS;
/// The largest value of `cache`, the number of ids that a session takes at once.
pub const MAX_CACHE: u32 = 1_000_000;

/// A generator's row, as stored in the table.
#[derive(Clone, Copy, Debug, Default)]
pub struct GeneratorRow<'a> {
    /// The layout's text, or the name of a preset.
    pub layout: &'a str,
    /// The number of shards among which a hash divides the ids.
    pub modulus: Option<i32>,
    /// The index of the shard to which the generator's ids belong, counted from 0.
    pub remainder: Option<i32>,
    /// The rule for the first sequence number of a tick; None if the session's setting applies.
    pub sequence_start: Option<&'a str>,
    /// The number of ids that a session takes at once; None if the session's setting applies.
    pub cache: Option<i32>,
}

/// A named generator's layout and rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The layout of the ids.
    pub layout: Layout,
    /// The shard to which the ids belong; None if the session's setting applies.
    pub shard: Option<Shard>,
    /// The rule for the first sequence number of a tick; None if the session's setting applies.
    pub sequence_start: Option<SequenceStart>,
    /// The number of ids that a session takes at once; None if the session's setting applies.
    pub cache: Option<NonZeroU32>,
}

impl Named {
    /// Parses the properties in a generator's row.
    pub fn new(row: &GeneratorRow<'_>) -> Result<Self, NamedError> {
        let layout: Layout = row.layout.parse()?;
        let sequence_start = row.sequence_start.map(start_of).transpose()?;
        let cache = row.cache.map(cache_of).transpose()?;
        Ok(Self { layout, shard: shard_of(&layout, row)?, sequence_start, cache })
    }

    /// Returns the properties of the server's own generator, whose ids belong to every shard.
    pub fn of_server(layout: Layout) -> Self {
        Self { layout, shard: Some(Shard::whole()), sequence_start: None, cache: None }
    }

    /// Checks that `name` is neither the text of a layout nor the name of another layout's preset.
    pub fn check_name(&self, name: &str) -> Result<(), NamedError> {
        let is_preset = PRESETS.iter().any(|(preset, _)| *preset == name);
        match name.parse::<Layout>() {
            Ok(layout) if !(is_preset && layout == self.layout) => {
                Err(NamedError::Layoutlike { name: excerpt(name), layout: Box::new(layout) })
            }
            _ => Ok(()),
        }
    }

    /// Returns the session's rules, with the generator's sequence start if the generator has one.
    #[inline]
    #[must_use]
    pub fn rules(&self, of_session: Rules) -> Rules {
        Rules { start: self.sequence_start.unwrap_or(of_session.start), ..of_session }
    }
}

/// Checks that `bytes`, a text of `chars` characters, is a valid name.
pub fn check_name(bytes: &[u8], chars: usize) -> Result<(), NamedError> {
    // A byte in the range of ASCII control characters is never part of a longer character in a server encoding.
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

/// Returns the largest modulus for a layout. A tick must have at least one id for each shard on average.
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

/// The error for a named generator that does not exist, or whose name or properties are invalid.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum NamedError {
    #[error("generator \"{name}\" does not exist")]
    #[explain(Undefined, detail = "There is no row of this name in snowflake_ids.generator.")]
    #[explain(hint_with = if name.len() <= EXCERPT_CHARS && !name.contains('\'') {
        format!("Create it with SELECT snowflake_ids.generator_create('{name}').")
    } else {
        "Create it with snowflake_ids.generator_create.".to_owned()
    })]
    Unknown { name: String },
    #[error("generator name must not be empty")]
    #[explain(detail = "A name has 1 to {MAX_NAME_CHARS} characters.", hint = "{NAME_IT}")]
    NoName,
    #[error("generator name is too long")]
    #[explain(
        detail = "It has {bytes} bytes; a name has at most {MAX_NAME_CHARS} characters and {MAX_NAME_BYTES} bytes.",
        hint = "{NAME_IT}"
    )]
    LongName { bytes: usize },
    #[error("generator name contains a control character")]
    #[explain(detail = "Control characters would break messages that contain the name.", hint = "{NAME_IT}")]
    ControlName,
    #[error("generator name \"{name}\" is reserved for a layout")]
    #[explain(
        detail = "Functions that accept a layout or a generator would read it as layout \"{layout}\".",
        hint = "Choose another name. The name of a preset layout is allowed only for a generator of that layout."
    )]
    Layoutlike { name: String, layout: Box<Layout> },
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("modulus and remainder must be given together")]
    #[explain(hint = "{GIVE_BOTH}", detail = "{}", if *has_modulus {
        "The modulus is given without a remainder."
    } else {
        "The remainder is given without a modulus."
    })]
    Half { has_modulus: bool },
    #[error("modulus {modulus} is out of range")]
    #[explain(detail_with = match *room {
        MAX_MODULUS => format!("It must be 1 to {MAX_MODULUS}."),
        _ => format!("It must be 1 to {room}, the number of ids in a tick of layout \"{layout}\"."),
    })]
    #[explain(hint = "Use a smaller modulus, or a layout with more sequence bits.")]
    Modulus { modulus: i64, room: u32, layout: Box<Layout> },
    #[error("remainder {remainder} is out of range")]
    #[explain(detail = "With modulus {modulus}, the remainder must be 0 to {}.", modulus - 1)]
    #[explain(hint = "{GIVE_BOTH}")]
    Remainder { remainder: i32, modulus: i64 },
    #[error("unrecognized value for sequence_start: \"{text}\"")]
    #[explain(detail = "sequence_start determines where the sequence of each new tick starts.")]
    #[explain(hint = "Known values are zero, random and rotate.")]
    Start { text: String },
    #[error("cache {cache} is out of range")]
    #[explain(detail = "It must be 1 to {MAX_CACHE}.")]
    Cache { cache: i32 },
    /// Other sessions issue ids of the old layout until the change commits.
    #[error("could not commit the change of a layout in time")]
    #[explain(
        NotReady,
        detail = "The check that ids of the new layout are above the old ids was made more than {} ago.",
        human(*limit)
    )]
    #[explain(hint = "Change the layout in a transaction of its own.")]
    LateChange { limit: Duration },
    #[error("cannot PREPARE a transaction that has changed named generators")]
    #[explain(Unsupported, hint = "{END_IT_WITH_COMMIT}")]
    Prepared,
}

const NAME_IT: &str = "Name the generator after what its ids are for, for example \"web\".";
const GIVE_BOTH: &str =
    "Give modulus and remainder, as for a hash partition: FOR VALUES WITH (MODULUS ..., REMAINDER ...).";
