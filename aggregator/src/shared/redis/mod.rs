//! Valkey and Redis: each step one script, so that it is whole or not at all.
//!
//! A group's keys share a hash tag. What is replicated is asynchronous; with `wait=N` an
//! append has been done only when N replicas said that they hold it (`WAIT`, on the
//! connection that wrote). What a crash of the engine takes is `appendfsync`'s to say.

use core::time::Duration;

use redis::{FromRedisValue, Value, pipe};

use super::{Append, Claim, Engine, EngineError, Fence, GROUPS, List, Member, StoreUrl, View};

mod connection;
mod scripts;

use connection::Connection;
use scripts::Scripts;

/// Entries of a list that are read at once.
const PAGE: u64 = 128;

/// A store, and the connection to it if there is one.
pub(super) struct Redis {
    url: StoreUrl,
    keys: Keys,
    scripts: Scripts,
    connection: Option<Connection>,
}

/// What keys are called.
struct Keys {
    region: String,
}

impl Keys {
    /// A part of one group.
    fn group(&self, group: u32, part: &str) -> String {
        format!("weir:{}:{{{group}}}:{part}", self.region)
    }

    /// What is not a group's.
    fn all(&self, part: &str) -> String {
        format!("weir:{}:{{all}}:{part}", self.region)
    }
}

/// What a script that writes under a fence says.
type Outcome = (String, u64);

impl Redis {
    pub(super) fn new(url: &StoreUrl, region: &str) -> Self {
        Self {
            url: url.clone(),
            keys: Keys {
                region: region.to_owned(),
            },
            scripts: Scripts::new(),
            connection: None,
        }
    }

    /// Sends commands in one go and reads what they answer. A connection that failed is
    /// not used again.
    fn ask<T: FromRedisValue>(&mut self, pipeline: &redis::Pipeline) -> Result<T, EngineError> {
        if self.connection.is_none() {
            let format = self.keys.all("format");
            let connection = Connection::open(&self.url, &self.scripts, &format)?;
            self.connection = Some(connection);
        }
        let Some(connection) = &mut self.connection else {
            return Err(EngineError::Away("no connection".to_owned()));
        };
        connection
            .ask(pipeline)
            .inspect_err(|_| self.connection = None)
    }

    /// Runs a script that writes under a fence. With `wait`, it is done only when as
    /// many replicas hold it.
    fn write(&mut self, script: &Script<'_>, wait: bool) -> Result<Outcome, EngineError> {
        let mut pipeline = pipe();
        script.add_to(&mut pipeline, &self.scripts);
        let wanted = if wait { self.url.wait } else { 0 };
        if wanted == 0 {
            let (outcome,): (Outcome,) = self.ask(&pipeline)?;
            return Ok(outcome);
        }
        let wait_ms = u64::try_from(self.url.wait_for.as_millis()).unwrap_or(u64::MAX);
        pipeline.cmd("WAIT").arg(wanted).arg(wait_ms);
        let (outcome, held): (Outcome, u64) = self.ask(&pipeline)?;
        if outcome.0 == "ok" && held < u64::from(wanted) {
            // Perhaps this is no primary any more: who connects anew looks.
            self.connection = None;
            return Err(EngineError::Unreplicated { held, wanted });
        }
        Ok(outcome)
    }
}

/// A script with its keys and arguments.
struct Script<'a> {
    name: scripts::Name,
    keys: Vec<String>,
    args: Vec<&'a [u8]>,
}

impl Script<'_> {
    fn add_to(&self, pipeline: &mut redis::Pipeline, scripts: &Scripts) {
        let command = pipeline.cmd("EVALSHA").arg(scripts.hash(self.name));
        command.arg(self.keys.len());
        for key in &self.keys {
            command.arg(key);
        }
        for arg in &self.args {
            command.arg(*arg);
        }
    }
}

