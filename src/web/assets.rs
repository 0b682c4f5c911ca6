//! The page, compiled in. The server reads no files for it.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// Its path on the server.
    pub path: &'static str,
    content_type: &'static str,
    content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $type:expr, $file:literal) => {
        Asset {
            path: $path,
            content_type: $type,
            content: include_str!(concat!("assets/", $file)),
        }
    };
}

/// Every file of the page.
pub const ASSETS: &[Asset] = &[
    asset!("/", HTML, "play.html"),
    asset!("/training", HTML, "training.html"),
    asset!("/assets/style.css", CSS, "style.css"),
    asset!("/assets/icon.svg", SVG, "icon.svg"),
    asset!("/assets/api.js", JS, "api.js"),
    asset!("/assets/dom.js", JS, "dom.js"),
    asset!("/assets/board.js", JS, "board.js"),
    asset!("/assets/pieces.js", JS, "pieces.js"),
    asset!("/assets/chart.js", JS, "chart.js"),
    asset!("/assets/clock.js", JS, "clock.js"),
    asset!("/assets/setup.js", JS, "setup.js"),
    asset!("/assets/network.js", JS, "network.js"),
    asset!("/assets/play.js", JS, "play.js"),
    asset!("/assets/training.js", JS, "training.js"),
    asset!("/assets/theme.js", JS, "theme.js"),
];

impl IntoResponse for &'static Asset {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, self.content_type)], self.content).into_response()
    }
}
