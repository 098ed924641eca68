//! The transaction in which a database joins or leaves the common registry, step by step. The transaction may be rolled back, and
//! the server may end between any two steps.

use super::host::Host;
use super::registry::name;
use super::server::SECOND;
use std::sync::atomic::Ordering::{AcqRel, Release};

/// The database that joins or leaves.
const DATABASE: u32 = 2;

pub fn join(host: &Host<'_>) {
    let Some(is_committed) = begin(host) else { return };
    if is_committed {
        host.database(DATABASE).draws.set(true);
        let identity = name(host.server.introduced.get()).identity;
        end(host, Some(&identity));
        // From now on, another server may use the worker id that this server had chosen.
        host.server.scope.set(0);
    } else {
        forget(host);
    }
}

pub fn leave(host: &Host<'_>) {
    let Some(is_committed) = begin(host) else { return };
    let identity = name(host.server.introduced.get()).identity;
    host.record(host.issuer().change(|state, _| state.leave_registry(&identity)));
    host.rest(host.sim.chance.between(1, SECOND));
    if is_committed {
        host.database(DATABASE).draws.set(false);
        // The worker id that the server chooses next may be in use by any other server.
        let own = (1 << 31) + u32::try_from(host.sim.chance.next() >> 33).unwrap();
        host.server.scope.set(own);
        end(host, None);
    } else {
        forget(host);
    }
}

/// Records that a transaction changes the use of registries. Returns whether it will commit; None: the record failed.
fn begin(host: &Host<'_>) -> Option<bool> {
    host.live.requests.changing.fetch_add(1, AcqRel);
    let recorded = host.record(host.issuer().change(|state, _| state.source.move_by(DATABASE, None)));
    if recorded.is_none() {
        forget(host);
    }
    recorded?;
    host.rest(host.sim.chance.between(1, 2 * SECOND));
    Some(!host.sim.chance.once_in(4))
}

/// Does the work after a commit.
fn end(host: &Host<'_>, identity: Option<&str>) {
    let requests = &host.live.requests;
    host.call();
    requests.changed.store(DATABASE, Release);
    let left = host.record(host.issuer().change(|state, _| state.draw_from(DATABASE, identity)));
    if left == Some(true) {
        requests.ask_to_renew();
    }
    requests.changing.fetch_sub(1, AcqRel);
}

/// Does the work after a rollback.
fn forget(host: &Host<'_>) {
    host.live.requests.changed.store(DATABASE, Release);
    host.live.requests.changing.fetch_sub(1, AcqRel);
}
