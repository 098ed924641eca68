//! One server: its disk, its clock, what its processes share, and the protocol around the file.

use super::guards::{Guard, Guards};
use snowflake_ids_core::anchor::{Reading, Verdict};
use snowflake_ids_core::lease::{Lease, Policy};
use snowflake_ids_core::state::{Birth, DataDirectory, Here, Identity, State, StateError};
use snowflake_ids_core::{
    Block, ClockRollback, Generator, Layout, Node, Rules, SequenceStart, Taken, UnixMicros,
};

pub const SECOND: i64 = 1_000_000;
pub const MAX_DRIFT: i64 = 10 * SECOND;
pub const RESERVE: i64 = 3 * SECOND + 100_000;
pub const MAX_JUMP: i64 = 60 * SECOND;
pub const MAX_SKEW: i64 = 5 * SECOND;
pub const EXPIRY: i64 = 120 * SECOND;

/// A file with a state.
#[derive(Clone)]
pub struct File {
    pub text: String,
    /// Which file of all that there ever were.
    pub inode: u64,
}

impl File {
    pub fn state(&self) -> Result<State, StateError> {
        State::from_text(self.text.as_bytes())
    }

    pub fn birth(&self) -> Birth {
        Birth { inode: self.inode, at: None }
    }
}

/// What survives the end of the server.
#[derive(Clone, Default)]
pub struct Disk {
    pub file: Option<File>,
    /// What of it survives the end of the machine, too.
    pub synced: Option<File>,
    pub witness: bool,
}

/// The clocks of the machine.
pub struct Clocks {
    /// How far the wall clock is off.
    pub offset: i64,
    /// How many microseconds it gains each second.
    pub gain: i64,
    pub boot: u64,
    pub booted: i64,
}

impl Clocks {
    pub fn reading(&self, now: i64) -> Reading {
        Reading {
            wall: UnixMicros(now + self.offset + (now - super::world::BEGIN) / SECOND * self.gain),
            boot: self.boot.to_string(),
            since_boot: (now - self.booted).cast_unsigned(),
        }
    }
}

/// A session of the server.
pub struct Session {
    pub block: Block,
    /// The bits that it saw before it took anything.
    pub early: u64,
    pub holding: Option<Held>,
    /// Until when it does nothing.
    pub paused: i64,
}

/// A position that was taken and not yet used.
#[derive(Clone, Copy)]
pub struct Held {
    pub position: u64,
    pub node_bits: u64,
}

/// What a change of the file leads to once it is durable.
#[derive(Clone, Copy, Debug)]
pub enum Publish {
    Nothing,
    Raise { limit: u64 },
    Begin { node: Node, next: u64, limit: u64, before: u64, now: u64 },
    Close,
    Stopped,
}

/// A change of the file, made under the lock.
#[derive(Clone, Debug)]
pub enum Change {
    Reserve,
    Switch { definition: u64 },
    Claim(i64),
    TakeUp(Lease),
    Renewed { token: i64, claim: i64, expiry: UnixMicros },
    GiveUp,
    Stop,
    Reset { above: Option<u64> },
    Adopt,
    Accept,
}

/// The change under way, who holds the lock for it, and how far it is.
pub struct Locked {
    pub change: Change,
    pub state: State,
    pub publish: Publish,
    pub stage: u8,
    pub session: Option<usize>,
}

/// Why there is no change.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The file.
    File(StateError),
    /// No worker id, none left of the lease, or another one wanted.
    Worker,
    /// Nothing to do, or no longer.
    Moot,
}

impl From<StateError> for Trouble {
    fn from(error: StateError) -> Self {
        Self::File(error)
    }
}

/// What the processes of a running server share, and what each of them has in mind.
pub struct Live {
    pub generator: Generator,
    pub anchor: Option<Reading>,
    pub term: Option<Node>,
    /// Counts terms.
    pub definition: u64,
    pub sessions: Vec<Session>,
    pub locked: Option<Locked>,
    pub lease: Option<Lease>,
    pub claim: Option<i64>,
    pub registrar: super::registrar::Registrar,
    pub opened: bool,
    pub stopping: bool,
    pub trouble: Option<StateError>,
}

