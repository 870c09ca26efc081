//! Values of YAML in one line.

use std::fmt::{self, Write};

/// What some reader of YAML takes for a truth or nothing, in whatever case.
const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// A value in one line.
pub(super) enum Flow {
    Scalar(String),
    List(Vec<Flow>),
    Map(Vec<(String, Flow)>),
}

/// Texts as a list.
pub(super) fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Flow {
    let text = |value: T| Flow::Scalar(scalar(&value.to_string()));
    Flow::List(values.into_iter().map(text).collect())
}

/// A text as a scalar, in quotes if anything could take it for something else.
pub(super) fn scalar(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-+*".contains(&byte);
    let first = text.bytes().next();
    let starts = first.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"/_.".contains(&byte));
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    let plain = starts && !word && text.bytes().all(plain);
    if plain { text.into() } else { quoted(text) }
}

/// A text in double quotes; what cannot be seen is written as its number.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        let number = u32::from(letter);
        let _ = match letter {
            '"' | '\\' => write!(out, "\\{letter}"),
            ' '..='~' => write!(out, "{letter}"),
            letter if !letter.is_ascii() && letter.is_alphanumeric() => write!(out, "{letter}"),
            _ if number <= 0xffff => write!(out, "\\u{number:04x}"),
            _ => write!(out, "\\U{number:08x}"),
        };
    }
    out + "\""
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(text) => f.write_str(text),
            Self::List(items) => {
                let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
            Self::Map(entries) => {
                let entry = |(name, value): &(String, Flow)| format!("{name}: {value}");
                let texts: Vec<_> = entries.iter().map(entry).collect();
                write!(f, "{{ {} }}", texts.join(", "))
            }
        }
    }
}
