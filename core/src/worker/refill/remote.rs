//! Reserving from registries on other servers.
//!
//! One is asked for all tags at once; what it cannot give, the next one is asked for. What was received is written down
//! before it is handed out, so that a registry that was set back to an earlier state is noticed, even after a crash.

use super::errand::{Errand, ErrandError};
use super::host::{CarryOvers, RefillHost};
use super::job::Job;
use super::slot::{TagSlot, Trouble};
use super::tables::{Database, Tables};
use super::worker::{RETRY, RETRY_AFTER_FAILURE, RefillWorker};
use crate::clock::UnixMicros;
use crate::error::ended;
use crate::guard::{Guard, holds};
use crate::registry::error::{Complaint, RegistryError, SqlError};
use crate::registry::failover::{self, BACKOFF, Health};
use crate::registry::link::{RegistryLink, RegistryNotes, Site};
use crate::registry::wire::{self, MAX_WANTS, RequestBody, ReserveRequest, Response, ResponseBody, cut};
use crate::sequence::definition::MAX_TAG_CHARS;
use crate::sequence::reservation::Outcome;
use crate::sequence::tag_rows::TagRows;
use std::time::Duration;

/// Where there are several registries, each is waited for so many times less than one would be.
const FRACTION: u32 = 5;
/// Number of times that rows that are locked are waited for, while there are other tags to serve.
const WAIT_EVERY: Duration = Duration::from_millis(500);

/// What a registry has against it whose rows are locked.
const LOCKED: &str =
    "a transaction there has the row of a segment tag locked, or waits with it for a standby";
const LOCKED_HINT: &str = "There, look at pg_stat_activity and pg_locks.";
/// What is in the way where its ids cannot be noted here.
const LOCKED_HERE: &str = "what it gives cannot be noted here, as a transaction has the table snowflake_ids.received \
                           locked: use_registry and use_local_registry do, until their transactions end";
const LOCKED_HERE_HINT: &str = "End that transaction. To find it: SELECT pid FROM pg_locks WHERE granted AND relation = 'snowflake_ids.received'::regclass.";

