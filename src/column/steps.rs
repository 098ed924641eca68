//! Carries out the steps by which a column gets ids of this extension, or gives them up.
//!
//! ALTER TABLE and similar statements make all changes, so the new default is dumped, restored and upgraded like any other.
//! Row security is never bypassed: a policy that hides rows from these functions causes an error, as with `pg_dump`.
//!
//! A table may contain code of its owner: index expressions, checks, policies, and functions. Therefore:
//! - Tables are read and changed as their owners, because partitions and children may have different owners.
//! - The caller's rights are used to change tags and to create sequences, because these steps run no code of the owner.
//! - What was checked before a lock was acquired is checked again under the lock, by oid.

use super::facts::{self, with_column, with_column_beside};
use super::owned::{self, ADVANCE, DROP_SEQUENCES, internal};
use super::tags::{self, Place};
use crate::pg::clock::SystemClock;
use crate::pg::relation::{self, Relation};
use crate::pg::report::{report, spi, tell};
use crate::pg::statement::Statement;
use crate::pg::tag_text::TagText;
use crate::pg::text::TextOut;
use crate::pg::{guc, sequence, transaction};
use crate::progress;
use crate::shared::generator::SHARED;
use crate::store::tables::SEGMENT;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{FromDatum, IntoDatum};
use snowflake_ids_core::Clock;
use snowflake_ids_core::column::bound::changes_to_bind;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::{Base, Column, Facts, Sequence};
use snowflake_ids_core::column::node::Numbers;
use snowflake_ids_core::column::notice::Notice;
use snowflake_ids_core::column::steps::{self, Step, ValueSource};
use snowflake_ids_core::column::verdict::{self, Action, Wish};
use snowflake_ids_core::report::progress::{Command, Phase};

static KEEP_GENERATOR: Statement = internal!("generator_keep($1)");
static CHECK_NODES: Statement = internal!(
    "check_coordinator($1), snowflake_ids_internal.check_alone($2, $1) WHERE snowflake_ids_internal.is_distributed($1)"
);
static CHECK_WORKERS: Statement = internal!("check_workers($1, $2, $3, $4, $5, $6, $7)");
static DETACH_WORKERS: Statement = internal!("detach_workers($1, $2, $3, $4)");
static HIGHEST_HERE: Statement = internal!("highest_of_group(0, $1, $2, $3)");
static CHANGE_DEFAULT: Statement =
    internal!("as_owner($1, format('ALTER TABLE ONLY %s ALTER COLUMN %I %s', $1::regclass, $2, $3))");
/// Attaches a column of a distributed table on all nodes.
static ATTACH: Statement = Statement::new("SELECT snowflake_ids.attach($1, $2, $3)");
static DISCARD: Statement = Statement::new("SELECT snowflake_ids.segment_discard($1)");
static RESTORE_SEQUENCE: Statement = internal!("restore_sequence($1, $2, $3)");

static VOID_RECEIVED: Statement =
    Statement::new("UPDATE snowflake_ids.received AS r SET version = NULL WHERE r.tag = $1 COLLATE \"C\"");

/// The tag of the parent, if the parent was attached first, and one sequence served both tables. Both defaults may name another
/// role's tag, so the table's owner needs the right to move the tag.
static TAG_OF_PARENT: Statement = Statement::new(
    "SELECT t.tag
     FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
         CROSS JOIN LATERAL (SELECT snowflake_ids_internal.default_of(i.inhrelid, $2)) AS d (written),
         snowflake_ids_internal.tag_of_default(d.written) AS t (tag)
     WHERE i.inhrelid = $1 AND snowflake_ids_internal.default_of(i.inhparent, $2) = d.written COLLATE \"C\"
         AND snowflake_ids_internal.may_move_tag(c.relowner, t.tag)",
);

/// Another column that takes ids of a tag.
static OTHER_OF_TAG: Statement = Statement::new(
    "SELECT c.attribute::text, c.relation::text FROM snowflake_ids_internal.columns_of_tag($3) AS c
     WHERE c.relation NOT IN (SELECT snowflake_ids_internal.table_and_below($1)) OR c.attribute <> $2 COLLATE \"C\" LIMIT 1",
);

