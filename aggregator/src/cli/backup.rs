//! `weir backup`: everything on record of a running aggregator, into a file.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{
    fail, print,
    target::{Target, failed},
};
use crate::client::Download;

const EXAMPLES: &str = "\
Examples:
  weir backup backup.tar
  weir backup backup.tar --url https://weir.example.com

The file appears once it is whole and on disk, in place of one that was there. The
token needs the right `backup`. `weir restore` makes a data directory of it.

Exit codes: 0 done, 1 failed (the reason is on standard error), 2 not understood, 69
the service cannot be reached.";

/// What `weir backup` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Where the backup goes
    file: PathBuf,
    #[command(flatten)]
    target: Target,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", file.display())]
struct WriteError {
    file: PathBuf,
    source: io::Error,
}

pub(super) fn run(args: Args) -> ExitCode {
    let client = args.target.client();
    let download = match client.and_then(|client| client.download("/v1/backup")) {
        Ok(download) => download,
        Err(error) => return failed(&error),
    };
    match keep(&args.file, download) {
        Ok(bytes) => {
            print(&format!("{bytes} bytes in {}", args.file.display()));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

fn keep(file: &Path, download: Download) -> Result<u64, WriteError> {
    let mut unfinished = OsString::from(file);
    unfinished.push(".part");
    let written = write(Path::new(&unfinished), file, download);
    written.map_err(|source| {
        // Best effort: half a backup is of no use, and is refused as one.
        let _ = fs::remove_file(&unfinished);
        let file = file.to_owned();
        WriteError { file, source }
    })
}

fn write(unfinished: &Path, file: &Path, mut download: Download) -> io::Result<u64> {
    let mut out = File::create(unfinished)?;
    let bytes = io::copy(&mut download, &mut out)?;
    out.sync_all()?;
    fs::rename(unfinished, file)?;
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(bytes)
}
