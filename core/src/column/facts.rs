//! Facts of columns, of the sequences that fill them, and of the columns that refer to them. The shell reads the facts as
//! JSON from the catalogs, each fact once for all columns of a schema.

use super::default::{IdKind, is_nextval_of, own};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::fmt;

/// The type of a column or a sequence, without its domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of types")]
pub enum Base {
    Smallint,
    Integer,
    #[default]
    Bigint,
    Uuid,
    Other,
}

impl Base {
    /// Returns the highest number that the type holds.
    pub const fn maximum(self) -> i64 {
        match self {
            Self::Smallint => i16::MAX as i64,
            Self::Integer => i32::MAX as i64,
            Self::Bigint | Self::Uuid | Self::Other => i64::MAX,
        }
    }

    /// Returns whether the type is an integer type that cannot hold all ids.
    pub const fn is_narrow(self) -> bool {
        matches!(self, Self::Smallint | Self::Integer)
    }
}

/// A table.
#[derive(Clone, Debug, Default, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the catalogs")]
pub struct Table {
    /// The OID.
    pub oid: u32,
    /// The name, as `regclass` prints it.
    pub name: String,
    /// The kind, as in `pg_class`.
    pub kind: char,
    /// The persistence, as in `pg_class`.
    pub persistence: char,
    /// True if the caller has the rights of the owner.
    pub is_owned: bool,
    /// True if the table is distributed over the nodes of a Citus cluster.
    pub is_distributed: bool,
    /// True if the table is distributed, and this node is a worker.
    pub is_on_worker: bool,
    /// The extension that the table belongs to.
    pub extension: Option<String>,
    /// True if the table is in the planned schema.
    pub is_planned: bool,
    /// The tag for a column that is attached without a tag; None if it was not asked for.
    pub tag: Option<String>,
    /// True if that tag exists, and the table's owner may not move it.
    pub is_tag_denied: bool,
}

/// A column of a table.
#[derive(Clone, Debug, Default, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the catalogs")]
pub struct Column {
    /// The table.
    pub table: Table,
    /// The column's number.
    pub number: i16,
    /// The column's name.
    pub attribute: String,
    /// The column's name, quoted if necessary.
    pub ident: String,
    /// The name of the type.
    pub type_name: String,
    /// The type without its domains.
    pub base: Base,
    /// True for a generated column.
    pub is_generated: bool,
    /// True for an identity column.
    pub is_identity: bool,
    /// True if the column has a default of its own.
    pub has_default: bool,
    /// The default; None if there is none, or if the default names other objects than sequences and functions of this
    /// extension, which other sessions may drop meanwhile.
    pub expression: Option<String>,
    /// The sequence that the default names.
    pub sequence: Option<u32>,
    /// True if the table's owner does not have the rights of that sequence's owner.
    pub is_sequence_lent: bool,
    /// The sequence of the identity.
    pub identity_sequence: Option<u32>,
    /// The sequences that the column owns, also that of the identity.
    #[serde(default)]
    pub owned: Vec<u32>,
    /// The table that the column refers to by a foreign key of its own.
    pub references: Option<String>,
    /// True if the column has a default of this extension or a sequence, or is a primary key.
    pub is_candidate: bool,
}

impl Column {
    /// Returns the sequence of the default or the identity.
    pub fn source(&self) -> Option<u32> {
        self.sequence.or(self.identity_sequence)
    }

    /// Returns the kind of ids that the column's own default gives, and this default in the form that attach writes.
    pub fn own(&self) -> Option<(IdKind, String)> {
        self.expression.as_deref().and_then(own)
    }

    /// Returns whether the default is nothing but `nextval` of this sequence.
    pub fn is_filled_by(&self, sequence: &Sequence) -> bool {
        self.sequence == Some(sequence.oid)
            && self.expression.as_deref().is_some_and(|written| is_nextval_of(written, &sequence.name))
    }
}

/// The source of a bound sequence's ids.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Binding {
    /// The tag; None for snowflake ids.
    pub tag: Option<String>,
    /// The named generator, if any.
    pub generator: Option<String>,
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.tag, &self.generator) {
            (Some(tag), _) => write!(f, "ids of segment tag \"{tag}\""),
            (None, Some(generator)) => write!(f, "ids of generator \"{generator}\""),
            (None, None) => f.write_str("snowflake ids"),
        }
    }
}

