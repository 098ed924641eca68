//! `#[derive(Explain)]` implements `snowflake_ids_core::Explain` for an error, from attributes beside `thiserror`'s message:
//!
//! ```ignore
//! #[derive(Debug, thiserror::Error, Explain)]
//! pub enum NotReadyError {
//!     #[error("snowflake_ids must be loaded via shared_preload_libraries")]
//!     #[explain(NotReady, detail = "{0}() needs shared memory, which is set up at server start.")]
//!     #[explain(hint = "Add snowflake_ids to shared_preload_libraries and restart the server.")]
//!     NotPreloaded(&'static str),
//! }
//! ```
//!
//! | in `#[explain(...)]` | meaning |
//! | --- | --- |
//! | `NotReady` | the kind, a variant of `Kind`; written first |
//! | `transparent = field` | takes all parts from the named field, as `#[error(transparent)]` does from the only field; written first |
//! | `detail = "...", arguments` | DETAIL, a format as in `thiserror`: `{0}`, `{name}`, or `{}` for an argument |
//! | `hint = "...", arguments` | HINT, likewise |
//! | `kind_with = expression` | the kind, computed |
//! | `detail_with = expression` | DETAIL, computed: a `String` or an `Option<String>` |
//! | `hint_with = expression` | HINT, likewise |
//! | `for_others = expression` | what `Explain::for_others` returns |
//! | `message = "..."` | the message in the list of errors, if a field has the message |
//!
//! Expressions name fields as `name`, and tuple fields as `_0`; all of these are references. `Kind` is in scope. Parts
//! written beside `transparent` replace the field's parts. Parts may be in one attribute or in several. An enum's own
//! attribute gives the missing parts of all variants without `transparent`.
//!
//! `Explain::listed` returns the texts for the list of errors. An expression that chooses a text has its texts as literals,
//! in the order of the messages if it chooses the message, too.
//!
//! Wrong attributes do not compile: each variant needs a kind, and DETAIL and HINT are formats.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, LitStr, Member, Result, Token};

/// Implements `Explain` for an enum or a struct.
#[proc_macro_derive(Explain, attributes(explain))]
pub fn explain(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let implementation = syn::parse(input).and_then(|input| implementation(&input));
    implementation.unwrap_or_else(|error| error.to_compile_error()).into()
}

fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    let of_all = Parts::of(&input.attrs)?;
    let (mut arms, mut listed) = (Arms::default(), Vec::new());
    match &input.data {
        Data::Struct(of) => {
            listed.extend(of_all.listed(&of.fields));
            arms.add(&quote!(Self), &of.fields, of_all, &input.ident)?;
        }
        Data::Enum(of) => {
            for variant in &of.variants {
                let (name, parts) = (&variant.ident, Parts::of(&variant.attrs)?.or(&of_all));
                listed.extend(parts.listed(&variant.fields));
                arms.add(&quote!(Self::#name), &variant.fields, parts, name)?;
            }
        }
        Data::Union(_) => return Err(Error::new(input.span(), "a union is no error")),
    }
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    let Arms { kinds, details, hints, for_others } = arms;
    let text = quote!(::core::option::Option<::std::string::String>);
    let others = quote!(::core::option::Option<(::std::string::String, ::std::string::String)>);
    let detail = method("detail", &text, &details);
    let hint = method("hint", &text, &hints);
    let for_others = method("for_others", &others, &for_others);
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_imports, unused_variables, clippy::all, clippy::pedantic)]
        impl #generics ::snowflake_ids_core::Explain for #name #arguments #bounds {
            #[cold]
            fn kind(&self) -> ::snowflake_ids_core::Kind {
                use ::snowflake_ids_core::{Explain as _, Kind};
                match self { #(#kinds)* }
            }
            #detail
            #hint
            #for_others
            fn listed() -> ::std::vec::Vec<::snowflake_ids_core::error::Listed> {
                let all: ::std::vec::Vec<::std::vec::Vec<_>> = ::std::vec![#(#listed),*];
                all.concat()
            }
        }
    })
}

/// Returns a method with an arm for each variant that has the part; None if no variant has the part.
fn method(name: &str, output: &TokenStream, arms: &[TokenStream]) -> Option<TokenStream> {
    let name = format_ident!("{name}");
    (!arms.is_empty()).then(|| {
        quote! {
            #[cold]
            fn #name(&self) -> #output {
                use ::snowflake_ids_core::Explain as _;
                #[allow(unreachable_patterns)]
                match self { #(#arms)* _ => ::core::option::Option::None }
            }
        }
    })
}

