//! A connection must say in time which version of HTTP it speaks.
//!
//! Until then no version's own timers run: whoever connects and says nothing, or
//! half of what HTTP/2 begins with, would hold its place for ever.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// What HTTP/2 begins with (RFC 9113, "HTTP/2 Connection Preface").
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream whose first words must come within a time. After that it is what it
/// was.
pub(super) struct FirstWords<S> {
    stream: S,
    waiting: Option<Waiting>,
}

struct Waiting {
    end: Pin<Box<Sleep>>,
    /// How much of the preface has come.
    said: usize,
}

impl<S> FirstWords<S> {
    pub(super) fn within(time: Duration, stream: S) -> Self {
        let end = Box::pin(sleep(time));
        let waiting = Some(Waiting { end, said: 0 });
        Self { stream, waiting }
    }
}

impl Waiting {
    /// Whether these bytes, after those before, leave the version open.
    fn hear(&mut self, bytes: &[u8]) -> bool {
        let rest = PREFACE.get(self.said..).unwrap_or_default();
        self.said = self.said.saturating_add(bytes.len());
        rest.starts_with(bytes) && self.said < PREFACE.len()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstWords<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some(waiting) = &mut this.waiting else {
            return read;
        };
        if read.is_pending() {
            ready!(waiting.end.as_mut().poll(context));
            let late = "nothing was said in time";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, late)));
        }
        let heard = buffer.filled().get(before..).unwrap_or_default();
        if !waiting.hear(heard) {
            this.waiting = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstWords<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// What comes of these bytes, and then of silence.
    async fn after(bytes: &[u8], time: Duration) -> io::Result<usize> {
        let (mut client, stream) = duplex(64);
        let mut stream = FirstWords::within(time, stream);
        client.write_all(bytes).await.unwrap();
        let mut heard = vec![0; bytes.len()];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, bytes);
        let more = tokio::spawn(async move { stream.read(&mut [0]).await });
        if bytes.len() >= PREFACE.len() || !PREFACE.starts_with(bytes) {
            tokio::time::sleep(time * 3).await;
            client.write_all(b"!").await.unwrap();
        }
        more.await.unwrap()
    }

    #[tokio::test]
    async fn who_says_nothing_or_half_a_preface_is_given_up() {
        for said in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n"] {
            let given_up = after(said, Duration::from_millis(10)).await.unwrap_err();
            assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
        }
    }

    #[tokio::test]
    async fn who_has_said_what_they_speak_may_take_their_time() {
        for said in [&b"G"[..], b"PUT / HTTP/1.1\r\n", PREFACE] {
            let more = after(said, Duration::from_millis(10)).await;
            assert_eq!(more.unwrap(), 1, "{said:?}");
        }
    }
}
