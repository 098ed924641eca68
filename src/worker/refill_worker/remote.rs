//! Reserving from registries on other servers.
//!
//! One is asked for all tags at once; what it can't give, the next one is asked for. What was received is written down
//! before it is handed out, so that a registry that was set back to an earlier state is noticed, even after a crash.

use super::job::Job;
use super::{RETRY, RETRY_AFTER_FAILURE};
use crate::pg::catalog::Source;
use crate::pg::clock::{SystemClock, uptime};
use crate::pg::encoding::to_utf8;
use crate::pg::report::ended;
use crate::pg::tag::TagText;
use crate::pg::worker::{self, Failed};
use crate::registry::RegistryError;
use crate::registry::call::{Caller, entry};
use crate::settings;
use crate::shared::registries::{Complaint, Entry};
use crate::shared::segments::Segments;
use crate::shared::slot::Trouble;
use crate::store::registry::{self as store, Site};
use crate::worker::carry_over::CarryOvers;
use crate::worker::log;
use pgrx::PgLogLevel;
use pgrx::spi::SpiError;
use snowflake_ids_core::definition::MAX_TAG_CHARS;
use snowflake_ids_core::failover::{self, BACKOFF, Health};
use snowflake_ids_core::reservation::{Outcome, Wish};
use snowflake_ids_core::wire::{MAX_WANTS, RequestBody, ReserveRequest, ResponseBody, cut};
use snowflake_ids_core::{Clock, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Where there are several registries, each is waited for so many times less than one would be.
const FRACTION: u32 = 5;

/// How often rows that are locked are waited for, while there are other tags to serve.
const WAIT_EVERY: Duration = Duration::from_millis(500);

/// What is kept from one round to the next.
#[derive(Default)]
pub struct Remote {
    caller: Caller,
    /// Whether there were any when that was looked at last.
    used: bool,
    /// When a row that was locked was waited for last, by uptime.
    waited: Duration,
    /// When ids were lost last, as they could not be noted.
    lost: Option<Duration>,
}

/// What there is to go by in one round.
#[derive(Clone, Copy)]
struct Round<'a> {
    segments: &'a Segments,
    carry_overs: &'a CarryOvers,
    sites: &'a [Site],
}

/// A tag that wants ids, while the registries are asked one after the other.
struct Errand<'a> {
    job: &'a Job,
    /// The tag, in letters that all servers know.
    tag: String,
    /// How many have said that they don't know the tag, or have no more ids of it; and the last such answer.
    denials: usize,
    denial: Option<Outcome>,
}

/// What a registry has against it whose rows are locked.
const LOCKED: &str =
    "a transaction there has the row of a segment tag locked, or waits with it for a standby";
const LOCKED_HINT: &str = "There, look at pg_stat_activity and pg_locks.";
/// What is in the way where its ids can't be noted here.
const LOCKED_HERE: &str = "what it gives cannot be noted here, as a transaction has the table snowflake_ids.received \
                           locked: use_registry and use_local_registry do, until their transactions end";
const LOCKED_HERE_HINT: &str = "End that transaction. To find it: SELECT pid FROM pg_locks WHERE granted AND relation = 'snowflake_ids.received'::regclass.";
/// What could not be noted is lost, so that it is not asked for again at once.
const AFTER_LOSS: Duration = Duration::from_secs(1);

/// Why nothing was reserved.
enum Failure {
    /// The registry gave no answer.
    Away(RegistryError),
    /// What it gave could not be noted here.
    Here(Failed),
}

impl Remote {
    /// Whether registries on other servers were in use when that was looked at last.
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// Reserves for all of these jobs, and publishes. Gives a pause to be made where some could not be served.
    pub fn serve(
        &mut self,
        segments: &Segments,
        carry_overs: &CarryOvers,
        jobs: &[&Job],
    ) -> Option<Duration> {
        let sites = match transaction(store::sites) {
            Ok(sites) => sites,
            Err(failure) => return jobs.iter().map(|job| failure.note(job)).max(),
        };
        self.used = !sites.is_empty();
        if !self.used {
            return Some(Duration::ZERO);
        }
        let round = Round { segments, carry_overs, sites: &sites };
        // Registries take turns with each tag by itself: so each tag's ids come from all of them.
        let turn = |job: &&Job| job.slot.registry.load(Relaxed) as usize % sites.len();
        let turns: Vec<(usize, &Job)> = jobs.iter().map(|job| (turn(job), *job)).collect();
        let mut pause = None;
        for after in 0..sites.len() {
            let ours: Vec<&Job> =
                turns.iter().filter(|(turn, _)| *turn == after).map(|(_, job)| *job).collect();
            pause = pause.max(self.serve_in_turn(round, &ours, after));
        }
        pause
    }

