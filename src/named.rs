//! The session's cache of generators: the server's own, and named ones. [`look_up`] reads a named generator's row; the cached
//! row is valid until one of the two counters in `AsOf` changes.

use crate::pg::catalog::{self, Unseen};
use crate::pg::clock::uptime;
use crate::pg::error::ServerError;
use crate::pg::per_process::PerProcess;
use crate::pg::report::{raise, report};
use crate::pg::sequence::plan_anew;
use crate::pg::tag_text::{self, TagText};
use crate::pg::transaction::{self, Hooks};
use crate::shared::generator::{SHARED, Shared};
use crate::store::generator as store;
use crate::store::tables::GENERATOR;
use crate::tag::timeout::SegmentTimeout;
use rustc_hash::FxHashMap;
use snowflake_ids_core::Layout;
use snowflake_ids_core::generator::named::{self, MAX_NAME_BYTES, Named, NamedError};
use snowflake_ids_core::server::issuer::SlotRef;
use snowflake_ids_core::session::Session;
use snowflake_ids_core::tag::directory::Tag;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::Duration;

/// Two counters of changes to the table of generators. The first counts invalidation messages. A session receives these
/// messages only when it takes a lock, and a long statement may take no lock. The second counter counts committed changes in
/// all databases. The second counter is in shared memory, so every session sees a change immediately.
type AsOf = (u64, u64);

/// The server's own generator or a named generator, with the ids that the session holds. The entry is never freed.
pub struct CachedGenerator {
    /// The name; empty for the server's own generator.
    name: Box<[u8]>,
    named: Cell<&'static Named>,
    /// The change counters at the time the row was read; None for the server's own generator, which never changes.
    as_of: Cell<Option<AsOf>>,
    /// The source of the layout's ids: the server's own generator or a slot. None if the source is not known yet.
    pub slot_ref: Cell<Option<SlotRef>>,
    /// The ids that the session took and has not handed out.
    pub session: Session,
}

type GeneratorsByName = FxHashMap<&'static [u8], &'static CachedGenerator>;

static OWN: PerProcess<OnceCell<CachedGenerator>> = PerProcess::new(OnceCell::new());
static CACHE: PerProcess<RefCell<Option<GeneratorsByName>>> = PerProcess::new(RefCell::new(None));
/// All definitions of generators that the process has read.
static NAMED: PerProcess<RefCell<Option<Vec<&'static Named>>>> = PerProcess::new(RefCell::new(None));
/// The number of invalidation messages for the table of generators.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));
/// True if this transaction has changed generators.
static CHANGED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

impl CachedGenerator {
    fn new(name: &[u8], named: &'static Named, slot_ref: Option<SlotRef>) -> Self {
        Self {
            name: name.into(),
            named: Cell::new(named),
            as_of: Cell::new(None),
            slot_ref: Cell::new(slot_ref),
            session: Session::new(),
        }
    }

    /// Returns the generator's name, in the encoding of the database.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns true for the server's own generator.
    pub fn is_own(&self) -> bool {
        self.name.is_empty()
    }

    #[inline]
    pub fn named(&self) -> &'static Named {
        self.named.get()
    }

    /// Returns true if the table of generators is unchanged since the generator was looked up.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.as_of.get().is_none_or(|then| then == as_of())
    }

    /// Returns true if no transaction has committed changes of generators since the generator was looked up. After a call of
    /// [`CachedGenerator::is_current`], this check suffices until the next call of a server function.
    #[inline]
    pub fn is_still_current(&self, shared: &Shared) -> bool {
        self.as_of.get().is_none_or(|(_, then)| then == shared.named_changes.load(Acquire))
    }

    /// Stores the definition that was read. Discards ids that the session holds under a different definition.
    fn learn(&self, named: &'static Named, as_of: AsOf) {
        if !std::ptr::eq(self.named.replace(named), named) {
            self.session.drop_held();
            self.slot_ref.set(None);
        }
        self.as_of.set(Some(as_of));
    }
}

/// Returns the generator of the server's own layout, if the session has used this generator. Calls no server function.
#[inline]
pub fn own_at_once() -> Option<&'static CachedGenerator> {
    OWN.get()
}

/// Returns the generator of the server's own layout. A server that did not preload the library has no layout, and calls fail
/// before they use the default.
pub fn own() -> &'static CachedGenerator {
    OWN.get_or_init(|| {
        let layout = SHARED.get().map_or_else(Layout::default, |shared| shared.layout);
        CachedGenerator::new(&[], kept_named(Named::of_server(layout)), Some(SlotRef::Own))
    })
}

/// Returns a generator from the cache if it is current. Calls no server function.
#[inline]
pub fn find(name: &[u8]) -> Option<&'static CachedGenerator> {
    // A longer text cannot be a name, and its lookup would take long.
    let name = Some(name).filter(|name| name.len() <= MAX_NAME_BYTES)?;
    kept(name).filter(|cached| cached.is_current())
}

