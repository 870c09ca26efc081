//! The figures for people: a line each.

use std::fmt::Write;

use super::Report;

/// A line for each scenario, and what they come to.
pub(crate) fn table(reports: &[Report]) -> String {
    let width = reports.iter().map(|report| report.name.len()).max();
    let width = width.unwrap_or_default().max(8);
    let mut text = format!("{:width$} {HEAD}\n", "scenario");
    for report in reports {
        let _ = writeln!(text, "{:width$} {}", report.name, line(report));
        for failure in &report.failures {
            let _ = writeln!(text, "{:width$}   {failure}", "");
        }
    }
    text + &summary(reports)
}

const HEAD: &str = " requests  admitted     exact   error %  held %  asks/req  deltas/req   leaked  \
                    metric  lost  double  ";

fn line(report: &Report) -> String {
    format!(
        "{:9} {:9} {:9} {:+9.3} {:7.2} {:9.4} {:11.4} {:8} {:7} {:5} {:7}  {}",
        report.requests,
        report.admitted,
        report.exact,
        report.error * 100.0,
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
