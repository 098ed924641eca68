//! Named generators: what this session knows of each. [`look_up`] gives what a name stands for; it is kept until the server tells
//! that the table has changed.

use crate::pg::catalog::{self, Source, Unseen};
use crate::pg::clock::uptime;
use crate::pg::extension;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, report};
use crate::pg::sequence::plan_anew;
use crate::pg::tag::{self, TagText};
use crate::pg::transaction::{self, Hooks};
use crate::segment::timeout::SegmentTimeout;
use crate::shared::generator::{self, Shared};
use crate::store::generator as store;
use crate::store::tables::GENERATOR;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, function_name};
use rustc_hash::FxHashMap;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::generator::named::{self, MAX_NAME_BYTES, Named, NamedError};
use snowflake_ids_core::generator::session::Session;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::server::issuer::SlotRef;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Number of times that the table was changed, as far as this session was told, and how often any database's was. The
/// server tells a session at the next lock that it takes: a statement may go on for long without. What is shared counts
/// at once.
type AsOf = (u64, u64);

/// A generator as the session knows it, and the ids that the session holds. It is kept as long as the process lives.
pub struct CachedGenerator {
    name: Box<[u8]>,
    named: Cell<&'static Named>,
    /// As of which change of the table.
    as_of: Cell<AsOf>,
    /// The source of the layout's ids, as far as that is known.
    slot_ref: Cell<Option<SlotRef>>,
    /// The ids that the session took and has not handed out.
    pub session: Session,
}

type GeneratorsByName = FxHashMap<&'static [u8], &'static CachedGenerator>;

static CACHE: PerProcess<RefCell<Option<GeneratorsByName>>> = PerProcess::new(RefCell::new(None));
/// All that names stood for.
static NAMED: PerProcess<RefCell<Option<Vec<&'static Named>>>> = PerProcess::new(RefCell::new(None));
/// Number of times that the table was changed.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));
/// True if this transaction changes generators.
static CHANGED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

impl CachedGenerator {
    /// The generator's name, in the encoding of the database.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns what the name stands for.
    #[inline]
    pub fn named(&self) -> &'static Named {
        self.named.get()
    }

    /// Returns whether the table has not changed since it was looked up.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.as_of.get() == as_of()
    }

    /// Returns whether no transaction has changed generators since it was looked up. As [`CachedGenerator::is_current`], where
    /// nothing of the server's was called since that was asked.
    #[inline]
    pub fn is_still_current(&self, shared: &Shared) -> bool {
        self.as_of.get().1 == shared.named_changes()
    }

    /// Returns where the layout has its ids from; None where that has to be found.
    #[inline]
    pub fn slot_ref(&self) -> Option<SlotRef> {
        self.slot_ref.get()
    }

    /// Notes where the layout has its ids from.
    pub fn set_slot_ref(&self, slot_ref: SlotRef) {
        self.slot_ref.set(Some(slot_ref));
    }

    /// Takes over what was looked up. What the session holds by other terms is given up.
    fn learn(&self, named: &'static Named, as_of: AsOf) {
        if !std::ptr::eq(self.named.replace(named), named) {
            self.session.drop_held();
            self.slot_ref.set(None);
        }
        self.as_of.set(as_of);
    }
}

/// Returns what the session knows of a generator, if it has used it and nothing has changed. Calls nothing of the server's.
#[inline]
pub fn find(name: &[u8]) -> Option<&'static CachedGenerator> {
    kept(name).filter(|cached| cached.is_current())
}

fn kept(name: &[u8]) -> Option<&'static CachedGenerator> {
    CACHE.borrow().as_ref()?.get(name).copied()
}

/// Returns what a name stands for: by the transaction's own view, in which a generator that it has made is there, and
/// one that it has dropped is not. Only within a transaction.
///
/// # Errors
/// [`NamedError`]: there is none of this name, or its row is not right.
pub fn look_up(name: &[u8]) -> Result<&'static CachedGenerator, NamedError> {
    if let Some(cached) = find(name) {
        return Ok(cached);
    }
    let tag = checked(name)?;
    // Before the table is looked at: what changes meanwhile is looked at again.
    let as_of = as_of();
    catalog::take_in_changes();
    GENERATOR.on_change(forget);
    let timeout = SegmentTimeout::new();
    let row = store::read(&tag, timeout.left()).unwrap_or_else(|unseen| match unseen {
        Unseen::NoTable => raise(extension::missing()),
        Unseen::Locked => raise(report(&timeout.locked("generator"))),
    });
    let named = row.ok_or_else(|| unknown(&tag))??;
    let named = kept_named(named);
    let cached = kept(name).unwrap_or_else(|| keep(&tag, named));
    cached.learn(named, as_of);
    Ok(cached)
}

