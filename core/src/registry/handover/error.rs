//! Errors of a hand-over.

use crate::registry::lease::Skew;
use crate::sequence::reservation::Unfit;

/// Why a database cannot use registries, or not end it.
#[derive(Debug)]
pub enum HandoverError<H, R> {
    /// Something failed in this database.
    Here(H),
    /// A registry gave no answer.
    There {
        /// Its foreign server.
        server: String,
        /// Why.
        error: R,
    },
    /// A registry's answer makes no sense.
    Garbled {
        /// Its foreign server.
        server: String,
    },
    /// It has another version of the extension.
    Version {
        /// Its foreign server.
        server: String,
        /// That version.
        version: String,
    },
    /// The foreign server leads back to this database.
    Itself {
        /// That foreign server.
        server: String,
    },
    /// Its clock is too far from the one here.
    Clock {
        /// Its foreign server.
        server: String,
        /// How far.
        skew: Skew,
    },
    /// Two foreign servers lead to one registry.
    Same {
        /// The second of them.
        server: String,
    },
    /// The server leases its worker id from another one, for another database.
    Elsewhere {
        /// Its foreign server.
        server: String,
        /// That database.
        database: String,
    },
    /// A tag's row there is not fit.
    Unfit {
        /// The registry's foreign server.
        server: String,
        /// The tag, as the registry has it.
        tag: String,
        /// Why.
        unfit: Unfit,
    },
}
