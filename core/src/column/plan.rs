//! The plan of a schema: the columns that could take ids, and what happens to each.

use super::default::{self, IdKind};
use super::error::ColumnError;
use super::facts::{Base, Column, Facts, Sequence};
use super::verdict::{Action, Wish, check_group, check_unnamed_tag, judge, lasting_obstacle, others};
use crate::named_enum::named_enum;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

named_enum! {
    /// The source of a column's numbers before.
    pub enum Found {
        /// Ids of this extension.
        Attached = "attached",
        /// An identity.
        Identity = "identity",
        /// A sequence that the column owns.
        Serial = "serial",
        /// Another default.
        Default = "default",
        /// Nothing: the column is a primary key.
        None = "none",
    }
}

impl Found {
    /// Returns the source of a column's numbers.
    pub fn of(facts: &Facts, column: &Column) -> Self {
        if facts.kind(column).is_some() {
            Self::Attached
        } else if column.identity.is_some() {
            Self::Identity
        } else if column.source().is_some_and(|sequence| column.owned.contains(&sequence)) {
            Self::Serial
        } else if column.has_default {
            Self::Default
        } else {
            Self::None
        }
    }
}

/// A column of the plan.
#[derive(Clone, Debug)]
pub struct PlanRow<'a> {
    /// The column.
    pub column: &'a Column,
    /// The source of its numbers.
    pub found: Found,
    /// The action; None if the column is skipped.
    pub action: Option<Action>,
    /// The reason to skip the column, or remarks on the action.
    pub reason: Option<String>,
}

/// The number of tags, and the number that shared memory has slots for.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    /// The tags that exist.
    pub count: i64,
    /// The value of `snowflake_ids.max_tags`.
    pub most: i64,
}

/// Plans a schema.
pub fn plan(facts: &Facts, kind: IdKind, tags: Tags) -> Vec<PlanRow<'_>> {
    let planned = facts.columns().iter().filter(|column| column.is_candidate && column.table.is_planned);
    let planned: Vec<_> = planned.map(|column| (column, facts.above(column))).collect();
    let mut sharing: FxHashMap<u32, usize> = FxHashMap::default();
    for sequence in
        planned.iter().filter(|(_, above)| above.is_none()).filter_map(|(column, _)| column.source())
    {
        *sharing.entry(sequence).or_default() += 1;
    }
    let mut plan =
        Plan { facts, kind, tags, sharing, groups: FxHashMap::default(), counted: FxHashSet::default() };
    planned.into_iter().map(|(column, above)| plan.row(column, above)).collect()
}

/// What `detach_all` changes: a column, or a sequence that is unbound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attached {
    /// The column with this number of the table.
    Column(u32, i16),
    /// The sequence.
    Sequence(u32),
}

/// Returns what gives ids of a kind, or of both kinds, in a schema. Leaves out tables of extensions, columns that are attached
/// with a table above, and sequences of other roles than the table's owner, because any role may name such a sequence.
pub fn attached(facts: &Facts, kind: Option<IdKind>) -> Vec<Attached> {
    let is_attached = |column: &Column| facts.kind(column).is_some();
    let planned = facts.columns().iter().filter(|column| column.is_candidate && column.table.is_planned);
    let found = planned.filter(|column| {
        facts.kind(column).is_some_and(|of| kind.is_none_or(|kind| kind == of))
            && column.table.extension.is_none()
            && !column.is_sequence_lent
            && !facts.above(column).is_some_and(is_attached)
    });
    let of = |column: &Column| match column.source() {
        Some(sequence) => Attached::Sequence(sequence),
        None => Attached::Column(column.table.oid, column.number),
    };
    let found: BTreeSet<_> = found.map(of).collect();
    found.into_iter().collect()
}

struct Plan<'a> {
    facts: &'a Facts,
    kind: IdKind,
    tags: Tags,
    /// The number of columns with each sequence.
    sharing: FxHashMap<u32, usize>,
    /// The error of each shared sequence and all columns that it serves.
    groups: FxHashMap<u32, Option<String>>,
    counted: FxHashSet<u32>,
}

