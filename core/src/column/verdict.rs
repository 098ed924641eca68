//! The verdict on one column, or on one sequence.

use super::default::{IdKind, tag_of};
use super::error::{ColumnError, Obstacle};
use super::facts::{Base, Binding, Column, Facts, Reference, Sequence, TagLimit, User, UserTable};
use super::notice::Notice;
use crate::named_enum::named_enum;

named_enum! {
    /// What becomes of the sequence that filled a column.
    pub enum SequenceFate {
        /// The sequence is bound.
        Redirect = "redirect",
        /// The sequence stays, and is not bound.
        Keep = "keep",
        /// The sequence is dropped.
        Drop = "drop",
    }
}

/// The ids that the caller wants.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The kind of the ids.
    pub kind: IdKind,
    /// The tag that the caller named.
    pub tag: Option<String>,
    /// The generator that the caller named.
    pub generator: Option<String>,
    /// What becomes of the sequence that filled the column.
    pub fate: SequenceFate,
}

impl Wish {
    /// Returns the wish of a caller who names only the kind of ids.
    pub const fn of(kind: IdKind) -> Self {
        Self { kind, tag: None, generator: None, fate: SequenceFate::Redirect }
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// [`ColumnError`], for arguments that are unknown or do not go together.
    pub fn read(
        kind: Option<&str>,
        tag: Option<String>,
        generator: Option<String>,
        fate: &str,
    ) -> Result<Self, ColumnError> {
        let fate = SequenceFate::named(fate).ok_or_else(|| ColumnError::UnknownSequenceFate(shown(fate)))?;
        let kind = kind.ok_or(ColumnError::NullArgument("kind"))?;
        let kind = IdKind::named(kind).ok_or_else(|| ColumnError::UnknownKind(shown(kind)))?;
        match (kind, tag, generator) {
            (IdKind::Snowflake, Some(tag), _) => Err(ColumnError::HasTag(shown(&tag))),
            (IdKind::Segment, _, Some(generator)) => Err(ColumnError::HasGenerator(shown(&generator))),
            (_, tag, generator) => Ok(Self { kind, tag, generator, fate }),
        }
    }

    /// Returns whether a bound sequence gives other ids than these.
    fn differs_from(&self, bound: &Binding) -> bool {
        let other_tag = self.tag.is_some() && self.tag != bound.tag;
        let other_generator = self.kind == IdKind::Snowflake && self.generator != bound.generator;
        bound.kind() != self.kind || other_tag || other_generator
    }
}

/// Returns the part of an argument that an error shows.
pub(super) fn shown(argument: &str) -> String {
    const LONGEST: usize = 128;
    argument.chars().take(LONGEST).collect()
}

/// The change that gives a column its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The column gets a default of this extension.
    Attach,
    /// This sequence is bound, and the column keeps its default.
    Bind(u32),
}

/// Decides how a column can take ids.
///
/// # Errors
/// [`ColumnError`], the first reason against it.
pub fn judge(facts: &Facts, column: &Column, wish: &Wish) -> Result<Action, ColumnError> {
    if column.table.node_group != 0 {
        return Err(ColumnError::OnWorker(column.table.name.clone()));
    }
    let members = facts.members(column);
    check(&members, column, wish.kind)?;
    if uses_change(column, wish.kind) {
        check_uses(facts, &members, wish.kind)?;
    }
    let Some(sequence) = shared(facts, column, &members) else { return Ok(Action::Attach) };
    check_shared(column, &members, sequence, wish)?;
    Ok(Action::Bind(sequence.oid))
}

/// Returns what the user should know about a column that is attached, or whose sequence is bound. `read` has the uses of the
/// column that the shell read.
pub fn notices(
    facts: &Facts,
    column: &Column,
    kind: IdKind,
    action: Action,
    read: Vec<Notice>,
) -> Vec<Notice> {
    let members = facts.members(column);
    let mut told = Vec::new();
    if uses_change(column, kind) {
        let narrow = narrow_references(facts, keys(&members), column.base.maximum());
        told.extend(narrow.map(|reference| Notice::NarrowReference {
            attribute: reference.attribute.clone(),
            table: reference.table.clone(),
            most: reference.base.maximum(),
        }));
        told.extend(read);
    }
    if let Action::Bind(oid) = action
        && let Some(sequence) = facts.sequence(oid)
    {
        told.extend(others(sequence, &members).map(|user| tell(sequence, user)));
    }
    told
}

/// Returns whether the uses of a column meet ids of another kind than before.
fn uses_change(column: &Column, kind: IdKind) -> bool {
    column.own().is_none_or(|(own, _)| own != kind)
}

