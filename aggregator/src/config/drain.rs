//! How the service ends: how long it is still there for those who have not noticed.

use std::time::Duration;

use super::{ConfigError, Settings, in_range};

/// How long an end may take. None of it is longer than ten minutes.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long requests are still taken after a signal, while it is not ready.
    pub delay: Duration,
    /// How long connections may take to finish after that.
    pub timeout: Duration,
}

impl Drain {
    /// As the settings have it: no delay, ten seconds to finish, unless they say so.
    pub(super) fn of(settings: &Settings) -> Result<Self, ConfigError> {
        let span = |field, value: Option<u32>, default| {
            let ms = u64::from(value.unwrap_or(default));
            in_range(field, ms, 0, 600_000).map(|()| Duration::from_millis(ms))
        };
        Ok(Self {
            delay: span("drain_delay_ms", settings.drain_delay_ms, 0)?,
            timeout: span("drain_timeout_ms", settings.drain_timeout_ms, 10_000)?,
        })
    }
}
