//! Where the region's books put what changes them, and why it cannot be read
//! back. What becomes of a record is the host's affair.

/// Takes the records of changes, in order.
pub trait Journal {
    /// Takes a record and returns its position, which grows with every record.
    fn append(&mut self, record: &[u8]) -> u64;
}

/// Why a record or a snapshot cannot be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record at {position} is not one of ours: {what}")]
pub struct ReplayError {
    /// Where it stands.
    pub position: u64,
    /// What is wrong.
    pub what: &'static str,
}
