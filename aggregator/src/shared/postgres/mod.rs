//! PostgreSQL: each step one call of a function, so that it is one transaction and one
//! round trip.
//!
//! What is committed is as durable as `synchronous_commit` and `synchronous_standby_names`
//! say. Of several hosts the one that takes writes is spoken to. The tables are made by
//! whoever comes first.

use core::time::Duration;

use postgres::{Config, Error, Row, config::TargetSessionAttrs};

use super::{Append, Claim, Engine, EngineError, Fence, GROUPS, List, Member, StoreUrl, View};

mod connection;

use connection::{Args, Connection};

/// Entries of a list that are read at once.
const PAGE: i64 = 128;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_millis(1_500);

/// A store, and the connection to it if there is one.
pub(super) struct Postgres {
    config: Config,
    region: String,
    connection: Option<Connection>,
}

impl Postgres {
    pub(super) fn new(url: &StoreUrl, region: &str) -> Self {
        let place = &url.place;
        let mut config = Config::new();
        for (host, port) in &place.hosts {
            config.host(host).port(*port);
        }
        config
            .user(place.user.as_deref().unwrap_or("postgres"))
            .dbname(&place.database)
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .application_name("weir")
            .connect_timeout(CONNECT)
            .tcp_user_timeout(url.patience())
            .options(&format!("-c statement_timeout={}", millis(url.patience())));
        if let Some(password) = &place.password {
            config.password(password);
        }
        Self {
            config,
            region: region.to_owned(),
            connection: None,
        }
    }