/// The roles that have rights on a sequence whose tag is restricted, other than its owner.
static HOLDERS: Statement = Statement::new(
    "SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(a.grantee)), ', ')
     FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.oid = $1 AND a.privilege_type IN ('USAGE', 'UPDATE')
         AND a.grantee NOT IN (0, c.relowner) AND EXISTS (SELECT FROM snowflake_ids.segment_restricted AS r WHERE r.tag = $2)",
);

/// A column, and the ids that it takes.
pub struct Target {
    /// The table.
    pub relation: Oid,
    /// The column.
    pub attribute: TextOut,
    /// The ids, for the core.
    pub wish: Wish,
    /// The tag of dense ids.
    pub tag: Option<TextOut>,
    /// The generator of snowflake ids.
    pub generator: Option<TextOut>,
    /// The sequence that the column shares, if it was read and locked for another column.
    pub shared: Option<Sequence>,
}

/// Keeps the generator that a call of `function` names. A default that gives no ids would make each insert fail.
pub fn check_source(function: &'static str, generator: Option<&TextOut>) -> Result<(), ErrorReport> {
    if let Some(generator) = generator {
        KEEP_GENERATOR.run(&[generator.clone().into()]).map_err(spi)?;
    }
    SHARED.ready(function).map(drop)
}

/// Locks a table and the tables below in ACCESS EXCLUSIVE mode, which ALTER TABLE needs. Two sessions that upgraded a weaker
/// lock would deadlock. Until the commit, no session can insert rows, create a view on a table, change a table's owner, or add
/// a child table.
pub fn lock(relation: Oid) -> Result<(), ErrorReport> {
    // The transaction that creates a table locks it so, and each table that it puts below.
    if sequence::is_new(relation) {
        return Ok(());
    }
    let mut locked = Vec::new();
    // Repeats until all tables below are locked. Everything may have changed during the wait for a lock.
    while locked.is_empty() || relation::has_more_below(relation, &locked) {
        let tables = facts::of_tables(relation)?;
        if tables.is_empty() {
            return Err(report(ColumnError::NoRelation(relation.to_u32())));
        }
        verdict::check_tables(tables.iter()).map_err(report)?;
        // A snapshot taken before the lock would miss rows that were inserted during the wait for the lock.
        if !transaction::sees_new_commits() {
            let level = guc::shown(c"transaction_isolation").unwrap_or_default();
            return Err(report(ColumnError::Isolation(level)));
        }
        for table in tables
            .iter()
            .map(|table| Oid::from(table.oid))
            .filter(|table| !locked.contains(table))
            .collect::<Vec<_>>()
        {
            Relation::find(table).inspect(Relation::lock);
            locked.push(table);
        }
    }
    Ok(())
}

/// Takes an id by a default of this extension, and fails unless the id is above `highest`.
pub fn check_next(column: &Column, written: &TextOut, highest: i64) -> Result<(), ErrorReport> {
    let next = tags::take(written)?;
    let written = written.to_utf8_lossy();
    steps::check_next(column, written, next, highest, SystemClock.now()).map_err(report)
}

/// Returns the tag that is named after a table or a sequence; None if there is no such relation. Checks the right to the tag.
pub fn unnamed_tag(of: Oid) -> Result<Option<TextOut>, ErrorReport> {
    let Some((tag, relation, is_denied)) = facts::unnamed_tag(of)? else { return Ok(None) };
    let name = tag.to_utf8_lossy();
    verdict::check_unnamed_tag(&relation.to_utf8_lossy(), Some(&name), is_denied).map_err(report)?;
    Ok(Some(tag))
}

