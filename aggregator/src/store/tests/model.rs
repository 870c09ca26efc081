//! A caller of the log: a few shards that keep every record they were given.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::store::{
    Damage, Durability, FakeDisk, Log, OpenError, Options, Position, Replay, ReplayError, Report,
};

pub(super) const SHARDS: u32 = 3;

pub(super) type Record = (Position, Vec<u8>);

/// What replay builds: for each shard, the records in it and its position.
#[derive(Default)]
pub(super) struct Model {
    shards: Vec<(Position, Vec<Record>)>,
    content: Vec<Vec<u8>>,
}

/// The shard a record belongs to.
fn shard_of(record: &[u8]) -> usize {
    usize::from(record.first().copied().unwrap_or(0)) % SHARDS as usize
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            shards: vec![(Position::START, Vec::new()); SHARDS as usize],
            content: vec![Vec::new(); SHARDS as usize],
        }
    }

    /// Everything replayed, by position.
    pub(super) fn history(mut self) -> Vec<Record> {
        self.parse_shards();
        let mut all: Vec<_> = self.shards.into_iter().flat_map(|shard| shard.1).collect();
        all.sort_by_key(|record| record.0);
        all
    }

    fn parse_shards(&mut self) {
        for (shard, content) in self.shards.iter_mut().zip(&mut self.content) {
            let mut rest = content.as_slice();
            while let Some((head, tail)) = rest.split_first_chunk::<12>() {
                let position = u64::from_le_bytes(head[..8].try_into().unwrap());
                let len = u32::from_le_bytes(head[8..].try_into().unwrap()) as usize;
                shard
                    .1
                    .push((Position::new(position), tail[..len].to_vec()));
                rest = &tail[len..];
            }
            content.clear();
        }
    }
}

impl Replay for Model {
    fn shard(&mut self, shard: u32, contains: Position, bytes: &[u8]) -> Result<(), ReplayError> {
        self.shards[shard as usize].0 = contains;
        self.content[shard as usize].extend_from_slice(bytes);
        Ok(())
    }

    fn record(&mut self, position: Position, record: &[u8]) -> Result<(), ReplayError> {
        self.parse_shards();
        let shard = &mut self.shards[shard_of(record)];
        if position > shard.0 {
            shard.1.push((position, record.to_vec()));
        }
        Ok(())
    }
}

/// The content of a shard, as `Model` reads it back.
pub(super) fn shard_bytes(history: &[Record], shard: u32) -> Vec<u8> {
    let mine = |record: &&Record| shard_of(&record.1) == shard as usize;
    let mut bytes = Vec::new();
    for (position, record) in history.iter().filter(mine) {
        bytes.extend_from_slice(&position.number().to_le_bytes());
        bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        bytes.extend_from_slice(record);
    }
    bytes
}

pub(super) fn dir() -> &'static Path {
    Path::new("data")
}

pub(super) fn small() -> Options {
    Options {
        segment_bytes_max: 400,
        record_bytes_max: 200,
        buffer_bytes_max: 1000,
        snapshot_sync_bytes: 64,
    }
}

/// Opens the log and gives what was replayed.
pub(super) fn open(disk: &FakeDisk) -> Result<(Log, Report, Vec<Record>), OpenError> {
    let mut model = Model::new();
    let (log, report) = Log::open(Arc::new(disk.clone()), dir(), small(), &mut model)?;
    Ok((log, report, model.history()))
}

pub(super) fn refusal(disk: &FakeDisk) -> OpenError {
    match open(disk) {
        Ok(_) => panic!("opened a directory that should be refused"),
        Err(error) => error,
    }
}

pub(super) fn damage(disk: &FakeDisk) -> Damage {
    match refusal(disk) {
        OpenError::Damaged(damage) => *damage,
        other => panic!("not damage but: {other}"),
    }
}

/// Appends the `numbers`th records and commits each on its own.
pub(super) fn commit_each(log: &mut Log, numbers: impl IntoIterator<Item = u8>) -> Vec<Record> {
    let commit = |number| {
        let record = vec![number; 20];
        let position = log.append(&[&record]).unwrap();
        log.commit(Durability::Fsynced).unwrap();
        (position, record)
    };
    numbers.into_iter().map(commit).collect()
}

/// Takes a snapshot of `history`.
pub(super) fn snapshot(log: &mut Log, history: &[Record]) {
    let mut writer = log.begin_snapshot(7).unwrap();
    for shard in 0..SHARDS {
        let bytes = shard_bytes(history, shard);
        writer.shard(shard, log.last(), &bytes).unwrap();
    }
    let _ = log.finish_snapshot(writer).unwrap();
}

/// Files whose name contains `part`, in order.
pub(super) fn files(disk: &FakeDisk, part: &str) -> Vec<PathBuf> {
    let all = disk.files().into_iter().map(|file| file.0);
    all.filter(|path| path.to_string_lossy().contains(part))
        .collect()
}
