//! The steps by which a column gets ids of this extension, or gives them up. The shell carries them out in this order.

use super::default::{IdKind, tag_of};
use super::error::ColumnError;
use super::facts::{Column, Facts, IdentityKind, Sequence};
use super::notice::Notice;
use super::other_layout;
use super::tag::Course;
use super::verdict::{SequenceFate, Wish, most_of_users, shown};
use crate::clock::UnixMicros;
use crate::named_enum::named_enum;

named_enum! {
    /// The source of a column's values after it is detached.
    pub enum ValueSource {
        /// The sequence that the column owns, or a new one.
        Sequence = "sequence",
        /// An identity.
        Identity = "identity",
        /// No default.
        None = "none",
    }
}

impl ValueSource {
    /// Reads the argument of a call.
    ///
    /// # Errors
    /// [`ColumnError::UnknownSource`].
    pub fn read(name: &str) -> Result<Self, ColumnError> {
        Self::named(name).ok_or_else(|| ColumnError::UnknownSource(shown(name)))
    }
}

/// A step. The shell knows the column, its new default and its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes an id by the new default, and fails unless the id is above this one.
    TakeAbove(i64),
    /// Checks the workers of the cluster; with the highest id if the workers get another default.
    CheckWorkers(Option<i64>),
    /// Sends a notice.
    Tell(Notice),
    /// Tells that the tag of this default is kept, if it exists.
    TellKept(String),
    /// Unbinds the column's sequences, which continue above this id.
    Unbind(i64),
    /// Unbinds the column's sequences on this node of a cluster. They continue in the node's range, above this id.
    UnbindOnNode(Option<i64>),
    /// Drops the identities of the column, with or without their sequences.
    DropIdentities {
        /// True if sequences with the same names and options stay.
        keeps_sequences: bool,
    },
    /// Gives the column its new default, in the tables below, too.
    SetDefault,
    /// Drops the default of the column, in the tables below, too.
    DropDefault,
    /// Creates the tag, or raises it.
    RaiseTag {
        /// The id above which the tag must give its ids.
        highest: i64,
        /// The highest id that the tag may give.
        most: i64,
        /// The numbers that a new tag counts.
        course: Course,
    },
    /// Binds the column's sequences.
    Bind,
    /// Drops the column's sequences.
    DropSequences,
    /// Discards ids of the tag that this node has in memory, or saved when it stopped: they may be below the column's ids.
    Discard,
    /// Binds the sequence that the column shares, above this id.
    BindShared {
        /// The id above which the sequence must give its numbers.
        highest: i64,
        /// The highest number that the sequence may give.
        most: i64,
    },
    /// Tells which roles may need privileges on the tag of the sequence that the column shares.
    TellHolders,
    /// Restores defaults that call `nextval`, which returns numbers above this id.
    RestoreSequence(i64),
    /// Restores the identity of this table's column, which counts above this id.
    RestoreIdentity(u32, IdentityKind, i64),
    /// Tells which tables below have no default.
    TellWithoutDefault,
}

/// Returns the steps that give a column a default of this extension, `written` as Postgres prints it. `highest` is the highest
/// id that the column holds, or that its sequences and tags gave.
///
/// # Errors
/// [`ColumnError::NoRoom`].
pub fn attach(
    facts: &Facts,
    column: &Column,
    wish: &Wish,
    written: &str,
    highest: i64,
) -> Result<Vec<Step>, ColumnError> {
    let (is_distributed, members) = (column.table.is_distributed, facts.members(column));
    let changes = column.own().is_none_or(|(_, former)| former != written);
    let mut steps = Vec::new();
    if wish.kind == IdKind::Segment {
        check_room(column, highest)?;
    } else if changes {
        steps.push(Step::TakeAbove(highest));
    }
    steps.extend(is_distributed.then(|| Step::CheckWorkers(changes.then_some(highest))));
    steps.extend(members.iter().filter_map(|member| replaced(facts, &members, member, written)));
    let highest_of_tag = if is_distributed && changes { above_other_nodes(column, highest) } else { highest };
    steps.push(if is_distributed { Step::UnbindOnNode(None) } else { Step::Unbind(highest) });
    steps.push(Step::DropIdentities { keeps_sequences: wish.fate != SequenceFate::Drop });
    steps.push(Step::SetDefault);
    // A registry on another server keeps its change even if this transaction is rolled back. So the tag is raised there after
    // all steps that may fail here, and before any node gives ids of the tag.
    if wish.kind == IdKind::Segment {
        let most = most_of_tag(facts, column, &members, wish.fate);
        let course = if is_distributed { Course::DENSE } else { Course::of(facts, &members) };
        steps.push(Step::RaiseTag { highest: highest_of_tag, most, course });
    }
    steps.extend(of_fate(&members, wish.fate));
    Ok(steps)
}