/// Checks a table, and the tables below it. A foreign table is accepted only below: other servers may insert into the remote
/// table, and no lock here stops them.
///
/// # Errors
/// [`ColumnError::NotATable`] or [`ColumnError::NotOwner`].
pub fn check_tables<'a>(tables: impl Iterator<Item = &'a UserTable>) -> Result<(), ColumnError> {
    for (place, table) in tables.enumerate() {
        if !matches!(table.kind, 'r' | 'p') && (place == 0 || table.kind != 'f') {
            return Err(ColumnError::NotATable(table.name.clone()));
        } else if !table.is_owned {
            return Err(ColumnError::NotOwner(table.name.clone()));
        }
    }
    Ok(())
}

/// Checks the tables of a column and of the columns below it, the column's type, and whether the column can be written to.
///
/// # Errors
/// As [`check_tables`]; [`ColumnError::Type`], [`ColumnError::Generated`] or [`ColumnError::ParentsIdentity`].
pub fn check(members: &[&Column], column: &Column, kind: IdKind) -> Result<(), ColumnError> {
    check_tables(members.iter().map(|member| &member.table))?;
    check_column(column, kind)
}

fn check_column(column: &Column, kind: IdKind) -> Result<(), ColumnError> {
    let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
    if !matches!((kind, column.base), (_, Base::Bigint) | (IdKind::Segment, Base::Integer | Base::Smallint)) {
        let (ident, type_name) = (column.ident.clone(), column.type_name.clone());
        return Err(ColumnError::Type {
            attribute,
            table,
            ident,
            type_name,
            is_narrow: column.base.is_narrow(),
        });
    } else if column.is_generated {
        return Err(ColumnError::Generated { attribute, table });
    } else if column.identity.is_some() && column.identity_sequence.is_none() {
        return Err(ColumnError::ParentsIdentity { attribute, table });
    }
    Ok(())
}

/// Checks whether INSERT would fail with the new ids, or a use of the column would be lost.
fn check_uses(facts: &Facts, members: &[&Column], kind: IdKind) -> Result<(), ColumnError> {
    for member in members {
        let (attribute, table) = (member.attribute.clone(), member.table.name.clone());
        let is_filled = member.has_default || member.identity.is_some();
        if let Some(of) = member.references.clone().filter(|_| !is_filled) {
            return Err(ColumnError::ForeignKey { attribute, table, of });
        }
    }
    for member in members {
        let of_default = member.sequence.and_then(|oid| facts.sequence(oid));
        if of_default.is_some_and(|sequence| !member.is_filled_by(sequence)) {
            return Err(ColumnError::Calculates {
                attribute: member.attribute.clone(),
                table: member.table.name.clone(),
                expression: member.expression.clone(),
            });
        }
    }
    for member in members {
        let sequence = member.identity_sequence.and_then(|oid| facts.sequence(oid));
        if let Some((sequence, user)) =
            sequence.and_then(|of| others(of, members).next().map(|user| (of, user)))
        {
            return Err(ColumnError::IdentityShared {
                sequence: sequence.name.clone(),
                table: member.table.name.clone(),
                other: user.attribute.clone(),
                of: user.table.clone(),
                kind,
            });
        }
    }
    check_references(facts, keys(members), kind)
}

fn keys<'a>(members: &'a [&Column]) -> impl Iterator<Item = (u32, i16)> + 'a {
    members.iter().map(|member| (member.table.oid, member.number))
}

/// Returns the columns that refer to these columns, and cannot hold numbers up to `most`.
fn narrow_references<'a>(
    facts: &'a Facts,
    columns: impl Iterator<Item = (u32, i16)> + 'a,
    most: i64,
) -> impl Iterator<Item = &'a Reference> {
    let referring = columns.flat_map(|(relation, number)| facts.references(relation, number));
    referring.filter(move |reference| reference.base.maximum() < most)
}

/// Fails if a column refers to these columns, and cannot hold snowflake ids. Dense ids reach its end later, if ever.
fn check_references(
    facts: &Facts,
    columns: impl Iterator<Item = (u32, i16)>,
    kind: IdKind,
) -> Result<(), ColumnError> {
    if kind == IdKind::Segment {
        return Ok(());
    }
    narrow_references(facts, columns, i64::MAX).next().map_or(Ok(()), |reference| {
        Err(ColumnError::NarrowReference {
            attribute: reference.attribute.clone(),
            table: reference.table.clone(),
            ident: reference.ident.clone(),
            type_name: reference.type_name.clone(),
            most: reference.base.maximum(),
        })
    })
}

