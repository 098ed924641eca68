//! A round in a database that draws from a registry on another server: what its keys want is asked there, in a transaction for each
//! series; what was received is noted here before it is handed out.

use super::group::Group;
use super::outcome::{Done, Fate, LOCKED, Outcome, Terms};
use super::publish::{RETRY, RETRY_AFTER_FAILURE};
use crate::failover::{self, BACKOFF};
use crate::guard::{Guard, holds};
use crate::refill_worker::slot::Trouble;
use crate::registry_error::{Complaint, RegistryError};
use crate::registry_link::{RegistryLink, RegistryNotes, Site};
use crate::series::dense::counter::Left;
use crate::series::dense::host::{Found, Host, KeyRow, Origin, Reserved, RowKey, Rows};
use crate::series::dense::requests::Refusal;
use crate::wire::{
    KeyReached, MAX_WANTS, Numbers, NumbersOutcome, NumbersRequest, NumbersReturn, NumbersWant, Registry,
    RequestBody, Response, ResponseBody, SharedTerms,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a registry has against it whose rows are locked.
const LOCKED_THERE: &str =
    "a transaction there has the row of a key of a dense series locked, or waits with it for a standby";
const LOCKED_HINT: &str = "There, look at pg_stat_activity and pg_locks.";

/// What is to be asked, and what came of it so far.
pub(super) struct Plan {
    site: Site,
    errands: Vec<Errand>,
    outcomes: Vec<Outcome>,
    fates: Vec<Fate>,
    /// Whether any call waits.
    waited_for: bool,
}

/// What one request asks.
struct Errand {
    name: String,
    terms: SharedTerms,
    returns: Vec<Return>,
    wants: Vec<Want>,
}

impl Errand {
    /// Whether an answer has as many parts as there are questions.
    fn is_answered_by(&self, numbers: &Numbers) -> bool {
        match numbers {
            Numbers::Done { returned, outcomes } => {
                returned.len() == self.returns.len() && outcomes.len() == self.wants.len()
            }
            Numbers::Unknown | Numbers::Locked | Numbers::Differs => true,
        }
    }
}

struct Return {
    /// Its place among those that leave.
    place: usize,
    row: RowKey,
    ask: NumbersReturn,
}

struct Want {
    /// Its place among the groups.
    place: usize,
    row: RowKey,
    ask: NumbersWant,
    terms: Terms,
}

/// What is to be noted here of an answer.
#[derive(Default)]
struct Notes {
    rows: Vec<(RowKey, KeyRow)>,
    /// The groups whose numbers they are.
    groups: Vec<usize>,
}

impl Plan {
    /// What there is to ask. What counters have left that are not of the last reservation received is lost.
    pub(super) fn new<R: Rows>(
        rows: &mut R,
        site: Site,
        groups: &[Group],
        definitions: &[Found],
        leaving: &[Left],
        source: u32,
    ) -> Result<Self, R::Error> {
        let waited_for = groups.iter().any(|group| !group.callers.is_empty());
        let (outcomes, fates) = (vec![LOCKED; groups.len()], vec![Fate::Gone; leaving.len()]);
        let mut plan = Self { site, errands: Vec::new(), outcomes, fates, waited_for };
        let leaving_rows =
            leaving.iter().map(|left| RowKey { series: left.key.series, key: left.key.key.to_key() });
        let all: Vec<RowKey> = leaving_rows.chain(groups.iter().map(|group| group.row.clone())).collect();
        let mut received = rows.received(&all)?.into_iter().zip(all);
        let mut of_series: BTreeMap<i64, (Vec<Return>, Vec<Want>)> = BTreeMap::new();
        for (place, (left, (received, row))) in leaving.iter().zip(&mut received).enumerate() {
            let reserved = KeyReached { last: left.limit, day: left.day };
            let version = received.filter(|row| row.reached == reserved).and_then(|row| row.version);
            if left.key.source == source
                && let Some((version, key)) = version.zip(rows.shared_key(&row.key))
            {
                let ask = NumbersReturn { key, reserved, version, given: left.given };
                of_series.entry(row.series).or_default().0.push(Return { place, row, ask });
            }
        }
        for (place, ((group, found), (received, row))) in
            groups.iter().zip(definitions).zip(received).enumerate()
        {
            let definition = match found {
                Found::There(definition) => definition,
                Found::Locked => continue,
                Found::Unknown => {
                    plan.set(place, Outcome::Unknown);
                    continue;
                }
            };
            let Some(key) = rows.shared_key(&row.key) else {
                plan.set(place, Outcome::Refused(Refusal::NoKey));
                continue;
            };
            let reserve = group.reserve(definition);
            // Above what is returned nothing is in use.
            let of_row = |one: &&Return| one.row == row;
            let returned = of_series.get(&row.series).and_then(|(returns, _)| returns.iter().find(of_row));
            let in_use = |one: &Return| KeyReached { last: one.ask.given, ..one.ask.reserved };
            let version = received.and_then(|row| row.version).filter(|_| returned.is_none());
            let received = returned.map(in_use).or_else(|| received.map(|row| row.reached));
            let ask = NumbersWant {
                key,
                // A clock that was set back since changes nothing.
                day: received.map_or(reserve.day, |reached| reached.day.max(reserve.day)),
                waiting: reserve.waiting,
                ahead: if definition.max_step > 1 { reserve.extra } else { 0 },
                max_value: reserve.max_value,
                received: received.filter(|_| holds(Guard::NumbersReceived)),
                version,
            };
            let terms = Terms { extra: reserve.extra, start: reserve.start };
            of_series.entry(row.series).or_default().1.push(Want { place, row, ask, terms });
        }
        plan.divide(rows, of_series)?;
        Ok(plan)
    }

    /// Makes requests of what series want, none of them longer than a request may be.
    fn divide<R: Rows>(
        &mut self,
        rows: &mut R,
        of_series: BTreeMap<i64, (Vec<Return>, Vec<Want>)>,
    ) -> Result<(), R::Error> {
        let ids: Vec<i64> = of_series.keys().copied().collect();
        let shared = if ids.is_empty() { Vec::new() } else { rows.shared(&ids)? };
        for ((mut returns, mut wants), shared) in of_series.into_values().zip(shared) {
            let Some((name, terms)) = shared else {
                for want in wants {
                    self.set(want.place, Outcome::Refused(Refusal::NoSeries));
                }
                continue;
            };
            while !returns.is_empty() || !wants.is_empty() {
                let (name, terms) = (name.clone(), terms.clone());
                // What is returned of a key comes before what is wanted of it.
                let (some_returns, some_wants) =
                    (first(&mut returns), if returns.is_empty() { first(&mut wants) } else { Vec::new() });
                self.errands.push(Errand { name, terms, returns: some_returns, wants: some_wants });
            }
        }
        Ok(())
    }

    fn set(&mut self, place: usize, outcome: Outcome) {
        if let Some(one) = self.outcomes.get_mut(place) {
            *one = outcome;
        }
    }

    /// Asks the registry, and notes what it gave.
    pub(super) fn carry_out<H: Host, L: RegistryLink>(mut self, host: &H, link: &mut L) -> Done {
        let (mut all, mut answered) = (Notes::default(), None);
        for errand in std::mem::take(&mut self.errands) {
            if let Some(pause) = self.put_off(host, link) {
                self.fail(&errand, Outcome::Away(Trouble::Registry, pause), Fate::Stays);
                continue;
            }
            match self.ask(host, link, &errand) {
                Ok((registry, numbers)) => {
                    self.take(host, link, &errand, numbers, &mut all);
                    answered = Some(registry);
                }
                Err(error) => self.failed(host, link, &errand, &error),
            }
        }
        if let Some(registry) = answered.filter(|_| holds(Guard::NumbersNoted)) {
            self.note(host, &registry, &all);
        }
        (self.outcomes, self.fates)
    }

    /// How long it is not to be asked; None: it is asked now.
    fn put_off<H: Host, L: RegistryLink>(&self, host: &H, link: &L) -> Option<Duration> {
        if host.is_overdue() {
            return Some(RETRY);
        }
        let (health, now) = ([link.notes(&self.site).health()], host.uptime());
        let is_due = !failover::order(&health, 0, now, self.waited_for).is_empty();
        let due = || failover::until_due(&health, now, self.waited_for).unwrap_or(BACKOFF.first);
        (!is_due).then(|| due().clamp(RETRY, BACKOFF.first))
    }

    fn ask<H: Host, L: RegistryLink>(
        &self,
        host: &H,
        link: &mut L,
        errand: &Errand,
    ) -> Result<(Registry, Numbers), RegistryError> {
        let request = NumbersRequest {
            series: errand.name.clone(),
            terms: errand.terms.clone(),
            returns: errand.returns.iter().map(|one| one.ask.clone()).collect(),
            wants: errand.wants.iter().map(|one| one.ask.clone()).collect(),
        };
        let body = RequestBody::ReserveNumbers(Box::new(request));
        let Response { registry, said, .. } = link.ask(&self.site, body, host.registry_timeout())?;
        let wrong = match said {
            ResponseBody::ReservedNumbers(numbers) if errand.is_answered_by(&numbers) => {
                return Ok((registry, numbers));
            }
            ResponseBody::ReservedNumbers(_) => {
                RegistryError::Garbled("it answers for another number of keys".to_owned())
            }
            _ => RegistryError::other_kind(),
        };
        self.garbled(host, link, &wrong);
        Err(wrong)
    }

    /// What an answer says of each.
    fn take<H: Host, L: RegistryLink>(
        &mut self,
        host: &H,
        link: &L,
        errand: &Errand,
        numbers: Numbers,
        notes: &mut Notes,
    ) {
        let (returned, outcomes) = match numbers {
            Numbers::Done { returned, outcomes } => (returned, outcomes),
            Numbers::Unknown => return self.fail(errand, Outcome::Refused(Refusal::NoSeries), Fate::Stays),
            Numbers::Differs => return self.fail(errand, Outcome::Refused(Refusal::Differs), Fate::Stays),
            Numbers::Locked => {
                link.notes(&self.site).complain(&Complaint::new(LOCKED_THERE, LOCKED_HINT));
                return self.fail(errand, Outcome::Away(Trouble::Registry, RETRY), Fate::Stays);
            }
        };
        for (one, is_back) in errand.returns.iter().zip(returned) {
            if is_back {
                let reached = KeyReached { last: one.ask.given, ..one.ask.reserved };
                notes.rows.push((one.row.clone(), KeyRow { reached, version: None }));
            } else if let Some(fate) = self.fates.get_mut(one.place) {
                *fate = Fate::Stays;
            }
        }
        let mut sound = true;
        for (want, outcome) in errand.wants.iter().zip(outcomes) {
            let outcome = match (outcome.check(&want.ask, errand.terms.start, host.today()), outcome) {
                (Err(wrong), _) => {
                    sound = false;
                    let why = format!("it gives {wrong}");
                    self.garbled(host, link, &RegistryError::Garbled(why));
                    Outcome::Away(Trouble::Registry, BACKOFF.first)
                }
                (Ok(()), NumbersOutcome::Given { first, last, day, version }) => {
                    let row = KeyRow { reached: KeyReached { last, day }, version: Some(version) };
                    // What was returned of it is noted by this, too.
                    notes.rows.retain(|(row, _)| *row != want.row);
                    notes.rows.push((want.row.clone(), row));
                    notes.groups.push(want.place);
                    Outcome::Reserved(Reserved::Numbers { first, last, day }, want.terms)
                }
                (Ok(()), NumbersOutcome::Exhausted) => Outcome::Reserved(Reserved::Exhausted, want.terms),
                (Ok(()), NumbersOutcome::Nothing) => Outcome::Reserved(Reserved::Nothing, want.terms),
                (Ok(()), NumbersOutcome::Behind) => Outcome::Refused(Refusal::Behind),
                (Ok(()), NumbersOutcome::Ahead) => Outcome::Refused(Refusal::Ahead),
                (Ok(()), NumbersOutcome::NoKey) => Outcome::Refused(Refusal::NoKey),
                (Ok(()), NumbersOutcome::Locked) => {
                    sound = false;
                    link.notes(&self.site).complain(&Complaint::new(LOCKED_THERE, LOCKED_HINT));
                    Outcome::Away(Trouble::Registry, RETRY)
                }
            };
            self.set(want.place, outcome);
        }
        if sound {
            link.notes(&self.site).be_content();
        }
    }

    /// Notes what was received. What cannot be noted is not handed out.
    fn note<H: Host>(&mut self, host: &H, registry: &Registry, notes: &Notes) {
        if notes.rows.is_empty() {
            return;
        }
        let site = &self.site;
        let done = host.transaction(|rows| {
            // What is found now stays so.
            let is_used = rows.source().is_some()
                && matches!(rows.origin()?, Origin::There(now) if now.seen.identity == site.seen.identity);
            if is_used || !holds(Guard::StillUsed) {
                rows.receive(registry, &notes.rows)?;
            }
            Ok(is_used || !holds(Guard::StillUsed))
        });
        let failed = match done {
            Ok(true) => return,
            Ok(false) => Outcome::Away(Trouble::RowLocked, RETRY),
            Err(error) if error.is_lock_timeout => Outcome::Away(Trouble::RowLocked, RETRY_AFTER_FAILURE),
            Err(error) => {
                host.say_once(format!(
                    "snowflake_ids could not note numbers that it received: {}",
                    error.message
                ));
                Outcome::Away(Trouble::Failed(error.code), RETRY_AFTER_FAILURE)
            }
        };
        for place in &notes.groups {
            self.set(*place, failed);
        }
    }

    fn fail(&mut self, errand: &Errand, outcome: Outcome, fate: Fate) {
        for want in &errand.wants {
            self.set(want.place, outcome);
        }
        for one in &errand.returns {
            if let Some(is) = self.fates.get_mut(one.place) {
                *is = fate;
            }
        }
    }

    /// There was no answer, or none that can be believed.
    fn failed<H: Host, L: RegistryLink>(
        &mut self,
        host: &H,
        link: &L,
        errand: &Errand,
        error: &RegistryError,
    ) {
        let fate = if error.is_undone() { Fate::Stays } else { Fate::Unsure };
        let outcome = if error.is_conflict() {
            link.notes(&self.site).complain(&Complaint::new(LOCKED_THERE, LOCKED_HINT));
            Outcome::Away(Trouble::Registry, RETRY)
        } else if let Some(code) = error.sqlstate().filter(|_| error.is_of_tag()) {
            host.say_once(format!("snowflake_ids could not reserve numbers of a registry: {error}"));
            Outcome::Away(Trouble::Failed(code), RETRY_AFTER_FAILURE)
        } else {
            Outcome::Away(Trouble::Registry, BACKOFF.first)
        };
        self.fail(errand, outcome, fate);
    }

    /// An answer that is not to be believed counts as none.
    fn garbled<H: Host, L: RegistryLink>(&self, host: &H, link: &L, error: &RegistryError) {
        let (notes, complaint) = (link.notes(&self.site), error.complaint());
        if notes.is_news(&complaint) {
            let (server, why) = (&self.site.server, &complaint.why);
            host.say_once(format!("snowflake_ids got no numbers of registry \"{server}\": {why}"));
        }
        notes.failed(&complaint);
    }
}

/// Takes as many as a request may have.
fn first<T>(all: &mut Vec<T>) -> Vec<T> {
    let rest = all.split_off(all.len().min(MAX_WANTS));
    std::mem::replace(all, rest)
}
