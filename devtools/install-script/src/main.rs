//! `snowflake_ids_install_script SCRIPTS LIBRARY`, called at the top of the checkout: puts the install script in the folder SCRIPTS
//! in order, and writes the upgrade scripts from all earlier releases beside it. Fails if LIBRARY lacks symbols that the SQL of
//! the last release names.

use snowflake_ids_install_script::{order, upgrade};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let arguments = env::args().skip(1).collect::<Vec<_>>();
    let Err(why) = make(&arguments) else { return ExitCode::SUCCESS };
    eprintln!("{why}");
    ExitCode::FAILURE
}

fn make(arguments: &[String]) -> Result<(), String> {
    let [scripts, library] = arguments else {
        return Err("name the folder of the scripts, and the library".to_owned());
    };
    let install = format!("{scripts}/snowflake_ids--{VERSION}.sql");
    let next = order::arrange(&read(&install)?, read)?;
    write(&install, &next)?;

    let releases = releases()?;
    for (number, release) in releases.iter().enumerate() {
        let mut path = releases[number..].iter().map(String::as_str).chain([VERSION]).peekable();
        let mut steps = Vec::new();
        while let (Some(from), Some(to)) = (path.next(), path.peek()) {
            let step = format!("sql/upgrade/{from}--{to}.sql");
            steps.extend(Path::new(&step).exists().then(|| read(&step)).transpose()?);
        }
        let made = upgrade::script(&installing(release)?, &next, &steps).map_err(|missing| {
            let missing = missing.join("\n- ");
            format!(
                "The upgrade from {release} needs statements in sql/upgrade (docs/releasing.md):\n- {missing}"
            )
        })?;
        write(&format!("{scripts}/snowflake_ids--{release}--{VERSION}.sql"), &made)?;
    }
    let Some(last) = releases.last() else { return Ok(()) };
    let library = fs::read(library).map_err(|error| format!("{library}: {error}"))?;
    let lacking = upgrade::lacking(&installing(last)?, &library);
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(format!("The library lacks symbols of {last}: {}", lacking.join(", ")))
    }
}

/// The released versions before this one, the earliest first: git holds their install scripts.
fn releases() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for file in fs::read_dir("sql/install").into_iter().flatten() {
        let name = file.map_err(|error| format!("sql/install: {error}"))?.file_name();
        let version =
            name.to_str().and_then(|name| name.strip_prefix("snowflake_ids--")?.strip_suffix(".sql"));
        found.extend(version.filter(|version| *version != VERSION).map(str::to_owned));
    }
    found.sort_by_key(|version| {
        version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>()
    });
    Ok(found)
}

fn installing(release: &str) -> Result<String, String> {
    read(&format!("sql/install/snowflake_ids--{release}.sql"))
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

fn write(file: &str, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{file}: {error}"))
}
