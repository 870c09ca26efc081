//! The figures for people: a line each.

use std::fmt::Write;

use super::{RegionReport, Report};

/// A line for each scenario, and what they come to.
pub(crate) fn table(reports: &[Report]) -> String {
    let width = reports.iter().map(|report| report.name.len()).max();
    let width = width.unwrap_or_default().max(10);
    let mut text = format!("{:width$} {HEAD}\n", "scenario");
    for report in reports {
        let _ = writeln!(text, "{:width$} {}", report.name, line(report));
        for failure in &report.failures {
            let _ = writeln!(text, "{:width$}   {failure}", "");
        }
    }
    text + &summary(reports) + &regions(reports, width)
}

/// So many keys make a region's work worth telling.
const KEYS_MANY: u64 = 500;

/// What the largest region had to do, where there are several or many keys.
fn regions(reports: &[Report], width: usize) -> String {
    let mut text = String::new();
    let large = |report: &&Report| {
        let many = report.regions.iter().any(|region| region.keys >= KEYS_MANY);
        many || report.regions.len() > 1
    };
    for report in reports.iter().filter(large) {
        if text.is_empty() {
            let _ = writeln!(text, "\n{:width$} {REGION_HEAD}", "one region");
        }
        if let Some(region) = report.regions.iter().max_by_key(|region| region.keys) {
            let _ = writeln!(text, "{:width$} {}", report.name, region_line(region));
        }
        if let Some(global) = &report.global {
            let _ = writeln!(text, "{:>width$} {}", "above", region_line(global));
        }
    }
    text
}

const REGION_HEAD: &str = "messages/s   asks/s  deltas/s  flush kB/s up    down  ask kB/s up    down  log kB/s     \
                           keys  B/key  instr/req  Minstr/s";

fn region_line(region: &RegionReport) -> String {
    let kilo = |bytes: f64| bytes / 1e3;
    format!(
        "{:10.0} {:8.0} {:9.0} {:14.1} {:7.1} {:12.1} {:7.1} {:9.1} {:8} {:6.1} {:10.0} {:9.2}",
        region.messages_per_s,
        region.asks_per_s,
        region.deltas_per_s,
        kilo(region.flush_up_bytes_per_s),
        kilo(region.flush_down_bytes_per_s),
        kilo(region.ask_up_bytes_per_s),
        kilo(region.ask_down_bytes_per_s),
        kilo(region.log_bytes_per_s),
        region.keys,
        region.bytes_per_key,
        region.instructions_per_request,
        region.instructions_per_s / 1e6,
    )
}

const HEAD: &str = " requests  admitted     exact   error %  contested   error %  over %  held %  asks/req  deltas/req   leaked  \
                    metric  lost  double  ";

fn line(report: &Report) -> String {
    format!(
        "{:9} {:9} {:9} {:+9.3} {:10} {:+9.3} {:7.2} {:7.2} {:9.4} {:11.4} {:8} {:7} {:5} {:7}  {}",
        report.requests,
        report.admitted,
        report.exact,
        report.error * 100.0,
        report.contested_keys,
        report.contested_error * 100.0,
        report.over * 100.0,
        report.held * 100.0,
        report.asks_per_request,
        report.flush_entries_per_request,
        report.leaked,
        report.leak_metric,
        report.lost_hits,
        report.double_hits,
        if report.pass { "pass" } else { "FAIL" },
    )
}

fn summary(reports: &[Report]) -> String {
    let healthy = || reports.iter().filter(|report| report.healthy);
    let sum: f64 = healthy().map(|report| report.error.abs()).sum();
    let count = u32::try_from(healthy().count()).unwrap_or(u32::MAX);
    let passed = reports.iter().filter(|report| report.pass).count();
    let mut text = format!("{passed} of {} pass", reports.len());
    if count > 0 {
        let mean = sum / f64::from(count) * 100.0;
        let _ = write!(text, "; mean |error| where nothing goes wrong: {mean:.3} %");
    }
    text + "\n"
}
