//! Answers of a registry to requests for worker ids: leases, renewals and releases.
//!
//! Each request is one transaction on the rows of worker ids. The registry writes a row only under the row lock, and only if
//! the row has not changed since the choice. So two servers never get the same worker id.

use crate::clock::UnixMicros;
use crate::error::{Explain, excerpt, sentence};
use crate::guard::{Guard, holds};
use crate::registry::wire::{Entry, LeaseRequest, Leased, MAX_LEASE, RequestBody};
use crate::server::lease::{
    Choice, LISTED, LeaseError, LeaseRow, NONE_FREE, NOT_DISPOSABLE, Policy, Preferred, Search, check_clock,
    listed,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// The largest number of attempts to lease a worker id, if other servers take the chosen worker ids at the same time.
const CROWD: usize = 64;
/// The largest number of worker ids that one server may hold at the same time, including unused worker ids whose leases
/// have not expired. A server needs one worker id, and another worker id after a failover or if its clock is behind.
const MAX_HELD: u64 = 64;

/// The rows of worker ids, within one transaction.
pub trait WorkerIdRows {
    /// The error of a failed statement or a lock timeout.
    type Error;
    /// Returns the highest worker id in the datacenter's rows. Also returns the time of the latest id that any other server
    /// with a valid lease has reported.
    fn overview(
        &mut self,
        entry: &Entry,
        now: UnixMicros,
    ) -> Result<(Option<u32>, Option<UnixMicros>), Self::Error>;
    /// Counts the requesting server's worker ids in the datacenter that are not free yet. `but` are the tokens of rows
    /// that do not count.
    fn held(&mut self, entry: &Entry, but: [Option<i64>; 2], now: UnixMicros) -> Result<u64, Self::Error>;
    /// Returns the rows of a datacenter, ordered by worker id. If `all` is false, returns only the rows with the tokens
    /// `own`.
    fn rows(
        &mut self,
        datacenter: u32,
        all: bool,
        own: [Option<i64>; 2],
    ) -> Result<Vec<LeaseRow>, Self::Error>;
    /// Locks the row of a worker id, and returns its last committed version. Returns None if there is no row.
    fn lock(&mut self, datacenter: u32, worker_id: u32) -> Result<Option<LeaseRow>, Self::Error>;
    /// Inserts a row, and returns false if the row exists. Waits for a transaction that inserts the same row.
    fn insert(&mut self, row: &LeaseRow, entry: &Entry) -> Result<bool, Self::Error>;
    /// Updates a locked row.
    fn update(&mut self, row: &LeaseRow, entry: &Entry) -> Result<(), Self::Error>;
    /// Marks the worker id of a locked row as given back.
    fn give_back(&mut self, datacenter: u32, row: &LeaseRow) -> Result<(), Self::Error>;
    /// Returns the time at which the last lease of the previous registry ends. Until that time, worker ids without a
    /// row may be in use. Returns None if no node has shown such a lease.
    fn former_leases_until(&mut self) -> Result<Option<UnixMicros>, Self::Error>;
    /// Records the end of the previous registry's leases in the row of a worker id, if the row exists.
    fn record_former_leases(
        &mut self,
        datacenter: u32,
        worker_id: u32,
        until: UnixMicros,
    ) -> Result<(), Self::Error>;
    /// Returns a random number.
    fn random(&mut self) -> u32;
    /// Returns the first `limit` holders of worker ids up to `last`.
    fn holders(
        &mut self,
        datacenter: u32,
        last: u32,
        limit: usize,
        now: UnixMicros,
    ) -> Result<Vec<HeldWorkerId>, Self::Error>;
    /// Returns the registry's [fork](crate::registry::forks).
    fn fork(&mut self) -> Result<Option<i64>, Self::Error>;
}

/// A worker id and its holder, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWorkerId {
    /// The worker id.
    pub worker_id: u32,
    /// The machine of the holder.
    pub host: String,
    /// The port that the holder listens on.
    pub port: Option<i32>,
    /// The end of the lease.
    pub expiry: UnixMicros,
}