fn of_fate(members: &[&Column], fate: SequenceFate) -> Option<Step> {
    match fate {
        SequenceFate::Redirect if members.iter().all(|member| member.owned.is_empty()) => None,
        SequenceFate::Redirect => Some(Step::Bind),
        SequenceFate::Drop => Some(Step::DropSequences),
        SequenceFate::Keep => None,
    }
}

/// Returns the steps that give a column its new default on a worker, after the coordinator and the tag.
pub fn attach_on_node(members: &[&Column], wish: &Wish) -> Vec<Step> {
    let keeps_sequences = wish.fate != SequenceFate::Drop;
    let mut steps =
        vec![Step::UnbindOnNode(None), Step::DropIdentities { keeps_sequences }, Step::SetDefault];
    steps.extend((wish.kind == IdKind::Segment).then_some(Step::Discard));
    steps.extend(of_fate(members, wish.fate));
    steps
}

/// Returns the steps that make the sequence of a column give the ids. The sequence has other users, too.
pub fn bind(column: &Column, sequence: &Sequence, highest: i64) -> Vec<Step> {
    // The columns' types limit the numbers, not the sequence's own type.
    let most = most_of_users(sequence);
    let first = match &sequence.bound {
        None => Step::BindShared { highest, most },
        Some(bound) if bound.tag.is_some() => Step::RaiseTag { highest, most, course: Course::DENSE },
        Some(_) => Step::TakeAbove(highest),
    };
    let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
    let told = Notice::KeepsDefault { sequence: sequence.name.clone(), attribute, table };
    vec![first, Step::Tell(told), Step::TellHolders]
}

/// Fails if a column of a distributed table takes ids of another tag. A node gives ids of the former tag until the node learns
/// of the change.
///
/// # Errors
/// [`ColumnError::OtherTag`].
pub fn check_tag(column: &Column, known: Option<&str>, tag: Option<&str>) -> Result<(), ColumnError> {
    match known.filter(|known| column.table.is_distributed && tag.is_some_and(|tag| tag != *known)) {
        None => Ok(()),
        Some(known) => Err(ColumnError::OtherTag {
            attribute: column.attribute.clone(),
            table: column.table.name.clone(),
            tag: known.to_owned(),
        }),
    }
}

/// Fails if a column holds the highest id of its type already.
fn check_room(column: &Column, highest: i64) -> Result<(), ColumnError> {
    if highest < column.base.maximum() {
        return Ok(());
    }
    let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
    Err(ColumnError::NoRoom { attribute, table, type_name: column.type_name.clone(), highest })
}

/// Fails if the new default gave an id that is not above the ids of the column.
///
/// # Errors
/// [`ColumnError::BelowHighest`].
pub fn check_next(
    column: &Column,
    written: String,
    next: i64,
    highest: i64,
    now: UnixMicros,
) -> Result<(), ColumnError> {
    if next > highest {
        return Ok(());
    }
    let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
    let hint = other_layout::hint(&table, &attribute, highest, &written, now);
    Err(ColumnError::BelowHighest { attribute, table, highest, written, next, hint })
}

/// Returns the notice about a default that is replaced. A default of a sequence that the column owns needs none.
fn replaced(facts: &Facts, members: &[&Column], member: &Column, written: &str) -> Option<Step> {
    if let Some((_, own)) = member.own() {
        return (own != written && tag_of(&own).is_some()).then_some(Step::TellKept(own));
    }
    let expression = member.expression.clone()?;
    let mut owned = members.iter().flat_map(|member| &member.owned).filter_map(|oid| facts.sequence(*oid));
    let (attribute, table) = (member.attribute.clone(), member.table.name.clone());
    let is_own = owned.any(|sequence| member.is_filled_by(sequence));
    (!is_own).then_some(Step::Tell(Notice::Replaced { expression, attribute, table }))
}

