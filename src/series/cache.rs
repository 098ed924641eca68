//! The session's cache of series. A monotonic series divides its keys into sections. All keys of a section share one
//! maximum.

use super::error::NoNumberError;
use crate::pg::catalog::{self, Source, Unseen};
use crate::pg::clock::SystemClock;
use crate::pg::error::ServerError;
use crate::pg::per_process::PerProcess;
use crate::pg::read_lock::Wait;
use crate::pg::rows::Sought;
use crate::pg::sequence::plan_anew;
use crate::pg::tag_text::{self, TagText};
use crate::pg::text::TextOut;
use crate::pg::{role, server, transaction};
use crate::shared::slot::Slot;
use crate::store::series::{self as store, DatedNumber};
use crate::store::tables::{REGISTRY_SERVER, SERIES, SERIES_PRIVILEGE};
use crate::store::{citus, registry, shard};
use crate::tag::privilege::{self, administers};
use crate::tag::timeout::SegmentTimeout;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use rustc_hash::FxHashMap;
use snowflake_ids_core::error::excerpt;
use snowflake_ids_core::series::monotonic::SectionRef;
use snowflake_ids_core::series::{self, Key, MAX_NAME_BYTES, Scope, Series, SeriesError};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::privilege::{Access, Privileges};
use snowflake_ids_core::{Clock, UnixMicros};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A series in the session's cache.
pub struct CachedSeries {
    pub(super) name: Tag,
    pub series: Series,
    /// The table that holds the series' counters.
    pub(super) counters: Source,
    /// The rights of roles; None if every role may take numbers.
    grants: Option<Vec<(Oid, Privileges)>>,
    /// The table of series.
    pub table: Source,
    registries: Vec<String>,
    /// The slots of the series' sections, as the session last found them.
    sections: RefCell<Vec<Option<(&'static Slot, SectionRef)>>>,
    /// The value of `CHANGES` at the time of the look-up.
    as_of: u64,
    /// The role that was last found to have the right to take numbers, and the number of role changes at that time.
    permit: Cell<Option<(Oid, u64)>>,
    /// The last transaction in which a check allowed this server to give numbers of the series.
    at_home: Cell<Option<u32>>,
    /// The first day of the present period (numbers start over with each period), and the time of the look-up. The day is
    /// valid for a few seconds after the look-up.
    period: Cell<Option<(i32, UnixMicros)>>,
}

type SeriesByName = FxHashMap<Tag, Rc<CachedSeries>>;
/// The registries, and the value of `REGISTRY_CHANGES` at the time of the look-up.
type RegistriesInUse = Option<(u64, Vec<String>)>;

static CACHE: PerProcess<RefCell<Option<SeriesByName>>> = PerProcess::new(RefCell::new(None));
/// The series that the session used last. Most calls need the series of the previous call.
pub(super) static USED: PerProcess<RefCell<Option<Rc<CachedSeries>>>> = PerProcess::new(RefCell::new(None));
/// The number of invalidation messages for the table of series.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));
/// The registries that this database uses, as of the last look-up.
static REGISTRIES: PerProcess<RefCell<RegistriesInUse>> = PerProcess::new(RefCell::new(None));
/// The number of invalidation messages for the table of registries.
static REGISTRY_CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));

impl CachedSeries {
    pub fn shown(&self) -> String {
        TagText(self.name).shown()
    }

    /// Returns a number in the series' format.
    pub fn written(&self, DatedNumber { number, day }: DatedNumber) -> Result<TextOut, Box<ErrorReport>> {
        TextOut::of(self.series.write(day, number))
            .ok_or_else(|| Box::new(ServerError::NotUtf8 { name: "format" }.into()))
    }

