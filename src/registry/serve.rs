//! What a registry does when it is asked. Each function is one transaction's work, with the rights of the tables' owner.

use crate::pg::catalog::Source;
use crate::pg::cluster;
use crate::pg::encoding::from_utf8;
use crate::pg::report::sentence;
use crate::pg::tag;
use crate::segment::place;
use crate::store::registry as tags;
use crate::store::segment::{self, Create, Timeout};
use crate::store::worker as store;
use pgrx::check_for_interrupts;
use pgrx::spi::SpiError;
use serde_json::value::RawValue;
use snowflake_ids_core::lease::{Policy, Preferred, Search, check_clock};
use snowflake_ids_core::reservation::Outcome;
use snowflake_ids_core::wire::{
    Entry, LeaseRequest, Leased, MAX_LEASE, NoLease, RequestBody, ReserveRequest, ResponseBody,
};
use snowflake_ids_core::{Explain, UnixMicros};

/// How many may come for a worker id at the same time.
const CROWD: usize = 64;
/// How many holders an error lists.
const LISTED: i32 = 20;

/// Answers a question about worker ids or tags. `now` is the registry's clock.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn answer(ask: RequestBody, now: UnixMicros) -> Result<ResponseBody, SpiError> {
    Ok(match ask {
        RequestBody::Introduce => ResponseBody::Introduced { version: env!("CARGO_PKG_VERSION").to_owned() },
        RequestBody::Tags { after } => ResponseBody::Tags(tags::tags(after.as_deref())?),
        RequestBody::HandOver { rows, share } => {
            let rows: Vec<&RawValue> = rows.iter().map(AsRef::as_ref).collect();
            ResponseBody::HandedOver(tags::hand_over(&rows, share)?)
        }
        RequestBody::Reserve(wants) => ResponseBody::Reserved(reserve_all(wants)?),
        RequestBody::Lease(wish) => ResponseBody::Leased(lease(&wish, now)?),
        RequestBody::Renew { worker, token, entry } => {
            ResponseBody::Renewed(store::renew(worker, token, &entry, now)?)
        }
        RequestBody::Release { datacenter, worker, token, from } => {
            store::release(datacenter, worker, token, from)?;
            ResponseBody::Released
        }
    })
}

/// What another server asks, as far as it may decide that: it may have been written by anybody who has a role here.
pub fn bounded(ask: RequestBody, now: UnixMicros) -> RequestBody {
    match ask {
        RequestBody::Lease(mut wish) => {
            bound(&mut wish.entry, now);
            wish.preferred = None;
            RequestBody::Lease(wish)
        }
        RequestBody::Renew { worker, token, mut entry } => {
            bound(&mut entry, now);
            RequestBody::Renew { worker, token, entry }
        }
        // One that has lapsed has done so, whatever its holder says.
        RequestBody::Release { datacenter, worker, token, from } => {
            RequestBody::Release { datacenter, worker, token, from: from.max(now) }
        }
        other => other,
    }
}

/// Times beyond ours would keep others from leasing anything.
fn bound(entry: &mut Entry, now: UnixMicros) {
    entry.last = entry.last.map(|last| last.min(now));
    entry.duration = entry.duration.min(MAX_LEASE);
}

/// How many worker ids one server has at most that are not free yet. It needs one, and another one after a failover, or
/// whenever its clock is behind.
const MAX_HELD: i64 = 64;

