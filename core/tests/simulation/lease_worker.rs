//! A server's lease worker as shipped, and its connection to the registry, which may lose requests and responses.

use super::databases::{self, Database};
use super::event::{Event, Scope};
use super::host::Host;
use super::process::{Pause, Wait};
use super::registry::{Locked, Registry, name};
use super::server::{EXPIRY, FORMER, MAX_SKEW, SECOND, time};
use super::sim::Sim;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::error::{ConnectionError, RegistryError, SqlError};
use snowflake_ids_core::registry::failover::Health;
use snowflake_ids_core::registry::lease_launch::{DatabaseUse, Lapse, LeaseTask, Renewal};
use snowflake_ids_core::registry::lease_worker::{
    LeaseEvent, LeaseHost, LeaseSettings, LeaseWorker, RegistryLocation, Round,
};
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire::{self, RegistryName as Name, Request, RequestBody, Response};
use snowflake_ids_core::registry::worker_ids::{LeaseLimits, bound_request};
use snowflake_ids_core::server::issuer::Issuer;
use snowflake_ids_core::server::lease::LeaseError;
use snowflake_ids_core::tag::tickets;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

/// The number of idle rounds after which the worker ends.
const IDLE: u32 = 10;
/// The longest wait for a response.
const LIMIT: i64 = 5 * SECOND;

pub fn lease_worker(host: &Host<'_>, task: LeaseTask, database: u32) {
    databases::run(host, task, database, || look_after(host, database));
}

/// Serves requests and renewals of the lease until none is left.
fn look_after(host: &Host<'_>, database: u32) {
    let server = LeaseServer { host, database: host.database(database), failed: Cell::new(None) };
    let mut worker_id = LeaseWorker::new(host.issuer(), server, &host.live.requests);
    let mut idle = 0;
    while idle < IDLE {
        match worker_id.round() {
            Round::Served => idle = 0,
            Round::Idle => idle += 1,
            Round::Elsewhere => return,
            Round::Nowhere => return host.live.slot.report(DatabaseUse::None),
        }
        host.rest(host.sim.pace.min(200_000));
    }
}

/// Requests a renewal when one is due, as the launcher does.
pub fn renew(host: &Host<'_>, issuer: &Issuer<'_, &Host<'_>>, renewal: &mut Renewal) {
    let (live, uptime) = (&host.live, host.uptime());
    let Some(expiry) = live.shared.status.expiry().filter(|_| live.shared.is_issuing()) else {
        return;
    };
    let (now, duration) = (issuer.believed_now(), host.settings().duration);
    let lapse = Lapse {
        left: expiry.since(now),
        until_renewal: live.requests.until_renewal(expiry, now, duration, uptime),
        length: live.requests.length(duration),
        setting: duration,
        is_asked: live.requests.renew.load(Acquire),
        has_jumped: live.shared.status.clock_ahead.load(Relaxed) > 0,
    };
    if renewal.round(lapse, uptime).ask {
        live.requests.ask_to_renew();
    }
}

impl Host<'_> {
    pub fn uptime(&self) -> Duration {
        Duration::from_micros(self.server.clocks.since_boot(self.sim.now()))
    }

    fn settings(&self) -> LeaseSettings {
        LeaseSettings {
            policy: self.server.policy.get(),
            max_clock_skew: time(MAX_SKEW),
            duration: Duration::from_micros(EXPIRY.cast_unsigned()),
        }
    }
}

/// The server, with its connection to the registry.
struct LeaseServer<'a> {
    host: &'a Host<'a>,
    database: &'a Database,
    /// The time of the last request without a response.
    failed: Cell<Option<Duration>>,
}

