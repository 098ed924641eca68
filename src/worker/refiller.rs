//! A refiller: reserves segments for the tags of one database, and leaves when there is nothing to do, so that
//! the database can be dropped, renamed and copied.

mod remote;

use super::leftover::Leftovers;
use super::{pending, rest};
use crate::pg::catalog::Source;
use crate::pg::clock::uptime;
use crate::pg::shmem::segments::{Segments, segments};
use crate::pg::wait::Event;
use crate::pg::worker::Failed;
use crate::pg::{server, worker};
use crate::segment::slot::{Slot, Trouble};
use crate::segment::{own, place};
use crate::settings;
use crate::store::registry::{self, Site};
use crate::store::segment::{self as store, Create, Patience};
use pgrx::spi::SpiError;
use remote::Remote;
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::request::Answer;
use snowflake_ids_core::reservation::{Outcome, Reserved, Wish};
use snowflake_ids_core::segment::{Stamp, Supply};
use snowflake_ids_core::step::HUNGER;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

/// How soon it tries again where a row is locked, or a transaction failed.
const RETRY: Duration = Duration::from_millis(20);
const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);
/// What is locked must not keep other tags waiting.
const LOCK_TIMEOUT: &CStr = c"20ms";
/// For how long it tries the same requests.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Runs until there was nothing to do for a while.
pub fn run(desk_number: u32, database: u32) {
    let desks = segments().map(|segments| segments.desks).unwrap_or_default();
    let number = usize::try_from(desk_number).unwrap_or(usize::MAX);
    let Some((segments, desk)) = segments().zip(desks.get(number)) else { return };
    worker::on_exit(go);
    if !desk.is_for(database) || !desk.station.enter() {
        return;
    }
    worker::connect(database, LOCK_TIMEOUT);
    desk.connected.store(true, Release);
    // So that it knows that this database can be helped.
    segments.supervisor.wake();
    own::keep_quiet(true);
    let leftovers = Leftovers::of_database(database);
    let mut remote = Remote::default();
    let (mut last_work, mut stuck) = (uptime(), None);
    loop {
        let jobs = jobs(segments);
        if jobs.is_empty() {
            if !rest(last_work) {
                return;
            }
            continue;
        }
        last_work = uptime();
        let Some(pause) = serve(segments, &leftovers, &mut remote, &jobs) else {
            stuck = None;
            continue;
        };
        if uptime().saturating_sub(*stuck.get_or_insert_with(uptime)) >= GIVE_UP {
            // Whoever still waits asks again; requests that nobody waits for any more don't keep it here.
            for job in &jobs {
                job.supplied();
            }
            stuck = None;
        }
        worker::sleep(Event::Worker, pause);
    }
}

/// Leaves the desk, whichever it is, and calls the supervisor: there may be requests that came too late.
fn go() {
    let Some(segments) = segments() else { return };
    for desk in segments.desks {
        if desk.station.leave() {
            desk.free();
        }
    }
    segments.supervisor.wake();
}

/// A tag that wants ids.
struct Job {
    slot: &'static Slot,
    tag: Tag,
    source: u32,
    /// Answers go to those who asked before this.
    ticket: u64,
    /// Whose the place was when the tag was found there, and how often it had been cleared when the row was locked,
    /// under which lock it is cleared: what is reserved is published for this only.
    stamp: Cell<Stamp>,
}

/// The unanswered requests of this database.
fn jobs(segments: &'static Segments) -> Vec<Job> {
    let database = server::database();
    let job = |place| {
        let slot: &'static Slot = segments.slots.get(place)?;
        let directory = segments.directory.read();
        let key = directory.get(place).filter(|key| key.database == database)?;
        Some(Job {
            slot,
            tag: key.tag,
            source: key.source,
            ticket: slot.request.pending()?,
            stamp: Cell::new(slot.segment.stamp()),
        })
    };
    pending(segments).filter_map(job).collect()
}