    /// Serves those whose ids came last from the registry at this place.
    fn serve_in_turn(&mut self, round: Round<'_>, jobs: &[&Job], after: usize) -> Option<Duration> {
        if jobs.is_empty() {
            return None;
        }
        let healths = healths(round.sites);
        let waited_for = jobs.iter().any(|job| job.slot.segment.shelves().left() == 0);
        let mut left = errands(jobs);
        for index in failover::order(&healths, after, uptime(), waited_for) {
            if !left.is_empty() {
                left = self.visit(round, &round.sites[index], left);
            }
        }
        let due =
            failover::until_due(&healths, uptime(), waited_for).unwrap_or(BACKOFF.0).clamp(RETRY, BACKOFF.0);
        left.into_iter().filter_map(|errand| errand.settle(round, due)).max()
    }

    /// Asks one registry: for those whose rows were locked alone, and not all the time. Gives those back that it had
    /// nothing for.
    fn visit<'a>(&mut self, round: Round<'_>, site: &Site, errands: Vec<Errand<'a>>) -> Vec<Errand<'a>> {
        let (locked, sound): (Vec<_>, Vec<_>) =
            errands.into_iter().partition(|errand| errand.job.was_locked());
        let alone = sound.is_empty() || uptime().saturating_sub(self.waited) >= WAIT_EVERY;
        let mut left = if sound.is_empty() { sound } else { self.ask(round, site, sound) };
        if alone && !locked.is_empty() {
            left.extend(locked.into_iter().flat_map(|errand| self.ask(round, site, vec![errand])));
            self.waited = uptime();
        } else {
            left.extend(locked);
        }
        left
    }

    fn ask<'a>(&mut self, round: Round<'_>, site: &Site, errands: Vec<Errand<'a>>) -> Vec<Errand<'a>> {
        // No more than a question takes.
        let mut errands = errands;
        let mut given_back = Vec::new();
        while errands.len() > MAX_WANTS {
            let rest = errands.split_off(MAX_WANTS);
            given_back.extend(self.ask(round, site, std::mem::replace(&mut errands, rest)));
        }
        given_back.extend(self.ask_once(round, site, errands));
        given_back
    }

    fn ask_once<'a>(&mut self, round: Round<'_>, site: &Site, errands: Vec<Errand<'a>>) -> Vec<Errand<'a>> {
        let lost = self.lost.is_some_and(|lost| uptime().saturating_sub(lost) < AFTER_LOSS);
        if lost || super::is_overdue() {
            return errands;
        }
        let started = uptime();
        match self.reserve(round, site, &errands) {
            Ok(outcomes) => {
                if let Some(entry) = entry(site)
                    && !outcomes.iter().any(|outcome| {
                        matches!(outcome, Outcome::Unfit(_) | Outcome::Locked | Outcome::Garbled(_))
                    })
                {
                    entry.be_content();
                }
                let took = uptime().saturating_sub(started);
                let both = errands.into_iter().zip(outcomes);
                both.filter_map(|(errand, outcome)| errand.take_up(round, site, outcome, took)).collect()
            }
            // One that can't be served must not take the others with it.
            Err(failure) if failure.is_of_tag() && errands.len() > 1 => {
                errands.into_iter().flat_map(|errand| self.ask_once(round, site, vec![errand])).collect()
            }
            Err(failure) => {
                for errand in &errands {
                    failure.note(errand.job);
                }
                if failure.is_conflict()
                    && let Some(entry) = entry(site)
                {
                    entry.complain(&Complaint::new(LOCKED, LOCKED_HINT));
                }
                if failure.is_locked_here()
                    && let Some(entry) = entry(site)
                {
                    entry.complain(&Complaint::new(LOCKED_HERE, LOCKED_HERE_HINT));
                }
                errands
            }
        }
    }

