//! A process of a simulated server: the whole shipped code, stopped at each call to its surroundings.

use corosensei::{Coroutine, CoroutineResult, Yielder};

/// What a stopped process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The process's next turn.
    Turn,
    /// A time of the simulation.
    Until(i64),
}

/// How a process stops: the stand-ins for files, tables and servers call `suspend` before and after their work.
pub type Pause = Yielder<(), Wait>;

/// A process. Dropping it kills the process at its present stop.
pub struct Process(Coroutine<(), Wait, ()>);

impl Process {
    pub fn new(body: impl FnOnce(&Pause) + 'static) -> Self {
        Self(Coroutine::new(move |pause: &Pause, ()| body(pause)))
    }

    /// Continues until the next stop. None: the process has ended.
    pub fn step(&mut self) -> Option<Wait> {
        match self.0.resume(()) {
            CoroutineResult::Yield(wait) => Some(wait),
            CoroutineResult::Return(()) => None,
        }
    }
}