impl<'a> Plan<'a> {
    fn row(&mut self, column: &'a Column, above: Option<&Column>) -> PlanRow<'a> {
        let found = Found::of(self.facts, column);
        let incomplete = (found == Found::Attached).then(|| self.incomplete(column)).flatten();
        let skipped = |reason| PlanRow { column, found, action: None, reason: Some(reason) };
        if let Some(above) = above {
            skipped(format!("goes with table \"{}\"", above.table.name))
        } else if let Some(extension) = &column.table.extension {
            skipped(format!("table of extension \"{extension}\""))
        } else if column.table.persistence == 't' {
            skipped("temporary table".to_owned())
        } else if found == Found::Attached && incomplete.is_none() {
            let kind = self.facts.kind(column).map_or("", IdKind::name);
            let sequence = column.source().and_then(|oid| self.facts.sequence(oid));
            let of = sequence.map(|sequence| format!(" of sequence \"{}\"", sequence.name));
            skipped(format!("takes {kind} ids{}", of.unwrap_or_default()))
        } else {
            match self.judge(column, found) {
                Ok(action) => {
                    let binds = matches!(action, Action::Bind(_));
                    let reason = self.remarks(column, incomplete, binds);
                    PlanRow { column, found, action: Some(action), reason }
                }
                Err(reason) => skipped(reason),
            }
        }
    }

    /// Returns a table below that does not take the column's ids yet, such as a partition that was added later. Returns None
    /// for a column that has a tag or generator of its own, because `attach_all` would replace it.
    fn incomplete(&self, column: &Column) -> Option<&'a Column> {
        let (_, written) = column.own()?;
        let tag = column.table.tag.as_deref();
        let own = default::of(self.kind, if self.kind == IdKind::Segment { Some(tag?) } else { None });
        let members = self.facts.members(column);
        (written == own).then(|| {
            members.into_iter().find(|member| member.own().is_none_or(|(_, written)| written != own))
        })?
    }

    fn judge(&mut self, column: &'a Column, found: Found) -> Result<Action, String> {
        let error = match self.decide(column) {
            Ok(_) if matches!(found, Found::Default | Found::None) && column.source().is_none() => {
                let what = if found == Found::None { "no default" } else { "default of no sequence" };
                return Err(format!("{what}: attach it by name if it is to take ids"));
            }
            Ok(action) => return Ok(action),
            Err(error) => error,
        };
        if found == Found::Default && column.base == Base::Uuid {
            Err("uuid: set DEFAULT snowflake_uuid() by hand if its ids are to grow with time".to_owned())
        } else if self.kind == IdKind::Snowflake && column.base.is_narrow() {
            Err(format!("{error}: widen {}, or take kind segment", self.facts.to_widen(column)))
        } else {
            Err(error)
        }
    }

    fn decide(&mut self, column: &'a Column) -> Result<Action, String> {
        let says = |error: ColumnError| error.to_string();
        let members = self.facts.members(column);
        let action = judge(self.facts, column, &Wish::of(self.kind)).map_err(says)?;
        let sequence = column.source().and_then(|oid| self.facts.sequence(oid));
        let (tag, is_denied, name) = match (action, sequence) {
            (Action::Bind(_), Some(of)) => (of.tag.as_deref(), of.is_tag_denied, &of.name),
            _ => (column.table.tag.as_deref(), column.table.is_tag_denied, &column.table.name),
        };
        if self.kind == IdKind::Segment {
            check_unnamed_tag(name, tag, is_denied).map_err(says)?;
        }
        match (action, sequence) {
            (Action::Bind(oid), Some(sequence)) => self.group(oid, sequence, &members)?,
            (_, Some(sequence)) => {
                self.tags.count += 1;
                if let Some(obstacle) = lasting_obstacle(sequence) {
                    return Err(format!("{obstacle}, and attach would drop it"));
                }
            }
            (_, None) => {}
        }
        Ok(action)
    }

    /// Returns the error of a shared sequence's other columns.
    fn group(&mut self, oid: u32, sequence: &Sequence, members: &[&Column]) -> Result<(), String> {
        if self.counted.insert(oid) {
            self.tags.count += 1;
            let error = check_group(self.facts, sequence, members, self.kind).err();
            self.groups.insert(oid, error.map(|error| error.to_string()));
        }
        self.groups.get(&oid).cloned().flatten().map_or(Ok(()), Err)
    }

    fn remarks(&self, column: &Column, incomplete: Option<&Column>, binds: bool) -> Option<String> {
        const MOST_NAMED: usize = 3;
        let mut remarks = Vec::new();
        if let Some(below) = incomplete {
            remarks.push(format!("table \"{}\" does not take its ids yet", below.table.name));
        }
        if let Some(sequence) = column.source().and_then(|oid| self.facts.sequence(oid)) {
            let columns = self.sharing.get(&sequence.oid).copied().unwrap_or_default();
            if columns > 1 {
                remarks.push(format!("sequence \"{}\" serves {columns} columns", sequence.name));
            }
            let members = self.facts.members(column);
            let elsewhere = others(sequence, &members).filter(|user| !user.is_planned).take(MOST_NAMED);
            let elsewhere = elsewhere.map(|user| format!("{}.{}", user.table, user.ident));
            let users: Vec<_> = elsewhere.chain(sequence.named_by.clone()).collect();
            if !users.is_empty() {
                remarks.push(format!("ids also go to {}", users.join(", ")));
            }
        }
        if binds {
            remarks.push("COPY must list the column".to_owned());
        }
        let most = column.base.maximum();
        if most < i64::MAX {
            remarks.push(format!("ids end at {most}"));
        }
        let Tags { count, most } = self.tags;
        if self.kind == IdKind::Segment && count > most {
            remarks.push(format!("tag {count} is beyond snowflake_ids.max_tags ({most})"));
        }
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}
