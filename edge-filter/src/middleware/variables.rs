//! The settings, from the environment.

use limiter::rule::text::header_name;

use super::exports::environment;
use crate::config::Config;

/// What the environment says.
pub(super) struct Variables {
    pub(super) config: Config,
    pub(super) region: Region,
    /// The header that has the client's address.
    pub(super) client_address: Option<String>,
}

/// Where the region is.
#[derive(Clone)]
pub(super) struct Region {
    pub(super) secure: bool,
    /// Host and port.
    pub(super) authority: String,
}

impl Variables {
    /// Reads them; or says which is wrong, and what would be right.
    pub(super) fn read() -> Result<Self, String> {
        let all = environment::get_environment();
        let of = |name: &str| {
            let found = all.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let config = Config::parse(of("WEIR_SETTINGS").unwrap_or_default().as_bytes())
            .map_err(|error| format!("WEIR_SETTINGS: {error}"))?;
        let region = of("WEIR_REGION").and_then(Region::parse);
        let region =
            region.ok_or("WEIR_REGION must be an address, as in http://weir.internal:8090")?;
        let header = of("WEIR_CLIENT_ADDRESS").map(str::to_ascii_lowercase);
        if let Some(name) = &header {
            header_name(name)
                .map_err(|error| format!("WEIR_CLIENT_ADDRESS names a header: {error}"))?;
        }
        Ok(Self {
            config,
            region,
            client_address: header,
        })
    }
}

impl Region {
    fn parse(address: &str) -> Option<Self> {
        let (scheme, rest) = address.split_once("://")?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let secure = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let plain =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'@');
        (!authority.is_empty() && authority.bytes().all(plain)).then(|| Self {
            secure,
            authority: authority.to_owned(),
        })
    }
}
