//! A file as a tree of values that know where they stand.
//!
//! Of YAML, what a rule file has a use for: mappings with plain keys, lists and
//! scalars. Anchors, aliases and tags are refused, so nothing
//! grows in memory beyond the text; a key that comes twice is an error; how
//! deep values may nest is bounded.

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, options};

use super::diagnostic::{Notes, Place};

/// How deep the values of a rule file may nest. The deepest that means anything
/// is about twenty.
const DEPTH_MAX: usize = 32;
const TOO_DEEP: &str = "values nest too deep";

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    /// As it was written; `plain` if without quotes.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

impl Node {
    /// A scalar without quotes.
    pub(super) fn scalar(text: &str, place: Place) -> Self {
        let text = text.to_owned();
        let value = Value::Scalar { text, plain: true };
        Self { place, value }
    }

    pub(super) const fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    pub(super) const fn is_list(&self) -> bool {
        matches!(self.value, Value::List(_))
    }
}

/// Reads a text of one document. What is wrong goes into the notes; without a
/// tree it was too wrong to go on.
pub(super) fn read(text: &str, notes: &Notes) -> Option<Node> {
    let mut roots = read_all(text, notes, DEPTH_MAX)?;
    let first = roots.drain(..1).next()?;
    match roots.first() {
        None => Some(first),
        Some(second) => {
            let message = "a rule file is one YAML document, here begins another";
            notes.add(second.place, "", message);
            None
        }
    }
}

/// Reads a text of one or more documents, whose values may nest so deep.
pub(super) fn read_all(text: &str, notes: &Notes, depth_max: usize) -> Option<Vec<Node>> {
    let mut builder = Builder {
        notes,
        open: Vec::new(),
        roots: Vec::new(),
        depth_max,
    };
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: depth_max,
        block_nesting_limit: depth_max,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.take(event, place(&span))?,
            Err(error) => return builder.refuse(error_place(&error), not_yaml(&error)),
        }
    }
    let start = Place { line: 1, column: 1 };
    match builder.roots.is_empty() {
        false => Some(builder.roots),
        true => builder.refuse(start, "the file is empty"),
    }
}

struct Builder<'a> {
    notes: &'a Notes,
    open: Vec<Open>,
    roots: Vec<Node>,
    depth_max: usize,
}

/// A list or mapping whose end has not come yet.
struct Open {
    place: Place,
    value: OpenValue,
}

enum OpenValue {
    List(Vec<Node>),
    /// With the key whose value comes next.
    Map(Vec<Entry>, Option<(String, Place)>),
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, place: Place) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.plain_node(anchor, tag.is_some(), place)?;
                self.scalar(text.into_owned(), style == ScalarStyle::Plain, place)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.plain_node(anchor, tag.is_some(), place)?;
                self.begin(place, OpenValue::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.plain_node(anchor, tag.is_some(), place)?;
                self.begin(place, OpenValue::Map(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(_) => self.refuse(place, "aliases are not read; write the value out"),
            _ => Some(()),
        }
    }

    fn plain_node(&self, anchor: usize, tagged: bool, place: Place) -> Option<()> {
        if anchor != 0 {
            return self.refuse(
                place,
                "anchors are not read; write the value out where needed",
            );
        }
        if tagged {
            return self.refuse(place, "tags are not read; write the value alone");
        }
        Some(())
    }

    fn scalar(&mut self, text: String, plain: bool, place: Place) -> Option<()> {
        if let Some(OpenValue::Map(entries, next @ None)) = self.innermost() {
            let earlier = entries.iter().find(|entry| entry.key == text);
            let earlier = earlier.map(|entry| entry.place.line);
            *next = Some((text, place));
            if let Some(line) = earlier {
                let message = format!("comes twice in one mapping, the first time in line {line}");
                self.notes.add(place, &self.path(), message);
            }
            return Some(());
        }
        let value = Value::Scalar { text, plain };
        self.add(Node { place, value })
    }

    fn begin(&mut self, place: Place, value: OpenValue) -> Option<()> {
        if let Some(OpenValue::Map(_, None)) = self.innermost() {
            return self.refuse(place, "a key is a plain word, not a list or mapping");
        }
        if self.open.len() >= self.depth_max {
            return self.refuse(place, TOO_DEEP);
        }
        self.open.push(Open { place, value });
        Some(())
    }

    fn end(&mut self) -> Option<()> {
        let Open { place, value } = self.open.pop()?;
        let value = match value {
            OpenValue::List(items) => Value::List(items),
            OpenValue::Map(entries, _) => Value::Map(entries),
        };
        self.add(Node { place, value })
    }

    fn add(&mut self, node: Node) -> Option<()> {
        match self.innermost() {
            Some(OpenValue::List(items)) => items.push(node),
            Some(OpenValue::Map(entries, next)) => {
                let (key, place) = next.take()?;
                entries.push(Entry { key, place, node });
            }
            None => self.roots.push(node),
        }
        Some(())
    }

    fn innermost(&mut self) -> Option<&mut OpenValue> {
        self.open.last_mut().map(|open| &mut open.value)
    }

    fn refuse<T>(&self, place: Place, message: impl std::fmt::Display) -> Option<T> {
        self.notes.add(place, &self.path(), message);
        None
    }

    /// The field that is being read.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match &open.value {
                OpenValue::List(items) => path = format!("{path}[{}]", items.len()),
                OpenValue::Map(_, Some((key, _))) => path = child(&path, key),
                OpenValue::Map(_, None) => {}
            }
        }
        path
    }
}

/// The path of a field in what stands at `path`.
pub(super) fn child(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn place(span: &Span) -> Place {
    Place {
        line: span.start.line(),
        column: span.start.col() + 1,
    }
}

fn error_place(error: &ScanError) -> Place {
    Place {
        line: error.marker().line(),
        column: error.marker().col() + 1,
    }
}

fn not_yaml(error: &ScanError) -> String {
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => TOO_DEEP.into(),
        kind => format!("not YAML: {kind}"),
    }
}
