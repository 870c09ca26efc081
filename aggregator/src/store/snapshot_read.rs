//! Reading a snapshot: once to see that it is whole, once to hand it over.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::error::OpenError;
use super::fields::{BadOpening, checksum, open_header};
use super::position::Position;
use super::replay::Replay;
use super::snapshot::{CHUNK_BYTES_MAX, HEAD_BYTES, HEADER_BYTES, Head, MAGIC, SnapshotId};
use super::snapshot_write::low_half;

/// What a whole snapshot says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub(super) begun: Position,
    pub(super) taken_at_ms: u64,
    pub(super) shards: u32,
    /// The smallest position that a shard contains.
    pub(super) smallest: Position,
    /// The largest position that a shard contains, or that it was begun at.
    pub(super) largest: Position,
}

/// Reads the snapshot begun at `id.begun` to its end and hands its shards over.
pub(super) fn read_snapshot(
    directory: &Directory,
    id: SnapshotId,
    replay: &mut dyn Replay,
) -> Result<Summary, OpenError> {
    let path = directory.snapshot(id.begun);
    let source = directory.disk.open_read(&path);
    let mut reader = Reader {
        source: source.map_err(OpenError::io("open", &path))?,
        path,
        id,
        offset: 0,
        content: Vec::new(),
    };
    let taken_at_ms = reader.header()?;
    reader.chunks(taken_at_ms, replay)
}

/// Where reading a snapshot has come to.
struct Reader {
    source: Box<dyn Read + Send>,
    path: PathBuf,
    id: SnapshotId,
    offset: u64,
    content: Vec<u8>,
}

impl Reader {
    fn header(&mut self) -> Result<u64, OpenError> {
        let mut bytes = [0; HEADER_BYTES];
        self.fill(&mut bytes, "a snapshot's header")?;
        let damaged = |path: &Path, found| {
            Err(OpenError::damaged(
                path,
                0,
                "the header of this snapshot",
                found,
            ))
        };
        let (store, mut fields) = match open_header(MAGIC, &bytes) {
            Ok(read) => read,
            Err(BadOpening::Version(found)) => return Err(OpenError::format(&self.path, found)),
            Err(BadOpening::Magic) => return damaged(&self.path, "something else"),
            Err(BadOpening::Checksum) => {
                return damaged(&self.path, "a header whose checksum is wrong");
            }
        };
        let begun = fields.u64().map(Position::new);
        if store != self.id.store || begun != Some(self.id.begun) {
            return damaged(&self.path, "the header of another snapshot");
        }
        self.offset = HEADER_BYTES as u64;
        Ok(fields.u64().unwrap_or_default())
    }

    fn chunks(&mut self, taken_at_ms: u64, replay: &mut dyn Replay) -> Result<Summary, OpenError> {
        let mut summary = Summary {
            begun: self.id.begun,
            taken_at_ms,
            shards: 0,
            smallest: Position::new(u64::MAX),
            largest: self.id.begun,
        };
        let mut number = 0;
        loop {
            let mut head = [0; HEAD_BYTES];
            self.fill(&mut head, "a chunk or the footer")?;
            match Head::decode(self.id, number, &head) {
                Some(Head::Chunk {
                    shard,
                    contains,
                    len,
                    sum,
                }) => {
                    self.content(len, sum)?;
                    summary.smallest = summary.smallest.min(contains);
                    summary.largest = summary.largest.max(contains);
                    self.hand_over(shard, contains, replay)?;
                    number += 1;
                }
                Some(Head::Footer {
                    shards,
                    smallest,
                    chunks,
                }) if smallest == summary.smallest && chunks == low_half(number) => {
                    summary.shards = shards;
                    return self.nothing_more().map(|()| summary);
                }
                _ => return self.damaged("a chunk or the footer", "something else"),
            }
            self.offset += (HEAD_BYTES + self.content.len()) as u64;
        }
    }

    fn content(&mut self, len: u32, sum: u32) -> Result<(), OpenError> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > CHUNK_BYTES_MAX {
            return self.damaged("a chunk of at most 1 MiB", "a longer one");
        }
        let mut content = core::mem::take(&mut self.content);
        content.resize(len, 0);
        self.fill(&mut content, "the content of a chunk")?;
        if checksum(&[&content]) != sum {
            return self.damaged("the content of a chunk", "one whose checksum is wrong");
        }
        self.content = content;
        Ok(())
    }

    fn hand_over(
        &self,
        shard: u32,
        contains: Position,
        replay: &mut dyn Replay,
    ) -> Result<(), OpenError> {
        let taken = replay.shard(shard, contains, &self.content);
        taken.map_err(|source| OpenError::Replay {
            what: format!("shard {shard} of {}", self.path.display()),
            source,
        })
    }

    fn nothing_more(&mut self) -> Result<(), OpenError> {
        let mut byte = [0];
        let read = self.source.read(&mut byte);
        match read.map_err(OpenError::io("read", &self.path))? {
            0 => Ok(()),
            _ => self.damaged("nothing after the footer", "more bytes"),
        }
    }

    fn fill(&mut self, bytes: &mut [u8], expected: &str) -> Result<(), OpenError> {
        match self.source.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.damaged(expected, "the end of the file")
            }
            Err(error) => Err(OpenError::io("read", &self.path)(error)),
        }
    }

    fn damaged<T>(&self, expected: &str, found: &str) -> Result<T, OpenError> {
        Err(OpenError::damaged(&self.path, self.offset, expected, found))
    }
}
