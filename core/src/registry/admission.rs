//! The decision to serve a request.

use crate::registry::wire::{Registry, Request, RequestBody, ResponseBody, VERSION};
use std::time::Duration;

/// By what way a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// True if it may move tags up, and list them.
    pub may_take_over: bool,
    /// True if it is part of a transaction that is ended by the server that sent it.
    pub in_block: bool,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Admission {
    /// It is served; rows that are locked are waited for so long.
    Serve(RequestBody, Duration),
    /// It is answered at once.
    Say(ResponseBody),
    /// It is refused: an answer is good when it is durable, and rows stay locked until then.
    InBlock,
    /// It is refused: only a role that may do that moves tags up.
    TakesOver,
}

/// Decides about a request, which is None where it is of another version of the protocol, that came to this registry.
pub fn admit(request: Option<Request>, this: &Registry, way: Way) -> Admission {
    let Some(Request { registry, timeout, ask, .. }) = request else {
        return Admission::Say(ResponseBody::Version(VERSION));
    };
    if way.in_block && !ask.is_part() {
        Admission::InBlock
    } else if ask.takes_over() && !way.may_take_over {
        Admission::TakesOver
    } else if let Some(Err(stranger)) = registry.map(|meant| this.check(&meant)) {
        Admission::Say(ResponseBody::Stranger(stranger))
    } else {
        Admission::Serve(ask, timeout)
    }
}