/// Returns the sequence of a column's default if the column is not its only user. A bound sequence counts as shared, because
/// it has its own tag or generator. So does a sequence that no column owns, because other code may call nextval for it.
/// Columns of distributed tables never share: each node has a sequence of its own.
pub fn shared<'a>(facts: &'a Facts, column: &Column, members: &[&Column]) -> Option<&'a Sequence> {
    let sequence = facts.sequence(column.sequence?)?;
    let is_owned = members.iter().any(|member| member.owned.contains(&sequence.oid));
    let is_shared = !is_owned || sequence.bound.is_some() || others(sequence, members).next().is_some();
    (!column.table.is_distributed && column.is_filled_by(sequence) && is_shared).then_some(sequence)
}

/// Returns the users of a sequence other than a column and the same column of the tables below.
pub fn others<'a>(sequence: &'a Sequence, members: &'a [&Column]) -> impl Iterator<Item = &'a User> {
    sequence.users.iter().filter(move |user| {
        !members.iter().any(|own| own.table.oid == user.relation && own.attribute == user.attribute)
    })
}

/// Checks whether a sequence with several users can be bound for a column.
fn check_shared(
    column: &Column,
    members: &[&Column],
    sequence: &Sequence,
    wish: &Wish,
) -> Result<(), ColumnError> {
    let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
    let name = sequence.name.clone();
    if wish.fate != SequenceFate::Redirect {
        let fate = wish.fate.name();
        return Err(ColumnError::HasOtherUsers { sequence: name, attribute, table, fate });
    }
    if let Some(other) = members.iter().find(|member| !member.is_filled_by(sequence)) {
        let member = other.table.name.clone();
        return Err(ColumnError::OtherDefault { attribute, member, sequence: name, table });
    }
    check_sequence_owner(sequence)?;
    // The caller may be a superuser, and the table's owner may have named another role's sequence in the default.
    if column.is_sequence_lent {
        return Err(ColumnError::LentSequence { sequence: name, attribute, table });
    }
    if let Some(bound) = sequence.bound.as_ref().filter(|bound| wish.differs_from(bound)) {
        return Err(ColumnError::BoundToOthers { sequence: name, bound: bound.clone() });
    }
    let most = if wish.kind == IdKind::Snowflake { column.base.maximum() } else { i64::MIN };
    check_others(sequence, members, most)?;
    lasting_obstacle(sequence).map_or(Ok(()), |obstacle| Err(obstacle.into()))
}

/// Checks that the caller may bind a sequence.
///
/// # Errors
/// [`ColumnError::NotSequenceOwner`].
pub fn check_sequence_owner(sequence: &Sequence) -> Result<(), ColumnError> {
    if sequence.is_owned {
        return Ok(());
    }
    Err(ColumnError::NotSequenceOwner { sequence: sequence.name.clone(), owner: sequence.owner.clone() })
}

/// Checks other columns that use a sequence, because they will get ids too. A column of a narrower type than `most` would
/// fail at the first id that it cannot hold.
///
/// # Errors
/// [`ColumnError::NarrowUser`].
pub fn check_others(sequence: &Sequence, members: &[&Column], most: i64) -> Result<(), ColumnError> {
    // The users with the narrowest types come first.
    let mut narrow = others(sequence, members).take_while(|user| user.base.maximum() < most);
    narrow.find(|user| !user.calculates(&sequence.name)).map_or(Ok(()), |user| {
        Err(ColumnError::NarrowUser {
            sequence: sequence.name.clone(),
            attribute: user.attribute.clone(),
            table: user.table.clone(),
            type_name: user.type_name.clone(),
            most: user.base.maximum(),
        })
    })
}

/// Tells that another column gets ids. A default that calculates with the numbers may cut them off.
pub fn tell(sequence: &Sequence, user: &User) -> Notice {
    let (attribute, table) = (user.attribute.clone(), user.table.clone());
    let name = sequence.name.clone();
    if user.calculates(&name) {
        let expression = user.expression.clone().unwrap_or_else(|| "an expression".to_owned());
        Notice::CalculatingUser { attribute, table, sequence: name, expression }
    } else {
        Notice::OtherUser { attribute, table, sequence: name }
    }
}

