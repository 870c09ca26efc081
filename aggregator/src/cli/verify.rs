//! `weir verify`: whether a data directory would be recovered, and what is in it.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use super::{fail, print};
use crate::store::{self, RealDisk, Report};

const EXAMPLES: &str = "\
Examples:
  weir verify weir-data

Stop the aggregator first, or verify a copy.";

/// What `weir verify` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The data directory
    dir: PathBuf,
}

/// Why a shared store is not verified here.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is a store that several share: that it is whole is for its own tools to say, and \
     `weir serve --store` says what it does not understand of it"
)]
struct Shared(String);

pub(super) fn run(args: &Args) -> ExitCode {
    if let Some(url) = args.dir.to_str().filter(|dir| dir.contains("://")) {
        return fail(&Shared(
            url.split('@').next_back().unwrap_or(url).to_owned(),
        ));
    }
    match store::verify(Arc::new(RealDisk), &args.dir) {
        Ok(report) => {
            print(&describe(&report));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

pub(super) fn describe(report: &Report) -> String {
    let mut text = format!(
        "whole up to record {}: {} partitions in the snapshot, then {} records ({} bytes) in {} segments\n",
        report.last, report.shards, report.records, report.record_bytes, report.segments,
    );
    if report.torn_bytes > 0 {
        text += &format!(
            "{} bytes at the end were cut short by a crash; nobody was told that they were there\n",
            report.torn_bytes
        );
    }
    for damage in &report.damaged_snapshots {
        text += &format!("not needed, but {damage}\n");
    }
    text
}
