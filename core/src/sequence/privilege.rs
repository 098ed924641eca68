//! Rights on a single tag, as GRANT ... ON SEQUENCE has them.
//!
//! A tag on which nothing was ever granted or revoked is open to all roles that may call the functions. Once something was,
//! it is restricted: what a role may do follows from what is granted to it, to roles it is a member of, and to PUBLIC.

use crate::error::{Explain, excerpt};
use std::fmt;

/// A right that a role may hold on a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The tag belongs to the role: it may do all of what follows, change the tag, drop it, and grant rights on it.
    Owner,
    /// To take ids.
    Usage,
    /// To see the last id taken, and the tag's row of the status view.
    Select,
    /// To take ids, and to move the tag.
    Update,
}

impl Privilege {
    /// In the order in which they are written.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Usage, Self::Select, Self::Update];

    /// Its name, as GRANT spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "OWNER",
            Self::Usage => "USAGE",
            Self::Select => "SELECT",
            Self::Update => "UPDATE",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// An action on a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To take ids: `segment_nextval`.
    Take,
    /// To look: `segment_currval`, the status view.
    Look,
    /// To move it: `segment_set`, `segment_raise`.
    Move,
    /// To change or drop it, and to grant rights on it.
    Own,
}

impl Action {
    /// Any of these suffices. The same as for a sequence: USAGE and UPDATE allow nextval; SELECT, USAGE and UPDATE allow
    /// to look at it.
    pub const fn suffices(self) -> &'static [Privilege] {
        match self {
            Self::Take => &[Privilege::Usage, Privilege::Update, Privilege::Owner],
            Self::Look => &Privilege::ALL,
            Self::Move => &[Privilege::Update, Privilege::Owner],
            Self::Own => &[Privilege::Owner],
        }
    }
}

/// A set of rights. Written as a list: `USAGE, UPDATE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges(u8);

impl Privileges {
    /// No privilege at all.
    pub const NONE: Self = Self(0);

    /// Those that can be granted: all but [`Privilege::Owner`].
    pub const GRANTABLE: Self =
        Self(Privilege::Usage.bit() | Privilege::Select.bit() | Privilege::Update.bit());

    /// Reads a list of what can be granted, in any case, as `has_table_privilege` does. ALL and ALL PRIVILEGES stand for
    /// all of it.
    pub fn parse(list: &str) -> Result<Self, PrivilegeError> {
        let of_word = |word: &str| {
            let all = ["ALL", "ALL PRIVILEGES"].iter().any(|all| word.eq_ignore_ascii_case(all));
            if all {
                Some(Self::GRANTABLE)
            } else {
                Self::named(word).filter(|one| Self::GRANTABLE.with(*one) == Self::GRANTABLE)
            }
        };
        list.split(',').map(str::trim).try_fold(Self::NONE, |all, word| match of_word(word) {
            Some(more) => Ok(all.with(more)),
            None => Err(PrivilegeError { word: excerpt(word) }),
        })
    }

    /// Reads what was written by [`Display`](fmt::Display); words that are none grant nothing.
    pub fn stored(text: &str) -> Self {
        text.split(',').filter_map(|word| Self::named(word.trim())).fold(Self::NONE, Self::with)
    }

    fn named(word: &str) -> Option<Self> {
        Privilege::ALL.into_iter().find(|one| word.eq_ignore_ascii_case(one.name())).map(Self::from)
    }

    /// All privileges that are in either.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// The privileges that are in this and not in the other.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// Returns whether this is one of them.
    pub const fn has(self, one: Privilege) -> bool {
        self.0 & one.bit() != 0
    }

    /// Returns whether one of them is asked about by asking for this action.
    pub const fn names(self, action: Action) -> bool {
        match action {
            Action::Take => self.has(Privilege::Usage),
            Action::Look => self.has(Privilege::Select),
            Action::Move => self.has(Privilege::Update),
            Action::Own => self.has(Privilege::Owner),
        }
    }

    /// Returns whether they allow this.
    pub fn allow(self, action: Action) -> bool {
        action.suffices().iter().any(|one| self.has(*one))
    }
}

impl From<Privilege> for Privileges {
    fn from(one: Privilege) -> Self {
        Self(one.bit())
    }
}

impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Privilege::ALL.into_iter().filter(|one| self.has(*one));
        f.write_str(&held.map(Privilege::name).collect::<Vec<_>>().join(", "))
    }
}

/// A word that names no right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("unrecognized privilege type: \"{word}\"")]
#[explain(BadArgument, detail = "Privileges are USAGE, SELECT and UPDATE.")]
#[explain(hint = "Give one of them, several with commas between them, or ALL.")]
pub struct PrivilegeError {
    /// The beginning of it.
    word: String,
}
