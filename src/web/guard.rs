//! What every request and answer passes through: only pages of this server may talk to
//! it, and its pages load nothing from elsewhere.
//!
//! A page of another site could reach a server on the same machine in two ways. It can
//! give its own name the address 127.0.0.1 (DNS rebinding); then the `Host` of its
//! requests is that name. Or it can post across origins; then browsers say so in
//! `Origin`. Both are refused.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::ApiError;

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// The headers of every answer.
fn headers() -> [(HeaderName, HeaderValue); 6] {
    let same_origin = HeaderValue::from_static("same-origin");
    [
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(CONTENT_POLICY),
        ),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // Pages change with the program, answers with every move.
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            same_origin.clone(),
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            same_origin,
        ),
    ]
}

/// The name by which the server may be called, beside `localhost` and addresses, which
/// no other site can take for itself.
#[derive(Debug, Clone)]
pub struct OwnName(pub Arc<str>);

/// Refuses requests that other sites' pages may have made, and adds the headers that
/// keep this server's pages to themselves.
pub async fn guard(State(own): State<OwnName>, request: Request, next: Next) -> Response {
    let mut response = match check(&own, &request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    response.headers_mut().extend(headers());
    response
}

fn check(own: &OwnName, request: &Request) -> Result<(), ApiError> {
    let host = authority(request.headers(), request.uri())
        .ok_or_else(|| ApiError::bad_request("the request has no usable Host header"))?;
    if !is_own(own, host.host()) {
        return Err(ApiError::forbidden(format!(
            "this server does not go by the name {:?}; call it by its address, or start it with \
             --host and that name",
            host.host()
        )));
    }
    if request.method() != Method::GET && !is_same_origin(request.headers(), &host) {
        let message = "the request comes from a page of another origin";
        return Err(ApiError::forbidden(message));
    }
    Ok(())
}

fn authority(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    match headers.get(HOST) {
        Some(host) => host.to_str().ok()?.parse().ok(),
        None => uri.authority().cloned(),
    }
}

fn is_own(own: &OwnName, host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.eq_ignore_ascii_case(&own.0)
        || address.parse::<IpAddr>().is_ok()
}

/// Programs that are no browsers send no `Origin`; browsers do with every post.
fn is_same_origin(headers: &HeaderMap, host: &Authority) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(host.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_nobody_else_can_take_are_own() {
        let own = OwnName("mybox.lan".into());
        for name in [
            "localhost",
            "LOCALHOST",
            "127.0.0.1",
            "[::1]",
            "10.1.2.3",
            "MyBox.lan",
        ] {
            assert!(is_own(&own, name), "{name}");
        }
        for name in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.nip.io",
        ] {
            assert!(!is_own(&own, name), "{name}");
        }
    }

    #[test]
    fn posts_of_other_origins_are_told_by_their_origin() {
        let host: Authority = "127.0.0.1:8080".parse().unwrap();
        let is_same = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            is_same_origin(&headers, &host)
        };
        assert!(is_same_origin(&HeaderMap::new(), &host));
        assert!(is_same("http://127.0.0.1:8080"));
        for other in [
            "null",
            "http://127.0.0.1",
            "http://127.0.0.1:8081",
            "https://example.com",
            "http://example.com/127.0.0.1:8080",
        ] {
            assert!(!is_same(other), "{other}");
        }
    }
}
