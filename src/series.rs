//! Series: one sequence of numbers for each key. What this session knows of each, and the numbers that it took.
//!
//! | module | holds |
//! | --- | --- |
//! | [`gapless`] | numbers that are counted in the caller's transaction |
//! | [`dense`] | numbers of a key that are kept in memory |
//! | [`monotonic`] | numbers of many keys that share one maximum |
//! | [`own`] | keys of dense series that a transaction counts itself |
//! | [`lost`] | numbers of such keys that went with a savepoint |
//! | [`period`] | the period that a dated series counts in |
//! | [`error`] | why one gave no number |

mod dense;
pub mod error;
mod gapless;
mod lost;
mod monotonic;
mod own;
mod period;

use crate::pg::catalog::{self, Source, Watch};
use crate::pg::process::PerProcess;
use crate::pg::tag::{self, TagText};
use crate::pg::text::TextOut;
use crate::pg::{encoding, role, server, transaction};
use crate::store::series::{self as store, Number};
use crate::store::{citus, registry};
use error::NoNumberError;
use period::Period;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::pg_sys::{InvalidOid, Oid};
use rustc_hash::FxHashMap;
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::error::excerpt;
use snowflake_ids_core::privilege::{Action, Privileges};
use snowflake_ids_core::series::{self, Key, Kind, MAX_NAME_BYTES, Recent, Series, SeriesError};
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::rc::Rc;

/// What the session knows of one series.
pub struct Known {
    name: Tag,
    /// What its numbers are.
    pub series: Series,
    /// The table that has its counters.
    counters: Source,
    /// Which roles may do what; None where every role may take numbers.
    grants: Option<Vec<(Oid, Privileges)>>,
    /// The table of series.
    table: Source,
    /// The registries that this database draws from.
    registries: Vec<String>,
    /// Where its sections are.
    sections: monotonic::Places,
    /// As of which change of the table.
    as_of: u64,
    /// The role that may take numbers, and as of which change of roles.
    permit: Cell<Option<(Oid, u64)>>,
    /// The transaction in which nothing was found that forbids to number here.
    at_home: Cell<Option<u32>>,
    /// The period that was looked up last, where there are some.
    period: Cell<Option<Period>>,
}

type Map = FxHashMap<Tag, Rc<Known>>;

static KNOWN: PerProcess<RefCell<Option<Map>>> = PerProcess::new(RefCell::new(None));
/// The one that was used last: mostly it is the next one, too.
static USED: PerProcess<RefCell<Option<Rc<Known>>>> = PerProcess::new(RefCell::new(None));
static LAST: PerProcess<RefCell<Option<Recent>>> = PerProcess::new(RefCell::new(None));
/// How often the table was changed, as far as this session was told.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));
static WATCH: Watch = Watch::new(|| CHANGES.set(CHANGES.get().wrapping_add(1)));

/// Takes the next number of a key. The command is what a message names.
pub fn next(command: &'static CStr, name: &[u8], key: &Key) -> Result<(Rc<Known>, Number), NoNumberError> {
    next_for(command, name, key, role::current())
}

/// The same with the rights of a role.
pub fn next_for(
    command: &'static CStr,
    name: &[u8],
    key: &Key,
    role: Oid,
) -> Result<(Rc<Known>, Number), NoNumberError> {
    if let Some(taken) = next_at_once(name, key, role, |known, number| (known.clone(), number)) {
        return Ok(taken);
    }
    if server::in_recovery() || !server::is_writable() {
        server::refuse_unless_writable(command);
    }
    let known = look_up(name)?;
    known.check_take(role)?;
    known.refuse_elsewhere()?;
    if key.key_type() != known.series.key_type {
        known.series.check_key(key, &known.shown())?;
    }
    let number = match known.series.kind {
        Kind::Gapless => gapless::next(&known, key)?,
        Kind::Dense(_) => dense::next(&known, key)?,
        Kind::Monotonic(..) => monotonic::next(&known, key)?,
    };
    note(&known, key, number.number);
    Ok((known, number))
}

/// Takes the next number of a key, where the session used the series last, and memory has a number of it; None: see [`next_for`]. Like
/// ids of a tag, without a look at what others have changed since the statement began. Throws nothing.
#[inline]
pub fn next_at_once<T>(
    name: &[u8],
    key: &Key,
    role: Oid,
    then: impl FnOnce(&Rc<Known>, Number) -> T,
) -> Option<T> {
    let used = USED.borrow();
    let known = used.as_ref().filter(|known| known.is(name))?;
    let number = match known.series.kind {
        Kind::Dense(_) if known.may_take(key, role) => dense::at_once(known, key, known.day_at_once()?),
        Kind::Monotonic(..) if known.may_take(key, role) => monotonic::at_once(known, key),
        _ => None,
    }?;
    note(known, key, number.number);
    Some(then(known, number))
}

