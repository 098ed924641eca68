//! Asking for a refill and being told what came of it, between any number of callers and one worker, which
//! may die at any moment.
//!
//! Callers draw growing tickets; the worker answers all tickets up to the one that it saw when it began. A
//! request that no worker answered stays asked, so the next worker takes it up: no message can be lost, because
//! there is none. And an answer counts only for callers that asked before the worker looked, so none is told
//! of what was before its call.

use crate::sync::{AtomicU64, Ordering};

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Answer {
    /// There are ids now, or were.
    Supplied = 0,
    /// There is no such tag.
    Unknown = 1,
    /// The tag has no ids left.
    Exhausted = 2,
    /// There is no table of tags: the extension was dropped.
    NoTable = 3,
    /// The server belongs to a cluster whose nodes share a registry, and uses none.
    NoRegistry = 4,
}

const ANSWER_BITS: u32 = 3;

/// The requests for one tag, and the last answer.
#[derive(Debug, Default)]
pub struct Tickets {
    asked: AtomicU64,
    /// The last ticket of the callers that want the tag to be made where there is none.
    creating: AtomicU64,
    /// The last ticket answered, and the answer in the low bits: both change in one step.
    answered: AtomicU64,
}

impl Tickets {
    /// Asks; gives the ticket.
    pub fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The same, and wants the tag to be made if there is none.
    pub fn ask_to_create(&self) -> u64 {
        let mut last = self.asked.load(Ordering::Acquire);
        loop {
            // Before the ticket is drawn: a worker that sees it sees this. Should another draw it, the next one follows at once.
            self.creating.fetch_max(last + 1, Ordering::AcqRel);
            match self.asked.compare_exchange(last, last + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return last + 1,
                Err(found) => last = found,
            }
        }
    }

    /// Returns whether a caller that was not answered yet wants the tag to be made if there is none. Looked at after
    /// [`Tickets::pending`], it speaks for all up to that ticket.
    pub fn creates(&self) -> bool {
        let answered = self.answered.load(Ordering::Acquire) >> ANSWER_BITS;
        self.creating.load(Ordering::Acquire) > answered
    }

    /// The last ticket, if it is not answered yet.
    pub fn pending(&self) -> Option<u64> {
        let asked = self.asked.load(Ordering::Acquire);
        (asked > self.answered.load(Ordering::Acquire) >> ANSWER_BITS).then_some(asked)
    }

    /// Answers all tickets up to this one. The ids that it speaks of must be visible before.
    pub fn answer(&self, ticket: u64, answer: Answer) {
        // Never downwards: a worker that was slow to die does not undo its successor's answer.
        self.answered.fetch_max(ticket << ANSWER_BITS | answer as u64, Ordering::AcqRel);
    }

    /// The answer to a ticket, None while there is none.
    pub fn answer_to(&self, ticket: u64) -> Option<Answer> {
        let answered = self.answered.load(Ordering::Acquire);
        let answer = match answered & ((1 << ANSWER_BITS) - 1) {
            1 => Answer::Unknown,
            2 => Answer::Exhausted,
            3 => Answer::NoTable,
            4 => Answer::NoRegistry,
            _ => Answer::Supplied,
        };
        (answered >> ANSWER_BITS >= ticket).then_some(answer)
    }
}
