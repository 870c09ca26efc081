//! Bytes to numbers and back: little-endian fields and their checksums.

use crc32fast::Hasher;

/// The format of every file here, and of the records in them. A file of another
/// one is refused. Since 2 a record says which of the books it is of.
pub(super) const FORMAT_VERSION: u32 = 2;

/// Reads fields from the front of some bytes; `None` when they run out.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self, len: u32) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The checksum of all parts, one after the other.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Puts the checksum of `seed` and `bytes` after `bytes`.
pub(super) fn seal(seed: &[u8], mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&[seed, &bytes]);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// The bytes before their checksum, if it is right.
pub(super) fn unseal<'a>(seed: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    (checksum(&[seed, body]) == u32::from_le_bytes(*sum)).then_some(body)
}

/// The opening of a file's header: what the file is, its version, its store.
pub(super) fn opening(magic: &[u8; 8], store: u64) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&store.to_le_bytes());
    bytes
}

/// Why a file's header is not one of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadOpening {
    Magic,
    Version(u32),
    Checksum,
}

/// Checks a sealed header; gives the store and the fields after it.
pub(super) fn open_header<'a>(
    magic: &[u8; 8],
    header: &'a [u8],
) -> Result<(u64, Fields<'a>), BadOpening> {
    let mut fields = Fields::new(header);
    if fields.array::<8>().as_ref() != Some(magic) {
        return Err(BadOpening::Magic);
    }
    match fields.u32() {
        Some(FORMAT_VERSION) => {}
        Some(other) if other > 0 => return Err(BadOpening::Version(other)),
        _ => return Err(BadOpening::Checksum),
    }
    let body = unseal(&[], header).ok_or(BadOpening::Checksum)?;
    let mut fields = Fields::new(body.get(12..).unwrap_or_default());
    let store = fields.u64().ok_or(BadOpening::Checksum)?;
    Ok((store, fields))
}
