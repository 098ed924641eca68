//! This session's memory of series.

use super::error::NoNumberError;
use crate::pg::catalog::{self, Source, Unseen};
use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::sequence::plan_anew;
use crate::pg::tag::{self, TagText};
use crate::pg::text::TextOut;
use crate::pg::{encoding, role, server, transaction};
use crate::segment::timeout::SegmentTimeout;
use crate::shared::slot::Slot;
use crate::store::series::{self as store, Number};
use crate::store::tables::{REGISTRY_SERVER, SERIES};
use crate::store::{citus, registry, shard};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::pg_sys::{InvalidOid, Oid};
use rustc_hash::FxHashMap;
use snowflake_ids_core::error::excerpt;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::privilege::{Action, Privileges};
use snowflake_ids_core::series::monotonic::SectionRef;
use snowflake_ids_core::series::{self, Key, MAX_NAME_BYTES, Scope, Series, SeriesError};
use snowflake_ids_core::{Clock, UnixMicros};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The session's knowledge of one series.
pub struct CachedSeries {
    pub(super) name: Tag,
    /// Its terms.
    pub series: Series,
    /// The table that has its counters.
    pub(super) counters: Source,
    /// The rights of roles; None where every role may take numbers.
    grants: Option<Vec<(Oid, Privileges)>>,
    /// The table of series.
    pub table: Source,
    /// The registries that this database draws from.
    registries: Vec<String>,
    /// The slots in which the session found its sections.
    sections: RefCell<Vec<Option<(&'static Slot, SectionRef)>>>,
    /// As of which change of the table.
    as_of: u64,
    /// The role that may take numbers, and as of which change of roles.
    permit: Cell<Option<(Oid, u64)>>,
    /// The transaction in which nothing was found that forbids to number here.
    at_home: Cell<Option<u32>>,
    /// The first day of the period that was looked up last, and when it was: believed for some seconds.
    period: Cell<Option<(i32, UnixMicros)>>,
}

type SeriesByName = FxHashMap<Tag, Rc<CachedSeries>>;
/// Registries, as of which change of their table.
type RegistriesInUse = Option<(u64, Vec<String>)>;

static CACHE: PerProcess<RefCell<Option<SeriesByName>>> = PerProcess::new(RefCell::new(None));
/// The one that was used last: mostly it is the next one, too.
pub(super) static USED: PerProcess<RefCell<Option<Rc<CachedSeries>>>> = PerProcess::new(RefCell::new(None));
/// Number of times that the table was changed, as far as this session was told.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));
/// The registries that this database draws from, as far as this session knows.
static REGISTRIES: PerProcess<RefCell<RegistriesInUse>> = PerProcess::new(RefCell::new(None));
/// Number of changes of that table.
static REGISTRY_CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));

impl CachedSeries {
    /// Its name in a message.
    pub fn shown(&self) -> String {
        TagText(self.name).shown()
    }

    /// A number in its format.
    pub fn written(&self, Number { number, day }: Number) -> Result<TextOut, Box<ErrorReport>> {
        TextOut::of(self.series.write(day, number)).ok_or_else(|| Box::new(encoding::not_utf8("format")))
    }

