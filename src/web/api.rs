//! The JSON API: paths, what they take and what they answer. What is done happens in
//! the other files; the README documents the paths for users.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::{sleep_until, timeout};

use super::App;
use super::assets::ASSETS;
use super::catalog::{CatalogError, Offer};
use super::clock::TimeControl;
use super::error::ApiError;
use super::guard::{OwnName, guard};
use super::session::{Refusal, Session, Terms, View};
use super::store::{SharedSession, lock};
use super::training;
use crate::game::Side;
use crate::random::secret;

/// The longest body of a request.
const MAX_BODY_BYTES: usize = 4096;

/// The longest that a body may take to arrive.
const LONGEST_BODY: Duration = Duration::from_secs(10);

/// The longest that a request waits for a change.
const LONGEST_WAIT: Duration = Duration::from_secs(25);

type Answer<T> = Result<Json<T>, ApiError>;

/// Every path of the server.
pub fn router(app: Arc<App>, own_name: OwnName) -> Router {
    let pages = ASSETS.iter().fold(Router::new(), |router, asset| {
        router.route(asset.path, get(move || async move { asset }))
    });
    pages
        .route("/api/setup", get(setup))
        .route("/api/games", post(new_game))
        .route("/api/games/{id}", get(show))
        .route("/api/games/{id}/after/{version}", get(show_after))
        .route("/api/games/{id}/moves", post(play))
        .route("/api/games/{id}/undo", post(undo))
        .route("/api/games/{id}/resign", post(resign))
        .route("/api/games/{id}/rematch", post(rematch))
        .route("/api/games/{id}/values/{ply}", get(values))
        .route("/api/runs", get(runs))
        .route("/api/runs/{name}/metrics/{from}", get(metrics))
        .fallback(|| async { ApiError::not_found("there is nothing at this path") })
        .method_not_allowed_fallback(|| async { ApiError::wrong_method() })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(own_name, guard))
        .with_state(app)
}

/// What there is to play.
async fn setup(State(app): State<Arc<App>>) -> Answer<Value> {
    let runs = blocking({
        let app = app.clone();
        move || playable_runs(&app)
    })
    .await??;
    let games = app.catalog.offers().iter().map(|offer| {
        let mut opponents: Vec<Value> = offer
            .opponents()
            .iter()
            .map(|opponent| {
                json!({
                    "id": opponent.id,
                    "name": opponent.name,
                    "about": opponent.about,
                    "takes_plies": opponent.takes_plies(),
                })
            })
            .collect();
        opponents.extend(runs.iter().filter(|run| run.game == offer.name).map(|run| {
            json!({
                "id": run.opponent,
                "name": run.name,
                "about": "the newest network of this run",
                "takes_plies": true,
            })
        }));
        json!({
            "name": offer.name,
            "title": offer.title,
            "about": offer.about,
            "board": offer.board,
            "has_network": offer.has_network(),
            "opponents": opponents,
        })
    });
    Ok(Json(json!({
        "games": games.collect::<Vec<_>>(),
        "clock": TimeControl::ARTICLE,
    })))
}

/// A run as an opponent.
#[derive(Debug, Clone, Serialize)]
struct PlayableRun {
    game: String,
    opponent: String,
    #[serde(skip)]
    name: String,
}

/// The opponent that a run is, if its game is on offer and it has a network.
fn playable(app: &App, run: &training::RunView) -> Result<PlayableRun, &'static str> {
    let rules = run.rules_sha256.as_deref();
    let offer: Option<&Offer> = rules.and_then(|rules| app.catalog.game_of_rules(rules));
    match offer {
        _ if run.experiment.as_deref() != Some("value") => {
            Err("this run does not train one value network")
        }
        None => Err("its game is not on offer: start tanren serve with its rules file"),
        Some(_) if !run.has_checkpoint => Err("there is no checkpoint yet"),
        Some(offer) => Ok(PlayableRun {
            game: offer.name.clone(),
            opponent: format!("run:{}", run.name),
            name: run.name.clone(),
        }),
    }
}

fn playable_runs(app: &App) -> Result<Vec<PlayableRun>, ApiError> {
    let runs = app.catalog.runs.list().map_err(unreadable)?;
    let playable = runs.iter().filter_map(|run| playable(app, run).ok());
    Ok(playable.collect())
}

/// What a new game is to be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewGame {
    game: String,
    opponent: String,
    /// How far a network looks ahead.
    plies: Option<u32>,
    side: SideChoice,
    /// `null`: no clock. Left out: the article's.
    #[serde(default = "article_clock")]
    clock: Option<TimeControl>,
    /// Where to begin.
    position: Option<String>,
}

