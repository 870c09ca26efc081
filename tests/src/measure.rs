//! What the benches have in common: effort, medians, and time spent.

use std::env;
use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A number from the environment, for a bench's effort.
#[must_use]
pub fn number(variable: &str, default: u64) -> u64 {
    env::var(variable)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// The value below which so many thousandths of `values` lie; 0 of none.
#[must_use]
pub fn percentile(values: &[f64], thousandths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let place = last * thousandths.min(1_000) / 1_000;
    sorted.get(place).copied().unwrap_or(0.0)
}

/// The median, and the least and the greatest: `12.3 (11.9..14.0)`.
#[must_use]
pub fn spread(values: &[f64]) -> String {
    let [least, median, greatest] = [0, 500, 1_000].map(|part| percentile(values, part));
    let digits = if median < 100.0 { 1 } else { 0 };
    format!("{median:.digits$} ({least:.digits$}..{greatest:.digits$})")
}

/// Processor time that this thread has spent: what others do on a busy machine
/// is not in it.
///
/// # Panics
/// If the system's time lies before the thread's beginning.
#[must_use]
pub fn thread_time() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(spent).expect("a time that was spent")
}

/// Memory that a process has in hand, in bytes; 0 if it is not there.
#[must_use]
pub fn resident_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// How busy the machine is, for the head of a table.
#[must_use]
pub fn machine() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores, load {load}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_values_lie_below_the_median() {
        assert!((percentile(&[3.0, 1.0, 2.0], 500) - 2.0).abs() < f64::EPSILON);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), "2.0 (1.0..3.0)");
        assert_eq!(spread(&[]), "0.0 (0.0..0.0)");
    }
}