    /// A key as one of its type.
    pub(super) fn key_of<'a>(&self, key: &'a Key) -> Result<Cow<'a, Key>, SeriesError> {
        if key.key_type() == self.series.key_type {
            return Ok(Cow::Borrowed(key));
        }
        self.series.key_of(key, &self.shown())
    }

    /// Returns whether this is what is known of the series of a name now.
    #[inline]
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.name.as_bytes() == name && self.as_of == CHANGES.get()
    }

    /// Returns whether a number of this key can be taken by a role, as far as is known without a look at anything.
    #[inline]
    pub(super) fn may_take(&self, key: &Key, role: Oid) -> bool {
        key.key_type() == self.series.key_type
            && server::is_writable()
            && self.is_permitted(role)
            && (self.goes_anywhere() || self.is_at_home())
    }

    /// Returns whether a role is known to be allowed to take numbers.
    #[inline]
    fn is_permitted(&self, role: Oid) -> bool {
        self.grants.is_none() || self.permit.get() == Some((role, role::changes()))
    }

    #[inline]
    fn is_at_home(&self) -> bool {
        self.at_home.get() == Some(transaction::number())
    }

    /// Fails unless a role may take numbers.
    pub(super) fn check_take(&self, role: Oid) -> Result<(), SeriesError> {
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

    /// Returns whether nothing that is about this database forbids to number in it.
    fn goes_anywhere(&self) -> bool {
        // Ranges of several registries are not one above the other.
        self.series.scope != Scope::Global || (!self.series.is_one_servers() && self.registries.len() < 2)
    }

    /// Fails where other servers would number, too, and know nothing of the numbers that are taken here.
    pub(super) fn refuse_elsewhere(&self) -> Result<(), NoNumberError> {
        if self.goes_anywhere() || self.is_at_home() {
            return Ok(());
        }
        let kind = self.series.kind.name();
        if !self.series.is_one_servers() {
            return Err(SeriesError::Registries { kind }.into());
        }
        if let Some(registry) = self.registries.first() {
            return Err(SeriesError::Registry { kind, registry: registry.clone() }.into());
        }
        self.refuse_worker()?;
        self.at_home.set(Some(transaction::number()));
        Ok(())
    }

    /// Fails on a worker of a Citus cluster that draws from no registry. The cluster tells no session that this became one.
    fn refuse_worker(&self) -> Result<(), NoNumberError> {
        if citus::is_there() && citus::is_worker()? {
            return Err(SeriesError::CitusWorker { kind: self.series.kind.name() }.into());
        }
        Ok(())
    }

    /// A key has no numbers left.
    pub(super) fn exhausted(&self, key: &Key) -> SeriesError {
        SeriesError::Exhausted { series: self.shown(), key: shown_key(key), max_value: self.series.max_value }
    }

    /// A key gave numbers above a value, or may have.
    pub(super) fn below(&self, key: &Key, value: i64, last: i64) -> SeriesError {
        SeriesError::Below { series: self.shown(), key: shown_key(key), value, last }
    }

    /// The first day of the present period, in days since 1970-01-01; 0 where the series is not dated. Only within a transaction.
    pub(super) fn day(&self) -> Result<i32, NoNumberError> {
        let Some(reset) = self.series.reset else { return Ok(0) };
        // Before SQL looks at the clock: so the period is no older than this says.
        let now = SystemClock.now();
        if let Some((day, since)) = self.period.get()
            && (0..store::PERIOD_BELIEVED_MICROS).contains(&(now.0 - since.0))
        {
            return Ok(day);
        }
        let (day, then) = store::period(reset, &self.series.time_zone)?;
        // If another one begins meanwhile, each call looks: in some zones the clock goes back over midnight.
        self.period.set((day == then).then_some((day, now)));
        Ok(day)
    }

    /// The slot of a section, as far as the session found it.
    #[inline]
    pub(super) fn section(&self, number: u16) -> Option<(&'static Slot, SectionRef)> {
        *self.sections.borrow().get(usize::from(number))?
    }

    /// Notes the slot of a section.
    pub(super) fn record_section(&self, number: u16, slot: &'static Slot, section_ref: SectionRef) {
        let (mut all, at) = (self.sections.borrow_mut(), usize::from(number));
        if all.len() <= at {
            all.resize(at + 1, None);
        }
        all[at] = Some((slot, section_ref));
    }

    /// Fails unless the series of this name is this one, by what the transaction sees now.
    pub(super) fn check_present(&self) -> Result<(), NoNumberError> {
        let timeout = SegmentTimeout::new();
        let (_, now) =
            store::read(&self.name, timeout.left()).map_err(|why| unseen(why, "series", &timeout))?;
        if now.ok_or_else(|| unknown(&self.name))??.0.id == self.series.id {
            Ok(())
        } else {
            Err(unknown(&self.name).into())
        }
    }

    /// Keeps others from dropping or renaming it until the transaction ends.
    pub fn keep(&self) -> Result<(), NoNumberError> {
        let is_there = self.table.as_owner_qualified(|| store::lock(&self.series, &self.name))?;
        if is_there { Ok(()) } else { Err(unknown(&self.name).into()) }
    }

    /// Returns whether a role may do this with it. Citus tells all nodes who may write to the counters of a distributed series.
    pub fn allows(&self, action: Action, role: Oid) -> bool {
        if self.series.scope == Scope::Shard && action != Action::Own {
            return shard::allows(&self.series, self.table, action, role);
        }
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

/// Returns whether a role manages all series of this database: superusers, and roles that may write to the table of series.
fn administers(table: Source, role: Oid) -> bool {
    catalog::is_superuser(role) || role::may_update(role, table.oid())
}

/// Returns a series as of all that is committed by now, and of what the transaction has changed itself.
pub fn look_up(name: &[u8]) -> Result<Rc<CachedSeries>, NoNumberError> {
    // Others may have changed it since the statement began.
    catalog::take_in_changes();
    if let Some(known) = USED.borrow().as_ref().filter(|known| known.is(name)) {
        return Ok(known.clone());
    }
    let tag = checked(name)?;
    let kept = CACHE.borrow().as_ref().and_then(|all| all.get(&tag).cloned());
    let known = match kept.filter(|known| known.as_of == CHANGES.get()) {
        Some(known) => known,
        None => look_up_anew(&tag)?,
    };
    USED.replace(Some(known.clone()));
    Ok(known)
}

#[cold]
fn look_up_anew(name: &Tag) -> Result<Rc<CachedSeries>, NoNumberError> {
    // Before the table is looked at: what changes meanwhile is looked at again.
    let as_of = CHANGES.get();
    SERIES.on_change(forget);
    let timeout = SegmentTimeout::new();
    let (table, row) = store::read(name, timeout.left()).map_err(|why| unseen(why, "series", &timeout))?;
    let (series, is_restricted) = row.ok_or_else(|| unknown(name))??;
    let counters = store::counters(series.key_type).ok_or(SeriesError::NoTable)?;
    let registries = registries(&timeout).map_err(|why| unseen(why, "registry_server", &timeout))?;
    let grants = is_restricted.then(|| store::privileges(series.id, timeout.left())).transpose();
    let grants = grants.map_err(|why| unseen(why, "series_privilege", &timeout))?;
    let known = Rc::new(CachedSeries {
        name: *name,
        series,
        counters,
        grants,
        table,
        registries,
        sections: RefCell::default(),
        as_of,
        permit: Cell::new(None),
        at_home: Cell::new(None),
        period: Cell::new(None),
    });
    let mut all = CACHE.borrow_mut();
    let all = all.get_or_insert_default();
    // Those that were dropped, or have changed, are not kept.
    all.retain(|_, known| known.as_of == as_of);
    all.insert(*name, known.clone());
    Ok(known)
}

/// A table could not be looked at.
fn unseen(why: Unseen, table: &'static str, timeout: &SegmentTimeout) -> NoNumberError {
    match why {
        Unseen::NoTable => SeriesError::NoTable.into(),
        Unseen::Locked => timeout.locked(table).into(),
    }
}

/// The registries that this database draws from. Their table is looked at again only when it has changed.
fn registries(timeout: &SegmentTimeout) -> Result<Vec<String>, Unseen> {
    REGISTRY_SERVER.on_change(|| REGISTRY_CHANGES.set(REGISTRY_CHANGES.get().wrapping_add(1)));
    let as_of = REGISTRY_CHANGES.get();
    if let Some((known, registries)) = &*REGISTRIES.borrow()
        && *known == as_of
    {
        return Ok(registries.clone());
    }
    let registries = registry::servers(timeout.left())?;
    REGISTRIES.replace(Some((as_of, registries.clone())));
    Ok(registries)
}

/// Has all of them looked up again, and all statements planned anew: a plan may hold what was found as a constant.
fn forget() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    plan_anew();
}

/// Fails unless bytes can be a name; gives them as they are looked for.
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
pub(super) fn shown_key(key: &Key) -> String {
    match key {
        Key::Bigint(number) => number.to_string(),
        Key::Text(bytes) => format!("\"{}\"", excerpt(&String::from_utf8_lossy(bytes))),
        Key::Uuid(uuid) => snowflake_ids_core::Uuid(*uuid).to_string(),
    }
}