/// In the order of the tags, so that two servers that want the same ones never wait for each other. One that is alone waits
/// for its row, as many servers may want the same tag at once; of several, none has to wait for another's.
fn reserve_all(wants: Vec<ReserveRequest>) -> Result<Vec<Outcome>, SpiError> {
    let timeout = if wants.len() > 1 { Timeout::None } else { Timeout::Some };
    let mut wants: Vec<(usize, ReserveRequest)> = wants.into_iter().enumerate().collect();
    wants.sort_by(|(_, one), (_, other)| one.tag.cmp(&other.tag));
    let outcomes = wants.into_iter().map(|(place, want)| {
        check_for_interrupts!();
        Ok((place, reserve(want, timeout)?))
    });
    let mut outcomes = outcomes.collect::<Result<Vec<_>, SpiError>>()?;
    outcomes.sort_by_key(|(place, _)| *place);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn reserve(want: ReserveRequest, timeout: Timeout) -> Result<Outcome, SpiError> {
    let tag = from_utf8(&want.tag).and_then(|bytes| tag::checked(&bytes).ok());
    let Some(tag) = tag else { return Ok(Outcome::Unknown) };
    let unfit = if want.create { want.wish.unfit_to_create() } else { None };
    let create = if want.create && unfit.is_none() { Create::Yes(want.wish.share) } else { Create::No };
    // What a transaction here handed out and rolled back is known when the row is locked.
    let floor = || Source::find().and_then(|source| place::floor(source, &tag));
    let outcome = segment::reserve(&tag, create, timeout, |row| row.admit(want.wish, row.floor(floor())))?;
    Ok(match (outcome, unfit) {
        (Outcome::Unknown, Some(unfit)) => Outcome::Unfit(unfit),
        (outcome, _) => outcome,
    })
}

/// Chooses a worker id and takes it; another one, where others who came at the same time were faster.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn lease(wish: &LeaseRequest, now: UnixMicros) -> Result<Leased, SpiError> {
    let LeaseRequest { entry, policy, capacity, .. } = wish;
    let (highest, latest) = store::overview(entry, now)?;
    if let Err(skew) = check_clock(entry.now, now, latest, wish.max_clock_skew) {
        let detail = format!("{skew}. {}", skew.detail().unwrap_or_default());
        return Ok(Leased::None(NoLease::yet(sentence(&detail), skew.hint().unwrap_or_default())));
    }
    let own = [wish.token, Some(entry.token)];
    if store::held(entry, own, now)? >= MAX_HELD {
        return Ok(Leased::None(too_many_held()));
    }
    // Above all that there are is one that nobody had: then there is no need to look at them.
    let above = highest.map(|highest| highest.saturating_add(1)).filter(|above| above < capacity);
    let above = above.filter(|_| *policy == Policy::Disposable);
    let preferred = wish.preferred.unwrap_or_else(|| Preferred::shared(cluster::timeline(), *capacity));
    let search = Search {
        policy: *policy,
        own,
        except: &wish.except,
        preferred: above.map_or(preferred, |worker| Preferred { worker, share: 1, only: false }),
        capacity: *capacity,
        now,
    };
    for _ in 0..CROWD {
        check_for_interrupts!();
        let rows = store::rows(entry.datacenter, above.is_none(), own)?;
        let Some(choice) = search.choose(&rows) else {
            return none_free(wish, preferred, now).map(Leased::None);
        };
        if let Some(expiry) = store::take(&choice, entry, now)? {
            return Ok(Leased::Taken { choice, expiry });
        }
    }
    Ok(Leased::Missed)
}

/// Who has them all.
fn none_free(wish: &LeaseRequest, preferred: Preferred, now: UnixMicros) -> Result<NoLease, SpiError> {
    let (datacenter, capacity) = (wish.entry.datacenter, wish.capacity);
    let mut detail = format!("Datacenter {datacenter} has {capacity} worker ids.");
    let mut hint = "Give ids of servers that are gone back with SELECT snowflake_ids.worker_release(worker_id), or \
                    choose a snowflake_ids.layout with more worker bits.";
    if preferred.only {
        let Preferred { worker, share, .. } = preferred;
        let first = worker - worker % share;
        detail = format!(
            "{detail} This server, whose registry is its own, may use {first} to {}.",
            first + share - 1
        );
    }
    if wish.policy == Policy::Disposable {
        detail.push_str(" snowflake_ids.worker_id_policy is disposable: none is used that anybody had.");
        hint = "Set snowflake_ids.worker_id_policy to reuse or queue and reload, or choose a snowflake_ids.layout \
                with more worker bits.";
    }
    let holders = store::holders(datacenter, capacity - 1, LISTED, now)?;
    let listed = usize::try_from(LISTED).unwrap_or(0);
    let more = |count: usize| if count < listed { "" } else { ", ..." };
    if !wish.except.is_empty() {
        let except: Vec<String> = wish.except.iter().take(listed).map(u32::to_string).collect();
        let more = more(except.len());
        detail =
            format!("{detail} The clock has not passed the ids issued here as {}{more}.", except.join(", "));
    }
    let holders = match holders.as_slice() {
        [] => String::new(),
        holders => format!("Leased are: {}{}.", holders.join(", "), more(holders.len())),
    };
    Ok(NoLease { message: "no worker id is free".into(), detail, hint: hint.into(), holders })
}

/// A server that leases one after the other would leave none for others.
fn too_many_held() -> NoLease {
    NoLease::yet(
        format!("The registry has leased {MAX_HELD} worker ids to this server that are not free yet."),
        "See why it takes one after the other. On the registry, give those that it does not use back with SELECT \
         snowflake_ids.worker_release(worker_id, datacenter_id).",
    )
}