    /// Asks, over a connection that may have to be made first. One that failed is not
    /// used again; one that turns out to have ended is replaced at once: whatever is
    /// asked here may be asked twice.
    fn ask<T>(
        &mut self,
        ask: impl Fn(&mut Connection, &str) -> Result<T, Error>,
    ) -> Result<T, EngineError> {
        if let Some(mut connection) = self.connection.take() {
            match ask(&mut connection, &self.region) {
                Ok(answer) => {
                    self.connection = Some(connection);
                    return Ok(answer);
                }
                Err(error) if connection.is_closed() => drop(error),
                Err(error) => return Err(away(&error)),
            }
        }
        let mut connection = Connection::open(&self.config)?;
        let answer = ask(&mut connection, &self.region).map_err(|error| away(&error))?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

fn away(error: &Error) -> EngineError {
    let said = error.as_db_error().map(|said| said.message().to_owned());
    EngineError::Away(said.unwrap_or_else(|| error.to_string()))
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn interval(span: Duration) -> String {
    format!("{} milliseconds", millis(span))
}

/// Numbers here are counts that do not come near the sign.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn place(group: u32) -> i32 {
    i32::try_from(group).unwrap_or(i32::MAX)
}

fn done(said: &str, expected: u64) -> Result<(), EngineError> {
    match said {
        "ok" => Ok(()),
        "fenced" => Err(EngineError::Fenced),
        found => Err(EngineError::Gap {
            expected,
            found: found.parse().unwrap_or(0),
        }),
    }
}

impl Engine for Postgres {
    fn beat(
        &mut self,
        me: &Member,
        held: &[(u32, Fence)],
        lease: Duration,
    ) -> Result<View, EngineError> {
        const SAY: &str = "with gone as (delete from weir_members where region = $1 \
            and id <> $2 and until <= clock_timestamp()) \
            insert into weir_members values ($1, $2, $3, clock_timestamp() + $4::text::interval) \
            on conflict (region, id) do update set url = excluded.url, until = excluded.until";
        const RENEW: &str = "select g.n, w.* from unnest($2::int[], $3::text[]) as g(n, f), \
            lateral weir_renew($1, g.n, g.f, $4::text::interval) w";
        const MEMBERS: &str = "select id, url from weir_members where region = $1 and \
            until > clock_timestamp()";
        const REVISION: &str = "select revision from weir_rules where region = $1";
        let lease = interval(lease);
        let groups: Vec<i32> = (0..GROUPS).map(place).collect();
        let fence = |group: u32| {
            let known = held.iter().find(|(known, _)| *known == group);
            known.map_or("", |(_, fence)| &fence.0)
        };
        let fences: Vec<&str> = (0..GROUPS).map(fence).collect();
        let (members, owners, revision) = self.ask(|client, region| {
            client.query(SAY, &[&region, &me.id, &me.url, &lease])?;
            let members = client.query(MEMBERS, &[&region])?;
            let owners = client.query(RENEW, &[&region, &groups, &fences, &lease])?;
            let revision = client.query(REVISION, &[&region])?;
            Ok((members, owners, revision))
        })?;
        let member = |row: &Row, from: usize| Member {
            id: row.get(from),
            url: row.get(from.saturating_add(1)),
        };
        let mut view = View {
            members: members.iter().map(|row| member(row, 0)).collect(),
            owners: vec![None; GROUPS as usize],
            lost: held.iter().map(|(group, _)| *group).collect(),
            rules_revision: revision.first().map_or(0, |row| unsigned(row.get(0))),
        };
        for row in &owners {
            let group = u32::try_from(row.get::<_, i32>(0)).unwrap_or(u32::MAX);
            if row.get::<_, bool>(1) {
                view.lost.retain(|lost| *lost != group);
            }
            let owner = member(row, 2);
            if let Some(slot) = view.owners.get_mut(group as usize)
                && !owner.id.is_empty()
            {
                *slot = Some(owner);
            }
        }
        Ok(view)
    }

    fn leave(&mut self, me: &Member) -> Result<(), EngineError> {
        const LEAVE: &str = "delete from weir_members where region = $1 and id = $2";
        self.ask(|client, region| client.query(LEAVE, &[&region, &me.id]))?;
        Ok(())
    }

    fn claim(
        &mut self,
        group: u32,
        me: &Member,
        nonce: u64,
        lease: Duration,
    ) -> Result<Option<Claim>, EngineError> {
        const CLAIM: &str = "select * from weir_claim($1, $2, $3, $4, $5::text::interval, $6)";
        let (lease, nonce) = (interval(lease), format!("{nonce:016x}"));
        let claimed = self.ask(|client, region| {
            let args: Args<'_> = &[&region, &place(group), &me.id, &me.url, &lease, &nonce];
            client.query(CLAIM, args)
        })?;
        Ok(claimed.first().map(|row| Claim {
            fence: Fence(row.get(0)),
            last: unsigned(row.get(1)),
            dropped: unsigned(row.get(2)),
        }))
    }

    fn release(&mut self, group: u32, fence: &Fence) -> Result<(), EngineError> {
        const RELEASE: &str = "update weir_groups set owner = '', fence = '', \
            until = '-infinity' where region = $1 and grp = $2 and fence = $3";
        self.ask(|client, region| client.query(RELEASE, &[&region, &place(group), &fence.0]))?;
        Ok(())
    }

    fn append(&mut self, group: u32, fence: &Fence, append: Append<'_>) -> Result<(), EngineError> {
        const APPEND: &str = "select weir_append($1, $2, $3, $4, $5, $6)";
        let (after, last) = (signed(append.after), signed(append.last));
        let said = self.ask(|client, region| {
            let args: Args<'_> = &[
                &region,
                &place(group),
                &fence.0,
                &after,
                &last,
                &append.entry,
            ];
            client.say(APPEND, args)
        })?;
        done(&said, append.after)
    }

    fn page(&mut self, group: u32, list: List, from: u64) -> Result<Vec<Vec<u8>>, EngineError> {
        const LOG: &str = "select l.bytes from weir_log l join weir_groups g using (region, grp) \
            where region = $1 and grp = $2 and l.entry >= g.dropped + $3 \
            order by l.entry limit $4";
        const SNAPSHOT: &str = "select bytes from weir_snapshots where region = $1 and grp = $2 \
            and live and place >= $3 order by place limit $4";
        let page = match list {
            List::Log => LOG,
            List::Snapshot => SNAPSHOT,
        };
        let from = signed(from);
        let rows =
            self.ask(|client, region| client.query(page, &[&region, &place(group), &from, &PAGE]))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn begin_snapshot(&mut self, group: u32, fence: &Fence) -> Result<(), EngineError> {
        self.chunk(group, fence, 0, None)
    }

    fn put_snapshot(
        &mut self,
        group: u32,
        fence: &Fence,
        place: u64,
        chunk: &[u8],
    ) -> Result<(), EngineError> {
        self.chunk(group, fence, place, Some(chunk))
    }

    fn publish_snapshot(
        &mut self,
        group: u32,
        fence: &Fence,
        name: &str,
        entries: u64,
    ) -> Result<(), EngineError> {
        const PUBLISH: &str = "select weir_publish($1, $2, $3, $4, $5)";
        let entries = signed(entries);
        let said = self.ask(|client, region| {
            let args: Args<'_> = &[&region, &place(group), &fence.0, &name, &entries];
            client.say(PUBLISH, args)
        })?;
        done(&said, 0)
    }

    fn publish_rules(&mut self, revision: u64, rules: &[u8]) -> Result<(), EngineError> {
        const RULES: &str = "insert into weir_rules values ($1, $2, $3) on conflict (region) \
            do update set revision = excluded.revision, bytes = excluded.bytes \
            where weir_rules.revision < excluded.revision";
        let revision = signed(revision);
        self.ask(|client, region| client.query(RULES, &[&region, &revision, &rules]))?;
        Ok(())
    }

    fn rules(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        const RULES: &str = "select bytes from weir_rules where region = $1";
        let rows = self.ask(|client, region| client.query(RULES, &[&region]))?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

impl Postgres {
    fn chunk(
        &mut self,
        group: u32,
        fence: &Fence,
        at: u64,
        chunk: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        const CHUNK: &str = "select weir_chunk($1, $2, $3, $4, $5)";
        let at = signed(at);
        let said = self.ask(|client, region| {
            let args: Args<'_> = &[&region, &place(group), &fence.0, &at, &chunk];
            client.say(CHUNK, args)
        })?;
        done(&said, 0)
    }
}
