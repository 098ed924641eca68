//! Tests that run inside a server which preloads the library: datacenter 3, worker 7.