impl Binding {
    /// Returns the kind of the ids.
    pub fn kind(&self) -> IdKind {
        if self.tag.is_none() { IdKind::Snowflake } else { IdKind::Segment }
    }
}

/// A column that takes numbers from a sequence, or owns it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct User {
    /// The table's OID.
    pub relation: u32,
    /// The table's name.
    pub table: String,
    /// The column's name.
    pub attribute: String,
    /// The column's name, quoted if necessary.
    pub ident: String,
    /// The column's number.
    pub number: i16,
    /// The name of the type, without its domains.
    pub type_name: String,
    /// The type, without its domains.
    pub base: Base,
    /// True if the column's default names the sequence.
    pub has_default: bool,
    /// That default; None as for [`Column::expression`].
    pub expression: Option<String>,
    /// True if the table is in the planned schema.
    pub is_planned: bool,
}

impl User {
    /// Returns whether the default calculates with the sequence's numbers.
    pub fn calculates(&self, sequence: &str) -> bool {
        self.has_default
            && !self.expression.as_deref().is_some_and(|written| is_nextval_of(written, sequence))
    }
}

/// A sequence.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Sequence {
    /// The sequence's OID.
    pub oid: u32,
    /// The sequence's name, as `regclass` prints it.
    pub name: String,
    /// The name of the sequence's owner.
    pub owner: String,
    /// True if the caller has the rights of the owner.
    pub is_owned: bool,
    /// The persistence, as in `pg_class`.
    pub persistence: char,
    /// The name of the type.
    pub type_name: String,
    /// The type.
    pub base: Base,
    /// The first number.
    pub start: i64,
    /// The increment.
    pub increment: i64,
    /// The highest number.
    pub max: i64,
    /// True for CYCLE.
    pub cycles: bool,
    /// The binding, if the sequence is bound.
    pub bound: Option<Binding>,
    /// The tag for a sequence that is bound without a tag.
    pub tag: Option<String>,
    /// True if that tag exists, and the sequence's owner may not move it.
    pub is_tag_denied: bool,
    /// The columns that take its numbers or own it, those with the narrowest type first.
    pub users: Vec<User>,
    /// Views, functions and other objects that use the sequence by name; None also if they were not asked for.
    #[serde(default)]
    pub named_by: Option<String>,
}

/// A column that refers to another column by a foreign key.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Reference {
    /// The OID of the table that is referred to.
    pub to: u32,
    /// The number of the column that is referred to.
    pub to_number: i16,
    /// The OID of the referring table.
    pub relation: u32,
    /// The referring table's name.
    pub table: String,
    /// The referring column's name.
    pub attribute: String,
    /// The referring column's name, quoted if necessary.
    pub ident: String,
    /// The referring column's number.
    pub number: i16,
    /// The name of the referring column's type.
    pub type_name: String,
    /// The referring column's type, without its domains.
    pub base: Base,
}

/// The limit of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct TagLimit {
    /// The highest id that the tag gives.
    pub max_value: i64,
    /// The highest id that was reserved.
    pub max_id: i64,
    /// True if the owner of the column's table may move the tag.
    pub may_be_moved: bool,
    /// The highest number that all columns whose default names the tag hold.
    pub most: i64,
}

/// All facts that were read.
#[derive(Debug, Default)]
pub struct Facts {
    columns: Vec<Column>,
    places: FxHashMap<(u32, String), usize>,
    parents: FxHashMap<u32, Vec<u32>>,
    children: FxHashMap<u32, Vec<u32>>,
    sequences: FxHashMap<u32, Sequence>,
    references: FxHashMap<(u32, i16), Vec<Reference>>,
}

impl Facts {
    /// Orders facts. `inherits` has a pair of a child and its parent for each direct inheritance.
    pub fn new(
        columns: Vec<Column>,
        inherits: &[(u32, u32)],
        sequences: Vec<Sequence>,
        references: Vec<Reference>,
    ) -> Self {
        let mut facts = Self::default();
        for (place, column) in columns.iter().enumerate() {
            facts.places.insert((column.table.oid, column.attribute.clone()), place);
        }
        facts.columns = columns;
        for (child, parent) in inherits {
            facts.parents.entry(*child).or_default().push(*parent);
            facts.children.entry(*parent).or_default().push(*child);
        }
        facts.sequences = sequences.into_iter().map(|sequence| (sequence.oid, sequence)).collect();
        for reference in references {
            facts.references.entry((reference.to, reference.to_number)).or_default().push(reference);
        }
        for referring in facts.references.values_mut() {
            referring.sort_by(|a, b| (a.relation, &a.attribute).cmp(&(b.relation, &b.attribute)));
        }
        facts
    }

