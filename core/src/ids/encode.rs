//! Ids as short text: base62, base58, base36, Crockford's base32 and hexadecimal.
//!
//! Every alphabet is in ASCII order, so texts of equal length sort like their ids under collation "C". Text of fixed
//! width is padded with the alphabet's first digit. A prefix, such as `cus_` in `cus_z`, shows the kind of an id.

use crate::error::{Explain, excerpt};
use crate::named_enum::named_enum;
use std::str::FromStr;

named_enum! {
    /// A text form of ids.
    pub enum Format {
        /// `0-9A-Za-z`.
        Base62 = "base62",
        /// `1-9A-Za-z` without `I`, `O` and `l`, as in Bitcoin.
        Base58 = "base58",
        /// `0-9a-z`; capital letters are also accepted.
        Base36 = "base36",
        /// Crockford's `0-9A-Z` without `I`, `L`, `O` and `U`. Also accepts small letters, `O` as 0, `I` and `L` as 1, and
        /// ignores hyphens.
        Crockford32 = "crockford32",
        /// `0-9a-f`; capital letters are also accepted.
        Hex = "hex",
    }
}

/// The reason why an id cannot be written or parsed, or why a name is not a format.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum TextError {
    #[error("unrecognized text format \"{name}\"")]
    #[explain(hint = "Known formats are {}.", Format::ALL.map(Format::name).join(", "))]
    UnknownFormat { name: String },
    #[error("invalid prefix \"{prefix}\"")]
    #[explain(
        detail = "A prefix has 1 to {MAX_PREFIX} of the characters a to z, 0 to 9 and _, and does not begin with _."
    )]
    Prefix { prefix: String },
    #[error("text is not an id with prefix \"{prefix}\"")]
    OtherPrefix { prefix: String },
    #[error("id {id} is negative")]
    #[explain(detail = "Ids are 0 or more.")]
    Negative { id: i64 },
    #[error("text is not a {format} id: it is empty")]
    Empty { format: &'static str },
    #[error("text is not a {format} id: character \"{}\" at position {at} is not a {format} digit",
            excerpt(&.found.to_string()))]
    Digit { format: &'static str, found: char, at: usize },
    #[error("text is not a {format} id: its value is out of range")]
    #[explain(detail = "The largest id is {}.", i64::MAX)]
    TooLarge { format: &'static str },
    #[error("\"{text}\" is neither an id nor a uuid")]
    #[explain(detail = "An id is a bigint; a uuid has 32 hexadecimal digits.")]
    Neither { text: String },
}

impl Format {
    const fn alphabet(self) -> &'static [u8] {
        match self {
            Self::Base62 => b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            Self::Base58 => b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
            Self::Base36 => b"0123456789abcdefghijklmnopqrstuvwxyz",
            Self::Crockford32 => b"0123456789ABCDEFGHJKMNPQRSTVWXYZ",
            Self::Hex => b"0123456789abcdef",
        }
    }

    /// Returns the length of fixed-width text: the number of digits of the largest id.
    pub fn width(self) -> usize {
        self.digits(i64::MAX.cast_unsigned()).len()
    }

    /// Returns an id as text. `fixed`: pads to [`Format::width`], so that texts sort like ids.
    pub fn encode(self, id: i64, fixed: bool) -> Result<String, TextError> {
        let value = u64::try_from(id).map_err(|_| TextError::Negative { id })?;
        let mut digits = self.digits(value);
        if fixed {
            digits.resize(self.width(), self.alphabet()[0]);
        }
        Ok(digits.iter().rev().map(|&digit| char::from(digit)).collect())
    }

    /// Parses an id, padded or not.
    pub fn decode(self, text: &str) -> Result<i64, TextError> {
        self.decode_after(0, text)
    }

    /// Parses the id that follows the first `prefix` characters.
    fn decode_after(self, prefix: usize, text: &str) -> Result<i64, TextError> {
        let format = self.name();
        let radix = self.alphabet().len() as u64;
        let mut value = None;
        for (at, found) in text.chars().enumerate().skip(prefix) {
            if self == Self::Crockford32 && found == '-' {
                continue;
            }
            let digit = self.digit(found).ok_or(TextError::Digit { format, found, at: at + 1 })?;
            let grown = value.unwrap_or(0_u64).checked_mul(radix).and_then(|v| v.checked_add(digit));
            value = Some(grown.ok_or(TextError::TooLarge { format })?);
        }
        let value = value.ok_or(TextError::Empty { format })?;
        i64::try_from(value).map_err(|_| TextError::TooLarge { format })
    }

    /// Returns the digits of a value, least significant first. Zero has one digit.
    fn digits(self, mut value: u64) -> Vec<u8> {
        let alphabet = self.alphabet();
        let radix = alphabet.len() as u64;
        let mut digits = Vec::with_capacity(16);
        loop {
            #[allow(clippy::cast_possible_truncation, reason = "below the radix")]
            digits.push(alphabet[(value % radix) as usize]);
            value /= radix;
            if value == 0 {
                return digits;
            }
        }
    }

    fn digit(self, found: char) -> Option<u64> {
        let folded = match self {
            Self::Base62 | Self::Base58 => found,
            Self::Base36 | Self::Hex => found.to_ascii_lowercase(),
            Self::Crockford32 => match found.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            },
        };
        self.alphabet().iter().position(|&digit| char::from(digit) == folded).map(|digit| digit as u64)
    }
}

impl FromStr for Format {
    type Err = TextError;

    fn from_str(name: &str) -> Result<Self, TextError> {
        let known = Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
        known.ok_or_else(|| TextError::UnknownFormat { name: excerpt(name) })
    }
}

/// The longest prefix, in characters.
const MAX_PREFIX: usize = 16;

/// A format whose texts begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixedFormat {
    /// The prefix, including its underscore.
    prefix: String,
    format: Format,
}

impl PrefixedFormat {
    /// Returns the format whose texts begin with the prefix and an underscore.
    pub fn new(format: Format, prefix: &str) -> Result<Self, TextError> {
        let is_allowed = |letter| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if !(1..=MAX_PREFIX).contains(&prefix.len())
            || prefix.starts_with('_')
            || !prefix.bytes().all(is_allowed)
        {
            return Err(TextError::Prefix { prefix: excerpt(prefix) });
        }
        Ok(Self { prefix: format!("{prefix}_"), format })
    }

    /// Returns the prefix, followed by the id as [`Format::encode`] writes it.
    pub fn encode(&self, id: i64, fixed: bool) -> Result<String, TextError> {
        let mut text = self.format.encode(id, fixed)?;
        text.insert_str(0, &self.prefix);
        Ok(text)
    }

    /// Parses an id. Refuses a text with another prefix.
    pub fn decode(&self, text: &str) -> Result<i64, TextError> {
        if !text.starts_with(&self.prefix) {
            let prefix = self.prefix.strip_suffix('_').unwrap_or_default();
            return Err(TextError::OtherPrefix { prefix: prefix.to_owned() });
        }
        self.format.decode_after(self.prefix.len(), text)
    }
}