fn article_clock() -> Option<TimeControl> {
    Some(TimeControl::ARTICLE)
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SideChoice {
    First,
    Second,
    Random,
}

impl SideChoice {
    fn choose(self) -> Side {
        match self {
            SideChoice::First => Side::First,
            SideChoice::Second => Side::Second,
            SideChoice::Random => Side::ALL[(secret() % 2) as usize],
        }
    }
}

/// A session, as the API shows it.
#[derive(Debug, Serialize)]
struct Shown {
    id: String,
    #[serde(flatten)]
    view: View,
}

async fn new_game(
    State(app): State<Arc<App>>,
    Body(request): Body<NewGame>,
) -> Result<Response, ApiError> {
    if let Some(clock) = request.clock {
        let checked = clock.validate();
        checked.map_err(|why| ApiError::bad_request(format!("clock.{why}")))?;
    }
    start(app, move |app| {
        let NewGame {
            game,
            opponent,
            plies,
            side,
            clock,
            position,
        } = request;
        Ok(Terms {
            seat: app.catalog.seat(&game, &opponent, plies)?,
            human: side.choose(),
            time: clock,
            position,
        })
    })
    .await
}

/// The same again with sides swapped.
async fn rematch(
    State(app): State<Arc<App>>,
    Seated { session, .. }: Seated,
) -> Result<Response, ApiError> {
    start(app, move |_| {
        let terms = lock(&session).terms().clone();
        Ok(Terms {
            human: terms.human.other(),
            ..terms
        })
    })
    .await
}

/// Starts a game on the given terms.
async fn start(
    app: Arc<App>,
    terms: impl FnOnce(&App) -> Result<Terms, CatalogError> + Send + 'static,
) -> Result<Response, ApiError> {
    let starting = {
        let app = app.clone();
        move || -> Result<_, CatalogError> {
            let terms = terms(&app)?;
            let record = app.catalog.start(&terms.seat, terms.position.as_deref())?;
            let now = Instant::now();
            let session = Session::start(terms, record, now);
            Ok(app.sessions.insert(session, now))
        }
    };
    let (id, session) = blocking(starting).await??;
    app.let_opponent_think(session.clone());
    let seated = Seated {
        id: id.to_string(),
        session,
    };
    Ok((StatusCode::CREATED, seated.show().await?).into_response())
}

async fn show(seated: Seated) -> Answer<Shown> {
    seated.show().await
}

/// Waits until the session has changed since the given version.
async fn show_after(
    State(app): State<Arc<App>>,
    seated: Seated,
    Parameters((_, version)): Parameters<(String, u64)>,
) -> Answer<Shown> {
    let session = seated.session.clone();
    let watched = blocking(move || {
        let session = lock(&session);
        (session.versions(), session.runs_out_at())
    });
    let (mut versions, runs_out_at) = watched.await?;
    let longest = Instant::now() + LONGEST_WAIT;
    let until = runs_out_at.map_or(longest, |end| end.min(longest));
    let mut stopping = app.stopping.clone();
    // Whatever comes first, the answer is how things are then.
    tokio::select! {
        _ = versions.wait_for(|&now| now > version) => {}
        () = sleep_until(until.into()) => {}
        _ = stopping.wait_for(|&stopping| stopping) => {}
    }
    seated.show().await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlayedMove {
    #[serde(rename = "move")]
    text: String,
}

async fn play(
    State(app): State<Arc<App>>,
    seated: Seated,
    Body(played): Body<PlayedMove>,
) -> Answer<Shown> {
    let session = seated.session.clone();
    let shown = seated.change(move |session, now| session.play(&played.text, now));
    let shown = shown.await?;
    app.let_opponent_think(session);
    Ok(shown)
}

async fn undo(seated: Seated) -> Answer<Shown> {
    seated.change(Session::undo).await
}

async fn resign(seated: Seated) -> Answer<Shown> {
    seated.change(Session::resign).await
}

/// The legal moves after some plies with their values.
async fn values(
    seated: Seated,
    Parameters((_, ply)): Parameters<(String, usize)>,
) -> Answer<Value> {
    let judged = blocking(move || {
        let session = lock(&seated.session);
        let moves = session.move_values(ply)?;
        Ok::<_, ApiError>(json!({
            "ply": ply,
            "network": session.terms().seat.network,
            "moves": moves,
        }))
    });
    Ok(Json(judged.await??))
}

/// The run folders.
async fn runs(State(app): State<Arc<App>>) -> Answer<Value> {
    let listed = blocking(move || {
        let runs = app.catalog.runs.list().map_err(unreadable)?;
        let runs = runs.into_iter().map(|run| {
            let (play, why_not) = match playable(&app, &run) {
                Ok(play) => (Some(play), None),
                Err(why) => (None, Some(why)),
            };
            let mut shown = json!(run);
            shown["play"] = json!(play);
            shown["why_not"] = json!(why_not);
            shown
        });
        Ok::<_, ApiError>(json!({
            "directory": app.catalog.runs.directory().display().to_string(),
            "runs": runs.collect::<Vec<_>>(),
        }))
    });
    Ok(Json(listed.await??))
}

/// Lines of a run's metrics.
async fn metrics(
    State(app): State<Arc<App>>,
    Parameters((name, from)): Parameters<(String, u64)>,
) -> Answer<training::MetricsView> {
    let read = blocking(move || {
        let folder = app.catalog.runs.find(&name).map_err(unreadable)?;
        let folder = folder.ok_or_else(|| ApiError::not_found("there is no such run"))?;
        training::metrics(&folder, from).map_err(unreadable)
    });
    Ok(Json(read.await??))
}

fn unreadable(error: impl std::error::Error) -> ApiError {
    ApiError::internal(format!("cannot read the runs: {error}"))
}

/// A session and the id by which the request named it.
struct Seated {
    id: String,
    session: SharedSession,
}

impl Seated {
    /// How the session is now.
    async fn show(self) -> Answer<Shown> {
        self.change(|_, _| Ok(())).await
    }

    /// Changes the session; the answer is how it is then.
    async fn change(
        self,
        change: impl FnOnce(&mut Session, Instant) -> Result<(), Refusal> + Send + 'static,
    ) -> Answer<Shown> {
        let changed = blocking(move || {
            let mut session = lock(&self.session);
            let now = Instant::now();
            change(&mut session, now)?;
            let view = session.view(now);
            Ok(Json(Shown { id: self.id, view }))
        });
        changed.await?
    }
}

impl FromRequestParts<Arc<App>> for Seated {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Seated, ApiError> {
        let Parameters(parameters) =
            Parameters::<Vec<(String, String)>>::from_request_parts(parts, app).await?;
        let id = parameters.into_iter().find(|(name, _)| name == "id");
        let (_, id) = id.expect("sessions are named in paths with an id");
        let known = id.parse().ok();
        let session = known.and_then(|id| app.sessions.get(id, Instant::now()));
        let session = session.ok_or_else(ApiError::no_session)?;
        Ok(Seated { id, session })
    }
}

/// The parameters in a path; what is wrong with them is told in JSON.
struct Parameters<T>(T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<App>,
    ) -> Result<Parameters<T>, ApiError> {
        match Path::from_request_parts(parts, app).await {
            Ok(Path(parameters)) => Ok(Parameters(parameters)),
            Err(rejection) => Err(ApiError::bad_request(rejection.body_text())),
        }
    }
}

/// A body of JSON; what is wrong with it is told in JSON too.
struct Body<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Body<T>, ApiError> {
        if !is_json(request.headers()) {
            return Err(ApiError::not_json());
        }
        if request.body().size_hint().lower() > MAX_BODY_BYTES as u64 {
            // Announced already: no need to wait for it.
            return Err(ApiError::too_large(MAX_BODY_BYTES));
        }
        let bytes = timeout(LONGEST_BODY, Bytes::from_request(request, app)).await;
        let bytes = bytes.map_err(|_| ApiError::bad_request("the body does not come to an end"))?;
        let bytes = bytes.map_err(|rejection: BytesRejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::too_large(MAX_BODY_BYTES),
            _ => ApiError::bad_request(rejection.body_text()),
        })?;
        let parsed = serde_json::from_slice(&bytes);
        parsed
            .map(Body)
            .map_err(|error| ApiError::bad_request(format!("the body: {error}")))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|text| text.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> ApiError {
        match error {
            CatalogError::NoGame { .. } | CatalogError::NoOpponent { .. } => {
                ApiError::not_found(error.to_string())
            }
            CatalogError::Run { run, source } => {
                let message = format!("cannot play against the run {run}: {source:#}");
                ApiError::conflict("no_network", message)
            }
            CatalogError::FixedPlies(_) | CatalogError::Plies(_) | CatalogError::Position(_) => {
                ApiError::bad_request(error.to_string())
            }
        }
    }
}

/// Does something that takes a moment, such as reading files, where it does not keep
/// other requests waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let done = spawn_blocking(work).await;
    done.map_err(|_| ApiError::internal("the server failed to answer; its log says why"))
}
