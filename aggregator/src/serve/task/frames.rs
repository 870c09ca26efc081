//! Chunks with their length before them: the log may cut what it is given, and a
//! chunk has to come back whole.

/// A chunk that says whose it is, framed.
pub(super) fn frame(owner: u8, chunk: &[u8]) -> Vec<u8> {
    let bytes = chunk.len().saturating_add(1) as u64;
    let mut framed = bytes.to_le_bytes().to_vec();
    framed.push(owner);
    framed.extend_from_slice(chunk);
    framed
}

/// Puts cut chunks together again.
#[derive(Default)]
pub(super) struct Frames(Vec<u8>);

impl Frames {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next chunk that is whole.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let (len, rest) = self.0.split_first_chunk::<8>()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let chunk = rest.get(..len)?.to_vec();
        self.0.drain(..len.saturating_add(8));
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_back_whole_however_they_were_cut() {
        let written = [frame(1, b"first"), frame(2, b""), frame(3, b"the third")].concat();
        for size in 1..written.len() {
            let mut frames = Frames::default();
            let mut read = Vec::new();
            for part in written.chunks(size) {
                frames.take(part);
                read.extend(core::iter::from_fn(|| frames.next()));
            }
            assert_eq!(
                read,
                [
                    b"\x01first".to_vec(),
                    b"\x02".to_vec(),
                    b"\x03the third".to_vec()
                ]
            );
        }
    }
}
