//! Bound sequences: `nextval`, `currval`, `lastval` and `setval` of a sequence that gives ids of ours. Statements that call
//! them are redirected here where the database has any; what is not bound goes on to the server's functions.

use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, report, spi};
use crate::pg::sequence::{self, Targets, Use};
use crate::pg::statement::Statement;
use crate::pg::tag::TagText;
use crate::segment;
use crate::snowflake;
use crate::store::sequence::{self as store, Binding};
use pgrx::pg_sys::BuiltinOid::{INT8OID, TEXTOID};
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, function_name, pg_sys};
use rustc_hash::FxHashMap;
use snowflake_ids_core::bound_sequence::{Increment, is_fence};
use snowflake_ids_core::directory::Tag;
use std::cell::{Cell, RefCell};

/// What this process knows of bound sequences.
struct Known {
    targets: Targets,
    bindings: FxHashMap<u32, Binding>,
}

/// None: to be looked up. Within: None where nothing is bound.
static KNOWN: PerProcess<RefCell<Option<Option<Known>>>> = PerProcess::new(RefCell::new(None));
/// How often what is bound was forgotten.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));
/// The number of each bound sequence that the session got last, or set.
static NUMBERS: PerProcess<RefCell<Option<FxHashMap<u32, i64>>>> = PerProcess::new(RefCell::new(None));
/// The bound sequence that the session used last; None where it was another.
static LAST: PerProcess<Cell<Option<Oid>>> = PerProcess::new(Cell::new(None));

static RAISE: Statement =
    Statement::new("SELECT snowflake_ids_internal.segment_raise($1, $2)", &[TEXTOID, INT8OID]);

/// Where calls go at the moment: None where no sequence of this database is bound.
pub fn targets() -> Option<Targets> {
    with_known(|known| known.targets)
}

/// Has what is bound looked up anew.
fn forget() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    if let Ok(mut known) = KNOWN.try_borrow_mut() {
        *known = None;
    }
}

fn with_known<T>(read: impl FnOnce(&Known) -> T) -> Option<T> {
    while KNOWN.borrow().is_none() {
        let changes = CHANGES.get();
        let known = look_up();
        // Looked at again where a change was told of meanwhile.
        if CHANGES.get() == changes {
            *KNOWN.borrow_mut() = Some(known);
        }
    }
    KNOWN.borrow().as_ref()?.as_ref().map(read)
}

fn look_up() -> Option<Known> {
    let table = store::table();
    sequence::on_change(table.map_or(pg_sys::InvalidOid, Source::oid), forget);
    let bindings: FxHashMap<_, _> =
        store::all(table?).into_iter().map(|(sequence, binding)| (sequence.to_u32(), binding)).collect();
    (!bindings.is_empty()).then_some(())?;
    Some(Known { targets: store::targets()?, bindings })
}

/// What a sequence is bound to; None where it is not.
fn binding_of(sequence: Oid) -> Option<Binding> {
    with_known(|known| known.bindings.get(&sequence.to_u32()).copied()).flatten()
}

/// The same, with a lock by which it stays so until the transaction ends.
fn locked_binding_of(sequence: Oid) -> Option<Binding> {
    binding_of(sequence)?;
    sequence::lock(sequence);
    binding_of(sequence)
}

/// The next number of a sequence; of an identity column's without a look at rights on it.
pub fn nextval(sequence: Oid, is_identity: bool) -> Result<i64, ErrorReport> {
    let Some(binding) = locked_binding_of(sequence) else {
        LAST.set(None);
        return Ok(sequence::nextval(sequence, !is_identity));
    };
    if !is_identity {
        check(sequence, Use::Next)?;
    }
    // Dropped while its binding was not: the server says so.
    let Some(terms) = sequence::terms(sequence) else { return Ok(sequence::nextval(sequence, true)) };
    let increment = Increment::new(terms.increment).map_err(|error| report(&error))?;
    let number = match binding {
        Binding::Snowflake => snowflake::next_of_sequence("nextval", increment)
            .map_err(|error| report(&error))?
            .map_err(|error| report(&error))?,
        Binding::Segment(tag) => segment::next_of_sequence("nextval", &tag, increment)
            .map_err(|error| of_sequence(error.into(), sequence))?,
    };
    note(sequence, number);
    LAST.set(Some(sequence));
    Ok(number)
}

