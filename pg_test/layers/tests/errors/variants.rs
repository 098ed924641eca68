//! Errors that are enums, or structs: the message is `thiserror`'s, the kind and the hint are what `impl Explain` says of the variant.

use super::{Entry, sqlstate, without_arguments};
use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::visit::{Visit, visit_expr_struct, visit_file};
use syn::{
    Arm, Attribute, Block, Expr, ExprStruct, File, ImplItem, Item, ItemImpl, LitStr, Pat, Path, ReturnType,
    Type, parse_quote,
};

/// The messages of a type, by variant; those of a struct have an empty name.
type Messages = BTreeMap<String, Vec<String>>;

/// The texts of constants, and those in functions, by their names.
type Named = BTreeMap<String, Vec<String>>;

/// What a function of `impl Explain` says of each variant. `_` is what it says of the others.
type Said = BTreeMap<String, Vec<String>>;

#[derive(Default)]
struct Explained {
    kinds: Said,
    hints: Said,
}

/// The errors of all types that have messages and a kind.
pub fn entries(files: &[File]) -> Result<Vec<Entry>> {
    let items = || files.iter().flat_map(|file| &file.items);
    let all: Named = items().filter_map(named).collect();
    let (mut messages, mut explained) = (BTreeMap::new(), BTreeMap::new());
    for file in files {
        let own = file.items.iter().filter_map(named).collect();
        for item in &file.items {
            read(item, &all, &own, &mut messages, &mut explained);
        }
    }
    built(files, &mut messages);
    let codes = codes(files)?;
    let mut entries = Vec::new();
    for (of, variants) in &messages {
        let Some(explained) = explained.get(of) else { continue };
        for (variant, said_of_it) in variants {
            let said = |said: &Said| said.get(variant).or_else(|| said.get("_")).cloned().unwrap_or_default();
            let states =
                said(&explained.kinds).iter().map(|kind| code(&codes, kind)).collect::<Result<Vec<_>>>();
            let hints = said(&explained.hints);
            // Which of several hints goes with which of several messages is not seen here.
            let hint =
                if said_of_it.len() > 1 && hints.len() > 1 { String::new() } else { alternatives(&hints) };
            let sqlstate = states.with_context(|| format!("{of}::{variant}"))?.join(", ");
            // The kind of another error.
            if sqlstate.is_empty() {
                continue;
            }
            let entry = |message: &String| Entry {
                message: without_arguments(message),
                sqlstate: sqlstate.clone(),
                hint: hint.clone(),
            };
            entries.extend(said_of_it.iter().map(entry));
        }
    }
    Ok(entries)
}

/// The hints of one message.
fn alternatives(hints: &[String]) -> String {
    hints.iter().map(|hint| without_arguments(hint)).collect::<Vec<_>>().join("<br>or: ")
}

fn read(
    item: &Item,
    named: &Named,
    own: &Named,
    messages: &mut BTreeMap<String, Messages>,
    explained: &mut BTreeMap<String, Explained>,
) {
    let add =
        |messages: &mut BTreeMap<String, Messages>, of: &str, variants: Vec<(String, &Vec<Attribute>)>| {
            let found = variants.into_iter().map(|(name, attributes)| (name, texts_of(attributes, named)));
            let found: Messages = found.filter(|(_, texts)| !texts.is_empty()).collect();
            if !found.is_empty() {
                messages.entry(of.to_owned()).or_default().extend(found);
            }
        };
    match item {
        Item::Enum(of) => {
            let variants = of.variants.iter().map(|variant| (variant.ident.to_string(), &variant.attrs));
            let variants: Vec<_> = variants.collect();
            derived(&of.ident.to_string(), &of.attrs, &variants, own, explained);
            add(messages, &of.ident.to_string(), variants);
        }
        Item::Struct(of) => {
            derived(&of.ident.to_string(), &[], &[(String::new(), &of.attrs)], own, explained);
            add(messages, &of.ident.to_string(), vec![(String::new(), &of.attrs)]);
        }
        Item::Impl(of) => {
            if let Some(name) = explains(of) {
                explained.insert(name, explanation(of));
            }
        }
        Item::Mod(of) => {
            for item in of.content.iter().flat_map(|(_, items)| items) {
                read(item, named, own, messages, explained);
            }
        }
        _ => {}
    }
}

/// Adds the kinds and hints of `#[explain(...)]`, which names constants and functions of its own file; those of the type's own are of the variants that have none.
fn derived(
    of: &str,
    of_all: &[Attribute],
    variants: &[(String, &Vec<Attribute>)],
    named: &Named,
    explained: &mut BTreeMap<String, Explained>,
) {
    let is_derived = |attributes: &[Attribute]| attributes.iter().any(|one| one.path().is_ident("explain"));
    if !is_derived(of_all) && !variants.iter().any(|(_, attributes)| is_derived(attributes)) {
        return;
    }
    let mut found = Explained::default();
    let (kinds, hints) = parts(of_all, named);
    for (name, attributes) in variants {
        let (own_kinds, own_hints) = parts(attributes, named);
        let or = |own: Vec<String>, all: &Vec<String>| if own.is_empty() { all.clone() } else { own };
        found.kinds.insert(name.clone(), or(own_kinds, &kinds));
        found.hints.insert(name.clone(), or(own_hints, &hints));
    }
    explained.insert(of.to_owned(), found);
}

