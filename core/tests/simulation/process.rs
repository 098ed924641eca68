//! A process of a simulated server: the shipped code, from top to bottom, stopped at each call of what it touches.

use corosensei::{Coroutine, CoroutineResult, Yielder};

/// What a process that has stopped waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its next turn.
    Turn,
    /// A time of the simulation.
    Until(i64),
}

/// How a process stops: what stands for files, tables and servers calls `suspend` before and after it does something.
pub type Pause = Yielder<(), Wait>;

/// A process. To drop it is to kill it where it stands.
pub struct Process(Coroutine<(), Wait, ()>);

impl Process {
    pub fn new(body: impl FnOnce(&Pause) + 'static) -> Self {
        Self(Coroutine::new(move |pause: &Pause, ()| body(pause)))
    }

    /// Goes on until it stops again; None: it has ended.
    pub fn step(&mut self) -> Option<Wait> {
        match self.0.resume(()) {
            CoroutineResult::Yield(wait) => Some(wait),
            CoroutineResult::Return(()) => None,
        }
    }
}