#[inline]
fn note(known: &Known, key: &Key, number: i64) {
    LAST.borrow_mut().get_or_insert_default().note(known.series.id, key, number);
}

/// The last number of a key that this session got.
pub fn last(name: &[u8], key: &Key) -> Result<i64, NoNumberError> {
    let known = look_up(name)?;
    known.check(Action::Look, role::current())?;
    known.series.check_key(key, &known.shown())?;
    let last = LAST.borrow().as_ref().and_then(|last| last.last(known.series.id, key.clone()));
    Ok(last.ok_or_else(|| SeriesError::NoLast { series: known.shown(), key: shown_key(key) })?)
}

/// Has a key go on above a value; with `force` also above a lower one than it gave last.
pub fn set(name: &[u8], key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    server::refuse_unless_writable(c"series_set()");
    let known = look_up(name)?;
    known.check(Action::Move, role::current())?;
    known.series.check_key(key, &known.shown())?;
    known.series.check_value(value)?;
    match known.series.kind {
        Kind::Gapless => gapless::set(&known, key, value, force),
        Kind::Dense(_) => dense::set(&known, key, value, force),
        Kind::Monotonic(..) => monotonic::set(&known, key, value, force),
    }
}

/// Sees to it that a key goes on above a value.
pub fn raise_above(name: &[u8], key: &Key, value: i64) -> Result<(), NoNumberError> {
    server::refuse_unless_writable(c"series_attach()");
    let known = look_up(name)?;
    known.check(Action::Move, role::current())?;
    known.series.check_key(key, &known.shown())?;
    let value = value.max(known.series.start - 1);
    known.series.check_value(value)?;
    match known.series.kind {
        Kind::Gapless => gapless::raise_above(&known, key, value),
        Kind::Dense(_) => dense::raise_above(&known, key, value),
        Kind::Monotonic(..) => monotonic::raise_above(&known, key, value),
    }
}

/// The transaction has changed the row of a dense series: it counts the keys itself until it ends.
pub fn note_changed(id: i64) {
    own::note_all(id);
}

/// What the session got last is forgotten.
pub fn forget_last() {
    LAST.borrow_mut().take();
}

impl Known {
    /// Its name in a message.
    pub fn shown(&self) -> String {
        TagText(self.name).shown()
    }

    /// A number in its format.
    pub fn written(&self, Number { number, day }: Number) -> Result<TextOut, Box<ErrorReport>> {
        TextOut::of(self.series.write(day, number)).ok_or_else(|| Box::new(encoding::not_utf8("format")))
    }

    /// Whether this is what is known of the series of a name now.
    #[inline]
    fn is(&self, name: &[u8]) -> bool {
        self.name.as_bytes() == name && self.as_of == CHANGES.get()
    }

    /// Whether a number of this key can be taken by a role, as far as is known without a look at anything.
    #[inline]
    fn may_take(&self, key: &Key, role: Oid) -> bool {
        key.key_type() == self.series.key_type
            && server::is_writable()
            && self.is_permitted(role)
            && (self.goes_anywhere() || self.is_at_home())
    }

    /// Whether a role is known to be allowed to take numbers.
    #[inline]
    fn is_permitted(&self, role: Oid) -> bool {
        self.grants.is_none() || self.permit.get() == Some((role, role::changes()))
    }

    #[inline]
    fn is_at_home(&self) -> bool {
        self.at_home.get() == Some(transaction::number())
    }

    /// The table of series.
    pub fn table(&self) -> Source {
        self.table
    }

    /// Fails unless a role may take numbers.
    fn check_take(&self, role: Oid) -> Result<(), SeriesError> {
        if self.is_permitted(role) {
            return Ok(());
        }
        role::watch();
        let as_of = role::changes();
        self.check(Action::Take, role)?;
        self.permit.set(Some((role, as_of)));
        Ok(())
    }

    /// Fails unless a role may do this with it.
    pub fn check(&self, action: Action, role: Oid) -> Result<(), SeriesError> {
        if self.allows(action, role) {
            return Ok(());
        }
        let role = role::name(role).unwrap_or_default();
        Err(SeriesError::Denied { series: self.shown(), action, role })
    }

    /// Whether nothing that is about this database forbids to number in it.
    fn goes_anywhere(&self) -> bool {
        // Ranges of several registries are not one above the other.
        !self.series.kind.counts_at_home() && self.registries.len() < 2
    }

    /// Fails where other servers would number, too, and know nothing of the numbers that are taken here.
    fn refuse_elsewhere(&self) -> Result<(), NoNumberError> {
        if self.goes_anywhere() || self.is_at_home() {
            return Ok(());
        }
        let kind = self.series.kind.name();
        if !self.series.kind.counts_at_home() {
            return Err(SeriesError::Registries { kind }.into());
        }
        if let Some(registry) = self.registries.first() {
            return Err(SeriesError::Registry { kind, registry: registry.clone() }.into());
        }
        // A cluster says to nobody that this is one of its workers now.
        if citus::is_there() && citus::is_worker()? {
            return Err(SeriesError::CitusWorker { kind }.into());
        }
        self.at_home.set(Some(transaction::number()));
        Ok(())
    }