/// Detaches a column, and gives it this source, or its former one.
pub fn detach(relation: Oid, attribute: TextOut, asked: Option<ValueSource>) -> Result<(), ErrorReport> {
    CHECK_NODES.run(&[relation.into(), "detach".into()]).map_err(spi)?;
    let enter = |phase| progress::enter(Command::Detach, relation.to_u32(), phase);
    enter(Phase::WaitingForTable);
    lock(relation)?;
    with_column(relation, &attribute.clone(), |facts, column| {
        verdict::check(&facts.members(column), column, IdKind::Segment).map_err(report)?;
        let is_distributed = column.table.is_distributed;
        let own = steps::attached(facts, column).map_err(report)?;
        let target = Target::of(relation, attribute, own.0);
        let was_identity = !is_distributed && facts.identity(column).is_some();
        let (source, notice) = steps::source(column, asked, was_identity);
        notice.into_iter().for_each(tell);
        let highest = if is_distributed {
            // Workers first: afterwards no worker takes an id, so the highest id stays the highest.
            let (none, is_identity) = (None::<String>, source == ValueSource::Identity);
            let rest = [
                none.clone().into(),
                none.clone().into(),
                None::<i64>.into(),
                none.into(),
                is_identity.into(),
            ];
            target.run(&CHECK_WORKERS, rest)?;
            enter(Phase::WaitingForNodes);
            let written = TextOut::of(own.1.clone());
            target.run(&DETACH_WORKERS, [source.name().into(), written.clone().into()])?;
            target.first(&HIGHEST_HERE, [written.into()])?.unwrap_or_default()
        } else {
            enter(Phase::SearchingHighest);
            owned::highest(facts, column, true)?
        };
        enter(Phase::ChangingDefaults);
        for step in steps::detach(facts, column, own, source, highest).map_err(report)? {
            target.carry_out(step, (facts, column), relation)?;
        }
        progress::end(Command::Detach);
        Ok(())
    })
}

/// Changes the default of a column, in the tables below, too. A row that is inserted directly into a partition gets the
/// partition's default.
pub(super) fn change_default(members: &[&Column], change: &[u8]) -> Result<(), ErrorReport> {
    for member in members {
        let [relation, attribute] = owned::place(member);
        let change = TextOut::of_bytes(change).into();
        CHANGE_DEFAULT.run(&[relation, attribute, change]).map_err(spi)?;
    }
    Ok(())
}

pub(super) fn set_default(written: &[u8]) -> Vec<u8> {
    [b"SET DEFAULT ", written].concat()
}

impl Target {
    /// Returns the target of a caller who names only the kind of ids.
    pub fn of(relation: Oid, attribute: TextOut, kind: IdKind) -> Self {
        Self { relation, attribute, wish: Wish::of(kind), tag: None, generator: None, shared: None }
    }

    /// Attaches the column, on all nodes if the table is distributed over a cluster.
    pub fn attach_on_all_nodes(&mut self) -> Result<(), ErrorReport> {
        tags::check_manager("attach")?;
        check_source("snowflake_ids.attach", self.generator.as_ref())?;
        if !sequence::is_new(self.relation) && self.is_distributed()? {
            return self.run(&ATTACH, [self.wish.kind.name().into()]);
        }
        self.attach()
    }

    /// Returns whether the table is distributed over a cluster. Fails on its workers.
    pub fn is_distributed(&self) -> Result<bool, ErrorReport> {
        let found = CHECK_NODES.first(&[self.relation.into(), "attach".into()], |_| Ok(()));
        Ok(found.map_err(spi)?.is_some())
    }

    /// Attaches the column on this node, or binds the sequence that the column shares.
    pub fn attach(&mut self) -> Result<(), ErrorReport> {
        self.enter(Phase::WaitingForTable);
        lock(self.relation)?;
        let mut locked = self.shared.as_ref().map_or(Action::Attach, |shared| Action::Bind(shared.oid));
        // Judges again under the lock of the sequence: it may have changed during the wait for the lock.
        while let Some(action) = self.attach_as(locked)? {
            if let Action::Bind(oid) = action {
                Relation::find(oid.into()).inspect(Relation::lock);
            }
            locked = action;
        }
        progress::end(Command::Attach);
        Ok(())
    }

