//! Detaching a column of a distributed table on a worker of a cluster. The worker's own numbers are a range of the cluster's.

use super::facts::with_column;
use super::owned::{self, ADVANCE, CREATE, DROP_SEQUENCES};
use super::steps::{Target, change_default, lock, set_default};
use crate::pg::report::{report, spi};
use crate::pg::sequence;
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::facts::{Base, Column, Facts, IdentityKind};
use snowflake_ids_core::column::node::Numbers;
use snowflake_ids_core::column::steps::{Step, ValueSource};
use snowflake_ids_core::column::verdict;

/// Makes a sequence of this name belong to a column. On a worker, it may exist without belonging to the column.
static OWN: Statement = Statement::new(
    "SELECT c.oid, snowflake_ids_internal.as_owner(c.oid, format('ALTER SEQUENCE %s OWNED BY %s.%I', $3,
         snowflake_ids_internal.qualified_name($1), $2)) FROM pg_class AS c WHERE c.oid = to_regclass($3) AND c.relkind = 'S'",
);

/// The highest number that the sequences of a column gave.
static GIVEN: Statement = Statement::new(
    "SELECT max(coalesce(b.last_number, snowflake_ids_internal.highest_number(s.sequence)))
     FROM snowflake_ids_internal.sequences_of($1, $2) AS s LEFT JOIN snowflake_ids.sequence_binding AS b ON b.sequence = s.sequence",
);

/// Detaches a column on a worker. `name` is the name of a new sequence, and `highest` the highest id in the node's range.
pub fn detach_on_node(
    relation: Oid,
    attribute: TextOut,
    source: ValueSource,
    name: &TextOut,
    highest: Option<i64>,
) -> Result<(), ErrorReport> {
    lock(relation)?;
    with_column(relation, &attribute.clone(), |facts, column| {
        verdict::check(&facts.members(column), column, IdKind::Segment).map_err(report)?;
        let target = Target::of(relation, attribute, IdKind::Segment);
        let numbers = Numbers::of_group(column.table.node_group);
        let above = numbers.above(column.base, highest, target.first(&GIVEN, [])?);
        // An identity exists if an earlier call detached this worker, but then failed on the coordinator.
        let dropped = Step::DropIdentities { keeps_sequences: true };
        for step in [Step::UnbindOnNode(above), dropped, Step::DropDefault] {
            target.carry_out(step, (facts, column), relation)?;
        }
        restore(&target, facts, column, &numbers, (source, name), above)
    })
}

/// Gives the column a sequence or an identity that counts in the node's own numbers, above the id `above`.
fn restore(
    target: &Target,
    facts: &Facts,
    column: &Column,
    numbers: &Numbers,
    (source, name): (ValueSource, &TextOut),
    above: Option<i64>,
) -> Result<(), ErrorReport> {
    if source == ValueSource::None {
        return Ok(());
    }
    let is_wide = column.base == Base::Bigint;
    let mut kept = owned::kept_sequence(column, i64::MAX)?;
    if kept.is_none() {
        kept = target.first(&OWN, [name.clone().into()])?;
    }
    // A sequence that had a narrower type would count in another node's range.
    let is_of_node = |min| (numbers.below..=numbers.last).contains(&min);
    if is_wide && kept.and_then(sequence::terms).is_some_and(|terms| !is_of_node(terms.min)) {
        target.run(&DROP_SEQUENCES, [])?;
        kept = None;
    }
    let options = if is_wide { numbers.options() } else { String::new() };
    if source == ValueSource::Identity {
        let highest = above.unwrap_or(i64::MIN);
        return owned::restore_identity(column, IdentityKind::ByDefault, highest, kept, TextOut::of(options));
    }
    if kept.is_none() {
        kept = target.first(&CREATE, [name.clone().into(), options.into(), None::<String>.into()])?;
    }
    let Some(kept) = kept else { return Ok(()) };
    // For narrower types, Citus lets workers give no numbers, because two workers would give the same numbers.
    let function = if is_wide { "nextval" } else { "worker_nextval" };
    let written = format!("{function}('{}'::regclass)", kept.to_u32());
    change_default(&facts.members(column), &set_default(written.as_bytes()))?;
    ADVANCE.run(&[kept.into(), above.into()]).map_err(spi)
}
