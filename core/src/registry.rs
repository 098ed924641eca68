//! Registries: databases from which many servers reserve ids of tags (named id ranges), and lease worker ids. The
//! module contains the protocol, its client side and its server side.
//!
//! | module | contents |
//! | --- | --- |
//! | [`wire`] | requests and responses |
//! | [`accept`] | checks of requests and responses, and the decision to serve a request |
//! | [`forks`] | the promotions that a registry knows |
//! | [`worker_ids`] | answers of a registry to requests for worker ids |
//! | [`tables`] | the tables of a database, and the reservation of a tag's next ids |
//! | [`tags`] | answers of a registry to requests for ids of tags |
//! | [`link`] | the registries in use, and their status |
//! | [`client`] | requests to other servers |
//! | [`error`] | errors of a registry |
//! | [`hosts`] | lists of hosts in libpq's options |
//! | [`failover`] | the choice among several registries |
//! | [`citus`] | the coordinator of a Citus cluster, and the problems of its nodes |
//! | [`handover`] | hand-over of tags when a database starts or stops using registries |
//! | [`setup`] | the steps by which a server joins a registry in one call |
//! | [`lease_worker`] | the worker that acquires and renews the lease |
//! | [`lease_launch`] | the start of a lease worker, and the choice of its database |

pub mod accept;
pub mod citus;
pub mod client;
pub mod error;
pub mod failover;
pub mod forks;
pub mod handover;
pub mod hosts;
pub mod lease_launch;
pub mod lease_worker;
pub mod link;
pub mod setup;
pub mod tables;
pub mod tags;
pub mod wire;
pub mod worker_ids;