    /// Converts a key to the series' key type.
    pub(super) fn key_of<'a>(&self, key: &'a Key) -> Result<Cow<'a, Key>, SeriesError> {
        if key.key_type() == self.series.key_type {
            return Ok(Cow::Borrowed(key));
        }
        self.series.key_of(key, &self.shown())
    }

    /// Returns true if this series is named `name`, and the table of series has not changed since the look-up.
    #[inline]
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.name.as_bytes() == name && self.as_of == CHANGES.get()
    }

    /// Returns whether a role may take the key's next number. Reads only the cache, and returns false if the cache cannot
    /// tell.
    #[inline]
    pub(super) fn may_take(&self, key: &Key, role: Oid) -> bool {
        key.key_type() == self.series.key_type
            && server::is_writable()
            && self.is_permitted(role)
            && (self.goes_anywhere() || self.is_at_home())
    }

    /// Returns whether the cache says that a role may take numbers.
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
        self.check(Access::Take, role)?;
        self.permit.set(Some((role, as_of)));
        Ok(())
    }

    /// Fails unless a role has the right to `action` on the series.
    pub fn check(&self, action: Access, role: Oid) -> Result<(), SeriesError> {
        if self.allows(action, role) {
            return Ok(());
        }
        let role = role::name(role).unwrap_or_default();
        Err(SeriesError::Denied { series: self.shown(), action, role })
    }

    /// Returns whether every server may give numbers of the series.
    fn goes_anywhere(&self) -> bool {
        // With several registries, servers get ranges that are not in ascending order.
        self.series.scope != Scope::Global || (!self.series.is_one_servers() && self.registries.len() < 2)
    }

    /// Fails if other servers could give numbers of the series too. Those servers would not know the numbers that this
    /// server gave.
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
        // No message tells a session that its server became a Citus worker, so each transaction checks whether the server is
        // one.
        if citus::is_worker()? {
            return Err(SeriesError::CitusWorker { kind }.into());
        }
        self.at_home.set(Some(transaction::number()));
        Ok(())
    }

    pub(super) fn exhausted(&self, key: &Key) -> SeriesError {
        SeriesError::Exhausted { series: self.shown(), key: shown_key(key), max_value: self.series.max_value }
    }

    /// Returns the first day of the present period, in days since 1970-01-01; None for a series without periods. Needs a
    /// transaction.
    pub(super) fn day(&self) -> Result<Option<i32>, NoNumberError> {
        let Some(reset) = self.series.reset else { return Ok(None) };
        // The time is read before SQL reads the clock, so that the age of the cached day is never underestimated.
        let now = SystemClock.now();
        if let Some((day, since)) = self.period.get()
            && (0..store::PERIOD_BELIEVED_MICROS).contains(&(now.0 - since.0))
        {
            return Ok(Some(day));
        }
        let (day, then) = self.table.as_owner_qualified(|| store::period(reset, &self.series.time_zone))?;
        // The period is not cached if another period is current a few seconds later. The present period is then about to
        // end, or the time zone's clocks are about to be put back over midnight.
        self.period.set((day == then).then_some((day, now)));
        Ok(Some(day))
    }

    /// Returns the slot of a section, as the session last found it.
    #[inline]
    pub(super) fn section(&self, number: u16) -> Option<(&'static Slot, SectionRef)> {
        *self.sections.borrow().get(usize::from(number))?
    }

    pub(super) fn record_section(&self, number: u16, slot: &'static Slot, section_ref: SectionRef) {
        let (mut all, at) = (self.sections.borrow_mut(), usize::from(number));
        if all.len() <= at {
            all.resize(at + 1, None);
        }
        all[at] = Some((slot, section_ref));
    }

    /// Fails unless the transaction still sees this series under this name.
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

    /// Locks the series against deletion and renaming until the transaction ends.
    pub fn keep(&self) -> Result<(), NoNumberError> {
        let is_there = self.table.as_owner_qualified(|| store::lock(&self.series, &self.name))?;
        if is_there { Ok(()) } else { Err(unknown(&self.name).into()) }
    }

    /// Returns whether a role has the right to `action` on the series. For a distributed series, checks the privileges on
    /// the table of counters, which Citus propagates to all nodes.
    pub fn allows(&self, action: Access, role: Oid) -> bool {
        if self.series.scope == Scope::Shard && action != Access::Own {
            return shard::allows(&self.series, self.table, action, role);
        }
        let Some(grants) = &self.grants else {
            return matches!(action, Access::Take | Access::Look) || administers(Some(self.table), role);
        };
        privilege::held(grants, role).allow(action) || administers(Some(self.table), role)
    }
}

/// Returns a series. Sees all changes that are committed by now, and the transaction's own changes.
pub fn look_up(name: &[u8]) -> Result<Rc<CachedSeries>, NoNumberError> {
    // Other sessions may have changed the series since the statement began.
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
    // The count is read before the table, so that a concurrent change causes another look-up.
    let as_of = CHANGES.get();
    SERIES.on_change(forget);
    let timeout = SegmentTimeout::new();
    let (table, row) = store::read(name, timeout.left()).map_err(|why| unseen(why, "series", &timeout))?;
    let (series, is_restricted) = row.ok_or_else(|| unknown(name))??;
    let counters = store::counters(series.key_type).ok_or(SeriesError::NoTable)?;
    let registries = registries(&timeout).map_err(|why| unseen(why, "registry_server", &timeout))?;
    let key = (c"series", Sought::Number(series.id));
    let read = || privilege::grants(&SERIES_PRIVILEGE, key, Wait::Yes(Some(timeout.left())));
    let grants = is_restricted.then(read).transpose();
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
    all.retain(|_, known| known.as_of == as_of);
    all.insert(*name, known.clone());
    Ok(known)
}

fn unseen(why: Unseen, table: &'static str, timeout: &SegmentTimeout) -> NoNumberError {
    match why {
        Unseen::NoTable => SeriesError::NoTable.into(),
        Unseen::Locked => timeout.locked(table).into(),
    }
}

/// Returns the registries that this database uses. Reads the table of registries only the first time, and after that
/// table has changed.
fn registries(timeout: &SegmentTimeout) -> Result<Vec<String>, Unseen> {
    // Cached series hold the registries, too. The message for the table of series may have come before this one.
    REGISTRY_SERVER.on_change(|| {
        REGISTRY_CHANGES.set(REGISTRY_CHANGES.get().wrapping_add(1));
        forget();
    });
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

/// Invalidates all cached series, and all cached plans, because a plan may hold a looked-up value as a constant.
fn forget() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    plan_anew();
}

/// Checks that the bytes can be a series' name, and returns the name as the key for look-ups.
pub fn checked(name: &[u8]) -> Result<Tag, SeriesError> {
    let chars = if name.len() <= MAX_NAME_BYTES { tag_text::chars(name) } else { 0 };
    series::check_name(name, chars)?;
    Tag::new(name).ok_or(SeriesError::LongName { bytes: name.len() })
}

pub fn unknown(name: &Tag) -> SeriesError {
    SeriesError::Unknown { name: TagText(*name).shown() }
}

pub(super) fn shown_key(key: &Key) -> String {
    match key {
        Key::Bigint(number) => number.to_string(),
        Key::Text(bytes) => format!("\"{}\"", excerpt(&String::from_utf8_lossy(bytes))),
        Key::Uuid(uuid) => snowflake_ids_core::Uuid(*uuid).to_string(),
    }
}
