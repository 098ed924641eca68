//! Dense series: numbers of a key that are kept in memory, each of which is in the key's row before.

use super::error::{DenseError, NoNumberError};
use super::known::{Known, shown_key};
use super::{gapless, lost, own};
use crate::pg::clock::uptime;
use crate::pg::process::PerProcess;
use crate::pg::wait::Event;
use crate::pg::{server, worker};
use crate::segment::error::SegmentError;
use crate::segment::own as own_tags;
use crate::segment::timeout::Timeout;
use crate::shared::series::{Counters, counters};
use crate::shared::{registries, segments};
use crate::store::dense as store;
use crate::store::series::Number;
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::series::dense::{Answer, Asked, CounterKey, Miss, ShortKey, Taken, Ticket};
use snowflake_ids_core::series::{Key, SeriesError};
use std::cell::Cell;
use std::sync::Once;
use std::time::Duration;

/// Takes the next number of a key.
pub fn next(known: &Known, key: &Key) -> Result<Number, NoNumberError> {
    if own::has(known.series.id, key) {
        return next_by_itself(known, key);
    }
    let counters = counters().ok_or_else(|| no_memory(known))?;
    let day = known.day()?;
    match take(counters, known, key, day) {
        Some(Ok(taken)) => Ok(number(taken)),
        Some(Err(Miss::Exhausted)) => Err(known.exhausted(key).into()),
        Some(Err(_)) | None => ask(counters, known, key, day),
    }
}

/// Takes the next number of a key out of memory, if it has one in the period that begins with this day. Throws nothing.
#[inline]
pub fn at_once(known: &Known, key: &Key, day: i32) -> Option<Number> {
    if own::has(known.series.id, key) {
        return None;
    }
    take(counters()?, known, key, day)?.ok().map(number)
}

/// A number that was taken; the worker is called if it is time to.
#[inline]
fn number(Taken { number, day, ahead }: Taken) -> Number {
    if ahead {
        segments::wake_workers(server::database());
    }
    Number { number, day }
}

/// Takes a number from memory; None: keys like this are never there.
#[inline]
fn take(counters: &Counters, known: &Known, key: &Key, day: i32) -> Option<Result<Taken, Miss>> {
    let key = counter_key(known, key)?;
    let partition = counters.partition(&key)?;
    let mut partition = partition.try_lock().unwrap_or_else(|| partition.lock());
    Some(partition.take(&key, day, known.series.max_value))
}

#[inline]
fn counter_key(known: &Known, key: &Key) -> Option<CounterKey> {
    Some(known.counter_keys?.key(ShortKey::of(key)?))
}

/// Where keys are set whose numbers come from a registry.
const SET_THERE: &str = "Set the key at the registry with snowflake_ids.series_set: nodes go on above that when they have used up what they hold.";

/// A call that waits for an answer. Errors unwind through it; the end of the session does not, and is met by a hook.
struct Call {
    counters: &'static Counters,
    cell: usize,
    ticket: Ticket,
    began: Duration,
}

/// Whether this process waits.
static WAITS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

impl Call {
    fn begin(counters: &'static Counters, known: &Known, key: &Key, day: i32) -> Option<Self> {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| worker::on_exit(withdraw));
        let cell = server::process_number();
        let asked = Asked {
            database: server::database(),
            source: known.table.number(),
            series: known.series.id,
            key,
            day,
            max_value: known.series.max_value,
        };
        WAITS.set(true);
        let ticket = counters.requests.write().ask(cell, &asked)?;
        Some(Self { counters, cell, ticket, began: uptime() })
    }

    fn wait(&self, timeout: &Timeout) -> Option<Answer> {
        self.counters.answered.get(self.cell)?.wait(Event::Refill, timeout.left(), || {
            let answer = self.counters.requests.write().answer_to(self.cell, self.ticket);
            if answer.is_none() {
                // Every time: the worker that was called last may have died.
                segments::wake_workers(server::database());
            }
            answer
        })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.counters.counts.note_wait(uptime().saturating_sub(self.began));
        withdraw();
    }
}

fn withdraw() {
    if WAITS.replace(false)
        && let Some(counters) = counters()
    {
        counters.requests.write().withdraw(server::process_number());
    }
}

