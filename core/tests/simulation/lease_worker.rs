//! The lease worker of a server, as it ships, and its way to the registry: requests to another server, any of which may be lost,
//! or its answer.

use super::databases::{self, Database};
use super::event::{Event, Scope};
use super::host::Host;
use super::process::{Pause, Wait};
use super::registry::{Locked, Registry, name};
use super::server::{EXPIRY, FORMER, MAX_SKEW, SECOND, time};
use super::sim::Sim;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::lease_launch::{Errand, Lapse, Renewal, Use};
use snowflake_ids_core::registry::lease_worker::{
    Doubt, LeaseEvent, LeaseHost, LeaseLink, LeaseSettings, LeaseWorker, LinkError, Other, RegistryPlace,
    Round,
};
use snowflake_ids_core::registry::wire::{
    self, LeaseError, Registry as Name, Request, RequestBody, Response, ResponseBody,
};
use snowflake_ids_core::registry::worker_ids::bounded;
use snowflake_ids_core::sequence::request;
use snowflake_ids_core::server::issuer::Issuer;
use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

/// How many rounds without work it stays.
const IDLE: u32 = 10;
/// How long an answer is waited for.
const LIMIT: i64 = 5 * SECOND;

pub fn lease_worker(host: &Host<'_>, errand: Errand, database: u32) {
    databases::run(host, errand, database, || look_after(host, database));
}

/// Looks after the lease whenever a session asks, or it is to be renewed, until there is nothing to do.
fn look_after(host: &Host<'_>, database: u32) {
    let link = Link { host, database: host.database(database), failed: Cell::new(None) };
    let mut worker = LeaseWorker::new(host.issuer(), link, host, &host.live.requests);
    let mut idle = 0;
    while idle < IDLE {
        match worker.round() {
            Round::Served => idle = 0,
            Round::Idle => idle += 1,
            Round::Elsewhere => return,
            Round::Nowhere => return host.live.slot.report(Use::None),
        }
        host.rest(host.sim.pace.min(200_000));
    }
}

/// Asks for a renewal where one is due, as the launcher does.
pub fn renew(host: &Host<'_>, issuer: &Issuer<'_, &Host<'_>>, renewal: &mut Renewal) {
    let (live, uptime) = (&host.live, host.uptime());
    let Some(expiry) = live.shared.counts.expiry().filter(|_| live.shared.is_issuing()) else {
        return;
    };
    let (now, duration) = (issuer.believed_now(), host.settings().duration);
    let lapse = Lapse {
        left: expiry.since(now),
        until_renewal: live.requests.until_renewal(expiry, now, duration, uptime),
        length: live.requests.length(duration),
        setting: duration,
        is_asked: live.requests.renew.load(Acquire),
        has_jumped: live.shared.counts.clock_ahead.load(Relaxed) > 0,
    };
    if renewal.round(lapse, uptime).ask {
        live.requests.ask_to_renew();
    }
}

impl LeaseHost for &Host<'_> {
    fn uptime(&self) -> Duration {
        Duration::from_micros(self.server.clocks.since_boot(self.sim.now()))
    }

    fn settings(&self) -> LeaseSettings {
        LeaseSettings {
            policy: self.server.policy.get(),
            max_clock_skew: time(MAX_SKEW),
            duration: Duration::from_micros(EXPIRY.cast_unsigned()),
        }
    }

    fn port(&self) -> Option<i32> {
        Some(5432)
    }

    fn database(&self) -> u32 {
        self.live.slot.database.get()
    }

    fn note(&mut self, event: LeaseEvent<'_>) {
        self.sim.note(|| format!("server {}: {event:?}", self.server.number));
    }

    fn answer(&mut self, ticket: u64, outcome: Result<(), LeaseError>) {
        self.sim.note(|| format!("server {}: lease {:?}", self.server.number, outcome));
        let answer = if outcome.is_ok() { request::Answer::Supplied } else { request::Answer::Exhausted };
        self.live.requests.request.answer(ticket, answer);
    }
}

/// The way to the registry.
struct Link<'a> {
    host: &'a Host<'a>,
    database: &'a Database,
    /// When the registry gave no answer last.
    failed: Cell<Option<i64>>,
}

/// Why there is no answer.
#[derive(Debug)]
enum NoAnswerError {
    Locked,
    Silent,
    Doubted(Doubt),
}

impl fmt::Display for NoAnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked => f.write_str("rows are locked"),
            Self::Silent => f.write_str("no answer came"),
            Self::Doubted(doubt) => write!(f, "{doubt:?}"),
        }
    }
}

