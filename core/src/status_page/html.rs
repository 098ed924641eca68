//! The page as it is written: markup that stands in this source, and text, which is escaped here and nowhere else.
//!
//! What is not a constant of the program can only come in as text. The page is pure ASCII, as every other letter is written by
//! its number; so it is the same in each encoding of databases and clients.

use std::fmt::{self, Display, Write};

/// How many letters of one text are shown.
pub const MAX_LETTERS: usize = 600;

/// A page, or a part of one.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Markup of the program's own.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// A text, for people or as the value of an attribute between quotes.
    pub fn text(&mut self, text: impl Display) -> &mut Self {
        // Writing to a string fails where the text is cut, and else never.
        if write!(Escaped { to: &mut self.0, left: MAX_LETTERS }, "{text}").is_err() {
            self.0.push_str("...");
        }
        self
    }

    /// A name that others gave: its direction concerns no other text.
    pub fn name(&mut self, name: &str) -> &mut Self {
        self.raw("<bdi>").text(name).raw("</bdi>")
    }

    /// The figures of a path, which are not cut: letters of other kinds are left out.
    pub fn shape(&mut self, path: &str) -> &mut Self {
        let is_of_path = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, ' ' | '.' | '-');
        self.0.extend(path.chars().filter(is_of_path));
        self
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The page.
    pub fn into_string(self) -> String {
        self.0
    }
}

struct Escaped<'a> {
    to: &'a mut String,
    /// How many letters may follow.
    left: usize,
}

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            push(self.to, letter)?;
        }
        Ok(())
    }
}

fn push(to: &mut String, letter: char) -> fmt::Result {
    match letter {
        '&' => to.push_str("&amp;"),
        '<' => to.push_str("&lt;"),
        '>' => to.push_str("&gt;"),
        '"' => to.push_str("&quot;"),
        '\'' => to.push_str("&#39;"),
        ' '..='~' => to.push(letter),
        _ if is_unseen(letter) => write!(to, "\\u{{{:x}}}", u32::from(letter))?,
        _ => write!(to, "&#{};", u32::from(letter))?,
    }
    Ok(())
}

/// Whether a letter shows nothing of itself, or changes what stands beside it.
const fn is_unseen(letter: char) -> bool {
    let number = letter as u32;
    letter.is_ascii_control()
        || matches!(number, 0x80..=0x9f | 0xad | 0x61c | 0x180e | 0x200b | 0x200e | 0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0xfdd0..=0xfdef | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe0fff)
        || number & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut html = Html::default();
        html.text(text);
        html.into_string()
    }

    #[test]
    fn what_means_something_to_a_browser_is_escaped() {
        assert_eq!(shown("<b a=\"x\" c='y'>&"), "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;");
    }

    #[test]
    fn letters_are_written_by_their_numbers_and_those_that_hide_are_named() {
        assert_eq!(shown("\u{e4}\u{5d0}\u{1f600}"), "&#228;&#1488;&#128512;");
        assert_eq!(shown("a\u{202e}b\0\u{85}\n"), "a\\u{202e}b\\u{0}\\u{85}\\u{a}");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shown(&"x".repeat(MAX_LETTERS)), "x".repeat(MAX_LETTERS));
        assert_eq!(shown(&"x".repeat(MAX_LETTERS + 1)), format!("{}...", "x".repeat(MAX_LETTERS)));
    }
}