/// Limits of a lease to another server, set by the registry and not by the request. The default has no limits, for the
/// registry's own server.
#[derive(Clone, Debug, Default)]
pub struct LeaseLimits {
    /// Worker ids that the registry's own server uses without a row, or whose ids its clock has not passed.
    pub taken: Vec<u32>,
    /// The longest lease that the previous registry may have granted. The assumed value is the longest lease of this
    /// registry, plus the largest allowed difference between clocks.
    pub longest: Duration,
}

/// Limits the values of another server's request, which any authorized role may have written. `fork` is the registry's
/// fork.
pub fn bound_request(ask: &mut RequestBody, now: UnixMicros, fork: Option<i64>) {
    match ask {
        RequestBody::Lease(request) => {
            bound(&mut request.entry, now);
            // A server prefers the worker id that it already has. The preference is ignored if another server may hold this
            // worker id.
            let asked = request.preferred.take();
            request.preferred =
                asked.and_then(|asked| Preferred::kept(asked.worker_id, fork, request.capacity));
            request.former = request.former.filter(|former| former.expiry > now);
        }
        RequestBody::Renew { entry, .. } => bound(entry, now),
        // A release takes effect now at the earliest, so that the release cannot move the end of an expired lease
        // further into the past.
        RequestBody::Release { from, .. } => *from = now.max(*from),
        _ => {}
    }
}

/// Limits the time of the last id and the length of the lease. If the time were beyond the registry's clock, the clocks of
/// other servers would seem to be behind, and these servers would get no lease. A long lease would block the worker id.
fn bound(entry: &mut Entry, now: UnixMicros) {
    if holds(Guard::PeersBounded) {
        entry.last = entry.last.map(|last| last.min(now));
    }
    entry.duration = entry.duration.min(MAX_LEASE);
}

/// Chooses a worker id and leases it. Retries if another server takes the worker id at the same time. `now` is the time
/// by the registry's clock. After an error of this function or of a function below, the caller must roll back.
pub fn lease<R: WorkerIdRows>(
    rows: &mut R,
    request: &LeaseRequest,
    limits: &LeaseLimits,
    now: UnixMicros,
) -> Result<Leased, R::Error> {
    let LeaseRequest { entry, policy, capacity, .. } = request;
    let (highest, latest) = rows.overview(entry, now)?;
    if let Err(skew) = check_clock(entry.now, now, latest, request.max_clock_skew) {
        let detail = format!("{}. {}", sentence(&skew.to_string()), skew.detail().unwrap_or_default());
        return Ok(Leased::None(LeaseError::yet(detail, skew.hint().unwrap_or_default())));
    }
    let own = request.tokens();
    if rows.held(entry, own, now)? >= MAX_HELD {
        return Ok(Leased::None(too_many_held()));
    }
    let (fork, random) = (rows.fork()?, rows.random());
    // No row has a worker id above the highest one, so the rows need not be read.
    let highest = highest.filter(|_| *policy == Policy::Disposable);
    let above = highest.and_then(|highest| Preferred::unused(highest.saturating_add(1), fork, *capacity));
    let preferred = request.preferred.unwrap_or_else(|| Preferred::shared(fork, *capacity, random));
    // The first node that shows a lease of the previous registry sets the time at which all leases of that registry have
    // ended. Other nodes' leases may end later than this node's lease, but at most `limits.longest` from now.
    let recorded = rows.former_leases_until()?;
    let shown = request.former.map(|_| now.plus(limits.longest)).filter(|_| recorded.is_none());
    let last_former_lease = shown.or(recorded).filter(|_| holds(Guard::FormerLeases));
    let former_leases_until = last_former_lease.filter(|until| *until > now);
    let mut except = request.except.clone();
    if holds(Guard::OwnWorkerIdTaken) {
        except.extend(&limits.taken);
    }
    let search = Search {
        policy: *policy,
        own,
        except: &except,
        preferred: above.unwrap_or(preferred),
        capacity: *capacity,
        now,
        former_leases: former_leases_until.map(|_| request.former.map(|former| former.worker_id)),
    };
    for _ in 0..CROWD {
        let found = rows.rows(entry.datacenter, above.is_none() || former_leases_until.is_some(), own)?;
        let leased = match search.choose(&found) {
            Some(choice) => {
                let taken = take(rows, &choice, entry, now)?;
                taken.map(|expiry| Leased::Taken {
                    choice: begun_after(choice, last_former_lease, request),
                    expiry,
                })
            }
            None => Some(Leased::None(match former_leases_until {
                Some(until) => former_leases(until),
                None => none_free(rows, request, limits, now)?,
            })),
        };
        let Some(leased) = leased else { continue };
        if let Some((former, until)) = request.former.zip(former_leases_until) {
            rows.record_former_leases(entry.datacenter, former.worker_id, until)?;
        }
        return Ok(leased);
    }
    Ok(Leased::Missed)
}