    /// Attaches the column if the verdict is the expected one. Returns any other verdict.
    fn attach_as(&mut self, expected: Action) -> Result<Option<Action>, ErrorReport> {
        let (attribute, known) = (self.attribute.clone(), self.shared.clone());
        with_column_beside(self.relation, &attribute, known.as_slice(), |facts, column| {
            if column.table.node_group != 0 {
                self.attach_on_node(facts, column)?;
                return Ok(None);
            }
            let action = verdict::judge(facts, column, &self.wish).map_err(report)?;
            if action != expected {
                return Ok(Some(action));
            }
            let uses = facts::uses(&facts.members(column), &attribute, self.wish.kind)?;
            verdict::notices(facts, column, self.wish.kind, action, uses).into_iter().for_each(tell);
            let shared = if let Action::Bind(oid) = action { facts.sequence(oid) } else { None };
            let (of, steps) = match shared {
                None => (self.relation, self.steps_to_attach(facts, column)?),
                Some(sequence) => (sequence.oid.into(), self.steps_to_bind((facts, column), sequence)?),
            };
            steps.into_iter().try_for_each(|step| self.carry_out(step, (facts, column), of))?;
            self.shared = shared.cloned();
            Ok(None)
        })
    }

    /// Attaches the column of a distributed table on a worker, after the coordinator.
    fn attach_on_node(&self, facts: &Facts, column: &Column) -> Result<(), ErrorReport> {
        let members = facts.members(column);
        verdict::check(&members, column, self.wish.kind).map_err(report)?;
        let mut steps = steps::attach_on_node(&members, &self.wish).into_iter();
        steps.try_for_each(|step| self.carry_out(step, (facts, column), self.relation))
    }

    fn steps_to_attach(&mut self, facts: &Facts, column: &Column) -> Result<Vec<Step>, ErrorReport> {
        if self.wish.kind == IdKind::Segment && self.tag.is_none() {
            self.tag = self.first(&TAG_OF_PARENT, [])?;
            self.name_tag(self.relation, Some(column))?;
        }
        let own = column.own().and_then(|(_, own)| TextOut::of(own)).filter(|_| column.table.is_distributed);
        let known = own.map(|own| tags::tag_of_default(own.as_bytes().to_vec())).transpose()?.flatten();
        let tag = self.tag.as_ref().map(TextOut::to_utf8_lossy);
        steps::check_tag(column, known.map(TagText::to_text).as_deref(), tag.as_deref()).map_err(report)?;
        self.enter(Phase::SearchingHighest);
        let highest = owned::highest(facts, column, true)?;
        self.enter(Phase::ChangingDefaults);
        let written = self.written().to_utf8_lossy();
        steps::attach(facts, column, &self.wish, &written, highest).map_err(report)
    }

    fn steps_to_bind(
        &mut self,
        (facts, column): (&Facts, &Column),
        sequence: &Sequence,
    ) -> Result<Vec<Step>, ErrorReport> {
        self.enter(Phase::SearchingHighest);
        let highest = owned::highest(facts, column, false)?;
        if let Some(bound) = &sequence.bound {
            self.tag = bound.tag.clone().and_then(TextOut::of);
        } else if self.wish.kind == IdKind::Segment {
            self.name_tag(sequence.oid.into(), None)?;
        }
        Ok(steps::bind(column, sequence, highest))
    }

    fn enter(&self, phase: Phase) {
        progress::enter(Command::Attach, self.relation.to_u32(), phase);
    }

    /// Names the tag after a table or a sequence, unless it has a name.
    fn name_tag(&mut self, of: Oid, column: Option<&Column>) -> Result<(), ErrorReport> {
        if self.tag.is_some() {
            return Ok(());
        }
        let Some(tag) = unnamed_tag(of)? else { return Ok(()) };
        if let Some(column) = column {
            let arguments = [self.relation.into(), self.attribute.clone().into(), tag.clone().into()];
            let other =
                OTHER_OF_TAG.first(&arguments, |row| Ok((row.get::<TextOut>(1)?, row.get::<TextOut>(2)?)));
            if let Some((Some(other), Some(of))) = other.map_err(spi)? {
                let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
                let (other, of) = (other.to_utf8_lossy(), of.to_utf8_lossy());
                tell(Notice::SharedTag { attribute, table, other, of });
            }
        }
        self.tag = Some(tag);
        Ok(())
    }