fn done(outcome: &Outcome, expected: u64) -> Result<(), EngineError> {
    match outcome {
        (said, _) if said == "ok" => Ok(()),
        (said, found) if said == "gap" => Err(EngineError::Gap {
            expected,
            found: *found,
        }),
        _ => Err(EngineError::Fenced),
    }
}

fn millis(span: Duration) -> String {
    span.as_millis().to_string()
}

impl Engine for Redis {
    fn beat(
        &mut self,
        me: &Member,
        held: &[(u32, Fence)],
        lease: Duration,
    ) -> Result<View, EngineError> {
        let lease = millis(lease);
        let mut pipeline = pipe();
        let keys = vec![self.keys.all("ends"), self.keys.all("urls")];
        let args = vec![me.id.as_bytes(), me.url.as_bytes(), lease.as_bytes()];
        let name = scripts::Name::Beat;
        Script { name, keys, args }.add_to(&mut pipeline, &self.scripts);
        for group in 0..GROUPS {
            let fence = held.iter().find(|(known, _)| *known == group);
            let fence = fence.map_or("", |(_, fence)| fence.0.as_str());
            let keys = vec![self.keys.group(group, "meta")];
            let args = vec![fence.as_bytes(), lease.as_bytes()];
            let name = scripts::Name::Renew;
            Script { name, keys, args }.add_to(&mut pipeline, &self.scripts);
        }
        pipeline
            .cmd("HGET")
            .arg(self.keys.all("rules"))
            .arg("revision");
        let answers: Vec<Value> = self.ask(&pipeline)?;
        view(answers, held).ok_or_else(|| foreign("an answer to a beat"))
    }

    fn leave(&mut self, me: &Member) -> Result<(), EngineError> {
        let mut pipeline = pipe();
        pipeline.cmd("ZREM").arg(self.keys.all("ends")).arg(&me.id);
        pipeline.cmd("HDEL").arg(self.keys.all("urls")).arg(&me.id);
        let _: Vec<Value> = self.ask(&pipeline)?;
        Ok(())
    }

    fn claim(
        &mut self,
        group: u32,
        me: &Member,
        nonce: u64,
        lease: Duration,
    ) -> Result<Option<Claim>, EngineError> {
        let (lease, nonce) = (millis(lease), format!("{nonce:016x}"));
        let mut pipeline = pipe();
        let script = Script {
            name: scripts::Name::Claim,
            keys: vec![self.keys.group(group, "meta")],
            args: vec![
                me.id.as_bytes(),
                me.url.as_bytes(),
                lease.as_bytes(),
                nonce.as_bytes(),
            ],
        };
        script.add_to(&mut pipeline, &self.scripts);
        let (said,): (Vec<String>,) = self.ask(&pipeline)?;
        let [fence, last, dropped] = said.as_slice() else {
            return Ok(None);
        };
        let number = |text: &str| text.parse().map_err(|_| foreign("a number of a group"));
        Ok(Some(Claim {
            fence: Fence(fence.clone()),
            last: number(last)?,
            dropped: number(dropped)?,
        }))
    }

    fn release(&mut self, group: u32, fence: &Fence) -> Result<(), EngineError> {
        let mut pipeline = pipe();
        let script = Script {
            name: scripts::Name::Release,
            keys: vec![self.keys.group(group, "meta")],
            args: vec![fence.0.as_bytes()],
        };
        script.add_to(&mut pipeline, &self.scripts);
        let (_,): (String,) = self.ask(&pipeline)?;
        Ok(())
    }

    fn append(&mut self, group: u32, fence: &Fence, append: Append<'_>) -> Result<(), EngineError> {
        let (after, last) = (append.after.to_string(), append.last.to_string());
        let script = Script {
            name: scripts::Name::Append,
            keys: vec![
                self.keys.group(group, "meta"),
                self.keys.group(group, "log"),
            ],
            args: vec![
                fence.0.as_bytes(),
                after.as_bytes(),
                last.as_bytes(),
                append.entry,
            ],
        };
        done(&self.write(&script, true)?, append.after)
    }

