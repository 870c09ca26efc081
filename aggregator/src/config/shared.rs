//! Settings that a shared store needs, and those that make no sense with one.

use std::net::SocketAddr;

use super::{ConfigError, Settings};

/// Finds what does not go together.
pub(super) fn check(settings: &Settings, listen: SocketAddr) -> Result<(), ConfigError> {
    if settings.store.is_none() {
        return match settings.advertise {
            Some(_) => Err(ConfigError::Incomplete {
                field: "advertise",
                needs: "store",
            }),
            None => Ok(()),
        };
    }
    let both = |other, why| ConfigError::Both {
        field: "store",
        other,
        why,
    };
    if settings.data_dir.is_some() {
        let why = "the counters are kept either in a directory of this machine or in a store that \
                   several share";
        return Err(both("data_dir", why));
    }
    if settings.durability.is_some() {
        let why = "the store's own settings say what it survives, and wait=N in its URL";
        return Err(both("durability", why));
    }
    if settings.tls_cert.is_some() {
        let why = "members speak plain HTTP to each other; put what ends TLS in front of them";
        return Err(both("tls_cert", why));
    }
    match &settings.advertise {
        None if listen.ip().is_unspecified() => Err(ConfigError::Incomplete {
            field: "store, where it listens on every address,",
            needs: "advertise",
        }),
        None => Ok(()),
        Some(url) => advertised(url),
    }
}

fn advertised(url: &str) -> Result<(), ConfigError> {
    let place = url.strip_prefix("http://");
    let good = place.is_some_and(|place| {
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
        !place.is_empty() && place.chars().all(fits)
    });
    match good {
        true => Ok(()),
        false => Err(ConfigError::Advertise {
            url: url.to_owned(),
            right: "it is where other members reach this one, as in http://10.0.0.7:8080",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn settings() -> Settings {
        Settings {
            store: Some("redis://a".parse().unwrap()),
            ..Settings::default()
        }
    }

    fn error(settings: Settings) -> String {
        Config::try_from(settings).unwrap_err().to_string()
    }

    #[test]
    fn a_data_directory_and_a_store_exclude_each_other() {
        let both = Settings {
            data_dir: Some("d".into()),
            ..settings()
        };
        let error = error(both);
        assert!(
            error.starts_with("store and data_dir exclude each other: "),
            "{error}"
        );
        assert!(Config::try_from(settings()).is_ok());
    }

    #[test]
    fn where_others_reach_it_is_said_if_it_cannot_be_told() {
        let everywhere = Settings {
            listen: "0.0.0.0:80".parse().ok(),
            token_file: Some("t".into()),
            ..settings()
        };
        assert!(error(everywhere.clone()).ends_with("needs advertise, too"));
        let advertise = |url: &str| Settings {
            advertise: Some(url.into()),
            ..everywhere.clone()
        };
        assert!(Config::try_from(advertise("http://10.0.0.7:8080")).is_ok());
        for url in ["10.0.0.7:80", "http://", "http://a/b", "https://a"] {
            assert!(error(advertise(url)).contains("as in http://10.0.0.7:8080"));
        }
        let alone = Settings {
            store: None,
            ..advertise("http://a")
        };
        assert_eq!(error(alone), "advertise needs store, too");
    }
}
