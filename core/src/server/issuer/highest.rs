//! The highest id of a layout that this server may have issued.

use super::error::IssuerError;
use super::host::Host;
use super::issuing::Issuer;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::server::state::Marks;

impl<H: Host> Issuer<'_, H> {
    /// The position below which all ids of a layout are that this server gave or reserved, as whichever node.
    ///
    /// # Errors
    /// [`IssuerError`]: the state cannot be read.
    pub fn highest_in(&self, layout: &Layout) -> Result<Position, IssuerError> {
        let state = self.open(&mut self.host.lock())?;
        let unknown = || layout.position_from(state.others.floor);
        Ok(state.marks_of(layout).map_or_else(unknown, Marks::highest))
    }
}
