//! Tests of the layers of modules. A module imports only lower modules, and never its parent module. There are no import cycles.
//! Only some modules contain unsafe code.

#![allow(clippy::panic, reason = "tests")]

use anyhow::{Context, Result, ensure};
use snowflake_ids_layers::{Module, Modules, shown};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

/// The modules of the core, from the lowest to the highest layer.
const CORE: [&str; 17] = [
    "named_enum",
    "clock",
    "error",
    "guard",
    "sync",
    "backoff",
    "ids",
    "generator",
    "tag",
    "series",
    "bound",
    "server",
    "registry",
    "session",
    "process",
    "column",
    "report",
];

/// The modules of the extension, from the lowest to the highest layer.
const SHELL: [&str; 19] = [
    "pg",
    "settings",
    "shared",
    "progress",
    "store",
    "lease",
    "issuer",
    "tag",
    "registry",
    "process",
    "named",
    "open_transaction",
    "series",
    "snowflake",
    "safe_position",
    "bound",
    "column",
    "sql",
    "entry",
];

/// The modules that may contain `unsafe`.
const UNSAFE: [&str; 2] = ["pg", "entry"];

/// The source folders of the extension and of the other crates.
const SOURCES: [&str; 4] = ["src", "core/src", "bench/src", "pg_test/server/src"];

/// The root files of test programs. The other files in the same folder are the program's modules.
const TESTS: [&str; 3] = ["core/tests/main.rs", "core/tests/loom/main.rs", "pg_test/server/tests/main.rs"];

static CRATES: LazyLock<Vec<(&str, Modules)>> = LazyLock::new(|| {
    let read =
        |sources| (sources, Modules::read(&root().join(sources)).unwrap_or_else(|error| panic!("{error:?}")));
    SOURCES.map(read).into()
});

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Fails if `wrong` returns any line for a crate.
fn ensure_none(what: &str, wrong: impl Fn(&str, &Modules) -> Vec<String>) -> Result<()> {
    for (sources, modules) in CRATES.iter() {
        let wrong = wrong(sources, modules);
        ensure!(wrong.is_empty(), "{what} in {sources}:\n{}", wrong.join("\n"));
    }
    Ok(())
}

/// Returns the wrong imports, one line for each.
fn imports(modules: &Modules, is_wrong: impl Fn(&Module, &Module) -> bool) -> Vec<String> {
    let wrong = modules.imports().filter(|(module, import)| is_wrong(module, import));
    wrong.map(|(module, import)| format!("{} imports {}", shown(module), shown(import))).collect()
}

fn is_in(module: &Module, names: &[&str]) -> bool {
    module.first().is_some_and(|first| names.contains(&first.as_str()))
}

#[test]
fn no_layer_imports_a_higher_one() -> Result<()> {
    ensure_none("a layer imports a higher one, or is not listed", |sources, modules| {
        let layers: &[&str] = match sources {
            "src" => &SHELL,
            "core/src" => &CORE,
            _ => return Vec::new(),
        };
        let layer = |module: &Module| layers.iter().position(|layer| is_in(module, &[layer]));
        imports(modules, |module, import| {
            !module.is_empty() && (layer(import).is_none() || layer(import) > layer(module))
        })
    })
}

#[test]
fn no_module_imports_itself_by_way_of_others() -> Result<()> {
    let circle = |circle: Vec<&Module>| {
        circle.into_iter().map(|module| shown(module)).collect::<Vec<_>>().join(" -> ")
    };
    ensure_none("circles", |_, modules| modules.circles().into_iter().map(circle).collect())
}

#[test]
fn no_module_imports_the_one_that_it_is_part_of() -> Result<()> {
    let is_whole =
        |module: &Module, import: &Module| module.len() > import.len() && module.starts_with(import);
    ensure_none("a part imports its whole", |_, modules| imports(modules, is_whole))
}

#[test]
fn unsafe_code_is_where_it_belongs() -> Result<()> {
    ensure_none("unsafe code", |sources, modules| {
        let may = |module: &Module| sources == SOURCES[0] && is_in(module, &UNSAFE);
        modules.unsafe_ones().filter(|module| !may(module)).map(|module| shown(module)).collect()
    })
}

/// The wall between the algorithms and the server: the extension uses pgrx, and the core does not, even in its tests.
#[test]
fn the_core_does_not_depend_on_pgrx() -> Result<()> {
    let tree =
        ["tree", "--package=snowflake_ids_core", "--edges=all", "--prefix=none", "--locked", "--offline"];
    let listed = Command::new(env!("CARGO")).args(tree).current_dir(root()).output()?;
    ensure!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let crates = String::from_utf8(listed.stdout)?;
    ensure!(crates.starts_with("snowflake_ids_core "), "the core is not in {crates}");
    ensure!(!crates.lines().any(|line| line.starts_with("pgrx")), "the core depends on pgrx:\n{crates}");
    Ok(())
}

/// The tests in a file that no `mod` line names would not run, and no error would report this.
#[test]
fn every_file_of_tests_is_a_module() -> Result<()> {
    for program in TESTS {
        let program = root().join(program);
        let modules = fs::read_to_string(&program)?;
        for entry in fs::read_dir(program.parent().context("a program is in a folder")?)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(OsStr::to_str).context("a file without a name")?;
            let is_module = path.is_dir() || path == program || modules.contains(&format!("\nmod {name};"));
            ensure!(is_module, "{} is no module of {}", path.display(), program.display());
        }
    }
    Ok(())
}