impl LeaseHost for LeaseServer<'_> {
    fn uptime(&self) -> Duration {
        self.host.uptime()
    }

    fn settings(&self) -> LeaseSettings {
        self.host.settings()
    }

    fn port(&self) -> Option<i32> {
        Some(5432)
    }

    fn database(&self) -> u32 {
        self.host.live.slot.database.get()
    }

    fn find(&mut self) -> Result<RegistryLocation, RegistryError> {
        self.host.call();
        Ok(if self.database.registry.borrow().is_some() {
            RegistryLocation::Here
        } else if self.database.draws.get() {
            let seen = name(self.host.server.introduced.get());
            RegistryLocation::On(Endpoint { position: 0, server: "shared".into(), seen })
        } else {
            RegistryLocation::Nowhere
        })
    }

    fn ask(
        &mut self,
        endpoint: Option<&Endpoint>,
        ask: RequestBody,
        now: UnixMicros,
    ) -> Result<Response, RegistryError> {
        match endpoint {
            Some(endpoint) => self.ask_shared(endpoint, ask),
            None => self.ask_own(&ask, now),
        }
    }

    fn health(&self, _: &Endpoint) -> Health {
        let failed = self.failed.get();
        Health { failures: failed.is_some().into(), failed_at: failed.unwrap_or_default() }
    }

    fn record_seen(&mut self, _: &Name) -> Result<(), RegistryError> {
        Ok(())
    }

    fn record(&mut self, event: LeaseEvent<'_>) {
        self.host.sim.record(|| format!("server {}: {event:?}", self.host.server.number));
    }

    fn answer(&mut self, ticket: u64, outcome: Result<(), LeaseError>) {
        self.host.sim.record(|| format!("server {}: lease {:?}", self.host.server.number, outcome));
        let answer = if outcome.is_ok() { tickets::Answer::Supplied } else { tickets::Answer::Exhausted };
        self.host.live.requests.request.answer(ticket, answer);
    }
}

impl LeaseServer<'_> {
    /// Asks the registry in the server's own database.
    fn ask_own(&self, ask: &RequestBody, now: UnixMicros) -> Result<Response, RegistryError> {
        let (host, registry) = (self.host, self.database.registry.borrow().clone());
        host.call();
        let registry = registry.ok_or(ConnectionError::Silent(Duration::ZERO))?;
        let locked = |Locked| RegistryError::Here(SqlError::new(*b"55P03", "rows are locked"));
        let said = registry
            .serve(host.server.timeline.get(), ask, &LeaseLimits::default(), now, &|| host.call())
            .map_err(locked)?;
        host.call();
        Ok(Response { registry: registry.name(), clock: now, said })
    }

    /// Asks the servers' common registry.
    fn ask_shared(&self, endpoint: &Endpoint, ask: RequestBody) -> Result<Response, RegistryError> {
        let LeaseServer { host, failed, .. } = self;
        let (sim, live) = (&host.sim, &host.live);
        let timeout = Duration::from_secs(1);
        let registry = Some(endpoint.seen.clone());
        let request = Request { version: wire::VERSION, registry, timeout, ask };
        let number = live.sent.get() + 1;
        live.sent.set(number);
        live.answer.replace(None);
        host.call();
        if !is_lost(sim, host.server.cut_off.get()) {
            // Sometimes a request takes longer than its sender waits.
            let delay = sim.chance.between(100, if sim.happens_once_in(40) { 20 * SECOND } else { 50_000 });
            let (server, slot_generation) = (host.server.number, host.server.slot_generation.get());
            let text = request.to_text().unwrap();
            host.send(delay, Event::Request { server, slot_generation, number, text });
        }
        host.rest(LIMIT);
        let answer = live.answer.take();
        failed.set(answer.is_none().then(|| host.uptime()));
        Ok(Response::accept(&answer.ok_or(ConnectionError::Silent(time(LIMIT)))?).unwrap())
    }
}

/// A request as a server sent it, with the request's number, which the response must have too.
pub struct Sent {
    pub server: usize,
    pub slot_generation: u64,
    pub number: u64,
    pub text: String,
    pub cut_off: i64,
}

/// Serves one request in a registry process, even if the sender is gone.
pub fn serve(sim: &Rc<Sim>, registry: &Registry, sent: &Sent, pause: &Pause) {
    let mut request = Request::accept(&sent.text).unwrap().unwrap();
    let now = UnixMicros(sim.now() + registry.offset.get());
    let stop = || {
        if sim.chance.once_in(3) {
            pause.suspend(Wait::Turn);
        }
    };
    // The registry sends no errors back, as if they were lost. It does not respond to a request for another registry, either.
    let meant = request.registry.is_some_and(|meant| meant.identity == registry.name().identity);
    bound_request(&mut request.ask, now, None);
    let limits = LeaseLimits { taken: Vec::new(), longest: Duration::from_micros(FORMER.cast_unsigned()) };
    let Some(Ok(said)) = meant.then(|| registry.serve(1, &request.ask, &limits, now, &stop)) else { return };
    if is_lost(sim, sent.cut_off) {
        return;
    }
    let answer = Response { registry: registry.name(), clock: now, said }.to_text().unwrap();
    let Sent { server, slot_generation, number, .. } = *sent;
    sim.send(sim.chance.between(100, 50_000), Event::Answer { server, slot_generation, number, answer });
}

fn is_lost(sim: &Sim, cut_off: i64) -> bool {
    cut_off > sim.now() || sim.happens_once_in(if sim.scope == Scope::Tight { 6 } else { 25 })
}