/// Returns whether bytes can be a name; as what they are looked for.
pub fn checked(name: &[u8]) -> Result<Tag, NamedError> {
    let chars = if name.len() <= MAX_NAME_BYTES { tag::chars(name) } else { 0 };
    named::check_name(name, chars)?;
    Tag::new(name).ok_or(NamedError::LongName { bytes: name.len() })
}

/// There is no generator of this name.
pub fn unknown(name: &Tag) -> NamedError {
    NamedError::Unknown { name: TagText(*name).shown() }
}

/// Only what was found is kept: else each name that a user tries would stay in memory.
fn keep(name: &Tag, named: &'static Named) -> &'static CachedGenerator {
    // Never freed, so that call sites can remember it: a database has a limited number of generators.
    let cached: &'static CachedGenerator = Box::leak(Box::new(CachedGenerator {
        name: name.as_bytes().into(),
        named: Cell::new(named),
        as_of: Cell::new((u64::MAX, u64::MAX)),
        slot_ref: Cell::new(None),
        session: Session::new(),
    }));
    CACHE.borrow_mut().get_or_insert_default().insert(cached.name(), cached);
    cached
}

/// Returns what a name stands for, where the process keeps it for good: the same each time, so that it takes no more
/// memory however often a row is changed back and forth.
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
    (CHANGES.get(), generator::shared().map_or(0, Shared::named_changes))
}

static HOOKS: Hooks = Hooks {
    before_commit: refuse_late,
    before_prepare: refuse_to_prepare,
    committed: || {
        LAYOUT_CHANGED.set(None);
        if let (true, Some(shared)) = (CHANGED.replace(false), generator::shared()) {
            shared.record_named_change();
        }
    },
    ended: || {
        CHANGED.set(false);
        LAYOUT_CHANGED.set(None);
    },
    ..Hooks::none()
};

/// This transaction changes generators. When it commits, no session gives an id by what they were, not even in a statement that
/// began before.
pub fn changed() {
    transaction::watch(&HOOKS);
    CHANGED.set(true);
}

/// For how long others may go on with the old layout after it was shown that ids of the new one are above its.
pub const UNDER_WAY: Duration = Duration::from_hours(1);

/// The time at which this transaction changed a layout first.
static LAYOUT_CHANGED: PerProcess<Cell<Option<Duration>>> = PerProcess::new(Cell::new(None));

/// This transaction changes the layout of a generator: it was shown just now that ids of the new one are above those of the old one.
pub fn layout_changed() {
    LAYOUT_CHANGED.set(LAYOUT_CHANGED.get().or_else(|| Some(uptime())));
}

/// Others go on with the old layout until the transaction commits.
fn refuse_late() {
    let shown = LAYOUT_CHANGED.replace(None);
    if shown.is_some_and(|shown| uptime().saturating_sub(shown) > UNDER_WAY) {
        let report = ErrorReport::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "could not commit the change of a layout in time",
            function_name!(),
        );
        raise(
            report
                .set_detail(format!(
                    "It was shown more than {} ago that its ids are above the former ones.",
                    human(UNDER_WAY)
                ))
                .set_hint("Change it in a transaction of its own."),
        );
    }
}

/// Another session may commit it, and would not know what there is to do then. Nothing, where the table comes with this transaction: no
/// other session knows a generator of it.
fn refuse_to_prepare() {
    if CHANGED.get() && !GENERATOR.find().is_some_and(Source::is_new) {
        let report = ErrorReport::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot PREPARE a transaction that has changed named generators",
            function_name!(),
        );
        raise(report.set_hint("Run it again, and end it with COMMIT."));
    }
}

/// Has all of them looked up again, and all statements planned anew: a plan may hold a layout as a constant.
fn forget() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    plan_anew();
}
