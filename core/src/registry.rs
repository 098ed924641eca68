//! Tables that many servers share: the protocol, both of its ends, and worker ids on lease.
//!
//! | module | holds |
//! | --- | --- |
//! | [`wire`] | what servers and a registry say to each other |
//! | [`accept`] | what questions and answers may hold: any login with the role of nodes may have written a question, and any server |
//! | [`admission`] | which requests a registry serves |
//! | [`worker_ids`] | what a registry answers about worker ids |
//! | [`tags`] | what a registry does about tags |
//! | [`client`] | sending requests to them |
//! | [`error`] | why one gave no response |
//! | [`link`] | the registries that a database uses |
//! | [`hosts`] | lists of hosts, one host at a time |
//! | [`failover`] | which of several registries to ask next |
//! | [`citus`] | a cluster's coordinator, and what is wrong with its nodes |
//! | [`handover`] | beginning to use registries, and ending it |
//! | [`lease`] | worker ids on lease |
//! | [`lease_worker`] | leasing a worker id, renewing the lease, noticing its loss |
//! | [`lease_launch`] | when a lease worker is started, and in which database |

pub mod accept;
pub mod admission;
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
