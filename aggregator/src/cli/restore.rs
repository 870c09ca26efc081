//! `weir restore`: a data directory from a backup.

use std::{fs::File, io::BufReader, path::PathBuf, process::ExitCode, sync::Arc};

use super::{fail, print, verify::describe};
use crate::store::{self, RealDisk, RestoreError};

const EXAMPLES: &str = "\
Examples:
  weir restore backup.tar --data-dir weir-data

The directory must be empty or not exist. What is restored is read as a start would
read it before it is called a data directory.";

/// What `weir restore` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The backup
    file: PathBuf,
    /// Where the aggregator will find it
    #[arg(long, value_name = "DIR", default_value = "weir-data")]
    data_dir: PathBuf,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let restored = File::open(&args.file)
        .map_err(RestoreError::from)
        .and_then(|file| store::restore(Arc::new(RealDisk), &args.data_dir, BufReader::new(file)));
    match restored {
        Ok(report) => {
            print(&describe(&report));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}
