//! The content of one fake file: what is written, and what is on the device.

use super::state::Random;

#[derive(Default)]
pub(super) struct Inode {
    durable: Vec<u8>,
    written: Vec<u8>,
    unsynced: Vec<Change>,
}

enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl Inode {
    pub(super) fn durable(content: &[u8]) -> Self {
        Self {
            durable: content.to_vec(),
            written: content.to_vec(),
            unsynced: Vec::new(),
        }
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.written
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        let at = self.written.len();
        self.written.extend_from_slice(bytes);
        let bytes = bytes.to_vec();
        self.unsynced.push(Change::Write { at, bytes });
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.written.resize(len, 0);
        self.unsynced.push(Change::Resize(len));
    }

    pub(super) fn sync(&mut self) {
        self.durable.clone_from(&self.written);
        self.unsynced.clear();
    }

    /// A failed sync: the content looks clean, and is not on the device.
    pub(super) fn forget_unsynced(&mut self) {
        self.unsynced.clear();
    }

    /// The power goes: each unsynced change happened, or not, or in part.
    pub(super) fn lose(&mut self, random: &mut Random) {
        for change in core::mem::take(&mut self.unsynced) {
            match change {
                Change::Write { at, bytes } => self.lose_write(at, &bytes, random),
                Change::Resize(len) if random.below(2) == 0 => self.durable.resize(len, 0),
                Change::Resize(_) => {}
            }
        }
        self.written.clone_from(&self.durable);
    }

    fn lose_write(&mut self, at: usize, bytes: &[u8], random: &mut Random) {
        let cut = random.below(bytes.len() + 1);
        let (head, tail) = bytes.split_at_checked(cut).unwrap_or((bytes, &[]));
        match random.below(5) {
            0 => {}
            1 => self.put(at, head),
            // A hole: the file has grown, but its beginning was not written.
            2 => self.put(at + cut, tail),
            3 => {
                self.put(at, head);
                self.put(at + cut, &vec![0; tail.len()]);
            }
            _ => self.put(at, bytes),
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        if let Some(place) = self.durable.get_mut(at..end) {
            place.copy_from_slice(bytes);
        }
    }

    pub(super) fn flip(&mut self, byte: usize, bit: u8) -> bool {
        let mask = 1_u8.rotate_left(u32::from(bit));
        let mut flipped = false;
        for content in [&mut self.durable, &mut self.written] {
            if let Some(byte) = content.get_mut(byte) {
                *byte ^= mask;
                flipped = true;
            }
        }
        flipped
    }
}
