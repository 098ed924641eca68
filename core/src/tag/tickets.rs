//! Requests for a refill and their answers, between any number of callers and one worker. The worker may die at any
//! moment.
//!
//! Callers draw ascending tickets. The worker answers all tickets that were drawn before its work began. A request
//! without an answer stays pending, and the next worker answers it. A caller that draws its ticket after the work began
//! must wait for the next answer, so no caller gets an outdated answer.

use crate::sync::{AtomicU64, Ordering};

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Answer {
    /// Ids are available, or were available a moment ago.
    Supplied = 0,
    /// The tag does not exist.
    Unknown = 1,
    /// The tag has no ids left.
    Exhausted = 2,
    /// The table of tags does not exist: the extension was dropped.
    NoTable = 3,
    /// The server belongs to a cluster whose nodes share a registry, but this database uses no registry.
    NoRegistry = 4,
}

const ANSWER_BITS: u32 = 3;

/// The requests for one tag, and the last answer.
#[derive(Debug, Default)]
pub struct Tickets {
    asked: AtomicU64,
    /// The last ticket of callers that want a missing tag to be created.
    creating: AtomicU64,
    /// The last answered ticket, with the answer in the low bits. The ticket and the answer change in one step.
    answered: AtomicU64,
}

impl Tickets {
    /// Draws a ticket.
    pub fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Draws a ticket, and requests that a missing tag is created.
    pub fn ask_to_create(&self) -> u64 {
        let mut last = self.asked.load(Ordering::Acquire);
        loop {
            // The field is raised before the ticket is drawn, so that a worker that sees the ticket sees this request.
            // If another caller draws the ticket `last + 1`, this caller draws the next ticket.
            self.creating.fetch_max(last + 1, Ordering::AcqRel);
            match self.asked.compare_exchange(last, last + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return last + 1,
                Err(found) => last = found,
            }
        }
    }

    /// Returns true if a caller without an answer wants a missing tag to be created. If [`Tickets::pending`] was called
    /// before, the result covers all tickets up to the ticket that `pending` returned.
    pub fn creates(&self) -> bool {
        let answered = self.answered.load(Ordering::Acquire) >> ANSWER_BITS;
        self.creating.load(Ordering::Acquire) > answered
    }

    /// Returns the last ticket, if this ticket has no answer yet.
    pub fn pending(&self) -> Option<u64> {
        let asked = self.asked.load(Ordering::Acquire);
        (asked > self.answered.load(Ordering::Acquire) >> ANSWER_BITS).then_some(asked)
    }

    /// Answers all tickets up to `ticket`. The ids must be published before this call.
    pub fn answer(&self, ticket: u64, answer: Answer) {
        // The ticket never decreases: a worker that dies slowly cannot replace the answer of the next worker.
        self.answered.fetch_max(ticket << ANSWER_BITS | answer as u64, Ordering::AcqRel);
    }

    /// Returns the answer to a ticket; None if the ticket has no answer yet.
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