    /// Returns all columns, in the order in which they were read.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns a column; None if it was not read.
    pub fn column(&self, relation: u32, attribute: &str) -> Option<&Column> {
        self.places.get(&(relation, attribute.to_owned())).and_then(|place| self.columns.get(*place))
    }

    /// Returns a sequence; None if it was not read.
    pub fn sequence(&self, oid: u32) -> Option<&Sequence> {
        self.sequences.get(&oid)
    }

    /// Returns all sequences.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.sequences.values()
    }

    /// Returns the columns that refer to a column.
    pub fn references(&self, relation: u32, number: i16) -> &[Reference] {
        self.references.get(&(relation, number)).map_or(&[], Vec::as_slice)
    }

    /// Returns the column, and the columns of the same name in the tables below.
    pub fn members(&self, column: &Column) -> Vec<&Column> {
        let levels = levels(&self.children, column.table.oid);
        levels.into_iter().filter_map(|(relation, _)| self.column(relation, &column.attribute)).collect()
    }

    /// Returns the candidate of the same name in the topmost table above that has a sequence or ids. The column is attached
    /// with it.
    pub fn above(&self, column: &Column) -> Option<&Column> {
        let above = levels(&self.parents, column.table.oid).into_iter().skip(1);
        let leads = |leader: &&Column| {
            leader.is_candidate && (leader.source().is_some() || self.kind(leader).is_some())
        };
        above
            .filter_map(|(relation, depth)| Some((self.column(relation, &column.attribute)?, depth)))
            .filter(|(leader, _)| leads(leader))
            .max_by_key(|(leader, depth)| (*depth, std::cmp::Reverse(leader.table.oid)))
            .map(|(leader, _)| leader)
    }

    /// Returns the kind of ids that the column takes already: by its default, or by its bound sequence.
    pub fn kind(&self, column: &Column) -> Option<IdKind> {
        let bound = || self.sequence(column.source()?)?.bound.as_ref().map(Binding::kind);
        column.own().map(|(kind, _)| kind).or_else(bound)
    }

    /// Returns the columns that must be widened together: a column, and the columns that refer to it, directly or through
    /// other columns. Leaves out columns that are wide enough for ids.
    pub fn to_widen(&self, column: &Column) -> String {
        const LONGEST: usize = 300;
        let mut found = Vec::new();
        let mut seen = vec![(column.table.oid, column.number)];
        let mut next = 0;
        while let Some((relation, number)) = seen.get(next).copied() {
            next += 1;
            for reference in self.references(relation, number) {
                if !seen.contains(&(reference.relation, reference.number)) {
                    seen.push((reference.relation, reference.number));
                    found.push(reference);
                }
            }
        }
        found.retain(|reference| reference.base.is_narrow());
        found.sort_by_key(|reference| (reference.relation, reference.number));
        let referring = found.iter().map(|reference| format!("{}.{}", reference.table, reference.ident));
        let all: Vec<_> =
            [format!("{}.{}", column.table.name, column.ident)].into_iter().chain(referring).collect();
        all.join(", ").chars().take(LONGEST).collect()
    }
}

/// Returns a table and all tables above or below it, each with its greatest distance, the nearest first. Each level is read
/// once, because a table may have very many ways to another table.
fn levels(next: &FxHashMap<u32, Vec<u32>>, relation: u32) -> Vec<(u32, usize)> {
    let mut depths = FxHashMap::default();
    let mut level = vec![relation];
    let mut depth = 0;
    while !level.is_empty() && depth <= next.len() + 1 {
        for relation in &level {
            depths.insert(*relation, depth);
        }
        level = level.iter().filter_map(|relation| next.get(relation)).flatten().copied().collect();
        level.sort_unstable();
        level.dedup();
        depth += 1;
    }
    let mut found: Vec<_> = depths.into_iter().collect();
    found.sort_unstable_by_key(|(relation, depth)| (*depth, *relation));
    found
}
