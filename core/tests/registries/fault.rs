//! What goes wrong.

use super::registry::{Server, Trouble};
use super::world::{Event, SECOND, TAGS, World};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Crash,
    Stop,
    Leave,
    Attach,
    Hang,
    Down,
    Failover,
    Former,
    Restore,
    Dump,
    Alter,
}

pub const FAULTS: [Fault; 11] = [
    Fault::Crash,
    Fault::Stop,
    Fault::Leave,
    Fault::Attach,
    Fault::Hang,
    Fault::Down,
    Fault::Failover,
    Fault::Former,
    Fault::Restore,
    Fault::Dump,
    Fault::Alter,
];

impl World {
    /// One fault, somewhere, and the next one later.
    pub fn fault(&mut self) {
        if self.calm {
            return;
        }
        let delay = self.between(SECOND / 10, 6 * SECOND);
        self.after(delay, Event::Fault);
        let (node, registry) =
            (self.chance.below(self.nodes.len()), self.chance.below(self.registries.len()));
        self.back_up(registry);
        let fault = self.chance.one_of(&FAULTS);
        if self.cause(fault, node, registry) {
            self.faults[fault as usize] += 1;
            self.note(|| format!("{fault:?} of node {node} or registry {registry}"));
        }
    }

    /// Has a fault happen; whether it could.
    fn cause(&mut self, fault: Fault, node: usize, registry: usize) -> bool {
        let until = self.now + self.between(SECOND, 20 * SECOND);
        match fault {
            Fault::Crash => self.crash(node),
            Fault::Stop => self.stop(node),
            Fault::Leave => {
                self.nodes[node].alone_until = until;
                self.leave(node)
            }
            Fault::Attach => self.attach(node),
            Fault::Hang => {
                self.registries[registry].hung_until = until;
                true
            }
            Fault::Down => {
                self.registries[registry].down_until = until;
                true
            }
            Fault::Failover => self.fail_over(registry),
            Fault::Former => {
                let former = self.registries[registry].former.as_mut();
                former.map(|(_, reachable)| *reachable = until).is_some()
            }
            Fault::Restore | Fault::Dump => self.restore(registry, fault == Fault::Dump),
            Fault::Alter => self.alter(registry),
        }
    }

    pub fn back_up(&mut self, registry: usize) {
        let this = &mut self.registries[registry];
        if this.trouble.is_none() {
            this.backups.push(this.primary.clone());
            if this.backups.len() > 4 {
                this.backups.remove(0);
            }
        }
    }

    /// A standby that lags is promoted. Its primary is cut off, and comes back when its successor is known.
    fn fail_over(&mut self, registry: usize) -> bool {
        let this = &mut self.registries[registry];
        let standbys = this.standbys();
        if this.trouble.is_some() || standbys.is_empty() {
            return false;
        }
        let rows = standbys[self.chance.below(standbys.len())].clone();
        let mut successor = Server { who: this.primary.who.clone(), rows };
        successor.who.timeline += 1;
        this.former = Some((std::mem::replace(&mut this.primary, successor), 0));
        this.settle();
        true
    }

    /// The registry is in an earlier state again, as it was or as a new one.
    pub fn restore(&mut self, registry: usize, dump: bool) -> bool {
        let this = &mut self.registries[registry];
        if this.trouble.is_some() || this.backups.is_empty() {
            return false;
        }
        this.primary = this.backups[self.chance.below(this.backups.len())].clone();
        this.former = None;
        if dump {
            self.identities += 1;
            this.primary.who = Server::new(self.identities).who;
            this.primary.rows.values_mut().for_each(|line| line.timeline = 1);
            this.backups.clear();
        }
        this.trouble = Some((if dump { Trouble::Dump } else { Trouble::SetBack }, self.now));
        this.settle();
        true
    }

    /// Somebody undoes the share of a row.
    fn alter(&mut self, registry: usize) -> bool {
        let tag = self.chance.below(TAGS.len());
        let this = &mut self.registries[registry];
        // The first one may have nodes that use no other, and don't know that there are shares.
        if !self.shared || registry == 0 || this.trouble.is_some() {
            return false;
        }
        let definition = &mut this.primary.row(tag).definition;
        (definition.increment, definition.remainder) = (1, 0);
        this.trouble = Some((Trouble::Altered, self.now));
        this.settle();
        true
    }
}
