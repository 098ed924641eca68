//! `seeds FOLDER` writes the seeds of each target to FOLDER/TARGET, and prints the targets' names.

use snowflake_ids_fuzz::TARGETS;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args().nth(1).expect("seeds FOLDER"));
    for target in TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed{number}")), seed)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}
