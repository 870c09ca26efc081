//! A backup's file: an ordinary tar of the files of a data directory, flat, the
//! marker last, so that an archive that was cut short has none.

use std::io::{self, Read, Write};

/// What a tar is made of.
const BLOCK_BYTES: u64 = 512;

/// Writes files one after the other into an archive.
pub(super) struct Archive<W: Write>(tar::Builder<W>);

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Self(tar::Builder::new(out))
    }

    /// Adds a file of exactly `len` bytes.
    pub(super) fn add(&mut self, name: &str, len: u64, content: impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(len);
        header.set_mode(0o600);
        let mut content = Exactly { content, left: len };
        self.0.append_data(&mut header, name, &mut content)
    }

    /// Writes the end.
    pub(super) fn finish(self) -> io::Result<W> {
        self.0.into_inner()
    }
}

/// The length of an archive of files of these lengths, all with short names: a
/// block before each, each filled up to whole blocks, and two at the end.
pub(super) fn bytes(lens: impl Iterator<Item = u64>) -> u64 {
    let blocks: u64 = lens.map(|len| len.div_ceil(BLOCK_BYTES) + 1).sum();
    (blocks + 2) * BLOCK_BYTES
}

/// Hands every file of an archive to `each`: its name, which may be anything,
/// and its content.
pub(super) fn read<E: From<io::Error>>(
    archive: impl Read,
    mut each: impl FnMut(&str, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let left = entry.size();
        let mut content = Exactly {
            content: &mut entry,
            left,
        };
        each(&name, &mut content)?;
    }
    Ok(())
}

/// Reads no more than it was told, and fails if there is less.
struct Exactly<R> {
    content: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.by_ref().take(self.left).read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            let short = format!("the file is {} bytes shorter than it was", self.left);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, short));
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}
