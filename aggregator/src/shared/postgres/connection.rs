//! A connection to PostgreSQL, with the tables there and statements prepared.

use std::collections::HashMap;

use postgres::{Client, Config, Error, NoTls, Row, Statement, types::ToSql};

use super::{
    super::{EngineError, GROUPS},
    away,
};

/// What the layout of the tables is called: one of another is left alone.
const FORMAT: u32 = 1;

const SETUP: &str = include_str!("setup.sql");

/// Held while the tables are made; any number will do, if it is always the same.
const SETUP_LOCK: &str = "select pg_advisory_xact_lock(829371)";

/// A connection, and what was prepared on it: so that an append is one round trip.
pub(super) struct Connection {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
}

/// What a statement is given.
pub(super) type Args<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Connection {
    /// Connects to the first host that takes writes, and makes the tables if there are
    /// none.
    pub(super) fn open(config: &Config) -> Result<Self, EngineError> {
        let mut client = config.connect(NoTls).map_err(|error| away(&error))?;
        set_up(&mut client)?;
        let prepared = HashMap::new();
        Ok(Self { client, prepared })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) fn query(&mut self, text: &'static str, args: Args<'_>) -> Result<Vec<Row>, Error> {
        let statement = match self.prepared.get(text) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(text)?;
                self.prepared.insert(text, statement.clone());
                statement
            }
        };
        self.client.query(&statement, args)
    }

    /// The first column of the only row, of a function that always says something.
    pub(super) fn say(&mut self, text: &'static str, args: Args<'_>) -> Result<String, Error> {
        let rows = self.query(text, args)?;
        Ok(rows.first().map_or_else(String::new, |row| row.get(0)))
    }
}

/// Makes the tables if there are none.
fn set_up(client: &mut Client) -> Result<(), EngineError> {
    let ours = format!("{FORMAT}:{GROUPS}");
    match tables(client, &ours) {
        Ok(found) if found == ours => Ok(()),
        Ok(found) => Err(EngineError::Foreign(format!(
            "it is laid out as {found}, and this release knows {ours}"
        ))),
        Err(error) => Err(away(&error)),
    }
}

/// The layout of the tables that are there, or were made.
fn tables(client: &mut Client, ours: &str) -> Result<String, Error> {
    let mut setting_up = client.transaction()?;
    setting_up.batch_execute(SETUP_LOCK)?;
    let known = setting_up.query_one("select to_regclass('weir_format')::text", &[])?;
    if known.get::<_, Option<String>>(0).is_none() {
        setting_up.batch_execute(SETUP)?;
        setting_up.execute("insert into weir_format values ($1)", &[&ours])?;
    }
    let format = setting_up.query_one("select version from weir_format", &[])?;
    setting_up.commit()?;
    Ok(format.get(0))
}