/// Reserves for all of them in one transaction, and publishes when it is durable. Gives a pause to be made
/// where some could not be served.
fn serve(segments: &Segments, leftovers: &Leftovers, remote: &mut Remote, jobs: &[Job]) -> Option<Duration> {
    let started = uptime();
    let (full, empty): (Vec<&Job>, Vec<&Job>) = jobs.iter().partition(|job| !job.needs_ids());
    for job in full {
        job.supplied();
    }
    if empty.is_empty() {
        return None;
    }
    worker::show_activity(Some(&format!("reserving ids for {} of the tags in use", empty.len())));
    match sites() {
        Ok(sites) if sites.is_empty() => {}
        Ok(sites) => return remote.serve(segments, leftovers, &empty, &sites),
        Err(failure) => return empty.iter().map(|job| failed(job, &failure)).max(),
    }
    // One that can't be served must not take the others with it: not twice.
    let (sound, troubled): (Vec<&Job>, Vec<&Job>) =
        empty.into_iter().partition(|job| job.slot.trouble.get().is_none());
    let together = serve_together(segments, leftovers, &sound, started);
    let left = if together.is_err() { [sound, troubled].concat() } else { troubled };
    let alone = |job: &&Job| {
        serve_together(segments, leftovers, &[*job], started)
            .unwrap_or_else(|failure| Some(failed(job, &failure)))
    };
    left.iter().map(alone).max().flatten().max(together.ok().flatten())
}

/// The registries on other servers that are used instead of this database; none where there is no extension.
fn sites() -> Result<Vec<Site>, Failed> {
    let read = || Source::find().map(|source| source.as_owner(registry::sites));
    let sites = worker::transaction(read)?.unwrap_or_else(|| Ok(Vec::new()));
    sites.map_err(|error| Failed::of_spi(&error))
}

/// One transaction for all of them.
fn serve_together(
    segments: &Segments,
    leftovers: &Leftovers,
    jobs: &[&Job],
    started: Duration,
) -> Result<Option<Duration>, Failed> {
    if jobs.is_empty() {
        return Ok(None);
    }
    let reserved =
        worker::transaction(|| reserve(leftovers, jobs))?.map_err(|error| Failed::of_spi(&error))?;
    let took = uptime().saturating_sub(started);
    let mut pause = None;
    for (job, outcome) in jobs.iter().zip(reserved) {
        if job.publish(segments, outcome, took) {
            pause = Some(RETRY);
        }
    }
    Ok(pause)
}

/// What came of each job. None: the table that the job's tag was in is not there any more.
fn reserve(leftovers: &Leftovers, jobs: &[&Job]) -> Result<Vec<Option<Outcome>>, SpiError> {
    let source = Source::find();
    let one = |job: &&Job| match source {
        Some(source) if source.number() == job.source => source
            .as_owner(|| store::reserve(&job.tag, job.create(), job.patience(), || job.wish(leftovers)))
            .map(Some),
        _ => Ok(None),
    };
    let outcomes = jobs.iter().map(one).collect::<Result<_, _>>()?;
    // Others may be in use since this was looked at. The rows are locked now, so that it can't change any more.
    match source.map(|source| source.as_owner(registry::in_use)).transpose()? {
        Some(true) => Ok(jobs.iter().map(|_| Some(Outcome::Locked)).collect()),
        _ => Ok(outcomes),
    }
}

/// Notes why a job could not be done; gives the pause before the next attempt.
fn failed(job: &Job, failure: &Failed) -> Duration {
    if failure.is_lock_timeout() {
        job.slot.trouble.set(Trouble::RowLocked);
        return RETRY;
    }
    pgrx::warning!("snowflake_ids could not reserve ids: {}", failure.message);
    job.slot.trouble.set(Trouble::Failed(failure.code));
    RETRY_AFTER_FAILURE
}

impl Job {
    /// Whether there is room in the buffers, or what they hold is out of date.
    fn needs_ids(&self) -> bool {
        let shelves = self.slot.segment.shelves();
        shelves.have_room() || shelves.is_over(&crate::pg::clock::SystemClock)
    }