pub struct Server {
    pub number: usize,
    pub layout: Layout,
    pub guards: Guards,
    pub scope: u32,
    pub registry: usize,
    /// Whether the registry is its own.
    pub alone: bool,
    pub system_identifier: u64,
    pub timeline: u32,
    pub identity: Identity,
    pub policy: Policy,
    pub rollback: ClockRollback,
    pub start: SequenceStart,
    pub replayed: Option<UnixMicros>,
    pub disk: Disk,
    /// How many state files it ever had.
    pub files: u64,
    pub clocks: Clocks,
    pub live: Option<Live>,
    pub incarnation: u64,
    pub paused: i64,
    pub cut_off: i64,
    /// Gone for good.
    pub retired: bool,
    /// When it last issued, and which tick.
    pub last: Option<(i64, u64)>,
    pub highest: u64,
    pub last_commit: Option<UnixMicros>,
    pub backups: Vec<super::faults::Backup>,
    pub succeeded: bool,
}

impl Server {
    pub fn rules(&self) -> Rules {
        Rules { max_drift: MAX_DRIFT.cast_unsigned(), start: self.start }
    }

    pub fn reading(&self, now: i64) -> Reading {
        self.clocks.reading(now)
    }

    pub fn start(&mut self, sessions: usize) {
        self.incarnation += 1;
        let session = || Session { block: Block::empty(), early: 0, holding: None, paused: 0 };
        self.live = Some(Live {
            generator: Generator::new(),
            anchor: None,
            term: None,
            definition: 0,
            sessions: (0..sessions).map(|_| session()).collect(),
            locked: None,
            lease: None,
            claim: None,
            registrar: super::registrar::Registrar::default(),
            opened: false,
            stopping: false,
            trouble: None,
        });
    }

    /// Ends at once, as by kill -9; with the machine, what was not synced goes too.
    pub fn crash(&mut self, machine: bool) {
        self.live = None;
        self.incarnation += 1;
        if machine {
            self.disk.file.clone_from(&self.disk.synced);
        }
    }

    /// Whether its own file tells of whom it is to issue as. A copy made before that, of a directory with a number in its
    /// settings, can't know that it is one.
    pub fn has_issued(&self) -> bool {
        self.disk.file.as_ref().is_some_and(|file| self.knows_itself(file))
    }

    pub fn knows_itself(&self, file: &File) -> bool {
        file.state().is_ok_and(|state| {
            let own = match self.identity {
                Identity::Fixed { datacenter, worker } => {
                    state.node.is_some_and(|node| (node.datacenter, node.worker) == (datacenter, worker))
                }
                Identity::Leased { .. } => true,
            };
            own && state.home.identity == self.number.to_string()
        })
    }

    fn here(&self, reading: &Reading) -> Here {
        let home = self.number.to_string();
        Here {
            system_identifier: self.system_identifier,
            timeline: self.timeline,
            home: DataDirectory {
                identity: home.clone(),
                file: self.disk.file.as_ref().map(File::birth),
                host: home.clone(),
                directory: home,
            },
            layout: self.layout,
            identity: self.identity,
            clock: reading.clone(),
            replayed: self.replayed,
            max_drift: MAX_DRIFT.cast_unsigned(),
            max_clock_jump: MAX_JUMP.cast_unsigned(),
            disposable: self.policy == Policy::Disposable
                && self.live.as_ref().is_some_and(|live| !live.opened),
        }
    }

    /// The file as it is, or a fresh state.
    fn stored(&self, here: &Here) -> Result<State, StateError> {
        match &self.disk.file {
            Some(file) => file.state(),
            None if self.disk.witness && self.guards.keep(Guard::Witness) => Err(StateError::Missing),
            None => Ok(State::fresh(here)),
        }
    }

