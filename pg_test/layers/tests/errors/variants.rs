//! Errors that are enums or structs. The message is in `#[error(...)]`; the kind, the detail and the hint are in
//! `#[explain(...)]`.

use super::{Entry, shown, sqlstate};
use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::visit::{Visit, visit_expr_struct, visit_file};
use syn::{
    Arm, Attribute, Block, Expr, ExprStruct, File, Item, LitStr, Pat, Path, ReturnType, Type, parse_quote,
};

/// The messages of a type, by variant. The messages of a struct are under the empty name.
type Messages = BTreeMap<String, Vec<String>>;

/// The texts of constants, and the texts in functions, by the name of the constant or function.
type Named = BTreeMap<String, Vec<String>>;

/// Kinds, details or hints, by variant.
type Said = BTreeMap<String, Vec<String>>;

#[derive(Default)]
struct Explained {
    kinds: Said,
    details: Said,
    hints: Said,
}

/// Returns the errors of all types that have messages and a kind.
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
            let said = |said: &Said| said.get(variant).cloned().unwrap_or_default();
            let states =
                said(&explained.kinds).iter().map(|kind| code(&codes, kind)).collect::<Result<Vec<_>>>();
            // With several messages and several hints, this test cannot tell which hint belongs to which message.
            let text = |texts: Vec<String>| {
                if said_of_it.len() > 1 && texts.len() > 1 { String::new() } else { alternatives(&texts) }
            };
            let (detail, hint) = (text(said(&explained.details)), text(said(&explained.hints)));
            let sqlstate = states.with_context(|| format!("{of}::{variant}"))?.join(", ");
            // The kind comes from another error, which the list contains.
            if sqlstate.is_empty() {
                continue;
            }
            let entry = |message: &String| Entry {
                message: shown(message),
                sqlstate: sqlstate.clone(),
                detail: detail.clone(),
                hint: hint.clone(),
            };
            entries.extend(said_of_it.iter().map(entry));
        }
    }
    Ok(entries)
}

/// Joins the alternative details or hints of a message.
fn alternatives(texts: &[String]) -> String {
    texts.iter().map(|text| shown(text)).collect::<Vec<_>>().join("<br>or: ")
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
        Item::Mod(of) => {
            for item in of.content.iter().flat_map(|(_, items)| items) {
                read(item, named, own, messages, explained);
            }
        }
        _ => {}
    }
}

/// Adds the parts of `#[explain(...)]`, which names constants and functions of its own file. A variant gets each part
/// that it lacks from the type.
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
    let of_all = parts(of_all, named);
    for (name, attributes) in variants {
        let own = parts(attributes, named);
        let all = [&mut found.kinds, &mut found.details, &mut found.hints];
        for ((said, own), of_all) in all.into_iter().zip(own).zip(&of_all) {
            said.insert(name.clone(), if own.is_empty() { of_all.clone() } else { own });
        }
    }
    explained.insert(of.to_owned(), found);
}

/// Returns the kinds, the details and the hints of `#[explain(...)]`.
fn parts(attributes: &[Attribute], named: &Named) -> [Vec<String>; 3] {
    let (mut kinds, mut details, mut hints) = (Vec::new(), Vec::new(), Vec::new());
    let lists = attributes.iter().filter(|one| one.path().is_ident("explain"));
    for list in lists.filter_map(|one| one.meta.require_list().ok()) {
        let tokens: Vec<_> = list.tokens.clone().into_iter().collect();
        let is = |place: usize, letter| matches!(tokens.get(place), Some(TokenTree::Punct(found)) if found.as_char() == letter);
        let (mut part, mut computed) = (String::new(), TokenStream::new());
        for (place, token) in tokens.iter().enumerate() {
            let begins = place == 0 || is(place - 1, ',');
            match token {
                TokenTree::Ident(name) if begins && is(place + 1, '=') => part = name.to_string(),
                TokenTree::Ident(name) if place == 0 => kinds.push(name.to_string()),
                _ if part == "kind_with" => computed.extend([token.clone()]),
                _ if part.starts_with("detail") || part.starts_with("hint") => {
                    let mut chosen = Chosen { named, texts: Vec::new() };
                    chosen.tokens(token.clone().into());
                    let name = chosen.texts.first().and_then(|text| only_argument(text)).map(str::to_owned);
                    if let Some(name) = name {
                        chosen.texts.clear();
                        chosen.name(&name);
                    }
                    let texts = if part.starts_with("hint") { &mut hints } else { &mut details };
                    texts.extend(chosen.texts.into_iter().filter(|text| text.ends_with(['.', '?'])));
                }
                _ => {}
            }
        }
        kinds.extend(kinds_of(computed));
    }
    kinds.retain(|kind| kind != "transparent");
    [kinds, details, hints]
}