fn kept(name: &[u8]) -> Option<&'static CachedGenerator> {
    CACHE.borrow().as_ref()?.get(name).copied()
}

/// Returns the generator of this name, as the transaction sees it: the transaction's own uncommitted changes count. Needs a
/// transaction.
pub fn look_up(name: &[u8]) -> Result<&'static CachedGenerator, NamedError> {
    if let Some(cached) = find(name) {
        return Ok(cached);
    }
    let tag = checked(name)?;
    // The counters are read before the table, so that a concurrent change causes another look-up.
    let as_of = as_of();
    catalog::take_in_changes();
    GENERATOR.on_change(forget);
    let timeout = SegmentTimeout::new();
    let row = store::read(&tag, timeout.left()).unwrap_or_else(|unseen| match unseen {
        Unseen::NoTable => raise(ServerError::Dropped),
        Unseen::Locked => raise(report(timeout.locked("generator"))),
    });
    let named = row.ok_or_else(|| unknown(&tag))??;
    let named = kept_named(named);
    let cached = kept(name).unwrap_or_else(|| keep(&tag, named));
    cached.learn(named, as_of);
    Ok(cached)
}

/// Checks that the bytes can be a generator's name, and returns the name as the key for look-ups in the table of generators.
pub fn checked(name: &[u8]) -> Result<Tag, NamedError> {
    let chars = if name.len() <= MAX_NAME_BYTES { tag_text::chars(name) } else { 0 };
    named::check_name(name, chars)?;
    Tag::new(name).ok_or(NamedError::LongName { bytes: name.len() })
}

pub fn unknown(name: &Tag) -> NamedError {
    NamedError::Unknown { name: TagText(*name).shown() }
}

/// Caches a generator that was found. Unknown names are not cached, because users may try any number of names and the cache
/// never shrinks.
fn keep(name: &Tag, named: &'static Named) -> &'static CachedGenerator {
    // The entry is never freed, so that call sites can cache the reference. A database has a limited number of generators.
    let cached: &'static CachedGenerator =
        Box::leak(Box::new(CachedGenerator::new(name.as_bytes(), named, None)));
    CACHE.borrow_mut().get_or_insert_default().insert(cached.name(), cached);
    cached
}

/// Returns a definition that lives as long as the process. Equal definitions share one copy, so that changing a row back and
/// forth takes no more memory.
fn kept_named(named: Named) -> &'static Named {
    let mut all = NAMED.borrow_mut();
    let all = all.get_or_insert_default();
    if let Some(kept) = all.iter().find(|kept| ***kept == named) {
        return kept;
    }
    let kept: &'static Named = Box::leak(Box::new(named));
    all.push(kept);
    kept
}

#[inline]
fn as_of() -> AsOf {
    (CHANGES.get(), SHARED.get().map_or(0, |shared| shared.named_changes.load(Acquire)))
}

static HOOKS: Hooks = Hooks {
    before_commit: refuse_late,
    before_prepare: || {
        if CHANGED.get() {
            GENERATOR.refuse_to_prepare(report(NamedError::Prepared));
        }
    },
    committed: || {
        LAYOUT_CHANGED.set(None);
        if let (true, Some(shared)) = (CHANGED.replace(false), SHARED.get()) {
            shared.named_changes.fetch_add(1, AcqRel);
        }
    },
    ended: || {
        CHANGED.set(false);
        LAYOUT_CHANGED.set(None);
    },
    ..Hooks::none()
};

/// Marks the transaction as one that changes generators. After its commit, no session issues an id under an old definition,
/// even in a statement that began before the commit.
pub fn changed() {
    transaction::watch(&HOOKS);
    CHANGED.set(true);
}

/// The longest time between the check of a new layout and the commit of that layout. The check verifies that ids of the new
/// layout are above ids of the old layout.
pub const UNDER_WAY: Duration = Duration::from_hours(1);

/// The time at which this transaction first changed a layout.
static LAYOUT_CHANGED: PerProcess<Cell<Option<Duration>>> = PerProcess::new(Cell::new(None));

/// Records that this transaction changes a generator's layout. Called just after the check that ids of the new layout are
/// above ids of the old layout.
pub fn layout_changed() {
    LAYOUT_CHANGED.set(LAYOUT_CHANGED.get().or_else(|| Some(uptime())));
}

/// Refuses a commit that comes too long after the check of the new layout. Until the commit, other sessions issue ids of the
/// old layout, and these ids must stay below ids of the new layout.
fn refuse_late() {
    let shown = LAYOUT_CHANGED.replace(None);
    if shown.is_some_and(|shown| uptime().saturating_sub(shown) > UNDER_WAY) {
        raise(report(NamedError::LateChange { limit: UNDER_WAY }));
    }
}

/// Invalidates all cached generators, and all cached plans, because a plan may hold a layout as a constant.
fn forget() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    plan_anew();
}