    /// What the file says, taken up here and now; with some rules left out, as if they had never been written.
    fn open(&self, here: &Here) -> Result<State, StateError> {
        let mut stored = self.stored(here)?;
        let promoted = stored.timeline != here.timeline;
        let copied = stored.home.identity != here.home.identity;
        let put_back = !copied && stored.home.file != here.home.file;
        let fixed = matches!(here.identity, Identity::Fixed { .. });
        let left_out = if promoted {
            !self.guards.keep(if fixed { Guard::PromotionRises } else { Guard::PromotionForgets })
        } else {
            copied && !self.guards.keep(if fixed { Guard::CopyRefused } else { Guard::CopyForgets })
                || put_back && !self.guards.keep(Guard::FileKnown)
        };
        if left_out {
            stored.timeline = here.timeline;
            stored.home = here.home.clone();
        }
        stored.open(here)
    }

    /// The time to go by: the wall clock's, or the anchor's where that jumped ahead.
    pub fn believed(&self, now: i64) -> UnixMicros {
        let reading = self.reading(now);
        let anchor = self.live.as_ref().and_then(|live| live.anchor.as_ref());
        match anchor.map(|anchor| reading.judged_by(anchor, MAX_JUMP.cast_unsigned())) {
            Some(Verdict::Ahead { instead, .. }) if self.guards.keep(Guard::JumpNotFollowed) => instead,
            _ => reading.wall,
        }
    }

    /// Whether the clock is ahead and not followed.
    pub fn is_ahead(&self, now: i64) -> bool {
        self.believed(now) != self.reading(now).wall
    }

    /// Reads the file and changes it, under the lock; gives what to write, and what to publish then.
    pub fn change(&mut self, change: &Change, now: i64) -> Result<(State, Publish), Trouble> {
        let reading = self.reading(now);
        let here = self.here(&reading);
        let mut state = match change {
            Change::Reset { above } => {
                let above =
                    above.unwrap_or(self.layout.position_after(UnixMicros(reading.wall.0 + MAX_DRIFT)));
                State::anew(&here, above, None)
            }
            Change::Adopt => self.stored(&here)?.adopt(&here)?,
            _ => self.open(&here)?,
        };
        let before = self.layout.tick(state.clock.wall).unwrap_or(0);
        let at = self.judge(&mut state, reading, matches!(change, Change::Accept));
        let live = self.live.as_mut().expect("a server that runs");
        live.opened = true;
        let publish = match change {
            Change::Reserve if live.stopping => return Err(Trouble::Moot),
            Change::Reserve => self.reserve(&mut state, at, before)?,
            Change::Switch { definition } => {
                if live.definition != *definition || live.stopping {
                    return Err(Trouble::Moot);
                }
                if !state.clone().switch_rollback(&self.layout, at) {
                    return Err(Trouble::Worker);
                }
                self.end(&mut state);
                state.switch_rollback(&self.layout, at);
                self.reserve(&mut state, at, before)?
            }
            Change::Claim(random) => {
                let keep = self.guards.keep(Guard::KeepClaim);
                let claim = state.claim.filter(|_| keep).unwrap_or(*random);
                state.claim = Some(claim);
                live.claim = Some(claim);
                Publish::Nothing
            }
            Change::TakeUp(lease) => {
                let stopping = live.stopping;
                if live.term.is_some_and(|node| !lease.is_of(node)) {
                    self.end(&mut state);
                }
                state.take_up(lease.clone());
                if stopping {
                    Publish::Nothing
                } else {
                    self.reserve(&mut state, at, before).unwrap_or(Publish::Close)
                }
            }
            Change::Renewed { token, claim, expiry } => {
                let Some(lease) = state.lease.as_mut().filter(|lease| lease.token == *token) else {
                    return Err(Trouble::Moot);
                };
                lease.token = *claim;
                lease.expiry = lease.expiry.max(*expiry);
                state.claim = None;
                Publish::Nothing
            }
            Change::GiveUp => {
                self.end(&mut state);
                state.give_up();
                Publish::Close
            }
            Change::Stop => {
                live.stopping = true;
                self.end(&mut state);
                Publish::Stopped
            }
            Change::Reset { .. } | Change::Adopt => {
                live.generator.close();
                Publish::Close
            }
            Change::Accept => Publish::Nothing,
        };
        if !self.guards.keep(Guard::MarksKept) {
            let node = state.node;
            state.marks.retain(|mark| Some(mark.node) == node);
        }
        Ok((state, publish))
    }

