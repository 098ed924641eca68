//! What a process of the server has to do with the issuer, and on whose behalf.

use super::shared::Shared;
use crate::id::Node;

/// What the state lock guards.
#[derive(Debug, Default)]
pub struct Issuing {
    /// The node whose term the generator has begun; None while it is closed.
    pub node: Option<Node>,
    /// Whether the state was taken up since the server's start.
    pub opened: bool,
}

/// On whose behalf the mark is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Caller,
    Launcher,
}

/// What a process of the server knows of its issuer, and where the rest is.
#[derive(Debug)]
pub struct Issuer<'a, H> {
    /// What all processes of the server share.
    pub shared: &'a Shared,
    /// What it touches.
    pub host: H,
}
