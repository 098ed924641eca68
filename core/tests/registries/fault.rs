//! Faults of nodes and registries.

use super::registry::{Origin, Trouble};
use super::world::{Event, SECOND, TAGS, World};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Crash,
    Stop,
    Copy,
    Leave,
    Attach,
    Hang,
    Down,
    Failover,
    Fork,
    Former,
    Restore,
    Recovery,
    Dump,
    Alter,
    Tune,
    Evict,
}

pub const FAULTS: [Fault; 16] = [
    Fault::Crash,
    Fault::Stop,
    Fault::Copy,
    Fault::Leave,
    Fault::Attach,
    Fault::Hang,
    Fault::Down,
    Fault::Failover,
    Fault::Fork,
    Fault::Former,
    Fault::Restore,
    Fault::Recovery,
    Fault::Dump,
    Fault::Alter,
    Fault::Tune,
    Fault::Evict,
];

impl World {
    /// Causes a fault somewhere, and schedules the next one.
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
            self.record(|| format!("{fault:?} of node {node} or registry {registry}"));
        }
    }

    /// Causes a fault. Returns whether that was possible.
    fn cause(&mut self, fault: Fault, node: usize, registry: usize) -> bool {
        let until = self.now + self.between(SECOND, 20 * SECOND);
        match fault {
            Fault::Crash => self.crash_somewhere(node),
            Fault::Stop => self.stop(node),
            Fault::Copy => self.chance.once_in(4) && self.copy(node),
            Fault::Leave => {
                self.nodes[node].alone_until = until;
                let leaves = self.leave(node);
                // A column is attached at the same time.
                if leaves && self.chance.once_in(3) {
                    self.attach(node);
                }
                leaves
            }
            Fault::Attach => self.attach(node),
            Fault::Hang => {
                let server = self.registries[registry].primary;
                self.servers[server].hung_until = until;
                true
            }
            Fault::Down => {
                let server = self.registries[registry].primary;
                self.servers[server].down_until = until;
                self.kill(server);
                true
            }
            Fault::Failover => self.fail_over(registry, false),
            Fault::Fork => self.fail_over(registry, true),
            Fault::Former => {
                let former = self.registries[registry].former.as_mut();
                former.map(|(_, reachable)| *reachable = until).is_some()
            }
            Fault::Restore => self.restore(registry, Origin::Copy),
            Fault::Recovery => self.restore(registry, Origin::Archive),
            Fault::Dump => self.restore(registry, Origin::Dump),
            Fault::Alter => self.alter(registry),
            Fault::Tune => self.tune(registry),
            Fault::Evict => self.evict(node),
        }
    }

    /// By an operator's mistake, gives a row that is a share the terms that the row had before it became a share.
    fn alter(&mut self, registry: usize) -> bool {
        let tag = self.chance.below(TAGS.len());
        let troubled = self.registries[registry].trouble.is_some();
        // Some nodes may use only the first registry. Such nodes know of no shares.
        if !self.shared || registry == 0 || troubled || !self.is_free(registry) {
            return false;
        }
        self.change_row(registry, tag, |line| {
            (line.definition.increment, line.definition.remainder) = (1, 0);
        });
        self.registries[registry].trouble = Some((Trouble::Altered, self.now));
        self.settle(registry);
        true
    }

    /// An operator changes the largest segment of a tag, and so the number of ids that promotions skip.
    fn tune(&mut self, registry: usize) -> bool {
        let (tag, max_step) = (self.chance.below(TAGS.len()), self.chance.one_of(&[4, 16, 40]));
        let primary = self.registries[registry].primary;
        let known = self.servers[primary].db.store.borrow().rows.contains_key(&tag);
        if !known || !self.works(registry) || !self.is_free(registry) {
            return false;
        }
        let server = &self.servers[primary];
        let promotions = server.db.store.borrow().forks.promotions(server.who.timeline);
        let cluster = server.cluster;
        self.change_row(registry, tag, |line| {
            line.raise_on(cluster, promotions, 0);
            line.definition.max_step = max_step;
        });
        self.committed(primary);
        true
    }

    /// Crashes a node immediately, or after its worker has made some more calls.
    fn crash_somewhere(&mut self, node: usize) -> bool {
        let worker = self.nodes[node].live.as_ref().and_then(|live| live.worker.get());
        match worker.filter(|_| self.chance.once_in(2)) {
            Some(pid) => {
                let turns = self.chance.below(40);
                self.doom(pid, 1 + u32::try_from(turns).unwrap())
            }
            None => self.crash(node),
        }
    }
}