/// The kinds and the hints of `#[explain(...)]`.
fn parts(attributes: &[Attribute], named: &Named) -> (Vec<String>, Vec<String>) {
    let (mut kinds, mut hints) = (Vec::new(), Vec::new());
    let lists = attributes.iter().filter(|one| one.path().is_ident("explain"));
    for list in lists.filter_map(|one| one.meta.require_list().ok()) {
        let tokens: Vec<_> = list.tokens.clone().into_iter().collect();
        let is = |place: usize, letter| matches!(tokens.get(place), Some(TokenTree::Punct(found)) if found.as_char() == letter);
        let mut part = String::new();
        for (place, token) in tokens.iter().enumerate() {
            let begins = place == 0 || is(place - 1, ',');
            match token {
                TokenTree::Ident(name) if begins && is(place + 1, '=') => part = name.to_string(),
                TokenTree::Ident(name) if place == 0 => kinds.push(name.to_string()),
                TokenTree::Ident(kind) if part == "kind_with" && place > 2 && is(place - 1, ':') => {
                    kinds.extend(of_io(kind.to_string()));
                }
                TokenTree::Group(group) if part == "kind_with" => {
                    let expression = syn::parse2::<Expr>(quote_match(&group.stream()));
                    kinds.extend(expression.iter().flat_map(self::kinds));
                }
                _ if part == "hint" || part == "hint_with" => {
                    let mut chosen = Chosen { named, texts: Vec::new() };
                    chosen.tokens(token.clone().into());
                    if let Some(format) =
                        chosen.texts.first().filter(|text| text.starts_with('{') && text.ends_with('}'))
                    {
                        let name = format.trim_matches(['{', '}']).to_owned();
                        chosen.texts.clear();
                        chosen.name(&name);
                    }
                    hints.extend(chosen.texts.into_iter().filter(|text| text.ends_with(['.', '?'])));
                }
                _ => {}
            }
        }
    }
    kinds.retain(|kind| kind != "transparent");
    (kinds, hints)
}

/// The arms of a `match`, as an expression.
fn quote_match(arms: &TokenStream) -> TokenStream {
    let group = proc_macro2::Group::new(proc_macro2::Delimiter::Brace, arms.clone());
    let mut tokens: TokenStream = "match x".parse().unwrap_or_default();
    tokens.extend([TokenTree::Group(group)]);
    tokens
}

/// The message of `#[error("...")]`; none of one that is transparent. Where it is chosen when it is raised, those that
/// stand there, and in the constant or the function that is named there.
fn texts_of(attributes: &[Attribute], named: &Named) -> Vec<String> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("error")) else {
        return Vec::new();
    };
    let Ok(list) = attribute.meta.require_list() else { return Vec::new() };
    let Some(format) = first_literal(&list.tokens) else { return Vec::new() };
    if without_arguments(&format) != "..." {
        return vec![format];
    }
    let mut chosen = Chosen { named, texts: Vec::new() };
    chosen.name(format.trim_matches(['{', '}']));
    chosen.tokens(list.tokens.clone().into_iter().skip(1).collect());
    chosen.texts
}

/// The texts that one is chosen of.
struct Chosen<'a> {
    named: &'a Named,
    texts: Vec<String>,
}

impl Chosen<'_> {
    fn name(&mut self, name: &str) {
        self.texts.extend(self.named.get(name).into_iter().flatten().cloned());
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(name) => self.name(&name.to_string()),
                TokenTree::Literal(_) => self.texts.extend(first_literal(&token.into())),
                TokenTree::Punct(_) => {}
            }
        }
    }
}

/// A constant that is a text, or a function that gives one of those in it.
fn named(item: &Item) -> Option<(String, Vec<String>)> {
    match item {
        Item::Const(of) => Some((of.ident.to_string(), texts(&of.expr))),
        Item::Fn(of) if matches!(of.sig.output, ReturnType::Type(_, ref of) if matches!(**of, Type::Reference(_) | Type::Path(_))) =>
        {
            let mut found = Texts(Vec::new());
            found.visit_block(&of.block);
            Some((of.sig.ident.to_string(), found.0))
        }
        _ => None,
    }
}

/// Values of types whose field `message` has a text: `LeaseError { message: "...", ... }`.
fn built(files: &[File], messages: &mut BTreeMap<String, Messages>) {
    struct Built<'a>(&'a mut BTreeMap<String, Messages>);
    impl<'ast> Visit<'ast> for Built<'_> {
        fn visit_expr_struct(&mut self, value: &'ast ExprStruct) {
            let message = value.fields.iter().find(|field| field.member == parse_quote!(message));
            if let (Some(of), Some(message)) = (last(&value.path), message) {
                let variants = self.0.entry(of).or_default();
                variants.entry(String::new()).or_default().extend(texts(&message.expr));
            }
            visit_expr_struct(self, value);
        }
    }
    for file in files {
        visit_file(&mut Built(messages), file);
    }
}