/// Checks a sequence that the caller binds by itself, with all of its users. Returns notices about uses that may be a
/// surprise.
///
/// # Errors
/// [`ColumnError`], the first reason against it.
pub fn judge_sequence(
    sequence: &Sequence,
    is_of_distributed: bool,
    kind: IdKind,
) -> Result<Vec<Notice>, ColumnError> {
    check_sequence_owner(sequence)?;
    let name = sequence.name.clone();
    if is_of_distributed {
        return Err(ColumnError::OfDistributed(name));
    } else if let Some(bound) = sequence.bound.clone() {
        return Err(ColumnError::AlreadyBound { sequence: name, bound });
    }
    obstacle(sequence).map_or(Ok(()), |obstacle| Err(ColumnError::from(obstacle)))?;
    if kind == IdKind::Snowflake {
        check_others(sequence, &[], i64::MAX)?;
    }
    let calculating = sequence.users.iter().filter(|user| user.calculates(&sequence.name));
    Ok(calculating.map(|user| tell(sequence, user)).collect())
}

/// Returns the highest number that all users of a sequence can hold.
pub fn most_of_users(sequence: &Sequence) -> i64 {
    let plain = sequence.users.iter().filter(|user| !user.calculates(&sequence.name));
    plain.map(|user| user.base.maximum()).min().unwrap_or(i64::MAX)
}

/// Returns the first property that keeps a sequence from being bound, and that cannot be changed for the time of the binding.
pub fn lasting_obstacle(sequence: &Sequence) -> Option<Obstacle> {
    let name = sequence.name.clone();
    if sequence.persistence == 't' {
        Some(Obstacle::Temporary(name))
    } else if sequence.increment < 0 {
        Some(Obstacle::CountsDown { sequence: name, increment: sequence.increment })
    } else {
        None
    }
}

/// Returns the first property that keeps a sequence from being bound as it is.
pub fn obstacle(sequence: &Sequence) -> Option<Obstacle> {
    let name = sequence.name.clone();
    let removable = || {
        if sequence.persistence == 'u' {
            Some(Obstacle::Unlogged(name))
        } else if sequence.base != Base::Bigint {
            let (type_name, most) = (sequence.type_name.clone(), sequence.base.maximum());
            Some(Obstacle::Narrow { sequence: name, type_name, most })
        } else {
            sequence.cycles.then_some(Obstacle::Cycles(name))
        }
    };
    lasting_obstacle(sequence).or_else(removable)
}

/// Returns the kinds of ids that a column takes, by its default and by its bound sequences, with the tags of dense ids.
pub fn ids_of(facts: &Facts, column: &Column) -> Vec<(IdKind, Option<String>)> {
    let own = column.own().map(|(kind, written)| (kind, tag_of(&written)));
    let source = column.source().and_then(|oid| facts.sequence(oid));
    let bound =
        source.and_then(|sequence| sequence.bound.as_ref()).map(|bound| (bound.kind(), bound.tag.clone()));
    own.into_iter().chain(bound).collect()
}

/// Returns the new limit of a tag whose column got another type; None if the limit stays. A limit that equals the maximum of a
/// narrower type was set when the column had that type.
pub fn new_limit(tag: &TagLimit, column: Base) -> Option<i64> {
    let most = column.maximum().min(tag.most);
    let was_narrow = [Base::Smallint, Base::Integer].iter().any(|base| base.maximum() == tag.max_value);
    (most < tag.max_value || was_narrow && most > tag.max_value).then_some(most)
}

/// Checks the right to a tag whose name comes from a table or a sequence, not from the caller. The caller may be a superuser,
/// and the owner may have chosen a name that leads to another role's tag.
///
/// # Errors
/// [`ColumnError::TagDenied`].
pub fn check_unnamed_tag(relation: &str, tag: Option<&str>, is_denied: bool) -> Result<(), ColumnError> {
    if !is_denied {
        return Ok(());
    }
    Err(ColumnError::TagDenied { tag: shown(tag.unwrap_or_default()), relation: relation.to_owned() })
}

/// Checks the other columns of a sequence that is bound for a whole schema: they would take ids that they do not expect, or
/// columns that refer to them could not hold the ids.
///
/// # Errors
/// [`ColumnError::Calculates`] or [`ColumnError::NarrowReference`].
pub fn check_group(
    facts: &Facts,
    sequence: &Sequence,
    members: &[&Column],
    kind: IdKind,
) -> Result<(), ColumnError> {
    if let Some(user) = others(sequence, members).find(|user| user.calculates(&sequence.name)) {
        let (attribute, table) = (user.attribute.clone(), user.table.clone());
        return Err(ColumnError::Calculates { attribute, table, expression: user.expression.clone() });
    }
    check_references(facts, others(sequence, members).map(|user| (user.relation, user.number)), kind)
}
