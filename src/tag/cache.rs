//! The session's cache of tags: for each tag, the slot, the role that may take ids, and the last id.

use crate::pg::per_process::PerProcess;
use crate::pg::role;
use crate::shared::slot::Slot;
use pgrx::pg_sys::Oid;
use rustc_hash::FxHashMap;
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::segment::{Miss, TakenIds};
use snowflake_ids_core::tag::serial::{NumberFormat, Reset};
use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;

use crate::pg::clock::SystemClock;

/// A tag in the session's cache. Once a tag is cached, its entry lives as long as the process.
pub struct CachedTag {
    pub tag: Box<[u8]>,
    /// The tag's slot in shared memory, and the slot's generation at the look-up. A later generation belongs to another tag.
    /// None if the slot must be looked up.
    pub slot_index: Cell<Option<(&'static Slot, u64)>>,
    pub permit: Cell<Permit>,
    pub last: Cell<Option<i64>>,
    format: RefCell<Option<(u64, NumberFormat)>>,
    /// The value of `FORGOTTEN` at the creation of this entry.
    forgotten: u64,
}

/// The role that passed a privilege check, as its oid. The constants below are oids that no role has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit(u32);

impl Permit {
    const UNKNOWN: Self = Self(0);
    /// Every role. The server assigns this oid last, just before its counter of oids wraps around, so in practice no role has
    /// this oid.
    pub const ANY_ROLE: Self = Self(u32::MAX);

    #[inline]
    pub fn of(role: Oid) -> Self {
        Self(role.to_u32())
    }
}

type TagsByName = FxHashMap<&'static [u8], &'static CachedTag>;

static CACHE: PerProcess<RefCell<Option<TagsByName>>> = PerProcess::new(RefCell::new(None));
static FORGOTTEN: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));

impl CachedTag {
    pub fn new(tag: &Tag) -> Self {
        Self {
            tag: tag.as_bytes().into(),
            slot_index: Cell::new(None),
            permit: Cell::new(Permit::UNKNOWN),
            last: Cell::new(None),
            format: RefCell::new(None),
            forgotten: FORGOTTEN.get(),
        }
    }

    /// Forgets the slot and the permit, but not the last id.
    fn forget(&self) {
        self.slot_index.set(None);
        self.permit.set(Permit::UNKNOWN);
    }

    /// Takes between one and `want` ids from the buffers.
    ///
    /// # Errors
    /// Returns a [`Miss`]. The miss is [`Miss::Gone`] also if the slot or the role's rights must be looked up.
    #[inline]
    pub fn take_up_to(&self, want: NonZeroU32) -> Result<(&'static Slot, TakenIds), Miss> {
        let (slot, slot_generation) =
            self.slot_index.get().filter(|_| self.is_permitted()).ok_or(Miss::Gone)?;
        let taken = slot.segment.take(slot_generation, want, &SystemClock)?;
        self.last.set(Some(taken.range.first));
        Ok((slot, taken))
    }

    #[inline]
    fn is_permitted(&self) -> bool {
        let permit = self.permit.get();
        permit == Permit::ANY_ROLE || permit == Permit::of(role::current())
    }

    /// Returns the cached permit, if it covers the current role.
    pub fn known_permit(&self) -> Option<Permit> {
        self.is_permitted().then(|| self.permit.get())
    }

    pub fn write(&self, slot: &Slot, day: i32, number: i64) -> String {
        let mut known = self.format.borrow_mut();
        if !matches!(&*known, Some((version, _)) if *version == slot.format.version()) {
            let (version, text) = slot.format.read();
            *known = format_of(&text).map(|format| (version, format));
        }
        written(known.as_ref().map(|(_, format)| format), day, number)
    }
}

pub fn written(format: Option<&NumberFormat>, day: i32, number: i64) -> String {
    format.map_or_else(|| number.to_string(), |format| format.render(day, number))
}

/// Parses a format from a row. Tries each reset period. The format fits one of the periods, because the format was checked
/// when the row was written.
pub fn format_of(text: &str) -> Option<NumberFormat> {
    let resets = Reset::ALL.into_iter().map(Some).chain([None]);
    resets.into_iter().find_map(|reset| NumberFormat::parse(text, reset).ok())
}

/// Returns the cached tag, if the session has used the tag.
#[inline]
pub fn find(tag: &[u8]) -> Option<&'static CachedTag> {
    CACHE.borrow().as_ref()?.get(tag).copied()
}

/// Returns the cached tag; caches it if necessary. The tag must exist.
pub fn hold(tag: &Tag) -> &'static CachedTag {
    find(tag.as_bytes()).unwrap_or_else(|| keep(CachedTag::new(tag)))
}

pub fn keep(cached: CachedTag) -> &'static CachedTag {
    if cached.forgotten != FORGOTTEN.get() {
        cached.forget();
    }
    // The entry is never freed, so that call sites can store the reference. A session uses a limited number of tags.
    let cached: &'static CachedTag = Box::leak(Box::new(cached));
    CACHE.borrow_mut().get_or_insert_default().insert(&cached.tag, cached);
    cached
}

/// Forgets all slots and permits, because the table of tags was changed or dropped, or privileges were changed.
pub fn forget_slots() {
    for_all(CachedTag::forget);
}

/// Forgets all permits, because a role was changed.
pub fn forget_permits() {
    for_all(|cached| cached.permit.set(Permit::UNKNOWN));
}

pub fn forget_last() {
    for_all(|cached| cached.last.set(None));
}

fn for_all(action: impl Fn(&CachedTag)) {
    FORGOTTEN.set(FORGOTTEN.get() + 1);
    if let Some(all) = &*CACHE.borrow() {
        for cached in all.values() {
            action(cached);
        }
    }
}