/// The literal that a macro's tokens begin with.
pub fn first_literal(tokens: &TokenStream) -> Option<String> {
    let first = tokens.clone().into_iter().next()?;
    syn::parse2::<LitStr>(first.into()).ok().map(|literal| literal.value())
}

/// The type whose `Explain` this is.
fn explains(of: &ItemImpl) -> Option<String> {
    let (_, path, _) = of.trait_.as_ref()?;
    let Type::Path(name) = of.self_ty.as_ref() else { return None };
    (last(path)? == "Explain").then(|| last(&name.path)).flatten()
}

fn last(path: &Path) -> Option<String> {
    path.segments.last().map(|segment| segment.ident.to_string())
}

fn explanation(of: &ItemImpl) -> Explained {
    let mut explained = Explained::default();
    for item in &of.items {
        let ImplItem::Fn(function) = item else { continue };
        match function.sig.ident.to_string().as_str() {
            "kind" => explained.kinds = said(&function.block, kinds),
            "hint" => explained.hints = said(&function.block, texts),
            _ => {}
        }
    }
    explained
}

/// What a function's `match self` says of each variant; without one, what it says of all.
fn said(block: &Block, what: fn(&Expr) -> Vec<String>) -> Said {
    let mut arms = Arms::default();
    arms.visit_block(block);
    let mut said = Said::new();
    if arms.0.is_empty() {
        said.insert(
            "_".into(),
            block
                .stmts
                .iter()
                .flat_map(|statement| match statement {
                    syn::Stmt::Expr(expression, _) => what(expression),
                    _ => Vec::new(),
                })
                .collect(),
        );
    }
    for arm in arms.0 {
        for variant in variants(&arm.pat) {
            said.entry(variant).or_default().extend(what(&arm.body));
        }
    }
    said
}

/// The arms of the outermost `match`.
#[derive(Default)]
struct Arms(Vec<Arm>);

impl<'ast> Visit<'ast> for Arms {
    fn visit_expr_match(&mut self, found: &'ast syn::ExprMatch) {
        if self.0.is_empty() {
            self.0.clone_from(&found.arms);
        }
    }
}

/// The variants that a pattern names; `_` for any.
fn variants(pattern: &Pat) -> Vec<String> {
    match pattern {
        Pat::Or(any) => any.cases.iter().flat_map(variants).collect(),
        Pat::Path(named) => last(&named.path).into_iter().collect(),
        Pat::Struct(named) => last(&named.path).into_iter().collect(),
        Pat::TupleStruct(named) => last(&named.path).into_iter().collect(),
        _ => vec!["_".into()],
    }
}

/// Each `Kind::X` of an expression, as `X`.
fn kinds(expression: &Expr) -> Vec<String> {
    struct Kinds(Vec<String>);
    impl<'ast> Visit<'ast> for Kinds {
        fn visit_path(&mut self, path: &'ast Path) {
            let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            if let [.., of, kind] = names.as_slice()
                && of == "Kind"
            {
                self.0.push(kind.clone());
            }
        }
    }
    let mut found = Kinds(Vec::new());
    found.visit_expr(expression);
    found.0.into_iter().flat_map(of_io).collect()
}

/// The kinds that `Kind::of_io` chooses from, or the one that it is.
fn of_io(kind: String) -> Vec<String> {
    if kind == "of_io" { vec!["DiskFull".into(), "Io".into()] } else { vec![kind] }
}

/// Each text of an expression, those in macros such as `format!` too.
fn texts(expression: &Expr) -> Vec<String> {
    let mut found = Texts(Vec::new());
    found.visit_expr(expression);
    found.0
}

#[derive(Debug)]
struct Texts(Vec<String>);

impl<'ast> Visit<'ast> for Texts {
    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.0.push(text.value());
    }

    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        self.0.extend(first_literal(&found.tokens));
    }
}

/// What `sqlstate_of` has for each kind.
fn codes(files: &[File]) -> Result<BTreeMap<String, String>> {
    struct Function(Said);
    impl<'ast> Visit<'ast> for Function {
        fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
            if function.sig.ident == "sqlstate_of" {
                self.0 = said(&function.block, |expression| match expression {
                    Expr::Path(path) => last(&path.path).into_iter().collect(),
                    _ => Vec::new(),
                });
            }
        }
    }
    let mut found = Function(Said::new());
    for file in files {
        visit_file(&mut found, file);
    }
    let one = |(kind, codes): (String, Vec<String>)| {
        Ok((kind, sqlstate(codes.first().context("a kind without an SQLSTATE")?)?))
    };
    found.0.into_iter().map(one).collect()
}

fn code(codes: &BTreeMap<String, String>, kind: &str) -> Result<String> {
    codes.get(kind).cloned().with_context(|| format!("sqlstate_of has no {kind}"))
}