    /// Returns the new default of the column.
    fn written(&self) -> TextOut {
        tags::written(self.wish.kind, self.tag.as_ref(), self.generator.as_ref())
    }

    /// Carries out a step. `of` is the table or the sequence whose owner gets the right to move a new tag.
    pub(super) fn carry_out(
        &self,
        step: Step,
        (facts, column): (&Facts, &Column),
        of: Oid,
    ) -> Result<(), ErrorReport> {
        let (kind, tag) = (self.wish.kind, &self.tag);
        let numbers = Numbers::of_group(column.table.node_group);
        match step {
            Step::Tell(notice) => tell(notice),
            Step::TellKept(written) => {
                let tag =
                    TextOut::of(written).map(|written| tags::tag_of_default(written.as_bytes().to_vec()));
                if let Some(tag) = tag.transpose()?.flatten() {
                    tell(Notice::TagKept { tag: tag.to_text() });
                }
            }
            Step::TellHolders => self.tell_holders(of)?,
            Step::TakeAbove(highest) => check_next(column, &self.written(), highest)?,
            Step::CheckWorkers(highest) => {
                let (written, generator) = (self.written().into(), self.generator.clone().into());
                self.run(
                    &CHECK_WORKERS,
                    [kind.name().into(), generator, highest.into(), written, false.into()],
                )?;
            }
            Step::Unbind(_) | Step::UnbindOnNode(_) => {
                let owned = facts.members(column).into_iter().flat_map(|member| &member.owned);
                let is_bound = |oid: &&u32| facts.sequence(**oid).is_some_and(|found| found.bound.is_some());
                for of in owned.filter(is_bound).map(|oid| Oid::from(*oid)) {
                    Relation::find(of).inspect(Relation::lock);
                    match step {
                        Step::UnbindOnNode(above) => tags::unbind_on_node(of, &numbers, above)?,
                        Step::Unbind(above) => tags::unbind(of, above).map(drop)?,
                        _ => {}
                    }
                }
            }
            Step::Discard => {
                let (Some(tag), Some(source)) = (tag, SEGMENT.find()) else { return Ok(()) };
                let done = source.as_owner(|| {
                    VOID_RECEIVED.run(&[tag.clone().into()])?;
                    DISCARD.run(&[tag.clone().into()])
                });
                done.map_err(spi)?;
            }
            Step::DropIdentities { keeps_sequences } => {
                owned::drop_identities(&facts.members(column), keeps_sequences)?;
            }
            Step::SetDefault => {
                change_default(&facts.members(column), &set_default(self.written().as_bytes()))?;
            }
            Step::DropDefault => change_default(&facts.members(column), b"DROP DEFAULT")?,
            Step::RaiseTag { highest, most, course } => {
                self.enter(Phase::RaisingTag);
                let Some(tag) = tag else { return Ok(()) };
                let owner = Relation::find(of).map(|relation| relation.owner());
                let (is_named, is_new) = (self.wish.tag.is_some(), sequence::is_new(self.relation));
                let sequence = column.owned.first().map(|owned| (*owned).into());
                tags::raise_tag(
                    tag,
                    highest,
                    Some(most),
                    owner,
                    Place { sequence, course, is_named, is_new },
                )?;
            }
            Step::Bind => self.bind_owned(facts, column)?,
            Step::DropSequences => self.run(&DROP_SEQUENCES, [])?,
            Step::BindShared { highest, most } => {
                self.enter(Phase::RaisingTag);
                let sequence = facts::of_sequence(of)?;
                tags::alter(of, changes_to_bind(&sequence))?;
                ADVANCE.run(&[of.into(), highest.into()]).map_err(spi)?;
                let (tag, generator, is_named) =
                    (tag.as_ref(), self.generator.as_ref(), self.wish.tag.is_some());
                tags::bind(of, kind, tag, generator, Some(most), is_named)?;
                tags::remember(&sequence, None)?;
            }
            Step::RestoreSequence(highest) => self.run(&RESTORE_SEQUENCE, [highest.into()])?,
            Step::RestoreIdentity(relation, identity, highest) => {
                if let Some(member) = facts.column(relation, &column.attribute) {
                    let kept = owned::kept_sequence(member, highest)?;
                    owned::restore_identity(member, identity, highest, kept, None)?;
                }
            }
            Step::TellWithoutDefault => {
                let members = facts.members(column);
                facts::without_identity(&members, &self.attribute)?.into_iter().for_each(tell);
            }
        }
        Ok(())
    }