    /// Reserves, and notes what was received.
    fn reserve(
        &mut self,
        round: Round<'_>,
        site: &Site,
        errands: &[Errand<'_>],
    ) -> Result<Vec<Outcome>, Failure> {
        let wants: Vec<ReserveRequest> = transaction(|| {
            // What can't be noted is not asked for.
            store::lock_received()?;
            errands.iter().map(|errand| errand.want(round, site)).collect()
        })?;
        let wishes: Vec<Wish> = wants.iter().map(|want| want.wish.clone()).collect();
        let several = round.sites.len() > 1;
        let limit = settings::registry_timeout() / if several { FRACTION } else { 1 };
        let answer = self.caller.ask(site, RequestBody::Reserve(wants), limit).map_err(Failure::Away)?;
        let ResponseBody::Reserved(mut outcomes) = answer.said else {
            return Err(garbled(site, "it answers another question"));
        };
        if outcomes.len() != errands.len() {
            return Err(garbled(site, "it answers for another number of tags"));
        }
        let now = SystemClock.now();
        for (outcome, wish) in outcomes.iter_mut().zip(&wishes) {
            if let Outcome::Reserved(reserved) = outcome
                && let Err(wrong) = reserved.check(wish, answer.clock, now)
            {
                *outcome = Outcome::Garbled(format!("it gives {wrong}"));
            }
            not_over_yet(outcome, answer.clock, now);
        }
        let noted = transaction(|| {
            if answer.registry.timeline > site.seen.timeline {
                store::note_seen(&answer.registry)?;
            }
            let mut both = errands.iter().zip(&outcomes);
            both.try_for_each(|(errand, outcome)| match outcome {
                Outcome::Reserved(reserved) => store::receive(&site.seen.identity, &errand.job.tag, reserved),
                _ => Ok(()),
            })?;
            // What was written holds up whoever wants to use other registries: what is found now stays so.
            store::is_used(&site.seen.identity)
        });
        self.lost = noted.is_err().then(uptime);
        let noted = noted?;
        let reserved = errands.iter().zip(&outcomes).filter_map(|(errand, outcome)| match outcome {
            Outcome::Reserved(reserved) => Some((errand.job.source, &errand.job.tag, reserved)),
            _ => None,
        });
        let good = noted && round.carry_overs.take_up(reserved);
        if good { Ok(outcomes) } else { Ok(outcomes.iter().map(|_| Outcome::Locked).collect()) }
    }
}

impl Errand<'_> {
    fn want(&self, round: Round<'_>, site: &Site) -> Result<ReserveRequest, SpiError> {
        // Floors are of rows here.
        let mut wish = self.job.wish(round.carry_overs, None);
        let received = store::received(&site.seen.identity, &self.job.tag)?;
        wish.received = received.map(|(reached, _)| reached);
        // Once only, even if the registry is set back to where it was.
        let version = received.map(|(_, version)| version);
        wish.carry_over = wish.carry_over.filter(|carry_over| Some(carry_over.version) == version);
        wish.share = site.share(round.sites.len());
        Ok(ReserveRequest { tag: self.tag.clone(), create: self.job.creates(), wish })
    }

    /// Publishes what a registry gave. Gives itself back where that was nothing.
    fn take_up(mut self, round: Round<'_>, site: &Site, outcome: Outcome, took: Duration) -> Option<Self> {
        match outcome {
            Outcome::Reserved(reserved) => {
                // What is not published becomes a gap: to give it back would take another question.
                self.job.put_out(round.segments, &reserved, took);
                self.job.slot.registry.store(site.position, Relaxed);
                self.job.supplied();
                return None;
            }
            Outcome::Unknown | Outcome::Exhausted(_) => {
                self.denials += 1;
                self.denial = Some(outcome);
            }
            Outcome::Unfit(unfit) => {
                let hint = unfit.hint(&self.shown());
                self.complain(site, &format!("must not be used. {}", unfit.detail()), hint);
            }
            // What it says of the others counts all the same.
            Outcome::Garbled(why) => {
                let hint = RegistryError::Garbled(String::new()).hint();
                self.complain(
                    site,
                    &format!("is told of in a way that makes no sense: {why}"),
                    hint.to_owned(),
                );
            }
            // There, or because the registries were changed meanwhile.
            Outcome::Locked => self.job.note_locked(),
        }
        Some(self)
    }

    /// The tag, for people of this database.
    fn shown(&self) -> String {
        cut(&TagText(self.job.tag).shown(), MAX_TAG_CHARS)
    }