/// The number of a sequence that the session got last, or set.
pub fn currval(sequence: Oid) -> Result<i64, ErrorReport> {
    if locked_binding_of(sequence).is_none() {
        return Ok(sequence::currval(sequence));
    }
    check(sequence, Use::Look)?;
    noted(sequence).ok_or_else(|| {
        let name = sequence::name(sequence);
        not_ready(format!("currval of sequence \"{name}\" is not yet defined in this session"))
    })
}

/// The number that the session got last, of whichever sequence.
pub fn lastval() -> Result<i64, ErrorReport> {
    let Some(sequence) = LAST.get() else { return Ok(sequence::lastval()) };
    if sequence::terms(sequence).is_none() {
        return Err(not_ready("lastval is not yet defined in this session".to_owned()));
    }
    check(sequence, Use::Look)?;
    noted(sequence).ok_or_else(|| not_ready("lastval is not yet defined in this session".to_owned()))
}

/// Moves a sequence. What was given stays given: a tag is raised, never lowered; snowflake ids follow the clock.
pub fn setval(sequence: Oid, value: i64, is_called: bool) -> Result<i64, ErrorReport> {
    let Some(binding) = locked_binding_of(sequence) else {
        return Ok(sequence::setval(sequence, value, is_called));
    };
    check(sequence, Use::Set)?;
    let Some(terms) = sequence::terms(sequence) else {
        return Ok(sequence::setval(sequence, value, is_called));
    };
    if is_fence(value, is_called, terms.max) {
        return Ok(sequence::setval(sequence, value, is_called));
    }
    if !(terms.min..=terms.max).contains(&value) {
        return Err(out_of_bounds(sequence, value, terms));
    }
    match binding {
        Binding::Snowflake => pgrx::notice!(
            "sequence \"{}\" is not moved: it gives snowflake ids, which follow the clock",
            sequence::name(sequence)
        ),
        Binding::Segment(tag) => {
            raise_tag(sequence, &tag, if is_called { value } else { value.saturating_sub(1) })?
        }
    }
    if is_called {
        note(sequence, value);
    }
    Ok(value)
}

/// With the rights of the table's owner: a role that may set the sequence moves what it is bound to.
fn raise_tag(sequence: Oid, tag: &Tag, value: i64) -> Result<(), ErrorReport> {
    let source = Source::find().ok_or(segment::error::SegmentError::NoTable)?;
    let arguments = [TagText(*tag).into(), value.into()];
    let highest = source.as_owner(|| RAISE.first(&arguments, |row| row.get::<i64>(1)));
    let highest = highest.unwrap_or_else(|error| raise(spi(&error))).flatten().unwrap_or(value);
    if highest > value {
        pgrx::notice!(
            "sequence \"{}\" is not moved back to {value}: ids up to {highest} of segment tag \"{}\" may be in use",
            sequence::name(sequence),
            TagText(*tag).shown()
        );
    }
    Ok(())
}

/// As the server says it.
fn out_of_bounds(sequence: Oid, value: i64, terms: sequence::Terms) -> ErrorReport {
    let (name, sequence::Terms { min, max, .. }) = (sequence::name(sequence), terms);
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})"),
        function_name!(),
    )
}

fn note(sequence: Oid, number: i64) {
    NUMBERS.borrow_mut().get_or_insert_default().insert(sequence.to_u32(), number);
}

fn noted(sequence: Oid) -> Option<i64> {
    NUMBERS.borrow().as_ref()?.get(&sequence.to_u32()).copied()
}

fn check(sequence: Oid, usage: Use) -> Result<(), ErrorReport> {
    if sequence::allows(sequence, usage) {
        return Ok(());
    }
    let message = format!("permission denied for sequence {}", sequence::name(sequence));
    Err(ErrorReport::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message, function_name!()))
}

/// An error of a tag, where the user named a sequence.
fn of_sequence(error: ErrorReport, sequence: Oid) -> ErrorReport {
    if error.detail().is_some() {
        return error;
    }
    error.set_detail(format!("Sequence \"{}\" is bound to the tag.", sequence::name(sequence)))
}

fn not_ready(message: String) -> ErrorReport {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message, function_name!())
        .set_hint("Call nextval() of the sequence first.")
}