impl LinkError for NoAnswerError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Locked)
    }

    fn explain(self) -> LeaseError {
        LeaseError::yet(self.to_string(), "")
    }
}

impl From<Locked> for NoAnswerError {
    fn from(_: Locked) -> Self {
        Self::Locked
    }
}

impl LeaseLink for Link<'_> {
    type Error = NoAnswerError;

    fn find(&mut self) -> Result<RegistryPlace, NoAnswerError> {
        self.host.call();
        if self.database.registry.borrow().is_some() {
            return Ok(RegistryPlace::Here);
        } else if !self.database.draws.get() {
            return Ok(RegistryPlace::Nowhere);
        }
        Ok(RegistryPlace::On(Other {
            server: "shared".into(),
            seen: name(self.host.server.introduced.get()),
        }))
    }

    fn ask_own(&mut self, ask: RequestBody, now: UnixMicros) -> Result<ResponseBody, NoAnswerError> {
        let (host, registry) = (self.host, self.database.registry.borrow().clone());
        host.call();
        let registry = registry.ok_or(NoAnswerError::Silent)?;
        let said = registry.serve(host.server.timeline.get(), &ask, now, &|| host.call())?;
        host.call();
        Ok(said)
    }

    fn ask_other(&mut self, other: &Other, ask: RequestBody) -> Result<Response, NoAnswerError> {
        let (host, sim, live) = (self.host, &self.host.sim, &self.host.live);
        let timeout = Duration::from_secs(1);
        let request = Request { version: wire::VERSION, registry: Some(other.seen.clone()), timeout, ask };
        let number = live.sent.get() + 1;
        live.sent.set(number);
        live.answer.replace(None);
        host.call();
        if !is_lost(sim, host.server.cut_off.get()) {
            // Now and then one that is on its way for longer than its sender waits.
            let delay = sim.chance.between(100, if sim.happens_once_in(40) { 20 * SECOND } else { 50_000 });
            let (server, incarnation) = (host.server.number, host.server.incarnation.get());
            let text = request.to_text().unwrap();
            host.send(delay, Event::Request { server, incarnation, number, text });
        }
        host.rest(LIMIT);
        let answer = live.answer.take();
        self.failed.set(answer.is_none().then_some(sim.now()));
        Ok(Response::accept(&answer.ok_or(NoAnswerError::Silent)?).unwrap())
    }

    fn has_just_failed(&self, _: &Other) -> bool {
        self.failed.get().is_some_and(|failed| self.host.sim.now() < failed + SECOND)
    }

    fn note_seen(&mut self, _: &Name) -> Result<(), NoAnswerError> {
        Ok(())
    }

    fn doubt(&self, _: &Other, doubt: Doubt) -> NoAnswerError {
        NoAnswerError::Doubted(doubt)
    }
}

/// A request as it came from a server: which one, and what it is to be answered under.
pub struct Sent {
    pub server: usize,
    pub incarnation: u64,
    pub number: u64,
    pub text: String,
    pub cut_off: i64,
}

/// A process of a registry: serves one request, whatever has become of the server that sent it.
pub fn serve(sim: &Rc<Sim>, registry: &Registry, sent: &Sent, pause: &Pause) {
    let request = Request::accept(&sent.text).unwrap().unwrap();
    let now = UnixMicros(sim.now() + registry.offset.get());
    let stop = || {
        if sim.chance.once_in(3) {
            pause.suspend(Wait::Turn);
        }
    };
    // An error gets lost as any answer may; so is what another registry was meant by.
    let meant = request.registry.is_some_and(|meant| meant.identity == registry.name().identity);
    let ask = bounded(request.ask, now, 1, Duration::from_micros(FORMER.cast_unsigned()), |_, _| {
        Ok::<_, Infallible>(Vec::new())
    })
    .unwrap();
    let Some(Ok(said)) = meant.then(|| registry.serve(1, &ask, now, &stop)) else { return };
    if is_lost(sim, sent.cut_off) {
        return;
    }
    let answer = Response { registry: registry.name(), clock: now, said }.to_text().unwrap();
    let Sent { server, incarnation, number, .. } = *sent;
    sim.send(sim.chance.between(100, 50_000), Event::Answer { server, incarnation, number, answer });
}

fn is_lost(sim: &Sim, cut_off: i64) -> bool {
    cut_off > sim.now() || sim.happens_once_in(if sim.scope == Scope::Tight { 6 } else { 25 })
}
