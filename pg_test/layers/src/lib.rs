//! The modules of a crate and the imports of each, read from the source files.

pub mod tables;

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path from the crate's root. The root's path is empty.
pub type Module = Vec<String>;

/// The modules of a crate that have files of their own, and the modules that each imports.
#[derive(Debug, Default)]
pub struct Modules {
    imports: BTreeMap<Module, BTreeSet<Module>>,
    unsafe_ones: Vec<Module>,
}

impl Modules {
    /// Reads all source files below a crate's source folder.
    pub fn read(sources: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        find(sources, &Module::new(), &mut files)?;
        let imports = files.keys().map(|module| (module.clone(), BTreeSet::new())).collect();
        let mut modules = Self { imports, unsafe_ones: Vec::new() };
        for (module, text) in files {
            let tokens: TokenStream =
                text.parse().map_err(|error| anyhow::anyhow!("{}: {error}", shown(&module)))?;
            if is_unsafe(tokens.clone()) {
                modules.unsafe_ones.push(module.clone());
            }
            let mut paths = BTreeSet::new();
            collect(tokens, &module, &mut paths);
            let imports: BTreeSet<Module> = paths
                .iter()
                .filter_map(|path| modules.holding(path))
                .filter(|import| *import != module)
                .collect();
            // A module declares its submodules, which also counts as an import.
            let is_part = |part: &&Module| part.len() == module.len() + 1 && part.starts_with(&module);
            let imports = modules.imports.keys().filter(is_part).cloned().chain(imports).collect();
            modules.imports.insert(module, imports);
        }
        Ok(modules)
    }

    /// Returns the innermost module with a file of its own that contains the item with this path.
    fn holding(&self, path: &[String]) -> Option<Module> {
        (1..=path.len())
            .rev()
            .map(|length| path[..length].to_vec())
            .find(|prefix| self.imports.contains_key(prefix))
    }

    /// Returns all pairs of a module and a module that it imports.
    pub fn imports(&self) -> impl Iterator<Item = (&Module, &Module)> {
        self.imports.iter().flat_map(|(module, imports)| imports.iter().map(move |import| (module, import)))
    }

    /// Returns the modules that contain `unsafe`.
    pub fn unsafe_ones(&self) -> impl Iterator<Item = &Module> {
        self.unsafe_ones.iter()
    }

    /// Returns a cycle of imports for each module that imports itself through other modules.
    pub fn circles(&self) -> Vec<Vec<&Module>> {
        self.imports.keys().filter_map(|module| self.way_back(module)).collect()
    }

    fn way_back<'a>(&'a self, from: &'a Module) -> Option<Vec<&'a Module>> {
        let mut ways = vec![vec![from]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            for next in way.last().and_then(|last| self.imports.get(*last)).into_iter().flatten() {
                if next == from {
                    return Some(way);
                }
                if seen.insert(next) {
                    ways.push(way.iter().copied().chain([next]).collect());
                }
            }
        }
        None
    }
}

/// Formats a module's path as in Rust code.
pub fn shown(module: &[String]) -> String {
    if module.is_empty() { "the crate's root".to_owned() } else { module.join("::") }
}

fn find(folder: &Path, module: &Module, files: &mut BTreeMap<Module, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of = |name: String| module.iter().cloned().chain([name]).collect::<Module>();
        if path.is_dir() {
            find(&path, &of(name), files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let module = match name.as_str() {
                "lib" | "main" => Module::new(),
                "mod" => module.clone(),
                _ => of(name),
            };
            files.insert(module, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn is_unsafe(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "unsafe",
        TokenTree::Group(group) => is_unsafe(group.stream()),
        _ => false,
    })
}

/// Collects the paths that begin with `crate`, `self` or `super`. `here` is the module that contains the tokens.
fn collect(tokens: TokenStream, here: &Module, paths: &mut BTreeSet<Module>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut inner = None;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "mod" => {
                inner =
                    tokens.next_if(|next| matches!(next, TokenTree::Ident(_))).map(|name| name.to_string());
            }
            TokenTree::Ident(word) if word == "crate" || word == "self" || word == "super" => {
                let base = match word.to_string().as_str() {
                    "crate" => Module::new(),
                    "self" => here.clone(),
                    _ => parent(here),
                };
                follow(&mut tokens, base, paths);
            }
            TokenTree::Group(group) => {
                let name = inner.take().filter(|_| group.delimiter() == Delimiter::Brace);
                let here = here.iter().cloned().chain(name).collect();
                collect(group.stream(), &here, paths);
            }
            _ => inner = None,
        }
    }
}

type Tokens = std::iter::Peekable<proc_macro2::token_stream::IntoIter>;

/// Reads the rest of a path after its first word, and collects all paths that its braces contain.
fn follow(tokens: &mut Tokens, mut path: Module, paths: &mut BTreeSet<Module>) {
    // A single word is not a path, but a visibility or a method's argument.
    let mut is_path = false;
    loop {
        let colons = (0..2).filter(|_| tokens.next_if(|next| is_mark(next, ':')).is_some()).count();
        is_path |= colons == 2;
        let next = (colons == 2).then(|| tokens.peek()).flatten();
        match next {
            Some(TokenTree::Ident(word)) if word == "super" => path = parent(&path),
            Some(TokenTree::Ident(word)) if word == "self" => {}
            Some(TokenTree::Ident(word)) => path.push(word.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                for_each_end(group.stream(), &path, paths);
                tokens.next();
                return;
            }
            _ => {
                if is_path {
                    paths.insert(path);
                }
                return;
            }
        }
        tokens.next();
    }
}

/// Reads each end of a path in braces, such as `a` and `b` in `crate::{a, b}`.
fn for_each_end(tokens: TokenStream, path: &Module, paths: &mut BTreeSet<Module>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let TokenTree::Ident(word) = token {
            let word = word.to_string();
            let path =
                if word == "self" { path.clone() } else { path.iter().cloned().chain([word]).collect() };
            paths.insert(path.clone());
            follow(&mut tokens, path, paths);
            // An alias has no path of its own.
            while tokens.next_if(|next| !is_mark(next, ',')).is_some() {}
        }
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn parent(module: &Module) -> Module {
    module[..module.len().saturating_sub(1)].to_vec()
}