/// The arms of each method's `match self`.
#[derive(Default)]
struct Arms {
    kinds: Vec<TokenStream>,
    details: Vec<TokenStream>,
    hints: Vec<TokenStream>,
    for_others: Vec<TokenStream>,
}

impl Arms {
    fn add(&mut self, path: &TokenStream, fields: &Fields, parts: Parts, name: &Ident) -> Result<()> {
        let names: Vec<_> = fields.members().map(|member| bound(&member)).collect();
        let pattern = match fields {
            Fields::Named(_) => quote!(#path { #(#names),* }),
            Fields::Unnamed(_) => quote!(#path(#(#names),*)),
            Fields::Unit => path.clone(),
        };
        let error = match (parts.field, names.as_slice()) {
            _ if !parts.transparent => None,
            (Some(field), _) => Some(bound(&field)),
            (None, [only]) => Some(only.clone()),
            (None, _) => {
                let message =
                    "`transparent` needs one field, or the one that is meant: `transparent = field`";
                return Err(Error::new(name.span(), message));
            }
        };
        let of_error =
            |method: &str| error.as_ref().zip(Some(format_ident!("{method}"))).map(|(e, m)| quote!(#e.#m()));
        let Some(kind) = parts.kind.or_else(|| of_error("kind")) else {
            return Err(Error::new(name.span(), format!("`{name}` has no kind")));
        };
        self.kinds.push(quote!(#pattern => #kind,));
        for (arms, part, method) in [
            (&mut self.details, parts.detail, "detail"),
            (&mut self.hints, parts.hint, "hint"),
            (&mut self.for_others, parts.for_others, "for_others"),
        ] {
            arms.extend(part.or_else(|| of_error(method)).map(|part| quote!(#pattern => #part,)));
        }
        Ok(())
    }
}

/// Returns the variable to which a field is bound.
fn bound(field: &Member) -> Ident {
    match field {
        Member::Named(name) => name.clone(),
        Member::Unnamed(index) => format_ident!("_{}", index.index, span = index.span),
    }
}

/// The parts of one attribute, as expressions.
#[derive(Default)]
struct Parts {
    /// True if a field supplies the parts that are missing here.
    transparent: bool,
    /// The field that supplies the missing parts; None if the only field supplies them.
    field: Option<Member>,
    kind: Option<TokenStream>,
    detail: Option<TokenStream>,
    hint: Option<TokenStream>,
    for_others: Option<TokenStream>,
    /// The format of `#[error(...)]`.
    message: String,
    texts: Texts,
}

/// What the list of errors says of a variant: slices of kinds, and expressions that yield a `String`.
#[derive(Clone, Default)]
struct Texts {
    messages: Vec<TokenStream>,
    kinds: Vec<TokenStream>,
    details: Vec<TokenStream>,
    hints: Vec<TokenStream>,
}

impl Parts {
    /// Returns an expression for the entries in the list of errors. A message that contains the field which has the other parts is
    /// not listed, because the field's own type has it; nor is a message with a detail of its own.
    fn listed(&self, fields: &Fields) -> Option<TokenStream> {
        let Texts { messages, kinds, details, hints } = &self.texts;
        let messages = quote!(::std::vec![#(#messages),*]);
        if !self.transparent {
            let [details, hints] = [details, hints].map(|texts| quote!(::std::vec![#(#texts),*]));
            return Some(quote! {{
                use ::snowflake_ids_core::Kind;
                let kinds: &[&[Kind]] = &[#(#kinds),*];
                ::std::vec![::snowflake_ids_core::error::Listed {
                    messages: #messages, kinds: kinds.concat(), details: #details, hints: #hints,
                }]
            }});
        }
        let member = self.field.as_ref()?;
        if self.message.contains(&format!("{{{}}}", quote!(#member))) || !details.is_empty() {
            return None;
        }
        let (_, field) = fields.members().zip(fields).find(|(name, _)| name == member)?;
        let of = &field.ty;
        Some(quote!(<#of as ::snowflake_ids_core::Explain>::listed().into_iter().map(|listed| {
            ::snowflake_ids_core::error::Listed { messages: #messages, ..listed }
        }).collect()))
    }

    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut parts = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("explain") {
                attribute.parse_args_with(|input: ParseStream| parts.read(input))?;
            } else if attribute.path().is_ident("error") {
                parts.transparent |= attribute.parse_args::<Ident>().is_ok_and(|word| word == "transparent");
                let message = attribute.parse_args::<TokenStream>()?;
                parts.message = message.to_string();
                parts.texts.messages = texts(message);
            }
        }
        Ok(parts)
    }

    /// Fills missing parts of a variant from the enum's own attribute.
    fn or(self, of_all: &Self) -> Self {
        if self.transparent {
            return self;
        }
        Self {
            kind: self.kind.or_else(|| of_all.kind.clone()),
            detail: self.detail.or_else(|| of_all.detail.clone()),
            hint: self.hint.or_else(|| of_all.hint.clone()),
            for_others: self.for_others.or_else(|| of_all.for_others.clone()),
            texts: self.texts.or(&of_all.texts),
            ..self
        }
    }

    fn read(&mut self, input: ParseStream) -> Result<()> {
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            let has_value = input.parse::<Option<Token![=]>>()?.is_some();
            if name == "transparent" {
                self.transparent = true;
                self.field = has_value.then(|| input.parse()).transpose()?;
            } else if has_value {
                let value = value(input)?;
                let Texts { messages, kinds, details, hints } = &mut self.texts;
                match name.to_string().as_str() {
                    "message" => *messages = texts(value.clone()),
                    "kind_with" => *kinds = kinds_in(value.clone()),
                    "detail" | "detail_with" => *details = texts(value.clone()),
                    "hint" | "hint_with" => *hints = texts(value.clone()),
                    _ => {}
                }
                let computed = |value| quote!(::core::convert::Into::into(#value));
                let (part, value) = match name.to_string().as_str() {
                    "detail" => (&mut self.detail, format(value)?),
                    "hint" => (&mut self.hint, format(value)?),
                    "kind_with" => (&mut self.kind, value),
                    "detail_with" => (&mut self.detail, computed(value)),
                    "hint_with" => (&mut self.hint, computed(value)),
                    "for_others" => (&mut self.for_others, value),
                    "message" => (&mut None, value),
                    _ => return Err(Error::new(name.span(), format!("there is no part `{name}`"))),
                };
                if part.replace(value).is_some() {
                    return Err(Error::new(name.span(), format!("`{name}` is there twice")));
                }
            } else if self.kind.replace(quote!(::snowflake_ids_core::Kind::#name)).is_some() {
                return Err(Error::new(name.span(), "there are two kinds"));
            } else {
                self.texts.kinds.push(quote!(&[Kind::#name]));
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    }
}

impl Texts {
    /// Fills missing texts of a variant from the enum's own attribute.
    fn or(mut self, of_all: &Self) -> Self {
        let Self { kinds, details, hints, .. } = &mut self;
        for (own, of_all) in [(kinds, &of_all.kinds), (details, &of_all.details), (hints, &of_all.hints)] {
            if own.is_empty() {
                own.clone_from(of_all);
            }
        }
        self
    }
}

/// Returns the texts from which an expression, or a format with its arguments, chooses: expressions that yield a `String`. The
/// arguments of the format `{}` are such an expression.
fn texts(tokens: TokenStream) -> Vec<TokenStream> {
    let is_format = matches!(tokens.clone().into_iter().next(), Some(TokenTree::Literal(_)));
    let mut found = literals(tokens);
    if is_format && found.first().is_some_and(|format| format.value() != "{}") {
        found.truncate(1);
    } else {
        let begins = |letter: char| letter.is_alphanumeric() || "\"{".contains(letter);
        let is_text = |text: &str| text.starts_with(begins) && text.contains([' ', '{']) && text != "{}";
        found.retain(|text| is_text(&text.value()));
    }
    if found.is_empty() {
        return vec![quote!("...".to_owned())];
    }
    let text = |format: LitStr| LitStr::new(&shown(&format.value()), format.span());
    found.into_iter().map(text).map(|text| quote!(::std::format!(#text))).collect()
}

/// Returns all string literals, in their order.
fn literals(tokens: TokenStream) -> Vec<LitStr> {
    let of_token = |token| match token {
        TokenTree::Group(group) => literals(group.stream()),
        token => syn::parse2::<LitStr>(token.into()).into_iter().collect(),
    };
    tokens.into_iter().flat_map(of_token).collect()
}

/// Replaces an argument of a format by its name in italics, or by dots. Constants stay arguments.
fn shown(format: &str) -> String {
    let mut text = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        text.push(letter);
        if ['{', '}'].contains(&letter) && letters.next_if_eq(&letter).is_some() {
            text.push(letter);
        } else if letter == '{' {
            let argument: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
            let name = argument.split(':').next().unwrap_or_default();
            if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
                text.extend([argument.as_str(), "}"]);
            } else {
                text.pop();
                let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase());
                let name = name.replace('_', " ");
                text.extend(if is_name { ["*", &name, "*"] } else { [".", ".", "."] });
            }
        }
    }
    text
}

/// Returns the kinds that an expression names. For a function of `Kind`, returns the constant with all kinds that the function can
/// choose.
fn kinds_in(tokens: TokenStream) -> Vec<TokenStream> {
    let (mut found, mut is_kind) = (Vec::new(), false);
    for token in tokens {
        match token {
            TokenTree::Group(group) => found.extend(kinds_in(group.stream())),
            TokenTree::Ident(name) if name == "Kind" => is_kind = true,
            TokenTree::Ident(name) if std::mem::take(&mut is_kind) => {
                let constant = format_ident!("{}", name.to_string().to_uppercase());
                let is_kind = name.to_string().starts_with(char::is_uppercase);
                found.push(if is_kind { quote!(&[Kind::#name]) } else { quote!(Kind::#constant) });
            }
            _ => {}
        }
    }
    found
}

/// Returns the tokens up to the name of the next part, or to the end.
fn value(input: ParseStream) -> Result<TokenStream> {
    let mut tokens = TokenStream::new();
    let is_next = |input: ParseStream| {
        input.peek(Token![,]) && input.peek2(syn::Ident) && input.peek3(Token![=]) && !input.peek3(Token![==])
    };
    while !input.is_empty() && !is_next(input) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

/// Builds the `format!` call from a format and its arguments.
fn format(value: TokenStream) -> Result<TokenStream> {
    let parser = |input: ParseStream| Ok((input.parse::<LitStr>()?, input.parse::<TokenStream>()?));
    let (text, arguments) = parser.parse2(value)?;
    let format = LitStr::new(&numbered(&text.value()), text.span());
    Ok(quote!(::core::option::Option::Some(::std::format!(#format #arguments))))
}

/// Replaces `{0}` by `{_0}` in a format.
fn numbered(format: &str) -> String {
    let mut text = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        text.push(letter);
        if letter != '{' {
            continue;
        }
        match letters.peek() {
            Some('{') => text.extend(letters.next()),
            Some('0'..='9') => text.push('_'),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn refusal(input: &DeriveInput) -> String {
        implementation(input).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn attributes_that_are_wrong_are_refused() {
        let cases: [(DeriveInput, &str); 8] = [
            (
                parse_quote!(
                    enum E {
                        A,
                    }
                ),
                "`A` has no kind",
            ),
            (
                parse_quote!(
                    #[explain(hint = "Wait.")]
                    struct E;
                ),
                "`E` has no kind",
            ),
            (
                parse_quote!(
                    #[explain(Io, details = "x")]
                    struct E;
                ),
                "there is no part `details`",
            ),
            (
                parse_quote!(
                    #[explain(Io, hint = "x", hint_with = None)]
                    struct E;
                ),
                "`hint_with` is there twice",
            ),
            (
                parse_quote!(
                    #[explain(Io, Locked)]
                    struct E;
                ),
                "there are two kinds",
            ),
            (
                parse_quote!(
                    #[explain(Io, hint = 1)]
                    struct E;
                ),
                "expected string literal",
            ),
            (
                parse_quote!(
                    #[explain(transparent)]
                    struct E(A, B);
                ),
                "`transparent` needs one field, or the one that is meant: `transparent = field`",
            ),
            (parse_quote!(#[explain(Io)] union E { a: u8 }), "a union is no error"),
        ];
        for (input, expected) in cases {
            assert_eq!(refusal(&input), expected);
        }
    }

    #[test]
    fn fields_are_variables_and_are_listed_by_their_names() {
        assert_eq!(numbered("{0} {{0}} {name} {}"), "{_0} {{0}} {name} {}");
        assert_eq!(shown("{0} {{0}} {a_name} {MAX:>3}"), "... {{0}} *a name* {MAX:>3}");
    }
}
