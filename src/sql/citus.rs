//! The nodes of a Citus cluster, as its coordinator reaches them. Written in SQL, in the file beside this one.

use pgrx::prelude::*;

extension_sql_file!("citus.sql", name = "citus", requires = ["registries"]);
