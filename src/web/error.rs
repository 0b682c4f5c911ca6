//! What the API answers when it does not do what it is asked to: a status, and JSON
//! that says why, for people (`message`) and for programs (`kind`).

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::session::Refusal;

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            status,
            kind,
            message: message.into(),
        }
    }

    /// The request is not understood, or asks for something out of range.
    pub fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// The body is longer than any request needs.
    pub fn too_large(limit_bytes: usize) -> ApiError {
        let message = format!("the body is longer than {limit_bytes} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// The body is not JSON by its content type.
    pub fn not_json() -> ApiError {
        let message = "the content type must be application/json";
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message)
    }

    /// A request that another site's page may have made.
    pub fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// There is nothing of that name.
    pub fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The session is not kept, or never was.
    pub fn no_session() -> ApiError {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_session",
            "there is no such game: it was left alone too long, or the server has been \
             restarted; start a new one",
        )
    }

    /// The path exists, for another method.
    pub fn wrong_method() -> ApiError {
        let message = "this path does not take that method";
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message)
    }

    /// Something stands against it at the moment.
    pub fn conflict(kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, kind, message)
    }

    /// The server's own fault.
    pub fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        let message = refusal.to_string();
        match refusal {
            Refusal::IllegalMove(_) => ApiError::conflict("illegal_move", message),
            Refusal::NotYourTurn => ApiError::conflict("not_your_turn", message),
            Refusal::Over(_) => ApiError::conflict("over", message),
            Refusal::NothingToUndo => ApiError::conflict("nothing_to_undo", message),
            Refusal::NoSuchPly { .. } => ApiError::not_found(message),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "kind": self.kind, "message": self.message });
        (self.status, Json(body)).into_response()
    }
}
