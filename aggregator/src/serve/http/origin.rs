//! Pages in a browser, and whether they may ask.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, Uri, header};

use super::problem::Problem;

/// Whether a page in a browser sent it that is not of this machine. Without tokens
/// whoever runs on this machine may do all, and a browser does: it must not do it
/// for any page that it shows.
pub(super) fn is_elsewhere(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    !origins.all(|origin| origin.to_str().is_ok_and(is_of_this_machine))
}

fn is_of_this_machine(origin: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else {
        return false;
    };
    let host = origin.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    host == "localhost" || address.parse().is_ok_and(is_loopback)
}

pub(super) fn problem() -> Problem {
    let detail = "without a token file, no page from elsewhere may ask through a browser here";
    let status = StatusCode::FORBIDDEN;
    Problem::new(status, "foreign-page", "A page from elsewhere asks", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_this_machine_is_told_from_all_others() {
        for ours in [
            "http://localhost:8080",
            "http://127.0.0.1",
            "https://[::1]:1",
        ] {
            assert!(is_of_this_machine(ours), "{ours}");
        }
        for other in [
            "http://localhost.example.com",
            "https://example.com:8080",
            "http://192.0.2.1",
            "null",
            "",
        ] {
            assert!(!is_of_this_machine(other), "{other}");
        }
    }
}