/// Returns the choice with the correct start. A worker id without a row may have been leased by the previous registry.
/// The new holder then begins after all leases of that registry, unless the new holder had the previous registry's
/// lease of this worker id itself.
fn begun_after(choice: Choice, last_former_lease: Option<UnixMicros>, request: &LeaseRequest) -> Choice {
    match (choice, last_former_lease) {
        (Choice::New { worker_id }, Some(until))
            if request.former.is_none_or(|former| former.worker_id != worker_id) =>
        {
            Choice::Free(LeaseRow { worker_id, token: None, expiry: until, leased: until })
        }
        (choice, _) => choice,
    }
}

fn former_leases(until: UnixMicros) -> LeaseError {
    LeaseError::yet(
        format!(
            "The registry is new, and servers may issue ids under leases of the former one until {until}. Until then it leases \
             to each server only the worker id that the server already has."
        ),
        "Have the servers of the former registry use this one, with snowflake_ids.use_registry, or stop them all. Then SELECT \
         snowflake_ids.worker_release_former() on the registry.",
    )
}

/// Returns the row of a new lease.
fn fresh(worker_id: u32, entry: &Entry, now: UnixMicros) -> LeaseRow {
    LeaseRow { worker_id, token: Some(entry.token), expiry: now.plus(entry.duration), leased: entry.now }
}

/// Writes the row of the chosen worker id, and returns the end of the lease. Returns None if the row has changed.
fn take<R: WorkerIdRows>(
    rows: &mut R,
    choice: &Choice,
    entry: &Entry,
    now: UnixMicros,
) -> Result<Option<UnixMicros>, R::Error> {
    let fresh = fresh(choice.worker_id(), entry, now);
    if let Choice::New { .. } = choice {
        return Ok(rows.insert(&fresh, entry)?.then_some(fresh.expiry));
    }
    let Some(found) = rows.lock(entry.datacenter, fresh.worker_id)? else { return Ok(None) };
    let (unchanged, leased) = match choice {
        // The server's own row counts as unchanged while it has one of the server's tokens.
        Choice::Own(seen) => (is_of(&found, seen.token, entry), found.leased),
        Choice::Free(seen) => (found == *seen, fresh.leased.max(found.expiry)),
        Choice::New { .. } => (false, fresh.leased),
    };
    if holds(Guard::CompareAndSwap) && !unchanged {
        return Ok(None);
    }
    let row = LeaseRow { expiry: fresh.expiry.max(found.expiry), leased, ..fresh };
    rows.update(&row, entry)?;
    Ok(Some(row.expiry))
}

/// Returns whether a row has this token, or the entry's token. The row has the entry's token if an earlier request
/// stored this token and the response was lost.
fn is_of(row: &LeaseRow, token: Option<i64>, entry: &Entry) -> bool {
    row.token.is_some() && (row.token == token || row.token == Some(entry.token))
}