impl<'h, H: RefillHost, L: RegistryLink, C: CarryOvers> RefillWorker<'h, H, L, C> {
    /// Reserves for all of these jobs, and publishes. Gives a pause to be made where some could not be served.
    pub(super) fn serve_remotely(&mut self, jobs: &[&Job<'h, H::Slot>]) -> Option<Duration> {
        let sites = match self.transaction(Tables::sites) {
            Ok(sites) => sites,
            Err(failure) => return jobs.iter().map(|job| self.note(&failure, job)).max(),
        };
        self.remote = !sites.is_empty();
        if !self.remote {
            return Some(Duration::ZERO);
        }
        // Registries take turns with each tag by itself: so each tag's ids come from all of them.
        let turn = |job: &&Job<'_, H::Slot>| job.slot.registry() as usize % sites.len();
        let turns: Vec<(usize, &Job<'_, _>)> = jobs.iter().map(|job| (turn(job), *job)).collect();
        let mut pause = None;
        for after in 0..sites.len() {
            let ours: Vec<&Job<'_, _>> =
                turns.iter().filter(|(turn, _)| *turn == after).map(|(_, job)| *job).collect();
            pause = pause.max(self.serve_in_turn(&sites, &ours, after));
        }
        pause
    }

    /// Serves those whose ids came last from the registry at this place.
    fn serve_in_turn(
        &mut self,
        sites: &[Site],
        jobs: &[&Job<'h, H::Slot>],
        after: usize,
    ) -> Option<Duration> {
        if jobs.is_empty() {
            return None;
        }
        let healths: Vec<Health> = sites.iter().map(|site| self.link.notes(site).health()).collect();
        let waited_for =
            jobs.iter().any(|job| job.slot.segment().shelves().left() == 0 && job.slot.wanted() > 0);
        let mut left = self.errands(jobs);
        for index in failover::order(&healths, after, self.host.uptime(), waited_for) {
            if !left.is_empty() {
                left = self.visit(sites, &sites[index], left);
            }
        }
        let due = failover::until_due(&healths, self.host.uptime(), waited_for)
            .unwrap_or(BACKOFF.first)
            .clamp(RETRY, BACKOFF.first);
        left.into_iter().filter_map(|errand| settle(&errand, sites.len(), due)).max()
    }

    /// Asks registries for nothing that gave no answer last, to see whether they do now: no call asks them for ids.
    pub(super) fn probe(&mut self) {
        let sites = self.transaction(Tables::sites).unwrap_or_default();
        let limit = self.limit(sites.len());
        for site in &sites {
            if failover::is_to_be_probed(self.link.notes(site).health(), self.host.uptime()) {
                // How it went is noted.
                drop(self.link.ask(site, RequestBody::Reserve(Vec::new()), limit));
            }
        }
    }

    /// Returns the time that one of so many registries may take to answer.
    fn limit(&self, sites: usize) -> Duration {
        self.host.settings().registry_timeout / if sites > 1 { FRACTION } else { 1 }
    }

    /// Those whose tags other servers can know; the others are unknown there.
    fn errands<'j>(&self, jobs: &[&'j Job<'h, H::Slot>]) -> Vec<Errand<'j, 'h, H::Slot>> {
        let texts = self
            .transaction(|tables| Ok(jobs.iter().map(|job| tables.to_utf8(&job.tag)).collect::<Vec<_>>()));
        let known = |(job, tag): (&&'j Job<'h, H::Slot>, Option<String>)| {
            if tag.is_none() {
                job.deny(&Outcome::Unknown);
            }
            Some(Errand { job, tag: tag?, denials: 0, denial: None })
        };
        jobs.iter().zip(texts.unwrap_or_default()).filter_map(known).collect()
    }

    /// Asks one registry, which waits for no row that is locked: but for one that was locked the last time, too, in a request of its own. So
    /// is one in a round, each in its turn, and not all the time where others want ids. Gives those back that it had nothing for.
    fn visit<'j>(
        &mut self,
        sites: &[Site],
        site: &Site,
        errands: Vec<Errand<'j, 'h, H::Slot>>,
    ) -> Vec<Errand<'j, 'h, H::Slot>> {
        let were_locked: Vec<_> =
            errands.iter().map(|errand| errand.job).filter(|job| job.was_locked()).collect();
        let waits = errands.len() > 1
            && (were_locked.len() == errands.len()
                || self.host.uptime().saturating_sub(self.waited) >= WAIT_EVERY);
        let mut left = self.ask(sites, site, errands);
        if let Some(job) = self.turn_of(&were_locked).filter(|_| waits)
            && let Some(place) = left.iter().position(|errand| std::ptr::eq(errand.job, job))
        {
            let errand = left.swap_remove(place);
            left.extend(self.ask(sites, site, vec![errand]));
            self.waited = self.host.uptime();
        }
        left
    }

    fn ask<'j>(
        &mut self,
        sites: &[Site],
        site: &Site,
        mut errands: Vec<Errand<'j, 'h, H::Slot>>,
    ) -> Vec<Errand<'j, 'h, H::Slot>> {
        // No more than a request takes.
        let mut given_back = Vec::new();
        while errands.len() > MAX_WANTS {
            let rest = errands.split_off(MAX_WANTS);
            given_back.extend(self.ask_once(sites, site, std::mem::replace(&mut errands, rest)));
        }
        given_back.extend(self.ask_once(sites, site, errands));
        given_back
    }