    /// Binds the sequences that the column owns. A sequence that cannot be bound would repeat old numbers, so it is dropped with
    /// a notice.
    fn bind_owned(&self, facts: &Facts, column: &Column) -> Result<(), ErrorReport> {
        let (members, most, mut drops) = (facts.members(column), column.base.maximum(), false);
        for member in &members {
            // Sequences of former identities are new ones.
            let owned = sequence::owned_by(member.table.oid.into()).into_iter();
            for (_, of) in owned.filter(|(number, _)| *number == member.number) {
                Relation::find(of).inspect(Relation::lock);
                let is_as_read = |read: &&Sequence| read.bound.is_none() && sequence::is_new(of);
                let known = facts.sequence(of.to_u32()).filter(is_as_read);
                let sequence = known.cloned().map_or_else(|| facts::of_sequence(of), Ok)?;
                if column.table.node_group != 0 {
                    // Citus keeps a worker's narrower sequences at their maximum. They give no numbers, bound or not.
                    let is_fit = verdict::obstacle(&sequence).is_none();
                    drops |= !is_fit && sequence.base == Base::Bigint;
                    if is_fit {
                        tags::bind_on_node(of, self.tag.as_ref(), self.generator.as_ref())?;
                    }
                    continue;
                }
                if let Some(obstacle) = verdict::lasting_obstacle(&sequence) {
                    tell(Notice::SequenceDropped(obstacle));
                    drops = true;
                    continue;
                }
                verdict::check_others(&sequence, &members, most).map_err(report)?;
                verdict::others(&sequence, &members).for_each(|user| tell(verdict::tell(&sequence, user)));
                let (tag, generator) = (self.tag.as_ref(), self.generator.as_ref());
                tags::alter(of, changes_to_bind(&sequence))?;
                tags::bind(of, self.wish.kind, tag, generator, Some(most), true)?;
                // A distributed table's column is a plain one afterwards, because workers keep no note of it.
                let identity = facts.identity(member).filter(|_| !column.table.is_distributed);
                tags::remember(&sequence, identity)?;
            }
        }
        if drops { self.run(&DROP_SEQUENCES, []) } else { Ok(()) }
    }

    fn tell_holders(&self, sequence: Oid) -> Result<(), ErrorReport> {
        let Some(tag) = &self.tag else { return Ok(()) };
        let holders = HOLDERS.first(&[sequence.into(), tag.clone().into()], |row| row.get::<TextOut>(1));
        if let Some(holders) = holders.map_err(spi)?.flatten() {
            let sequence = facts::name_of(sequence)?;
            let (tag, holders) = (tag.to_utf8_lossy(), holders.to_utf8_lossy());
            tell(Notice::Holders { sequence, tag, holders });
        }
        Ok(())
    }

    /// The table and the column, and then the rest of a statement's arguments.
    fn arguments<'a, const N: usize>(&self, rest: [DatumWithOid<'a>; N]) -> Vec<DatumWithOid<'a>> {
        [self.relation.into(), self.attribute.clone().into()].into_iter().chain(rest).collect()
    }

    pub(super) fn run<const N: usize>(
        &self,
        statement: &Statement,
        rest: [DatumWithOid<'_>; N],
    ) -> Result<(), ErrorReport> {
        statement.run(&self.arguments(rest)).map_err(spi)
    }

    pub(super) fn first<T: FromDatum + IntoDatum, const N: usize>(
        &self,
        statement: &Statement,
        rest: [DatumWithOid<'_>; N],
    ) -> Result<Option<T>, ErrorReport> {
        statement.value(&self.arguments(rest)).map_err(spi)
    }
}
