//! Files that are read again whenever they change.
//!
//! They are read several times a second and compared by their bytes, so that an
//! editor that renames, a clock that stands still and a change within the same
//! second all show. Content is taken once it has been the same twice in a row, so
//! that one that is being written is not.

use std::time::Duration;

/// Time between two looks. A change is seen after two looks at most.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Which content was dealt with, and which was seen last.
pub(super) struct Watch<T> {
    settled: T,
    seen: T,
    unreadable: bool,
}

impl<T: Clone + PartialEq> Watch<T> {
    pub(super) fn new(settled: T) -> Self {
        Self {
            seen: settled.clone(),
            settled,
            unreadable: false,
        }
    }

    /// What is to be dealt with: new, and the same as at the last look. That it
    /// cannot be read is said once.
    pub(super) fn look<E>(&mut self, read: Result<T, E>) -> Result<Option<&T>, E> {
        let content = match read {
            Ok(content) => content,
            Err(_) if self.unreadable => return Ok(None),
            Err(error) => {
                self.unreadable = true;
                return Err(error);
            }
        };
        self.unreadable = false;
        let again = self.seen == content;
        self.seen = content;
        Ok((again && self.seen != self.settled).then_some(&self.seen))
    }

    /// What was seen last has been dealt with.
    pub(super) fn settle(&mut self) {
        self.settled.clone_from(&self.seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look<'w>(watch: &'w mut Watch<&'static str>, content: &'static str) -> Option<&'w str> {
        watch.look(Ok::<_, ()>(content)).unwrap().copied()
    }

    #[test]
    fn content_that_is_still_changing_is_left_alone() {
        let mut watch = Watch::new("old");
        assert_eq!(look(&mut watch, "n"), None);
        assert_eq!(look(&mut watch, "ne"), None);
        assert_eq!(look(&mut watch, "ne"), Some("ne"));
    }

    #[test]
    fn content_is_dealt_with_until_that_is_settled_and_then_not_again() {
        let mut watch = Watch::new("old");
        let _ = look(&mut watch, "new");
        assert!(look(&mut watch, "new").is_some());
        assert!(look(&mut watch, "new").is_some());
        watch.settle();
        assert_eq!(look(&mut watch, "new"), None);
    }

    #[test]
    fn what_cannot_be_read_is_complained_of_once() {
        let mut watch = Watch::new("old");
        assert_eq!(watch.look(Err("gone")), Err("gone"));
        assert_eq!(watch.look(Err("gone")), Ok(None));
        assert_eq!(look(&mut watch, "old"), None);
        assert_eq!(watch.look(Err("gone")), Err("gone"));
    }
}