    fn ask_once<'j>(
        &mut self,
        sites: &[Site],
        site: &Site,
        errands: Vec<Errand<'j, 'h, H::Slot>>,
    ) -> Vec<Errand<'j, 'h, H::Slot>> {
        // What could not be noted is lost, so that it is not asked for again at once.
        let lost = self.lost.is_some_and(|lost| self.host.uptime().saturating_sub(lost) < BACKOFF.first);
        if lost || self.host.is_overdue() {
            return errands;
        }
        let started = self.host.uptime();
        match self.reserve_at(sites, site, &errands) {
            Ok(outcomes) => {
                let wrong = |outcome: &Outcome| {
                    matches!(outcome, Outcome::Unfit(_) | Outcome::Locked | Outcome::Garbled(_))
                };
                if !outcomes.iter().any(wrong) {
                    self.link.notes(site).clear_complaint();
                }
                let took = self.host.uptime().saturating_sub(started);
                let both = errands.into_iter().zip(outcomes);
                both.filter_map(|(errand, outcome)| self.hand_out(errand, site, outcome, took)).collect()
            }
            // One that cannot be served must not take the others with it.
            Err(failure) if failure.is_of_tag() && errands.len() > 1 => {
                errands.into_iter().flat_map(|errand| self.ask_once(sites, site, vec![errand])).collect()
            }
            Err(failure) => {
                for errand in &errands {
                    self.note(&failure, errand.job);
                }
                if failure.is_conflict() {
                    self.link.notes(site).complain(&Complaint::new(LOCKED, LOCKED_HINT));
                }
                if failure.is_locked_here() {
                    self.link.notes(site).complain(&Complaint::new(LOCKED_HERE, LOCKED_HERE_HINT));
                }
                errands
            }
        }
    }

    /// Reserves, and notes what was received.
    fn reserve_at(
        &mut self,
        sites: &[Site],
        site: &Site,
        errands: &[Errand<'_, 'h, H::Slot>],
    ) -> Result<Vec<Outcome>, ErrandError> {
        let wants: Vec<ReserveRequest> = self.transaction(|tables| {
            // What cannot be noted is not asked for.
            tables.lock_received()?;
            errands.iter().map(|errand| self.want(tables, sites, site, errand)).collect()
        })?;
        let wishes: Vec<_> = wants.iter().map(|want| want.wish.clone()).collect();
        let limit = self.limit(sites.len());
        let answer = self.link.ask(site, RequestBody::Reserve(wants), limit).map_err(ErrandError::Away)?;
        let Response { registry, clock, said } = answer;
        let ResponseBody::Reserved(mut outcomes) = said else {
            return Err(self.garbled(site, RegistryError::other_kind()));
        };
        if outcomes.len() != errands.len() {
            let why = "it answers for another number of tags".to_owned();
            return Err(self.garbled(site, RegistryError::Garbled(why)));
        }
        let now = self.host.now();
        for (outcome, wish) in outcomes.iter_mut().zip(&wishes) {
            if let Outcome::Reserved(reserved) = outcome
                && let Err(wrong) = reserved.check(wish, clock, now)
            {
                *outcome = Outcome::Garbled(format!("it gives {wrong}"));
            }
            not_over_yet(outcome, clock, now);
        }
        if holds(Guard::ReceivedFirst) && !self.note_received(site, &registry, errands, &outcomes)? {
            return Ok(outcomes.iter().map(|_| Outcome::Locked).collect());
        }
        let reserved = errands.iter().zip(&outcomes).filter_map(|(errand, outcome)| match outcome {
            Outcome::Reserved(reserved) => Some((errand.job.source, &errand.job.tag, reserved)),
            _ => None,
        });
        let good = !holds(Guard::NotedFirst) || self.carry_over.take_up(reserved);
        if good { Ok(outcomes) } else { Ok(outcomes.iter().map(|_| Outcome::Locked).collect()) }
    }

    /// Returns what is wanted of a tag.
    fn want<T: Tables>(
        &self,
        tables: &mut T,
        sites: &[Site],
        site: &Site,
        errand: &Errand<'_, 'h, H::Slot>,
    ) -> Result<ReserveRequest, <T as TagRows>::Error> {
        let job = errand.job;
        // Floors are of rows here.
        let mut wish = job.wish(self.host.settings(), self.carry_over.of(job.source, &job.tag), None);
        let received = tables.received(&site.seen.identity, &job.tag)?;
        wish.received = received.filter(|_| holds(Guard::Received)).map(|received| received.reached);
        // Once only, even if the registry is set back to where it was.
        let version = received.map(|received| received.version);
        let is_last = |version_then| Some(version_then) == version || !holds(Guard::CarryOverIsLast);
        wish.carry_over = wish.carry_over.filter(|carry_over| is_last(carry_over.version));
        wish.share = site.share(sites.len()).filter(|_| holds(Guard::Share));
        wish.clock = Some(self.host.now());
        Ok(ReserveRequest { tag: errand.tag.clone(), create: job.creates(), wish })
    }

    /// Notes what was received; false: the registry is not in use any more, and nothing of it may be handed out.
    fn note_received(
        &mut self,
        site: &Site,
        answered: &wire::RegistryName,
        errands: &[Errand<'_, 'h, H::Slot>],
        outcomes: &[Outcome],
    ) -> Result<bool, ErrandError> {
        let noted = self.transaction(|tables| {
            if answered.timeline > site.seen.timeline {
                tables.note_seen(answered)?;
            }
            for (errand, outcome) in errands.iter().zip(outcomes) {
                if let Outcome::Reserved(reserved) = outcome {
                    tables.receive(&site.seen.identity, &errand.job.tag, reserved)?;
                }
            }
            // What was written holds up a session that wants to use other registries: what is found now stays so.
            Ok(!holds(Guard::StillUsed) || tables.is_used(&site.seen.identity)?)
        });
        self.lost = noted.is_err().then(|| self.host.uptime());
        noted
    }

    /// Publishes what a registry gave. Gives the errand back where that was nothing.
    fn hand_out<'j>(
        &self,
        mut errand: Errand<'j, 'h, H::Slot>,
        site: &Site,
        outcome: Outcome,
        took: Duration,
    ) -> Option<Errand<'j, 'h, H::Slot>> {
        match outcome {
            Outcome::Reserved(reserved) => {
                // What is not published becomes a gap: to give it back would take another request.
                errand.job.put_out(self.host, &reserved, took);
                errand.job.slot.set_registry(site.position);
                errand.job.supplied();
                return None;
            }
            Outcome::Unknown | Outcome::Exhausted(_) => errand.deny(outcome),
            Outcome::Unfit(unfit) => {
                let hint = unfit.hint(&self.shown(errand.job));
                self.complain(&errand, site, &format!("must not be used. {}", unfit.detail()), hint);
            }
            // What it says of the others counts all the same.
            Outcome::Garbled(why) => {
                let hint = RegistryError::Garbled(String::new()).hint();
                let what = format!("is told of in a way that makes no sense: {why}");
                self.complain(&errand, site, &what, hint);
            }
            // There, or because the registries were changed meanwhile.
            Outcome::Locked => errand.job.note_locked(),
        }
        Some(errand)
    }

    /// The tag, for people of this database.
    fn shown(&self, job: &Job<'_, H::Slot>) -> String {
        cut(&self.host.shown(&job.tag), MAX_TAG_CHARS)
    }

    fn complain(&self, errand: &Errand<'_, '_, H::Slot>, site: &Site, what: &str, hint: String) {
        errand.job.note_trouble(Trouble::Registry);
        let why = format!("its row of segment tag \"{}\" {what}", self.shown(errand.job));
        // A caller that waits for another tag is told of it, too, and may have no right to know this one.
        let briefly = Some("a row of a segment tag there must not be used".to_owned());
        let complaint = Complaint { briefly, ..Complaint::new(why, hint) };
        self.link.notes(site).complain(&complaint);
        let (why, hint) = (ended(complaint.why), complaint.hint);
        self.host.say_once(format!("registry \"{}\": {why} {hint}", site.server));
    }

    /// Notes a failure; gives the pause before the next attempt, where there is no registry to turn to.
    fn note(&self, failure: &ErrandError, job: &Job<'h, H::Slot>) -> Duration {
        match failure {
            ErrandError::Away(_) if failure.is_conflict() => job.note_locked(),
            ErrandError::Away(error) => match error.sqlstate().filter(|_| failure.is_of_tag()) {
                Some(code) => {
                    let message = format!("snowflake_ids could not reserve ids of a registry: {error}");
                    self.host.say_once(message);
                    job.note_trouble(Trouble::Failed(code));
                }
                None => job.note_trouble(Trouble::Registry),
            },
            ErrandError::Here(failed) => {
                if !job.note_failure(failed) {
                    let why = &failed.message;
                    self.host.say_once(format!("snowflake_ids could not note ids that it received: {why}"));
                }
            }
        }
        RETRY_AFTER_FAILURE
    }

    /// An answer that is not to be believed counts as none.
    fn garbled(&self, site: &Site, error: RegistryError) -> ErrandError {
        let (notes, complaint) = (self.link.notes(site), error.complaint());
        if notes.is_news(&complaint) {
            let (server, why) = (&site.server, &complaint.why);
            self.host.say_once(format!("snowflake_ids got no ids of registry \"{server}\": {why}"));
        }
        notes.failed(&complaint);
        ErrandError::Away(error)
    }

    /// A transaction here.
    fn transaction<T>(
        &self,
        work: impl FnOnce(
            &mut <H::Database as Database>::Tables,
        ) -> Result<T, <<H::Database as Database>::Tables as TagRows>::Error>,
    ) -> Result<T, ErrandError> {
        let there = |tables: &mut <H::Database as Database>::Tables| match tables.source() {
            Some(_) => work(tables).map(Some),
            None => Ok(None),
        };
        let done = self.host.database().transaction(there).map_err(ErrandError::Here)?;
        let gone = || {
            ErrandError::Away(RegistryError::NoServer(SqlError::new(*b"42704", "the extension was dropped")))
        };
        done.ok_or_else(gone)
    }
}

/// Notes what becomes of a tag that no registry gave ids of, and returns the pause before the next attempt.
fn settle<S: TagSlot>(errand: &Errand<'_, '_, S>, registries: usize, due: Duration) -> Option<Duration> {
    match errand.denied_by(registries) {
        Some(denial) => {
            errand.job.deny(denial);
            None
        }
        None if errand.job.was_locked() => Some(RETRY),
        None => Some(due),
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
