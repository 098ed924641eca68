//! The scripts of the extension. `make` puts the install script that pgrx generates in a fixed order, and makes the upgrade
//! scripts from it: docs/releasing.md has the rules.

mod object;
pub mod order;
mod statement;
pub mod upgrade;