/// Returns the id above which the tag of a distributed table begins. The tag gives ids as soon as the coordinator is changed.
/// Other nodes still use their former defaults then, and some of their ids are not stored yet.
fn above_other_nodes(column: &Column, highest: i64) -> i64 {
    /// The first number of a worker's own sequences. The coordinator's numbers are below.
    const OF_WORKERS: i64 = 1 << 48;
    let is_snowflake = column.own().is_some_and(|(kind, _)| kind == IdKind::Snowflake);
    let room = if highest < OF_WORKERS { 0 } else { 1 << if is_snowflake { 42 } else { 36 } };
    highest.saturating_add(room)
}

/// Returns the highest id that a column and its sequences can hold.
fn most_of_tag(facts: &Facts, column: &Column, members: &[&Column], fate: SequenceFate) -> i64 {
    let owned = members.iter().flat_map(|member| &member.owned).filter_map(|oid| facts.sequence(*oid));
    // A sequence that ends at its type's maximum is widened.
    let limits = owned.filter(|sequence| sequence.increment > 0 && sequence.max != sequence.base.maximum());
    let limits = limits.map(|sequence| sequence.max).filter(|_| fate == SequenceFate::Redirect);
    limits.fold(column.base.maximum(), i64::min)
}

/// Returns the kind of ids that a column takes by its default, and this default.
///
/// # Errors
/// [`ColumnError::NotAttached`].
pub fn attached(facts: &Facts, column: &Column) -> Result<(IdKind, String), ColumnError> {
    column.own().ok_or_else(|| {
        let members = facts.members(column);
        let named = members.iter().flat_map(|member| member.owned.iter().chain(&member.sequence));
        let mut bound = named.filter_map(|oid| facts.sequence(*oid)).filter(|found| found.bound.is_some());
        ColumnError::NotAttached {
            attribute: column.attribute.clone(),
            table: column.table.name.clone(),
            expression: column.expression.clone(),
            sequence: bound.next().map(|sequence| sequence.name.clone()),
        }
    })
}

/// Returns the source of a column's values after it is detached, and a notice if it cannot be what it was.
pub fn source(
    column: &Column,
    asked: Option<ValueSource>,
    was_identity: bool,
) -> (ValueSource, Option<Notice>) {
    let Some(asked) = asked else {
        // The base of a domain counts elsewhere, but an identity needs the type itself.
        let may_be_identity = ["bigint", "integer", "smallint"].contains(&column.type_name.as_str());
        let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
        return match (was_identity, may_be_identity) {
            (true, true) => (ValueSource::Identity, None),
            (true, false) => (ValueSource::Sequence, Some(Notice::WasIdentity { attribute, table })),
            (false, _) => (ValueSource::Sequence, None),
        };
    };
    (asked, None)
}

/// Returns the steps that detach a column, whose kind of ids and default are given, and give it another source.
///
/// # Errors
/// [`ColumnError::NoRoom`] or [`ColumnError::MayBeNull`].
pub fn detach(
    facts: &Facts,
    column: &Column,
    (kind, written): (IdKind, String),
    source: ValueSource,
    highest: i64,
) -> Result<Vec<Step>, ColumnError> {
    let is_distributed = column.table.is_distributed;
    let unbind = if is_distributed { Step::UnbindOnNode(Some(highest)) } else { Step::Unbind(highest) };
    let mut steps = vec![unbind];
    if source != ValueSource::None {
        check_room(column, highest)?;
        if !is_distributed && highest > 0 && kind == IdKind::Snowflake {
            let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
            steps.push(Step::Tell(Notice::Continues { attribute, table, highest }));
        }
    }
    match source {
        ValueSource::None => steps.push(Step::DropDefault),
        ValueSource::Sequence => steps.push(Step::RestoreSequence(highest)),
        ValueSource::Identity => {
            steps.push(Step::DropDefault);
            // Children come before their parents, because restoring a table's identity drops the sequences of the tables below.
            for member in facts.members(column).into_iter().rev() {
                let identity = facts.identity(member).filter(|_| !is_distributed);
                let is_top = member.table.oid == column.table.oid;
                let Some(identity) = identity.or(is_top.then_some(IdentityKind::ByDefault)) else { continue };
                if !member.is_not_null {
                    let (attribute, table) = (member.attribute.clone(), member.table.name.clone());
                    return Err(ColumnError::MayBeNull { attribute, table, ident: member.ident.clone() });
                }
                steps.push(Step::RestoreIdentity(member.table.oid, identity, highest));
            }
            steps.push(Step::TellWithoutDefault);
        }
    }
    steps.push(Step::TellKept(written));
    Ok(steps)
}
