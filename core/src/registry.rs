//! Tables that many servers share: the protocol, both of its ends, and worker ids on lease.
//!
//! | module | holds |
//! | --- | --- |
//! | [`wire`] | requests and responses |
//! | [`accept`] | checks of both, and the decision to serve a request |
//! | [`worker_ids`] | a registry's side of requests for worker ids |
//! | [`tags`] | a registry's side of requests for tags |
//! | [`link`] | a registry as processes reach it |
//! | [`client`] | requests to other servers |
//! | [`error`] | errors of a registry |
//! | [`hosts`] | lists of hosts, one host at a time |
//! | [`failover`] | the choice among several registries |
//! | [`citus`] | a cluster's coordinator, and the problems of its nodes |
//! | [`handover`] | beginning to use registries, and ending it |
//! | [`lease`] | worker ids on lease |
//! | [`lease_worker`] | leasing a worker id, renewing the lease, noticing its loss |
//! | [`lease_launch`] | the time to start a lease worker, and its database |

pub mod accept;
pub mod citus;
pub mod client;
pub mod error;
pub mod failover;
pub mod handover;
pub mod hosts;
pub mod lease;
pub mod lease_launch;
pub mod lease_worker;
pub mod link;
pub mod tags;
pub mod wire;
pub mod worker_ids;