    fn creates(&self) -> bool {
        self.slot.create.load(Relaxed)
    }

    fn create(&self) -> Create {
        if self.creates() { Create::Yes(None) } else { Create::No }
    }

    /// A row that was locked the last time is waited for: it may be locked again and again.
    fn patience(&self) -> Patience {
        if self.slot.trouble.get().is_some() { Patience::Some } else { Patience::None }
    }

    /// Called with the row locked.
    fn wish(&self, leftovers: &Leftovers) -> Wish {
        let supplies = &self.slot.supplies;
        let target = settings::segment_target_duration();
        // As long as it should, where it is not known: the step stays what it is.
        let lasted =
            supplies.lasted().map(|lasted| if supplies.cut_short.load(Relaxed) { target } else { lasted });
        let clearings = self.slot.segment.stamp().clearings;
        self.stamp.set(Stamp { clearings, ..self.stamp.get() });
        Wish {
            leftover: leftovers.of(self.source, &self.tag),
            pace: supplies.pace(),
            lasted,
            target,
            hungry: self.slot.waits.ago().is_some_and(|ago| ago < HUNGER),
            prefetch: settings::segment_prefetch(),
            floor: self.slot.floor.get(),
            received: None,
            share: None,
        }
    }

    fn answer(&self, answer: Answer) {
        self.slot.request.answer(self.ticket, answer);
        self.slot.answered.broadcast();
    }

    /// Publishes what was reserved, and answers those who asked; whether they have to go on waiting.
    fn publish(&self, segments: &Segments, outcome: Option<Outcome>, took: Duration) -> bool {
        match outcome {
            None => {
                place::leave_all(server::database(), Some(self.source));
                self.answer(Answer::NoTable);
            }
            Some(Outcome::Locked) => {
                self.slot.trouble.set(Trouble::RowLocked);
                return true;
            }
            Some(Outcome::Reserved(reserved)) => {
                if !self.put_out(segments, &reserved, took) {
                    self.give_back(&reserved);
                }
                self.supplied();
            }
            Some(denial) => self.deny(&denial),
        }
        false
    }

    fn supplied(&self) {
        self.answer(Answer::Supplied);
    }

    /// Tells those who asked that there are no ids.
    fn deny(&self, denial: &Outcome) {
        match denial {
            Outcome::Exhausted(exhausted) => {
                self.slot.supplies.max_value.store(exhausted.max_value, Relaxed);
                self.answer(Answer::Exhausted);
            }
            _ => self.answer(Answer::Unknown),
        }
    }

    /// Puts reserved ids into the buffers, unless the place is another tag's by now or was cleared meanwhile.
    fn put_out(&self, segments: &Segments, reserved: &Reserved, took: Duration) -> bool {
        let _directory = segments.directory.write();
        let (slot, supplies) = (self.slot, &self.slot.supplies);
        let Supply { range, period, .. } = reserved.supply;
        let mut stamp = self.stamp.get();
        // What is left of a day that is over belongs to that day.
        if stamp == slot.segment.stamp() && slot.segment.shelves().days().any(|day| day != period.day) {
            slot.clear();
            stamp = slot.segment.stamp();
        }
        if !slot.segment.publish(&reserved.supply, stamp) {
            return false;
        }
        slot.floor.pass(period.day, range.last());
        slot.trouble.clear();
        slot.format.write(&reserved.format);
        supplies.note(reserved, took);
        true
    }

    fn is_same_tag(&self) -> bool {
        self.slot.segment.incarnation() == self.stamp.get().incarnation
    }

    /// Gives ids back that were reserved and not published, so that they leave no gap. Should that fail, they do.
    fn give_back(&self, reserved: &Reserved) {
        if !self.is_same_tag() {
            return;
        }
        let given = worker::transaction(|| {
            let source = Source::of_number(self.source);
            source.map(|source| source.as_owner(|| store::give_back(&self.tag, reserved)))
        });
        drop(given);
    }
}