    fn complain(&self, site: &Site, what: &str, hint: String) {
        self.job.slot.trouble.set(Trouble::Registry);
        let why = format!("its row of segment tag \"{}\" {what}", self.shown());
        // Whoever waits for another tag is told of it, too, and may have no right to know this one.
        let briefly = Some("a row of a segment tag there must not be used".to_owned());
        let complaint = Complaint { briefly, ..Complaint::new(why, hint) };
        if let Some(entry) = entry(site) {
            entry.complain(&complaint);
        }
        let text = format!("registry \"{}\": {} {}", site.server, ended(complaint.why), complaint.hint);
        log::once(PgLogLevel::WARNING, text);
    }

    /// What becomes of a tag that no registry gave ids of. Gives the pause before the next attempt.
    fn settle(self, round: Round<'_>, due: Duration) -> Option<Duration> {
        match self.denial.filter(|_| self.denials == round.sites.len()) {
            Some(denial) => {
                self.job.deny(&denial);
                None
            }
            None if self.job.was_locked() => Some(RETRY),
            None => Some(due),
        }
    }
}

impl Failure {
    /// Whether something is locked here.
    fn is_locked_here(&self) -> bool {
        matches!(self, Self::Here(failed) if failed.is_lock_timeout())
    }

    /// Whether rows are locked there.
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Away(error) if error.is_conflict())
    }

    /// Whether it concerns one tag, and not the registry.
    fn is_of_tag(&self) -> bool {
        matches!(self, Self::Away(error) if error.is_of_tag())
    }

    /// Notes it; gives the pause before the next attempt, where there is no registry to turn to.
    fn note(&self, job: &Job) -> Duration {
        match self {
            Self::Away(_) if self.is_conflict() => job.note_locked(),
            Self::Away(error) => match error.sqlstate().filter(|_| self.is_of_tag()) {
                Some(code) => {
                    let message = format!("snowflake_ids could not reserve ids of a registry: {error}");
                    log::once(PgLogLevel::WARNING, message);
                    job.slot.trouble.set(Trouble::Failed(code));
                }
                None => job.slot.trouble.set(Trouble::Registry),
            },
            Self::Here(failed) => {
                if !job.note_failure(failed) {
                    let message =
                        format!("snowflake_ids could not note ids that it received: {}", failed.message);
                    log::once(PgLogLevel::WARNING, message);
                }
            }
        }
        RETRY_AFTER_FAILURE
    }
}

/// A registry whose clock is behind ours gives ids of a period that is over here: they are good until it is over there.
fn not_over_yet(outcome: &mut Outcome, registry: UnixMicros, now: UnixMicros) {
    if let Outcome::Reserved(reserved) = outcome
        && let period = &mut reserved.supply.period
        && period.until <= now
    {
        period.until = now.plus(period.until.since(registry));
    }
}

/// An answer that is not to be believed counts as none.
fn garbled(site: &Site, why: &str) -> Failure {
    let error = RegistryError::Garbled(why.to_owned());
    let complaint = error.complaint();
    if entry(site).is_none_or(|entry| entry.is_news(&complaint)) {
        pgrx::warning!("snowflake_ids got no ids of registry \"{}\": {}", site.server, complaint.why);
    }
    if let Some(entry) = entry(site) {
        entry.failed(&complaint);
    }
    Failure::Away(error)
}

/// Those whose tags other servers can know; the others are unknown there.
fn errands<'a>(jobs: &[&'a Job]) -> Vec<Errand<'a>> {
    let texts =
        worker::transaction(|| jobs.iter().map(|job| to_utf8(job.tag.as_bytes())).collect::<Vec<_>>());
    let known = |(job, tag): (&&'a Job, Option<String>)| {
        if tag.is_none() {
            job.deny(&Outcome::Unknown);
        }
        Some(Errand { job, tag: tag?, denials: 0, denial: None })
    };
    jobs.iter().zip(texts.unwrap_or_default()).filter_map(known).collect()
}

fn healths(sites: &[Site]) -> Vec<Health> {
    sites.iter().map(|site| entry(site).map(Entry::health).unwrap_or_default()).collect()
}

/// A transaction here, with the rights of the tables' owner.
fn transaction<T>(work: impl FnOnce() -> Result<T, SpiError>) -> Result<T, Failure> {
    let done = worker::transaction(|| Source::find().map(|source| source.as_owner(work)));
    match done.map_err(Failure::Here)? {
        Some(done) => done.map_err(|error| Failure::Here(Failed::of_spi(&error))),
        None => Err(Failure::Away(RegistryError::NoServer("the extension was dropped".to_owned()))),
    }
}
