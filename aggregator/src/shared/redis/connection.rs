//! A connection to the one address that is primary, with the scripts loaded.

use core::time::Duration;

use redis::{
    Client, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo, Value, pipe,
};

use super::{
    super::{EngineError, GROUPS, StoreUrl},
    Scripts,
};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_millis(1_500);

/// What the layout of keys is called: a store of another one is left alone.
const FORMAT: u32 = 1;

pub(super) struct Connection(redis::Connection);

impl Connection {
    /// Connects to the first address that is primary. `format` is the key that says how
    /// the store is laid out.
    pub(super) fn open(
        url: &StoreUrl,
        scripts: &Scripts,
        format: &str,
    ) -> Result<Self, EngineError> {
        let mut reasons = Vec::new();
        for (host, port) in &url.hosts {
            match Self::to(url, host, *port) {
                Ok(mut connection) => {
                    connection.set_up(scripts, format)?;
                    return Ok(connection);
                }
                Err(why) => reasons.push(format!("{host}:{port}: {why}")),
            }
        }
        Err(EngineError::Away(reasons.join("; ")))
    }

    fn to(url: &StoreUrl, host: &str, port: u16) -> Result<Self, String> {
        let host = host.to_owned();
        let address = match url.tls {
            true => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
            false => ConnectionAddr::Tcp(host, port),
        };
        let mut who = RedisConnectionInfo::default()
            .set_db(url.db.into())
            .set_skip_set_lib_name();
        if let Some(user) = &url.user {
            who = who.set_username(user);
        }
        if let Some(password) = &url.password {
            who = who.set_password(password);
        }
        let connected = address
            .into_connection_info()
            .and_then(|info| Client::open(info.set_redis_settings(who)))
            .and_then(|client| client.get_connection_with_timeout(CONNECT))
            .and_then(|connection| {
                let patience = Some(url.patience());
                connection.set_read_timeout(patience)?;
                connection.set_write_timeout(patience)?;
                Ok(connection)
            });
        let mut connection = Self(connected.map_err(|error| error.to_string())?);
        let mut role = pipe();
        role.cmd("ROLE");
        let (role,): (Vec<Value>,) = connection.ask(&role).map_err(|error| error.to_string())?;
        let role = role.into_iter().next().map(redis::from_redis_value);
        match role {
            Some(Ok(role))
                if {
                    let role: &String = &role;
                    role == "master"
                } =>
            {
                Ok(connection)
            }
            _ => Err("it is not the primary".to_owned()),
        }
    }

    fn set_up(&mut self, scripts: &Scripts, format: &str) -> Result<(), EngineError> {
        let ours = format!("{FORMAT}:{GROUPS}");
        let mut pipeline = pipe();
        for text in scripts.texts() {
            pipeline.cmd("SCRIPT").arg("LOAD").arg(text).ignore();
        }
        pipeline
            .cmd("SET")
            .arg(format)
            .arg(&ours)
            .arg("NX")
            .ignore();
        pipeline.cmd("GET").arg(format);
        let (found,): (String,) = self.ask(&pipeline)?;
        if found != ours {
            let what = format!("it is laid out as {found}, and this release knows {ours}");
            return Err(EngineError::Foreign(what));
        }
        Ok(())
    }

    pub(super) fn ask<T: FromRedisValue>(
        &mut self,
        pipeline: &redis::Pipeline,
    ) -> Result<T, EngineError> {
        let answer = pipeline.query(&mut self.0);
        answer.map_err(|error| EngineError::Away(error.to_string()))
    }
}