/// Has the worker give a number.
#[cold]
fn ask(counters: &'static Counters, known: &Known, key: &Key, day: i32) -> Result<Number, NoNumberError> {
    if own_tags::is_quiet() {
        return Err(DenseError::Within { series: known.shown() }.into());
    }
    let timeout = Timeout::new();
    let call = Call::begin(counters, known, key, day).ok_or_else(|| no_memory(known))?;
    let answer = call.wait(&timeout);
    let trouble = counters.requests.read().trouble(call.cell, call.ticket).or_else(segments::trouble);
    drop(call);
    match answer {
        Some(Answer::Number { number, day }) => Ok(Number { number, day }),
        Some(Answer::Exhausted) => Err(known.exhausted(key).into()),
        Some(Answer::Refused(why)) => {
            let registry = registries::first(server::database());
            let (series, key) = (known.shown(), shown_key(key));
            Err(SeriesError::Refused { series, key, registry, why }.into())
        }
        Some(Answer::Unknown) => {
            // The worker sees what is committed.
            known.check_present()?;
            own::note_all(known.series.id);
            next_by_itself(known, key)
        }
        None => Err(DenseError::too_late(known.shown(), shown_key(key), timeout.limit(), trouble).into()),
    }
}

/// Takes the next number of a key in the session's transaction.
#[cold]
fn next_by_itself(known: &Known, key: &Key) -> Result<Number, NoNumberError> {
    // A lock in each subtransaction would be noted in every version of the row that they leave.
    if !own::is_locked(known.series.id, key) {
        known.check_home("count", "Commit the transaction that has created or changed the series first.")?;
        settle(known, key, None)?;
        own::note(known.series.id, key);
    }
    let mut number = gapless::next(known, key)?;
    if let Some(lost) = lost::last(known.series.id, key, number.day).filter(|lost| number.number <= *lost) {
        gapless::raise_above(known, key, lost)?;
        number = gapless::next(known, key)?;
    }
    lost::note(known.series.id, key, number);
    Ok(number)
}

/// Locks the row of a key until the transaction ends, and sets it to what was given out: memory gives no numbers of the key from here on.
/// Fails, and changes nothing, where that is more than `most`, and of the present period.
fn settle(known: &Known, key: &Key, most: Option<i64>) -> Result<(), NoNumberError> {
    known.counters.as_owner_qualified(|| {
        let Some((last, day)) = store::lock(known.series.id, key)? else {
            void(known, key);
            return Ok(());
        };
        // Of an earlier period all are over.
        let most = if known.day()? <= day { most } else { None };
        let reached = void_unless_above(known, key, (last, day), most)
            .map_err(|reached| known.below(key, most.unwrap_or(reached), reached))?;
        if reached < last {
            store::lower(known.series.id, key, reached)?;
        }
        Ok(())
    })
}

/// Takes what memory has of a key away, unless the key has given out more than `most`: then nothing that it has left is lost. Up to where
/// it has given them out, as its row is locked, and says this.
fn void_unless_above(
    known: &Known,
    key: &Key,
    (last, day): (i64, i32),
    most: Option<i64>,
) -> Result<i64, i64> {
    let Some(counters) = counters() else { return Ok(last) };
    let Some(key) = counter_key(known, key) else { return Ok(last) };
    let Some(partition) = counters.partition(&key) else { return Ok(last) };
    // In one step: meanwhile others may take numbers.
    let mut partition = partition.lock();
    if let Some(most) = most
        && let Some(given) = partition.look(&key)
    {
        let reached = given.reached(last, day);
        if reached > most {
            return Err(reached);
        }
    }
    Ok(partition.void(&key).map_or(last, |given| given.reached(last, day)))
}

/// Takes what memory has of a key away.
fn void(known: &Known, key: &Key) {
    if let Some(counters) = counters()
        && let Some(key) = counter_key(known, key)
        && let Some(partition) = counters.partition(&key)
    {
        partition.lock().void(&key);
    }
}

/// Has a key go on above a value; with `force` also above a lower one than it gave last.
pub fn set(known: &Known, key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    known.check_home("set", SET_THERE)?;
    settle(known, key, (!force).then_some(value))?;
    gapless::set(known, key, value, force)?;
    take_over(known, key);
    if force {
        lost::forgive(known.series.id, key);
    }
    Ok(())
}

/// Sees to it that a key goes on above a value.
pub fn raise_above(known: &Known, key: &Key, value: i64) -> Result<(), NoNumberError> {
    known.check_home("set", SET_THERE)?;
    settle(known, key, None)?;
    gapless::raise_above(known, key, value)?;
    take_over(known, key);
    Ok(())
}

/// The key's row is locked now. Before, it may not have been there: what was reserved meanwhile is taken away, too.
fn take_over(known: &Known, key: &Key) {
    void(known, key);
    own::note(known.series.id, key);
}

#[cold]
fn no_memory(known: &Known) -> NoNumberError {
    match segments::segments() {
        Some(_) => SeriesError::NoMemory { kind: known.series.kind.name() }.into(),
        None => SegmentError::NotReady(NotReadyError::NotPreloaded("series_nextval()")).into(),
    }
}