    /// A key has no numbers left.
    fn exhausted(&self, key: &Key) -> SeriesError {
        SeriesError::Exhausted { series: self.shown(), key: shown_key(key), max_value: self.series.max_value }
    }

    /// A key gave numbers above a value, or may have.
    fn below(&self, key: &Key, value: i64, last: i64) -> SeriesError {
        SeriesError::Below { series: self.shown(), key: shown_key(key), value, last }
    }

    /// Keeps others from dropping or renaming it until the transaction ends.
    pub fn keep(&self) -> Result<(), NoNumberError> {
        let is_there = self.table.as_owner_qualified(|| store::lock(&self.series, &self.name))?;
        if is_there { Ok(()) } else { Err(unknown(&self.name).into()) }
    }

    /// Whether a role may do this with it.
    pub fn allows(&self, action: Action, role: Oid) -> bool {
        let Some(grants) = &self.grants else {
            return matches!(action, Action::Take | Action::Look) || administers(self.table, role);
        };
        let theirs = grants
            .iter()
            .filter(|(grantee, _)| *grantee == InvalidOid || role::has_rights_of(role, *grantee))
            .fold(Privileges::NONE, |all, (_, more)| all.with(*more));
        theirs.allow(action) || administers(self.table, role)
    }
}

/// Whether a role manages all series of this database: superusers, and roles that may write to the table of series.
fn administers(table: Source, role: Oid) -> bool {
    catalog::is_superuser(role) || role::may_update(role, table.oid())
}

/// What the session knows of a series: as of all that is committed by now, and of what the transaction has changed itself.
pub fn look_up(name: &[u8]) -> Result<Rc<Known>, NoNumberError> {
    // Others may have changed it since the statement began.
    catalog::take_in_changes();
    if let Some(known) = USED.borrow().as_ref().filter(|known| known.is(name)) {
        return Ok(known.clone());
    }
    let tag = checked(name)?;
    let kept = KNOWN.borrow().as_ref().and_then(|all| all.get(&tag).cloned());
    let known = match kept.filter(|known| known.as_of == CHANGES.get()) {
        Some(known) => known,
        None => look_up_anew(&tag)?,
    };
    USED.replace(Some(known.clone()));
    Ok(known)
}

#[cold]
fn look_up_anew(name: &Tag) -> Result<Rc<Known>, NoNumberError> {
    // Before the table is looked at: what changes meanwhile is looked at again.
    let as_of = CHANGES.get();
    let table = store::table().ok_or(SeriesError::NoTable)?;
    WATCH.begin(table);
    let row = store::read(table, name).ok_or_else(|| unknown(name))?;
    let (series, is_restricted) = row?;
    let counters = store::counters(series.key_type).ok_or(SeriesError::NoTable)?;
    let registries = table.as_owner(registry::sites)?.into_iter().map(|site| site.server).collect();
    let grants = is_restricted.then(|| store::privileges(series.id));
    let (permit, at_home, period) = (Cell::new(None), Cell::new(None), Cell::new(None));
    let sections = monotonic::Places::default();
    let known = Known {
        name: *name,
        series,
        counters,
        grants,
        table,
        registries,
        sections,
        as_of,
        permit,
        at_home,
        period,
    };
    let known = Rc::new(known);
    let mut all = KNOWN.borrow_mut();
    let all = all.get_or_insert_default();
    // Those that were dropped, or have changed, are not kept.
    all.retain(|_, known| known.as_of == as_of);
    all.insert(*name, known.clone());
    Ok(known)
}

/// Whether bytes can be a name; as what they are looked for.
///
/// # Errors
/// [`SeriesError`].
pub fn checked(name: &[u8]) -> Result<Tag, SeriesError> {
    let chars = if name.len() <= MAX_NAME_BYTES { tag::chars(name) } else { 0 };
    series::check_name(name, chars)?;
    Tag::new(name).ok_or(SeriesError::LongName { bytes: name.len() })
}

/// There is no series of this name.
pub fn unknown(name: &Tag) -> SeriesError {
    SeriesError::Unknown { name: TagText(*name).shown() }
}

/// A key in a message.
fn shown_key(key: &Key) -> String {
    match key {
        Key::Bigint(number) => number.to_string(),
        Key::Text(bytes) => format!("\"{}\"", excerpt(&String::from_utf8_lossy(bytes))),
        Key::Uuid(uuid) => snowflake_ids_core::Uuid(*uuid).to_string(),
    }
}
