//! An answer that is too long to be held, and is read as it comes.

use std::io::{self, Read};

/// A body of known length. Reading it to its end gives all of it or an error.
pub struct Download {
    body: Box<dyn Read>,
    left: u64,
}

impl Download {
    pub(super) fn new(body: impl Read + 'static, bytes: u64) -> Self {
        Self {
            body: Box::new(body),
            left: bytes,
        }
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.body.read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            let short = format!("the service hung up {} bytes before the end", self.left);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, short));
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_ends_early_is_an_error_and_not_a_short_file() {
        let mut whole = Vec::new();
        let read = Download::new(&b"four"[..], 4).read_to_end(&mut whole);
        assert_eq!((read.unwrap(), whole.as_slice()), (4, &b"four"[..]));
        let error = Download::new(&b"thre"[..], 5).read_to_end(&mut whole);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
