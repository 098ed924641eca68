//! Privileges on a single tag, as in GRANT ... ON SEQUENCE.
//!
//! A tag without any grant or revoke is open to all roles that may call the functions. The first grant, or a
//! revoke from PUBLIC, restricts the tag. From then on, a role has the privileges that are granted to the role itself, to roles of which it
//! is a member, and to PUBLIC.

use crate::error::{Explain, excerpt};
use crate::named_enum::named_enum;
use std::fmt;

named_enum! {
    /// A privilege that a role may hold on a tag, as GRANT spells it. Lists have this order.
    pub enum Privilege {
        /// Ownership, which includes all other privileges. The owner may change the tag, drop it, and grant privileges on it.
        Owner = "OWNER",
        /// The privilege to take ids.
        Usage = "USAGE",
        /// The privilege to see the last id taken, and the tag's row in the status view.
        Select = "SELECT",
        /// The privilege to take ids, and to move the tag's position.
        Update = "UPDATE",
    }
}

impl Privilege {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// An access to a tag or a series, which needs a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Taking ids: `segment_nextval`.
    Take,
    /// Reading: `segment_currval`, the status view.
    Look,
    /// Moving the position: `segment_set`, `segment_raise`.
    Move,
    /// Changing or dropping the tag, and granting privileges on it.
    Own,
}

impl Access {
    /// Returns the privilege that is named after the action.
    pub const fn privilege(self) -> Privilege {
        match self {
            Self::Take => Privilege::Usage,
            Self::Look => Privilege::Select,
            Self::Move => Privilege::Update,
            Self::Own => Privilege::Owner,
        }
    }

    /// Returns the privileges that allow the action. Any single one of these privileges is enough. Sequences have the
    /// same rules: USAGE and UPDATE allow nextval, and each of SELECT, USAGE and UPDATE allows reading.
    pub const fn suffices(self) -> &'static [Privilege] {
        match self {
            Self::Take => &[Privilege::Usage, Privilege::Update, Privilege::Owner],
            Self::Look => &Privilege::ALL,
            Self::Move => &[Privilege::Update, Privilege::Owner],
            Self::Own => &[Privilege::Owner],
        }
    }
}

/// A set of privileges. Its text is a list: `USAGE, UPDATE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges(u8);

impl Privileges {
    /// No privilege.
    pub const NONE: Self = Self(0);

    /// All privileges that can be granted: all except [`Privilege::Owner`].
    pub const GRANTABLE: Self =
        Self(Privilege::Usage.bit() | Privilege::Select.bit() | Privilege::Update.bit());

    /// Parses a list of grantable privileges, in upper or lower case, as `has_table_privilege` does. ALL and ALL
    /// PRIVILEGES mean all grantable privileges.
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

    /// Parses a list that [`Display`](fmt::Display) has written. Unknown words grant nothing.
    pub fn stored(text: &str) -> Self {
        text.split(',').filter_map(|word| Self::named(word.trim())).fold(Self::NONE, Self::with)
    }

    fn named(word: &str) -> Option<Self> {
        Privilege::ALL.into_iter().find(|one| word.eq_ignore_ascii_case(one.name())).map(Self::from)
    }

    /// Returns the privileges that are in at least one of the two sets.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// Returns the privileges in this set that are not in the set `less`.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// Returns true if the set contains this privilege.
    pub const fn has(self, one: Privilege) -> bool {
        self.0 & one.bit() != 0
    }

    /// Returns true if the set allows this action.
    pub fn allow(self, action: Access) -> bool {
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

/// A word that is not the name of a privilege.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("unrecognized privilege type: \"{word}\"")]
#[explain(BadArgument, detail = "Privileges are USAGE, SELECT and UPDATE.")]
#[explain(hint = "Name one or more privileges, separated by commas, or ALL.")]
pub struct PrivilegeError {
    word: String,
}