    /// Compares the clock with the anchor; gives the time to go by.
    fn judge(&mut self, state: &mut State, reading: Reading, accept: bool) -> UnixMicros {
        let follow = accept || !self.guards.keep(Guard::JumpNotFollowed);
        let live = self.live.as_mut().expect("a server that runs");
        let anchor = live.anchor.as_ref().unwrap_or(&state.clock);
        let wall = reading.wall;
        match reading.judged_by(anchor, MAX_JUMP.cast_unsigned()) {
            Verdict::Ahead { instead, .. } if !follow => {
                live.anchor = Some(anchor.clone());
                return instead;
            }
            Verdict::Behind if !accept => live.anchor = Some(anchor.clone()),
            _ => {
                state.clock = reading.clone();
                live.anchor = Some(reading);
            }
        }
        wall
    }

    fn reserve(&mut self, state: &mut State, at: UnixMicros, before: u64) -> Result<Publish, Trouble> {
        let live = self.live.as_ref().expect("a server that runs");
        let node = state.node.ok_or(Trouble::Worker)?;
        let begins = live.term != Some(node);
        let next = if !begins {
            live.generator.next()
        } else if self.guards.keep(Guard::StartAtMark) {
            state.mark(node)
        } else {
            self.layout.position_at(at)
        };
        let lease = state.lease.clone();
        if let Some(lease) = state.lease.as_mut().filter(|_| !self.guards.keep(Guard::ExpiryClamps)) {
            lease.expiry = UnixMicros(i64::MAX);
        }
        let limit = state.reserve(&self.layout, at, next, RESERVE.cast_unsigned()).ok_or(Trouble::Worker)?;
        state.lease = lease;
        if limit <= next.max(self.layout.position_at(at)) {
            return Err(Trouble::Worker);
        }
        let now = self.layout.tick(at).unwrap_or(0);
        Ok(if begins { Publish::Begin { node, next, limit, before, now } } else { Publish::Raise { limit } })
    }

    /// Ends the term: what is noted of it is exact.
    fn end(&mut self, state: &mut State) {
        let live = self.live.as_mut().expect("a server that runs");
        let closes = self.guards.keep(Guard::CloseFirst);
        let next = if closes { live.generator.close() } else { live.generator.next() };
        let ended = if closes { live.term.take() } else { live.term };
        let unknown = if self.guards.keep(Guard::SettleOwnTerm) { None } else { state.node };
        if let Some(node) = ended.or(unknown) {
            state.settle(node, next);
        }
    }

    /// The state becomes visible in the file.
    pub fn write(&mut self, state: &State) {
        self.files += 1;
        let state = state.in_file(Birth { inode: self.files, at: None });
        self.disk.file = Some(File { text: state.to_text().expect("plain data"), inode: self.files });
        self.disk.witness = true;
    }

    /// What was written becomes known to the processes of the server.
    pub fn publish(&mut self, state: &State, publish: Publish) {
        let layout = self.layout;
        let live = self.live.as_mut().expect("a server that runs");
        live.lease.clone_from(&state.lease);
        live.trouble = None;
        match publish {
            Publish::Nothing | Publish::Stopped => {}
            Publish::Raise { limit } => live.generator.raise(limit),
            Publish::Begin { node, next, limit, before, now } => {
                if live.definition == 0 {
                    live.generator.resume(before, now);
                }
                live.generator.begin(layout.place(node).expect("the node fits"), next, limit);
                live.term = Some(node);
                live.definition += 1;
            }
            Publish::Close => {
                live.generator.close();
                live.term = None;
                live.definition += 1;
            }
        }
    }
}

impl Live {
    /// What makes a session's block worthless.
    pub fn era(&self) -> u64 {
        self.generator.era() + self.definition
    }
}

impl Session {
    /// Keeps the first of what was taken for now, and the others for later.
    pub fn keep(&mut self, taken: Taken, era: u64) {
        let mut rest = taken;
        rest.stretch.from += 1;
        self.holding = Some(Held { position: taken.stretch.from, node_bits: taken.node_bits });
        self.block.clear();
        if rest.stretch.from < rest.stretch.to {
            self.block.fill(rest, era);
        }
    }
}
