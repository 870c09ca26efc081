//! The only clocks in the aggregator. The ledger's task owns the one that names
//! windows and hands the time on as an argument; HTTP has one for spans.

#![allow(
    clippy::disallowed_methods,
    reason = "this is where the ledger's task reads the clock"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use limiter::time::Timestamp;

/// Tells the time. Neither of its two answers ever gets smaller.
pub trait Clock: Send {
    /// The region's time: the one that names windows.
    fn now(&mut self) -> Timestamp;

    /// Takes note of a time that was told in an earlier life of the service: from
    /// now on, none before it is.
    fn go_on_from(&mut self, told: Timestamp);

    /// How far the region's time is ahead of the machine's clock, if that was set back.
    fn ahead(&mut self) -> Duration;

    /// Time since the clock was made, for waits and latencies.
    fn uptime(&mut self) -> Duration;
}

/// The machine's clock, made to never go back.
pub struct SystemClock {
    /// Tells how long ago the Unix epoch was, and may be set at any time.
    machine: Box<dyn FnMut() -> Duration + Send>,
    started: Instant,
    told: Timestamp,
    told_at: Duration,
}

impl SystemClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self::of(|| {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
            since_epoch.unwrap_or_default()
        })
    }

    /// The clock of a machine that tells the time since the Unix epoch like this.
    pub fn of(machine: impl FnMut() -> Duration + Send + 'static) -> Self {
        Self {
            machine: Box::new(machine),
            started: Instant::now(),
            told: Timestamp::default(),
            told_at: Duration::ZERO,
        }
    }
}

/// Time since the service started, for spans only: it names no window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    /// One that starts now.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long ago that was, as an instant.
    pub(super) fn now(self) -> Timestamp {
        Timestamp::from_micros(whole_micros(self.0.elapsed()))
    }
}

impl Clock for SystemClock {
    fn now(&mut self) -> Timestamp {
        let uptime = self.uptime();
        let machine = Timestamp::from_micros(whole_micros((self.machine)()));
        let passed = uptime.saturating_sub(self.told_at);
        let told = onward(self.told, machine, passed);
        // Half a microsecond is not lost: the next reading measures from here.
        if told > self.told {
            (self.told, self.told_at) = (told, uptime);
        }
        told
    }

    fn go_on_from(&mut self, told: Timestamp) {
        if told > self.told {
            (self.told, self.told_at) = (told, self.uptime());
        }
    }

    fn ahead(&mut self) -> Duration {
        let machine = Timestamp::from_micros(whole_micros((self.machine)()));
        Duration::from_micros(self.now().since(machine).get())
    }

    fn uptime(&mut self) -> Duration {
        self.started.elapsed()
    }
}

/// The next time to tell, `passed` after `told` was. A machine clock that was
/// set back is waited for at half speed: windows still end, if later.
fn onward(told: Timestamp, machine: Timestamp, passed: Duration) -> Timestamp {
    if machine >= told {
        return machine;
    }
    Timestamp::from_micros(told.as_micros().saturating_add(whole_micros(passed / 2))).max(machine)
}

fn whole_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter::time::Micros;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn a_machine_clock_that_is_ahead_is_believed() {
        assert_eq!(onward(at(100), at(7300), Duration::ZERO), at(7300));
    }

    #[test]
    fn a_clock_goes_on_from_what_an_earlier_life_told() {
        let mut clock = SystemClock::start();
        let told = clock.now().after(Micros::from_secs(3600));
        clock.go_on_from(told);
        let now = clock.now();
        assert!(now >= told && now.since(told) < Micros::from_secs(1800));
        assert!((HOUR / 2..HOUR * 2).contains(&clock.ahead()));
        clock.go_on_from(at(1));
        assert!(clock.now() >= now);
    }

    #[test]
    fn a_machine_clock_set_back_slows_the_time_and_never_turns_it() {
        assert_eq!(onward(at(7200), at(3600), Duration::ZERO), at(7200));
        assert_eq!(onward(at(7200), at(7200 - 1), HOUR), at(7200 + 1800));
    }
}
