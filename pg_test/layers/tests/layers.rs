//! Modules are layers: each imports those below it only, no two import each other, and none imports the one that it is part of.

use anyhow::{Result, ensure};
use snowflake_ids_layers::{Module, Modules, shown};
use std::path::PathBuf;

/// The modules of the extension, from the lowest to the highest.
const LAYERS: [&str; 12] = [
    "pg",
    "settings",
    "shared",
    "store",
    "issuer",
    "lease",
    "segment",
    "registry",
    "worker",
    "snowflake",
    "sql",
    "entry",
];

/// The sources without circles.
const SOURCES: [&str; 1] = ["pg_test/server/src"];

fn modules(sources: &str) -> Result<Modules> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Modules::read(&root.join(sources))
}

fn listed(imports: &[(&Module, &Module)]) -> String {
    let line =
        |(module, import): &(&Module, &Module)| format!("{} imports {}\n", shown(module), shown(import));
    imports.iter().map(line).collect()
}

#[test]
fn no_layer_imports_a_higher_one() -> Result<()> {
    let modules = modules("src")?;
    let layer =
        |module: &Module| LAYERS.iter().position(|layer| module.first().is_some_and(|first| first == layer));
    let wrong: Vec<_> = modules
        .imports()
        .filter(|(module, import)| layer(module).is_some() && layer(import) > layer(module))
        .collect();
    let unknown: Vec<_> =
        modules.imports().filter(|(module, _)| !module.is_empty() && layer(module).is_none()).collect();
    ensure!(wrong.is_empty(), "a layer imports a higher one:\n{}", listed(&wrong));
    ensure!(unknown.is_empty(), "a module is in no layer:\n{}", listed(&unknown));
    Ok(())
}

#[test]
fn no_module_imports_itself_by_way_of_others() -> Result<()> {
    for sources in SOURCES {
        let modules = modules(sources)?;
        let circles: Vec<String> = modules
            .circles()
            .into_iter()
            .map(|circle| circle.into_iter().map(|module| shown(module)).collect::<Vec<_>>().join(" -> "))
            .collect();
        ensure!(circles.is_empty(), "circles in {sources}:\n{}", circles.join("\n"));
    }
    Ok(())
}

#[test]
fn no_module_imports_the_one_that_it_is_part_of() -> Result<()> {
    for sources in SOURCES {
        let modules = modules(sources)?;
        let upwards: Vec<_> = modules
            .imports()
            .filter(|(module, import)| module.len() > import.len() && module.starts_with(import))
            .collect();
        ensure!(upwards.is_empty(), "a part imports its whole in {sources}:\n{}", listed(&upwards));
    }
    Ok(())
}