/// Returns the name `X` of each `Kind::X` in an expression. For `Kind::of_io`, returns all kinds that the function can choose.
fn kinds_of(expression: TokenStream) -> Vec<String> {
    let (mut found, mut is_kind) = (Vec::new(), false);
    for token in expression {
        match token {
            TokenTree::Group(group) => found.extend(kinds_of(group.stream())),
            TokenTree::Ident(name) if is_kind && name == "of_io" => {
                found.extend(["DiskFull".into(), "Io".into()]);
            }
            TokenTree::Ident(name) if is_kind => found.push(name.to_string()),
            TokenTree::Ident(name) if name == "Kind" => {
                is_kind = true;
                continue;
            }
            TokenTree::Punct(colon) if colon.as_char() == ':' => continue,
            _ => {}
        }
        is_kind = false;
    }
    found
}

/// Returns the messages of `#[error("...")]`; none for `#[error(transparent)]`. If the code chooses the message when it raises
/// the error, returns the texts in the attribute, and the texts of the constant or function that the attribute names.
fn texts_of(attributes: &[Attribute], named: &Named) -> Vec<String> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("error")) else {
        return Vec::new();
    };
    let Ok(list) = attribute.meta.require_list() else { return Vec::new() };
    let Some(format) = first_literal(&list.tokens) else { return Vec::new() };
    let Some(name) = only_argument(&format) else { return vec![format] };
    let mut chosen = Chosen { named, texts: Vec::new() };
    chosen.name(name);
    chosen.tokens(list.tokens.clone().into_iter().skip(1).collect());
    chosen.texts
}

/// Returns the name of the argument that a format string consists of; None for other format strings.
fn only_argument(format: &str) -> Option<&str> {
    format.strip_prefix('{')?.strip_suffix('}').filter(|name| !name.contains('}'))
}

/// Collects the texts from which a message is chosen.
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

/// Returns the name and the texts of a text constant, or of a function that returns one of its texts.
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

/// Adds the messages of struct values that have a text in the field `message`: `LeaseError { message: "...", ... }`.
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

/// Returns the literal at the beginning of a macro's tokens.
pub fn first_literal(tokens: &TokenStream) -> Option<String> {
    let first = tokens.clone().into_iter().next()?;
    syn::parse2::<LitStr>(first.into()).ok().map(|literal| literal.value())
}

fn last(path: &Path) -> Option<String> {
    path.segments.last().map(|segment| segment.ident.to_string())
}

/// Returns the value that a function's `match` yields for each variant.
fn said(block: &Block, what: fn(&Expr) -> Vec<String>) -> Said {
    let mut arms = Arms::default();
    arms.visit_block(block);
    let mut said = Said::new();
    for arm in arms.0 {
        for variant in variants(&arm.pat) {
            said.entry(variant).or_default().extend(what(&arm.body));
        }
    }
    said
}

/// Collects the arms of the outermost `match`.
#[derive(Default)]
struct Arms(Vec<Arm>);

impl<'ast> Visit<'ast> for Arms {
    fn visit_expr_match(&mut self, found: &'ast syn::ExprMatch) {
        if self.0.is_empty() {
            self.0.clone_from(&found.arms);
        }
    }
}

/// Returns the variants that a pattern names; `_` for a pattern that matches any variant.
fn variants(pattern: &Pat) -> Vec<String> {
    match pattern {
        Pat::Or(any) => any.cases.iter().flat_map(variants).collect(),
        Pat::Path(named) => last(&named.path).into_iter().collect(),
        Pat::Struct(named) => last(&named.path).into_iter().collect(),
        Pat::TupleStruct(named) => last(&named.path).into_iter().collect(),
        _ => vec!["_".into()],
    }
}

/// Returns all texts of an expression, also in macros such as `format!`.
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

/// Returns the SQLSTATE that `sqlstate_of` gives for each kind.
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