/// Renews a lease and returns its end. Returns None if the row belongs to another server. A missing row is written
/// again, because the server may use the worker id until the end of its lease.
pub fn renew<R: WorkerIdRows>(
    rows: &mut R,
    worker_id: u32,
    token: i64,
    entry: &Entry,
    now: UnixMicros,
) -> Result<Option<UnixMicros>, R::Error> {
    let fresh = fresh(worker_id, entry, now);
    let mut found = rows.lock(entry.datacenter, worker_id)?;
    if found.is_none() {
        if rows.insert(&fresh, entry)? {
            return Ok(Some(fresh.expiry));
        }
        found = rows.lock(entry.datacenter, worker_id)?;
    }
    let Some(found) = found.filter(|found| is_of(found, Some(token), entry)) else { return Ok(None) };
    let row = LeaseRow { expiry: fresh.expiry.max(found.expiry), leased: found.leased, ..fresh };
    rows.update(&row, entry)?;
    Ok(Some(row.expiry))
}

/// Takes a worker id back, if the worker id's row has this token. Another server may use the worker id after `from`.
pub fn release<R: WorkerIdRows>(
    rows: &mut R,
    datacenter: u32,
    worker_id: u32,
    token: i64,
    from: UnixMicros,
) -> Result<(), R::Error> {
    match rows.lock(datacenter, worker_id)?.filter(|found| found.token == Some(token)) {
        Some(found) => {
            rows.give_back(datacenter, &LeaseRow { token: None, expiry: found.expiry.min(from), ..found })
        }
        None => Ok(()),
    }
}

fn none_free<R: WorkerIdRows>(
    rows: &mut R,
    request: &LeaseRequest,
    limits: &LeaseLimits,
    now: UnixMicros,
) -> Result<LeaseError, R::Error> {
    let (datacenter, capacity) = (request.entry.datacenter, request.capacity);
    let mut detail = format!("Datacenter {datacenter} has {capacity} worker ids.");
    let mut hint = "On the registry, release worker ids of servers that are gone for good: SELECT snowflake_ids.worker_release(worker_id, datacenter_id, true). Or \
                    use a snowflake_ids.layout with more worker bits.";
    if request.policy == Policy::Disposable {
        detail.push_str(" snowflake_ids.worker_id_policy is disposable: a worker id that a server has had is not used again.");
        hint = NOT_DISPOSABLE;
    }
    // The requesting server could not use worker ids beyond the capacity. The set removes repetitions.
    let taken: BTreeSet<_> = limits.taken.iter().filter(|taken| **taken < capacity).collect();
    if !taken.is_empty() {
        let taken = listed(taken);
        detail = format!(
            "{detail} The registry's own server uses worker ids {taken}, or the clock has not passed the ids that it issued under them."
        );
    }
    if !request.except.is_empty() {
        let except = listed(request.except.iter());
        detail = format!("{detail} The clock has not passed the ids issued here under worker ids {except}.");
    }
    let holders = match rows.holders(datacenter, capacity - 1, LISTED, now)?.as_slice() {
        [] => String::new(),
        holders => format!("Leased worker ids: {}.", listed(holders.iter().map(HeldWorkerId::to_text))),
    };
    Ok(LeaseError { message: NONE_FREE.into(), detail, hint: hint.into(), holders })
}

impl HeldWorkerId {
    fn to_text(&self) -> String {
        let port = self.port.map(|port| format!(" port {port}")).unwrap_or_default();
        format!("{} by {}{port} until {}", self.worker_id, excerpt(&self.host), self.expiry)
    }
}

fn too_many_held() -> LeaseError {
    LeaseError::yet(
        format!("{MAX_HELD} worker ids that the registry leased to this server are not free yet."),
        "Find out why this server leases so many worker ids. On the registry, release the worker ids that this server does not use: SELECT \
         snowflake_ids.worker_release(worker_id, datacenter_id).",
    )
}
