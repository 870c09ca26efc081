//! A value in the file, how to get there, and where to note what is wrong.

use std::{fmt, sync::Arc};

use limiter::list::List;

use super::{
    diagnostic::Notes,
    fields::Fields,
    lists::{Kind, Lists},
    tree::{Entry, Node, Value, child},
};

/// The most characters of a value that a message repeats.
const QUOTED_MAX: usize = 60;

/// A value in the file.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    pub(super) path: String,
    pub(super) notes: &'a Notes,
    lists: Option<&'a Lists>,
}

impl<'a> At<'a> {
    pub(super) const fn root(node: &'a Node, notes: &'a Notes) -> Self {
        Self {
            node,
            path: String::new(),
            notes,
            lists: None,
        }
    }

    /// The same in a file that may name these lists.
    pub(super) const fn naming(mut self, lists: &'a Lists) -> Self {
        self.lists = Some(lists);
        self
    }

    /// The list of which the name stands here.
    pub(super) fn list(&self, kind: Kind) -> Option<Arc<List>> {
        let name = self.text("the name of a list")?;
        self.list_named(name, kind)
    }

    /// The list of this name; what is wrong with it is noted here.
    pub(super) fn list_named(&self, name: &str, kind: Kind) -> Option<Arc<List>> {
        match self.lists {
            Some(lists) => lists.get(self, name, kind),
            None => self.refuse("no list can be named here"),
        }
    }

    /// The value of an entry of this mapping.
    pub(super) fn entry(&self, entry: &'a Entry) -> Self {
        Self {
            node: &entry.node,
            path: child(&self.path, &entry.key),
            notes: self.notes,
            lists: self.lists,
        }
    }

    /// Notes that it is wrong.
    pub(super) fn refuse<T>(&self, why: impl fmt::Display) -> Option<T> {
        self.notes.add(self.node.place, &self.path, why);
        None
    }

    /// Notes what should have been there, and what is.
    pub(super) fn expected<T>(&self, what: impl fmt::Display) -> Option<T> {
        self.refuse(format_args!("expected {what}, got {}", self.said()))
    }

    /// Notes why a value was refused, if it was.
    pub(super) fn checked<T, E: fmt::Display>(&self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => self.refuse(format_args!("{error}, got {}", self.said())),
        }
    }

    /// The text of a scalar, as it was written.
    pub(super) fn scalar(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar { text, .. } if !self.is_nothing() => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar, or a note that `what` was expected.
    pub(super) fn text(&self, what: &str) -> Option<&'a str> {
        self.scalar().or_else(|| self.expected(what))
    }

    /// The text of a scalar without quotes, or a note that `what` was expected.
    pub(super) fn bare(&self, what: impl fmt::Display) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar { text, plain: true } if !self.is_nothing() => Some(text),
            Value::Scalar { plain: false, .. } => {
                self.expected(format_args!("{what}, without quotes"))
            }
            _ => self.expected(what),
        }
    }

    /// The items of a list; a scalar is a list of one.
    pub(super) fn items(&self, what: &str) -> Option<Vec<Self>> {
        let Value::List(nodes) = &self.node.value else {
            return self.text(what).map(|_| vec![self.clone()]);
        };
        let item = |(place, node)| Self {
            node,
            path: format!("{}[{place}]", self.path),
            notes: self.notes,
            lists: self.lists,
        };
        Some(nodes.iter().enumerate().map(item).collect())
    }

    /// The entries of a mapping.
    pub(super) fn entries(&self, what: &str) -> Option<&'a [Entry]> {
        match &self.node.value {
            Value::Map(entries) => Some(entries),
            _ => self.expected(what),
        }
    }

    /// The fields of a mapping that has these and no others.
    pub(super) fn fields(&self, known: &'static [&'static str]) -> Option<Fields<'a>> {
        Fields::new(self, known)
    }

    /// An entry of this mapping, if it is one; nothing is noted.
    pub(super) fn peek(&self, name: &str) -> Option<Self> {
        let Value::Map(entries) = &self.node.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == name)?;
        Some(self.entry(entry))
    }

    fn is_nothing(&self) -> bool {
        match &self.node.value {
            Value::Scalar { text, plain } => {
                *plain && matches!(&**text, "" | "~" | "null" | "Null" | "NULL")
            }
            Value::List(_) | Value::Map(_) => false,
        }
    }

    fn said(&self) -> String {
        match &self.node.value {
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a mapping".into(),
            Value::Scalar { .. } if self.is_nothing() => "nothing".into(),
            Value::Scalar { text, .. } => quoted(text),
        }
    }
}

/// A text in quotes, cut if it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}
