//! The obstacles to issuing ids.

use super::durable::Stored;
use super::error::{IssuerError, UNWRITABLE};
use super::host::Host;
use super::issuing::{Issuer, Issuing};
use crate::generator::drift::GeneratorError;
use crate::generator::snowflake::Generator;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::server::state::State;
use std::sync::atomic::Ordering::Relaxed;

impl<H: Host> Issuer<'_, H> {
    /// Returns what keeps ids from being issued, in a few words, as far as that is known without trying; None where
    /// nothing does.
    pub fn obstacle(&self) -> Option<String> {
        self.obstacle_in(self.layout(), &self.shared.generator)
    }

    /// The same in any layout, and what hands out its positions; that of the server's own where it has none yet.
    pub fn obstacle_in(&self, layout: &Layout, generator: &Generator) -> Option<String> {
        let (counts, is_own) = (&self.shared.counts, layout == self.layout());
        match self.next_position() {
            Err(error) => Some(error.to_string()),
            Ok(_) if counts.unwritable.load(Relaxed) => Some(UNWRITABLE.into()),
            Ok(_) if counts.expiry().is_some_and(|expiry| expiry <= self.believed_now()) => {
                Some("the lease of the worker id has ended".into())
            }
            Ok(next) if is_own => self.out_of_time(layout, next),
            Ok(_) if std::ptr::eq(generator, &raw const self.shared.generator) => {
                self.out_of_time(layout, Position::ZERO)
            }
            Ok(_) => self.out_of_time(layout, generator.next()),
        }
    }

    /// Returns what of the clock keeps a position from being issued.
    fn out_of_time(&self, layout: &Layout, next: Position) -> Option<String> {
        let now = self.believed_now();
        if let Err(error) = layout.tick(now) {
            return Some(GeneratorError::from(error).to_string());
        }
        let too_far = next >= self.host.settings().rules.drift_end(layout, now);
        too_far.then(|| "ids are further ahead of the clock than max_drift".into())
    }

    /// The position that would be issued next; 0 where no node issues.
    fn next_position(&self) -> Result<Position, IssuerError> {
        let here = self.here(&Issuing { opened: true, ..Issuing::default() })?;
        let open = |Stored { state, file }| State::open(state, &here.with_file(file));
        let state = self.read()?.map(open).transpose()?;
        if self.limit() > Position::ZERO {
            return Ok(self.shared.generator.next());
        }
        Ok(state.and_then(|state| Some(state.mark(state.node?))).unwrap_or_default())
    }
}