    fn page(&mut self, group: u32, list: List, from: u64) -> Result<Vec<Vec<u8>>, EngineError> {
        let key = match list {
            List::Log => self.keys.group(group, "log"),
            List::Snapshot => self.keys.group(group, "snapshot"),
        };
        let to = from.saturating_add(PAGE - 1);
        let mut pipeline = pipe();
        pipeline.cmd("LRANGE").arg(key).arg(from).arg(to);
        let (entries,): (Vec<Vec<u8>>,) = self.ask(&pipeline)?;
        Ok(entries)
    }

    fn begin_snapshot(&mut self, group: u32, fence: &Fence) -> Result<(), EngineError> {
        self.chunk(group, vec![fence.0.as_bytes()])
    }

    fn put_snapshot(&mut self, group: u32, fence: &Fence, chunk: &[u8]) -> Result<(), EngineError> {
        self.chunk(group, vec![fence.0.as_bytes(), chunk])
    }

    fn publish_snapshot(
        &mut self,
        group: u32,
        fence: &Fence,
        name: &str,
        entries: u64,
    ) -> Result<(), EngineError> {
        let entries = entries.to_string();
        let parts = ["meta", "log", "next", "snapshot"];
        let script = Script {
            name: scripts::Name::Publish,
            keys: parts.map(|part| self.keys.group(group, part)).to_vec(),
            args: vec![fence.0.as_bytes(), name.as_bytes(), entries.as_bytes()],
        };
        done(&self.write(&script, false)?, 0)
    }

    fn publish_rules(&mut self, revision: u64, rules: &[u8]) -> Result<(), EngineError> {
        let revision = revision.to_string();
        let mut pipeline = pipe();
        let script = Script {
            name: scripts::Name::Rules,
            keys: vec![self.keys.all("rules")],
            args: vec![revision.as_bytes(), rules],
        };
        script.add_to(&mut pipeline, &self.scripts);
        let (_,): (String,) = self.ask(&pipeline)?;
        Ok(())
    }

    fn rules(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let mut pipeline = pipe();
        pipeline
            .cmd("HGET")
            .arg(self.keys.all("rules"))
            .arg("bytes");
        let (rules,): (Option<Vec<u8>>,) = self.ask(&pipeline)?;
        Ok(rules)
    }
}

impl Redis {
    fn chunk(&mut self, group: u32, args: Vec<&[u8]>) -> Result<(), EngineError> {
        let script = Script {
            name: scripts::Name::Chunk,
            keys: ["meta", "next"]
                .map(|part| self.keys.group(group, part))
                .to_vec(),
            args,
        };
        done(&self.write(&script, false)?, 0)
    }
}

/// What the answers to a beat say: the members, each group, the rules' revision.
fn view(answers: Vec<Value>, held: &[(u32, Fence)]) -> Option<View> {
    let mut answers = answers.into_iter();
    let said: Vec<String> = redis::from_redis_value(answers.next()?).ok()?;
    let pairs = said.as_chunks::<2>().0.iter();
    let mut view = View {
        members: pairs.map(|[id, url]| member(id, url)).collect(),
        ..View::default()
    };
    for group in 0..GROUPS {
        let said: (String, String, String) = redis::from_redis_value(answers.next()?).ok()?;
        let (holds, id, url) = said;
        if holds != "1" && held.iter().any(|(known, _)| *known == group) {
            view.lost.push(group);
        }
        view.owners
            .push((!id.is_empty()).then(|| member(&id, &url)));
    }
    let revision: Option<u64> = redis::from_redis_value(answers.next()?).ok()?;
    view.rules_revision = revision.unwrap_or(0);
    Some(view)
}

fn member(id: &str, url: &str) -> Member {
    Member {
        id: id.to_owned(),
        url: url.to_owned(),
    }
}

fn foreign(what: &str) -> EngineError {
    EngineError::Foreign(format!("{what} means nothing"))
}
