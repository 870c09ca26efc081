//! Settings of the aggregator above this one, and those that make no sense with one.

use std::path::PathBuf;

use super::{ConfigError, Settings};

/// The aggregator that adds up regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTarget {
    /// Where it is: one or several to be tried in turn, none of them empty.
    pub urls: Vec<String>,
    /// The file with the token to show it.
    pub token_file: Option<PathBuf>,
    /// Who signed its certificate.
    pub ca: Option<PathBuf>,
    /// The certificate to show it, and its key.
    pub cert: Option<(PathBuf, PathBuf)>,
}

impl UpstreamTarget {
    /// What the settings say; none if there is nobody above.
    pub(super) fn of(settings: &Settings) -> Result<Option<Self>, ConfigError> {
        let Some(urls) = &settings.upstream else {
            return alone(settings);
        };
        if settings.region.is_none() {
            return Err(ConfigError::Incomplete {
                field: "upstream",
                needs: "region (regions are told apart by their names)",
            });
        }
        if settings.rules.is_some() {
            return Err(ConfigError::Both {
                field: "upstream",
                other: "rules",
                why: "a region has the rules of the aggregator above it",
            });
        }
        let urls: Vec<String> = urls.split(',').map(|url| url.trim().to_owned()).collect();
        let is_url = |url: &String| {
            let place = url.strip_prefix("http://");
            let place = place.or_else(|| url.strip_prefix("https://"));
            place.is_some_and(|place| {
                !place.is_empty() && !place.trim_end_matches('/').contains('/')
            })
        };
        if let Some(wrong) = urls.iter().find(|url| !is_url(url)) {
            return Err(ConfigError::Upstream { url: wrong.clone() });
        }
        let cert = match (&settings.upstream_cert, &settings.upstream_key) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            (Some(_), None) => return Err(incomplete("upstream_cert", "upstream_key")),
            (None, Some(_)) => return Err(incomplete("upstream_key", "upstream_cert")),
        };
        Ok(Some(Self {
            urls,
            token_file: settings.upstream_token_file.clone(),
            ca: settings.upstream_ca.clone(),
            cert,
        }))
    }
}

/// Without anybody above, nothing is to be said of the way there.
fn alone(settings: &Settings) -> Result<Option<UpstreamTarget>, ConfigError> {
    let said = [
        ("upstream_token_file", &settings.upstream_token_file),
        ("upstream_ca", &settings.upstream_ca),
        ("upstream_cert", &settings.upstream_cert),
        ("upstream_key", &settings.upstream_key),
    ];
    match said.iter().find(|(_, value)| value.is_some()) {
        Some((field, _)) => Err(incomplete(field, "upstream")),
        None => Ok(None),
    }
}

const fn incomplete(field: &'static str, needs: &'static str) -> ConfigError {
    ConfigError::Incomplete { field, needs }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(urls: &str) -> Result<Option<UpstreamTarget>, ConfigError> {
        UpstreamTarget::of(&Settings {
            upstream: Some(urls.to_owned()),
            region: Some("eu".to_owned()),
            ..Settings::default()
        })
    }

    #[test]
    fn several_are_tried_in_turn() {
        let target = of("http://a:1, https://b").unwrap().unwrap();
        assert_eq!(target.urls, ["http://a:1", "https://b"]);
        for wrong in ["", "a:1", "http://a,", "http://a/v1"] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("http://10.0.0.7:8080"), "{error}");
        }
    }

    #[test]
    fn a_region_needs_a_name_and_has_no_rules_of_its_own() {
        let settings = |settings: Settings| {
            let upstream = Some("http://a".to_owned());
            UpstreamTarget::of(&Settings {
                upstream,
                ..settings
            })
        };
        let error = settings(Settings::default()).unwrap_err().to_string();
        assert!(error.starts_with("upstream needs region"), "{error}");
        let error = settings(Settings {
            region: Some("eu".to_owned()),
            rules: Some("rules.yaml".into()),
            ..Settings::default()
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("rules"), "{error}");
    }

    #[test]
    fn the_way_to_nobody_needs_no_token() {
        let error = UpstreamTarget::of(&Settings {
            upstream_token_file: Some("t".into()),
            ..Settings::default()
        });
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "upstream_token_file needs upstream, too");
    }
}
