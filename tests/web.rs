//! The server of the page: its API, what it refuses, and what it survives.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use tanren::agents::{ModelSource, NetworkAgent};
use tanren::experiments::train_value::Snapshot;
use tanren::game::{Game, Outcome, Side};
use tanren::games::{BoardGame, GAMES, GameVisitor, load};
use tanren::nets::NetEvaluator;
use tanren::nets::device::Compute;
use tanren::nets::model::Model;
use tanren::random::{RngExt, Seed};
use tanren::search::Evaluator;
use tanren::web::api::router;
use tanren::web::assets::ASSETS;
use tanren::web::catalog::Catalog;
use tanren::web::guard::OwnName;
use tanren::web::session::{Session, Terms};
use tanren::web::store::Store;
use tanren::web::{App, MAX_SESSIONS};
use tokio::sync::watch;
use tower::ServiceExt;

use crate::cli::{run, tanren};

/// The server without its socket.
struct Server {
    router: Router,
    app: Arc<App>,
    // Held, or the server would take it for a stop.
    _stop: watch::Sender<bool>,
}

type Answered = (StatusCode, Value, HeaderMap);

impl Server {
    fn new(catalog: Catalog) -> Server {
        let (stop, stopping) = watch::channel(false);
        let app = Arc::new(App::new(catalog, stopping));
        Server {
            router: router(app.clone(), OwnName("127.0.0.1".into())),
            app,
            _stop: stop,
        }
    }

    fn with_runs(runs: &Path) -> Server {
        Server::new(Catalog::new(&[], runs.to_path_buf()).unwrap())
    }

    fn plain() -> Server {
        Server::with_runs(Path::new("/nonexistent"))
    }

    async fn send(&self, request: Request<Body>) -> Answered {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 64 << 20).await.unwrap();
        let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            let text = String::from_utf8(bytes.to_vec());
            Value::String(text.expect("answers are text"))
        });
        (status, value, headers)
    }

    async fn get(&self, path: &str) -> Answered {
        self.send(request("GET", path).body(Body::empty()).unwrap())
            .await
    }

    async fn post(&self, path: &str, body: Value) -> Answered {
        let request = request("POST", path).header("content-type", "application/json");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// The answer of a request that has to succeed.
    async fn ok(&self, answered: impl Future<Output = Answered>) -> Value {
        let (status, value, _) = answered.await;
        assert!(status.is_success(), "{status}: {value}");
        value
    }

    async fn start(&self, terms: Value) -> Value {
        self.ok(self.post("/api/games", terms)).await
    }

    async fn play(&self, id: &str, mv: &str) -> Answered {
        self.post(&format!("/api/games/{id}/moves"), json!({ "move": mv }))
            .await
    }

    /// Waits until it is the person's turn, or the game is over.
    async fn await_turn(&self, mut view: Value) -> Value {
        while view["result"].is_null() && view["turn"] != view["human"] {
            let path = format!("/api/games/{}/after/{}", text(&view["id"]), view["version"]);
            view = self.ok(self.get(&path)).await;
        }
        view
    }

    /// Plays first moves of the list until the game is over.
    async fn play_out(&self, mut view: Value) -> Value {
        loop {
            view = self.await_turn(view).await;
            if !view["result"].is_null() {
                return view;
            }
            let mv = text(&view["legal"][0]["move"]).to_string();
            view = self.ok(self.play(text(&view["id"]), &mv)).await;
        }
    }
}

fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1:8080")
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
}

fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
}

fn kind(value: &Value) -> &str {
    assert!(!text(&value["message"]).is_empty(), "{value}");
    text(&value["kind"])
}

fn game(opponent: &str) -> Value {
    json!({ "game": "march-blitz", "opponent": opponent, "side": "first", "clock": null })
}

#[tokio::test]
async fn pages_are_whole_and_load_nothing_from_elsewhere() {
    let server = Server::plain();
    for asset in ASSETS {
        let (status, content, headers) = server.get(asset.path).await;
        assert_eq!(status, StatusCode::OK, "{}", asset.path);
        check_headers(&headers, asset.path);
        let content = text(&content);
        let is_html = headers["content-type"] == "text/html; charset=utf-8";
        assert_eq!(is_html, !asset.path.contains('.'), "{}", asset.path);
        // The policy would block these; better not to have them.
        let foreign = content.replace("http://www.w3.org/2000/svg", "");
        for forbidden in ["http://", "https://", "//cdn", "javascript:", "innerHTML"] {
            assert!(!foreign.contains(forbidden), "{}: {forbidden}", asset.path);
        }
        if is_html {
            for forbidden in [" style=", "<style", " onclick=", " onload=", "<script>"] {
                assert!(!content.contains(forbidden), "{}: {forbidden}", asset.path);
            }
        }
        // Whatever a page refers to is there.
        for part in content
            .split(['"', '\''])
            .filter(|part| part.starts_with("/assets/"))
        {
            let known = ASSETS.iter().any(|other| other.path == part);
            assert!(known, "{} refers to {part}", asset.path);
        }
    }
}

fn check_headers(headers: &HeaderMap, path: &str) {
    let policy = headers["content-security-policy"].to_str().unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(
            policy.split("; ").any(|have| have == part),
            "{path}: {policy}"
        );
    }
    assert!(!policy.contains("unsafe"), "{path}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(headers[name], value, "{path}");
    }
}

#[tokio::test]
async fn refusals_are_json_with_the_same_headers() {
    let server = Server::plain();
    for (method, path, status, what) in [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/assets/../../Cargo.toml", 404, "not_found"),
        ("GET", "/assets/..%2f..%2fCargo.toml", 404, "not_found"),
        ("GET", "/api/games", 405, "wrong_method"),
        ("DELETE", "/api/setup", 405, "wrong_method"),
        ("GET", "/api/games/x", 404, "no_session"),
        ("GET", "/api/runs/..%2f..%2fetc/metrics/0", 404, "not_found"),
        ("GET", "/api/runs/x/metrics/-1", 400, "bad_request"),
        ("POST", "/api/games", 415, "not_json"),
    ] {
        let (answered, value, headers) = server
            .send(request(method, path).body(Body::empty()).unwrap())
            .await;
        assert_eq!(
            (answered.as_u16(), kind(&value)),
            (status, what),
            "{method} {path}"
        );
        check_headers(&headers, path);
    }
}

#[tokio::test]
async fn other_sites_are_refused() {
    let server = Server::plain();
    let ask = async |headers: &[(&str, &str)], method: &str| {
        let mut request = Request::builder().method(method).uri("/api/setup");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        server.send(request.body(Body::empty()).unwrap()).await
    };
    // DNS rebinding: the attacker's name with this machine's address.
    let (status, value, headers) = ask(&[("host", "evil.example:8080")], "GET").await;
    assert_eq!((status, kind(&value)), (StatusCode::FORBIDDEN, "forbidden"));
    check_headers(&headers, "rebinding");
    let (status, ..) = ask(&[], "GET").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    for host in ["localhost:8080", "[::1]:8080", "192.168.1.7:8080"] {
        assert_eq!(
            ask(&[("host", host)], "GET").await.0,
            StatusCode::OK,
            "{host}"
        );
    }
    // A page elsewhere posts here.
    let cross = [
        ("host", "127.0.0.1:8080"),
        ("origin", "http://evil.example"),
    ];
    assert_eq!(ask(&cross, "POST").await.0, StatusCode::FORBIDDEN);
    // From its own page it gets as far as the router.
    let own = [
        ("host", "127.0.0.1:8080"),
        ("origin", "http://127.0.0.1:8080"),
    ];
    assert_eq!(ask(&own, "POST").await.0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_game_can_be_played_to_the_end_against_every_opponent() {
    let mut catalog = Catalog::new(&[], "/nonexistent".into()).unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    assert_eq!(catalog.add_models(&models).unwrap(), Vec::<String>::new());
    let server = Server::new(catalog);
    let setup = server.ok(server.get("/api/setup")).await;
    let names: Vec<_> = list(&setup["games"])
        .iter()
        .map(|game| text(&game["name"]))
        .collect();
    assert_eq!(
        names,
        GAMES.iter().map(|entry| entry.name).collect::<Vec<_>>()
    );
    let mut against_models = 0;
    for game in list(&setup["games"]) {
        for opponent in list(&game["opponents"]) {
            for side in ["first", "second"] {
                let view = server
                    .start(json!({
                        "game": game["name"], "opponent": opponent["id"], "side": side,
                    }))
                    .await;
                assert_eq!(view["human"], side);
                assert_eq!(view["clock"]["initial_ms"], 60_000);
                let view = server.play_out(view).await;
                let check = Replay { view: &view };
                load(text(&game["name"])).unwrap().visit(check);
                against_models += u32::from(text(&opponent["id"]).starts_with("model:"));
            }
        }
    }
    assert_eq!(against_models, 8, "four models, each from both sides");
}

/// The twin of the server's bookkeeping: plays the moves again by the library alone.
struct Replay<'a> {
    view: &'a Value,
}

impl GameVisitor for Replay<'_> {
    type Output = ();

    fn visit<G: BoardGame>(self, game: Arc<G>) {
        let view = self.view;
        let (files, ranks) = game.board_size();
        let mut position = game.start();
        let net = shipped(&*game);
        assert_eq!(net.is_some(), !view["network"].is_null());
        for (ply, shown) in list(&view["positions"]).iter().enumerate() {
            assert_eq!(shown["text"], game.format_position(&position));
            // The drawing shows the same pieces, from the top.
            let drawn = game.draw(&position);
            let rows = drawn
                .lines()
                .take(ranks)
                .map(|row| row.split_whitespace().skip(1));
            let squares: Vec<Vec<&str>> = rows.map(Iterator::collect).collect();
            for (square, letter) in text(&shown["squares"]).chars().enumerate() {
                let drawn = squares[ranks - 1 - square / files][square % files];
                assert!(
                    letter
                        .to_string()
                        .eq_ignore_ascii_case(&drawn.replace('X', "O")),
                    "{drawn}"
                );
            }
            let side = game.side_to_move(&position);
            let sign = if side == Side::First { 1.0 } else { -1.0 };
            let value = match (game.outcome(&position), &net) {
                (Some(outcome), _) => Some(outcome.value_for(side).get()),
                (None, Some(net)) => {
                    let mut values = Vec::new();
                    net.clone()
                        .evaluate(&*game, std::slice::from_ref(&position), &mut values);
                    Some(values[0].get())
                }
                (None, None) => None,
            };
            let shown_value = shown["value"].as_f64().map(|value| value as f32);
            if text(&view["opponent"]).starts_with("model:") {
                assert!(shown_value.is_some());
            } else {
                assert_eq!(shown_value, value.map(|value| sign * value), "ply {ply}");
            }
            if let Some(mv) = view["moves"].get(ply) {
                let played = game.parse_move(text(&mv["move"])).unwrap();
                let squares = game.move_squares(&position, played);
                assert_eq!(mv["to"], squares.to);
                assert_eq!(mv["from"], json!(squares.from));
                assert_eq!(mv["capture"], game.is_capture(&position, played));
                game.play(&mut position, played).unwrap();
            }
        }
        let winner = match game.outcome(&position).expect("the game is over") {
            Outcome::Win(side) => json!(side),
            Outcome::Draw => Value::Null,
        };
        let ending = json!({ "winner": winner, "cause": game.ending(&position) });
        assert_eq!(view["result"], ending);
        assert_eq!(view["legal"], json!([]));
    }
}

fn shipped<G: Game>(game: &G) -> Option<NetEvaluator> {
    ModelSource::Shipped.load(game, &Compute::cpu()).ok()
}

#[tokio::test]
async fn a_rules_file_of_ones_own_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let rules = "name = \"mine\"\ntitle = \"Mine\"\nstart = \"knp1/4/4/1PNK w\"\n\
        [pieces.k]\nname = \"king\"\nmove = \"WF\"\nvalue = 0\n\
        [pieces.n]\nname = \"knight\"\nmove = \"N\"\nvalue = 3\n\
        [pieces.p]\nname = \"pawn\"\nmove = \"mfWcfF\"\nvalue = 1\n\
        [end]\ncapture = \"k\"\ngoal = \"k\"\nstuck = \"draw\"\nmax_plies = 60\n";
    fs::write(&file, rules).unwrap();
    let files = [file.to_str().unwrap().to_string()];
    let server = Server::new(Catalog::new(&files, "/nonexistent".into()).unwrap());
    let setup = server.ok(server.get("/api/setup")).await;
    let mine = list(&setup["games"]).last().unwrap();
    assert_eq!(mine["title"], "Mine");
    assert_eq!(mine["has_network"], false);
    assert_eq!(
        mine["board"]["kinds"],
        json!([["k", "king"], ["n", "knight"], ["p", "pawn"]])
    );
    assert_eq!(mine["board"]["start"], ".PNK........knp.");
    let view = server
        .start(json!({ "game": "mine", "opponent": "easy", "side": "random", "clock": null }))
        .await;
    assert_eq!(view["network"], Value::Null);
    assert_eq!(view["clock"], Value::Null);
    let view = server.play_out(view).await;
    assert!(!view["result"].is_null());
    let path = format!("/api/games/{}/values/0", text(&view["id"]));
    assert_eq!(server.ok(server.get(&path)).await["moves"], json!([]));

    // Two games cannot go by one name; the same rules twice are one game.
    let other = folder.path().join("other.toml");
    fs::write(
        &other,
        rules.replace("stuck = \"draw\"", "stuck = \"loss\""),
    )
    .unwrap();
    let files = [&file, &other].map(|file| file.to_str().unwrap().to_string());
    let error = Catalog::new(&files, "/nonexistent".into()).err().unwrap();
    assert!(error.to_string().contains("choose another name"), "{error}");
    let twice = [files[0].clone(), files[0].clone()];
    let catalog = Catalog::new(&twice, "/nonexistent".into()).unwrap();
    assert_eq!(catalog.offers().len(), GAMES.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn illegal_moves_change_nothing() {
    let server = Server::plain();
    let view = server.start(game("baby")).await;
    let id = text(&view["id"]);
    for (mv, part) in [
        ("c2c4", "legal moves: a2a3"),
        ("c5c4", "is not legal"),
        ("a1a1", "is not legal"),
        ("", "a move is the square left"),
        ("z9z9", "a move is the square left"),
        ("c2c3; drop table", "a move is the square left"),
        ("🀄🀄", "a move is the square left"),
    ] {
        let (status, value, _) = server.play(id, mv).await;
        assert_eq!(
            (status, kind(&value)),
            (StatusCode::CONFLICT, "illegal_move"),
            "{mv}"
        );
        assert!(text(&value["message"]).contains(part), "{value}");
    }
    let after = server.ok(server.get(&format!("/api/games/{id}"))).await;
    assert_eq!(after, view);
    let nothing = server
        .post(&format!("/api/games/{id}/undo"), json!({}))
        .await;
    assert_eq!(
        (nothing.0, kind(&nothing.1)),
        (StatusCode::CONFLICT, "nothing_to_undo")
    );
    server
        .ok(server.post(&format!("/api/games/{id}/resign"), json!({})))
        .await;
    for what in ["moves", "resign", "undo"] {
        let path = format!("/api/games/{id}/{what}");
        let (status, value, _) = server.post(&path, json!({ "move": "c2c3" })).await;
        assert_eq!(
            (status, kind(&value)),
            (StatusCode::CONFLICT, "over"),
            "{what}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_apart() {
    let server = Server::plain();
    let one = server.start(game("easy")).await;
    let two = server.start(game("easy")).await;
    let (id, other) = (text(&one["id"]), text(&two["id"]));
    assert!(id != other && id.len() == 32, "{id} {other}");
    server.ok(server.play(id, "c2c3")).await;
    let untouched = server.ok(server.get(&format!("/api/games/{other}"))).await;
    assert_eq!(untouched, two);
    // One off is nobody's.
    let last = if id.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &id[..31]);
    let long = "0".repeat(3000);
    for foreign in [
        &wrong,
        "0",
        "%00",
        "..%2f..%2fetc%2fpasswd",
        &long,
        &id[..31],
    ] {
        for path in ["", "/after/0", "/values/0"] {
            let (status, value, _) = server.get(&format!("/api/games/{foreign}{path}")).await;
            assert_eq!(
                (status, kind(&value)),
                (StatusCode::NOT_FOUND, "no_session"),
                "{foreign}"
            );
        }
        for path in ["moves", "undo", "resign", "rematch"] {
            let path = format!("/api/games/{foreign}/{path}");
            let (status, value, _) = server.post(&path, json!({ "move": "c2c3" })).await;
            assert_eq!(
                (status, kind(&value)),
                (StatusCode::NOT_FOUND, "no_session"),
                "{foreign}"
            );
        }
    }
}

#[tokio::test]
async fn bodies_are_bounded_and_checked() {
    let server = Server::plain();
    let post = async |body: Vec<u8>| {
        let request = request("POST", "/api/games").header("content-type", "application/json");
        let (status, value, _) = server.send(request.body(body.into()).unwrap()).await;
        (
            status.as_u16(),
            kind(&value).to_string(),
            text(&value["message"]).to_string(),
        )
    };
    let (status, what, _) = post(vec![b' '; 4097]).await;
    assert_eq!((status, &*what), (413, "too_large"));
    let with = |key: &str, value: Value| {
        let mut body = game("easy");
        body[key] = value;
        body.to_string().into_bytes()
    };
    for (body, status, part) in [
        (b"".to_vec(), 400, "EOF"),
        (b"{".to_vec(), 400, "EOF"),
        (b"\xff\xfe".to_vec(), 400, "expected value"),
        (vec![b'['; 4000], 400, "the body"),
        (b"null".to_vec(), 400, "the body"),
        (b"{}".to_vec(), 400, "missing field `game`"),
        (with("game", json!(7)), 400, "expected a string"),
        (
            with("game", json!("/etc/passwd")),
            404,
            "there are march-blitz",
        ),
        (
            with("game", json!("mine.toml")),
            404,
            "there are march-blitz",
        ),
        (with("opponent", json!("model:/tmp")), 404, "there are baby"),
        (
            with("opponent", json!("run:../../etc")),
            409,
            "there is no such run",
        ),
        (with("opponent", json!("hard@9")), 404, "there are baby"),
        (with("side", json!("third")), 400, "first"),
        (with("plies", json!(3)), 400, "plies are for networks alone"),
        (with("clock", json!(5)), 400, "the body"),
        (
            with("clock", json!({ "initial_ms": 0, "increment_ms": 0 })),
            400,
            "clock.initial_ms = 0",
        ),
        (
            with("clock", json!({ "initial_ms": -1, "increment_ms": 0 })),
            400,
            "the body",
        ),
        (
            with(
                "clock",
                json!({ "initial_ms": 1, "increment_ms": 1u64 << 60 }),
            ),
            400,
            "an hour",
        ),
        (
            with("clock", json!({ "initial_ms": 1e300, "increment_ms": 0 })),
            400,
            "the body",
        ),
        (with("position", json!("8/8 w")), 400, "position: "),
        (
            with("position", json!("6/6/6/6/6/4K1 w")),
            400,
            "position: ",
        ),
        (with("cheat", json!(true)), 400, "unknown field `cheat`"),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let (answered, _, message) = post(body).await;
        assert_eq!(answered, status, "{shown}: {message}");
        assert!(message.contains(part), "{shown}: {message}");
    }
    assert!(server.app.sessions.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_sessions_at_once() {
    let server = Arc::new(Server::plain());
    let games = (0..200).map(|number| {
        let server = server.clone();
        tokio::spawn(async move {
            let entry = &GAMES[number % GAMES.len()];
            let side = if number % 3 == 0 { "second" } else { "first" };
            let opponent = ["baby", "easy"][number % 2];
            let view = server
                .start(json!({ "game": entry.name, "opponent": opponent, "side": side, "clock": null }))
                .await;
            let view = server.play_out(view).await;
            (entry.build)().visit(Replay { view: &view });
            text(&view["id"]).to_string()
        })
    });
    let games: Vec<_> = games.collect();
    let mut ids = Vec::new();
    for game in games {
        ids.push(game.await.unwrap());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_random_requests() {
    let server = Server::plain();
    let mut rng = Seed(6).stream("requests");
    let mut ids = vec!["0".repeat(32)];
    let words = [
        "march-blitz",
        "connect-four",
        "baby",
        "easy",
        "normal",
        "hard",
        "first",
        "random",
        "c2c3",
        "b2b3",
        "d",
        "",
        "\u{0}",
        "../../etc/passwd",
        "💥",
        "1k4/pppppp/6/6/PPPPPP/4K1 w",
        "7/7/7/7/7/7 w",
        "-1",
        "99999999999999999999999",
        "NaN",
    ];
    let mut statuses = std::collections::BTreeMap::new();
    for _ in 0..1000 {
        let mut pick = |n: usize| rng.random_range(0..n);
        let id = ids[pick(ids.len())].clone();
        let number = [0, 1, 2, 7, u64::MAX][pick(5)];
        let path = match pick(12) {
            0 => "/api/setup".to_string(),
            1 | 2 => "/api/games".to_string(),
            3 => format!("/api/games/{id}"),
            4 => format!("/api/games/{id}/values/{number}"),
            5 => format!("/api/games/{id}/undo"),
            6 => format!("/api/games/{id}/resign"),
            7 => format!("/api/games/{id}/rematch"),
            8 => format!("/api/runs/{id}/metrics/{number}"),
            9 => format!("/api/{id}"),
            _ => format!("/api/games/{id}/moves"),
        };
        let method = ["GET", "POST", "POST", "POST", "PUT"][pick(5)];
        let value = |pick: &mut dyn FnMut(usize) -> usize| match pick(8) {
            0 => Value::Null,
            1 => json!(pick(1 << 20)),
            2 => json!([[[[]]]]),
            3 => json!({ "initial_ms": pick(9), "increment_ms": pick(9) }),
            _ => json!(words[pick(words.len())]),
        };
        let mut body = json!({});
        for key in [
            "move", "game", "opponent", "side", "clock", "position", "plies",
        ] {
            if pick(3) > 0 {
                body[key] = value(&mut pick);
            }
        }
        if pick(3) == 0 {
            body = json!({ "game": words[pick(2)], "opponent": words[2 + pick(4)], "side": words[6 + pick(2)] });
        } else if pick(3) == 0 {
            body = json!({ "move": words[8 + pick(3)] });
        }
        let mut bytes = body.to_string().into_bytes();
        if pick(10) == 0 {
            bytes.truncate(pick(bytes.len()));
        }
        let content_type = [
            "application/json",
            "application/json; charset=utf-8",
            "text/plain",
        ];
        let request = request(method, &path).header("content-type", content_type[pick(9) / 4]);
        let (status, value, headers) = server.send(request.body(bytes.into()).unwrap()).await;
        assert!(!status.is_server_error(), "{method} {path} {body}: {value}");
        check_headers(&headers, &path);
        match status.is_success() {
            true if status == StatusCode::CREATED => ids.push(text(&value["id"]).to_string()),
            true => assert!(value.is_object(), "{value}"),
            false => assert!(!kind(&value).is_empty()),
        }
        *statuses.entry(status.as_u16()).or_insert(0) += 1;
    }
    // They were not all refused at the door, nor all let through.
    for status in [200, 201, 400, 404, 405, 409, 415] {
        assert!(statuses.contains_key(&status), "{statuses:?}");
    }
    let view = server.start(game("normal")).await;
    server.play_out(view).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_bounded_in_number() {
    let server = Server::plain();
    let first = server.start(game("baby")).await;
    let kept = server.start(game("baby")).await;
    let path = |view: &Value| format!("/api/games/{}", text(&view["id"]));
    for _ in 0..MAX_SESSIONS + 50 {
        server.start(game("baby")).await;
        // One that is used stays.
        server.ok(server.get(&path(&kept))).await;
    }
    assert_eq!(server.app.sessions.len(), MAX_SESSIONS);
    assert_eq!(server.get(&path(&first)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.get(&path(&kept)).await.0, StatusCode::OK);
}

#[test]
fn sessions_are_bounded_in_age() {
    let catalog = Catalog::new(&[], "/nonexistent".into()).unwrap();
    let now = Instant::now();
    let session = || {
        let seat = catalog.seat("march-blitz", "baby", None).unwrap();
        let record = catalog.start(&seat, None).unwrap();
        let terms = Terms {
            seat,
            human: Side::First,
            time: None,
            position: None,
        };
        Session::start(terms, record, now)
    };
    let hour = Duration::from_secs(3600);
    let store = Store::new(10, 2 * hour);
    let (old, _) = store.insert(session(), now);
    let (used, _) = store.insert(session(), now);
    assert!(store.get(used, now + hour).is_some());
    assert!(store.get(old, now + 2 * hour).is_none());
    assert!(store.get(used, now + 2 * hour).is_some());
    store.insert(session(), now + 5 * hour);
    assert_eq!(store.len(), 1, "the idle ones are swept away");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_that_has_run_out_loses_at_once() {
    let server = Server::plain();
    let mut terms = game("baby");
    terms["clock"] = json!({ "initial_ms": 150, "increment_ms": 0 });
    let view = server.start(terms).await;
    let id = text(&view["id"]);
    let started = Instant::now();
    let path = format!("/api/games/{id}/after/{}", view["version"]);
    let view = server.ok(server.get(&path)).await;
    let waited = started.elapsed();
    assert_eq!(
        view["result"],
        json!({ "winner": "second", "cause": "time" })
    );
    assert_eq!(view["clock"]["left_ms"][0], 0);
    assert!(
        waited < Duration::from_secs(20),
        "the wait did not end with the time"
    );
    let (status, value, _) = server.play(id, "c2c3").await;
    assert_eq!((status, kind(&value)), (StatusCode::CONFLICT, "over"));
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_rematch_and_positions() {
    let server = Server::plain();
    let mut terms = game("normal");
    terms["position"] = json!("6/1K4/6/6/k5/6 w");
    let view = server.start(terms.clone()).await;
    let id = text(&view["id"]).to_string();
    let won = server.ok(server.play(&id, "b5b6")).await;
    assert_eq!(won["result"], json!({ "winner": "first", "cause": "Try" }));
    assert_eq!(won["positions"][1]["value"], 1.0);
    let back = server
        .ok(server.post(&format!("/api/games/{id}/undo"), json!({})))
        .await;
    assert_eq!(back["result"], Value::Null);
    assert_eq!(back["positions"], view["positions"]);
    let again = server
        .ok(server.post(&format!("/api/games/{id}/rematch"), json!({})))
        .await;
    assert_eq!(again["human"], "second");
    assert_ne!(again["id"], view["id"]);
    assert_eq!(again["positions"][0], view["positions"][0]);
    let lost = server.await_turn(again).await;
    assert_eq!(lost["result"], json!({ "winner": "first", "cause": "Try" }));

    // Catch and stuck, as they are called in the article and here.
    terms["position"] = json!("6/6/2k3/1P4/6/4K1 w");
    let view = server.start(terms.clone()).await;
    let view = server.ok(server.play(text(&view["id"]), "b3c4")).await;
    assert_eq!(view["result"]["cause"], "Catch");
    terms["position"] = json!("6/6/6/4K1/k5/pp4 w");
    let view = server.start(terms).await;
    let view = server.ok(server.play(text(&view["id"]), "e3e4")).await;
    assert_eq!(
        view["result"],
        json!({ "winner": "first", "cause": "stuck" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_move_is_judged() {
    let server = Server::plain();
    let view = server.start(game("easy")).await;
    assert_eq!(view["network"], "NormalAI");
    let id = text(&view["id"]).to_string();
    let view = server.ok(server.play(&id, "c2c3")).await;
    let view = server.await_turn(view).await;
    let march = load("march-blitz").unwrap();
    let march = march.as_leaper().unwrap();
    let mut judge = NetworkAgent::new("judge", shipped(march).unwrap());
    for ply in 0..=2 {
        let answer = server
            .ok(server.get(&format!("/api/games/{id}/values/{ply}")))
            .await;
        let position = text(&view["positions"][ply]["text"]);
        let expected = judge.move_values(march, &march.parse_position(position).unwrap());
        let shown = list(&answer["moves"]);
        assert_eq!(shown.len(), expected.len());
        assert!(shown.is_sorted_by_key(|mv| -mv["value"].as_f64().unwrap()));
        for (mv, value) in expected {
            let name = march.format_move(mv);
            let found = shown.iter().find(|shown| shown["move"] == name).unwrap();
            assert_eq!(found["value"].as_f64().unwrap() as f32, value.get());
        }
    }
    let (status, value, _) = server.get(&format!("/api/games/{id}/values/3")).await;
    assert_eq!((status, kind(&value)), (StatusCode::NOT_FOUND, "not_found"));
}

/// A run that is through, made once for each test that needs one.
fn smoke_run(directory: &Path, name: &str, more: &[&str]) -> PathBuf {
    let out = directory.join(name);
    let mut command = tanren(&[
        "train",
        "smoke",
        "--device",
        "cpu",
        "--checkpoint-seconds",
        "0",
    ]);
    run(command.arg("--out").arg(&out).args(more), 0);
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_and_played_against() {
    let runs = tempfile::tempdir().unwrap();
    let folder = smoke_run(
        runs.path(),
        "mine",
        &["--set", "net.kind=conv", "--set", "games=48"],
    );
    fs::create_dir(runs.path().join("no-run")).unwrap();
    let server = Server::with_runs(runs.path());
    let listed = server.ok(server.get("/api/runs")).await;
    let run = &listed["runs"][0];
    assert_eq!(list(&listed["runs"]).len(), 1);
    for (key, value) in [
        ("name", json!("mine")),
        ("state", json!("finished")),
        ("experiment", json!("value")),
        ("game", json!("march-blitz")),
        ("net", json!("conv")),
        ("games", json!(48)),
        ("seed", json!(1)),
        (
            "play",
            json!({ "game": "march-blitz", "opponent": "run:mine" }),
        ),
        ("why_not", Value::Null),
    ] {
        assert_eq!(run[key], value, "{key}");
    }

    let metrics = server.ok(server.get("/api/runs/mine/metrics/0")).await;
    assert_eq!(list(&metrics["lines"]).len(), 1);
    assert!(metrics["lines"][0]["loss"].is_number());
    let next = metrics["next"].as_u64().unwrap();
    let length = fs::metadata(folder.join("metrics.jsonl")).unwrap().len();
    assert_eq!(next, length);
    let rest = server
        .ok(server.get(&format!("/api/runs/mine/metrics/{next}")))
        .await;
    assert_eq!(
        rest,
        json!({ "from": next, "next": next, "more": false, "lines": [] })
    );

    // The network of the last checkpoint is that of the model folder.
    let view = server
        .start(
            json!({ "game": "march-blitz", "opponent": "run:mine", "plies": 2, "side": "first" }),
        )
        .await;
    assert_eq!(view["opponent_name"], "mine after 48 games");
    let march = load("march-blitz").unwrap();
    let march = march.as_leaper().unwrap();
    let compute = Compute::cpu();
    let model = Model::load(&folder.join("model"), &compute.device).unwrap();
    let snapshot = Snapshot::newest(&folder, march, &compute).unwrap();
    assert_eq!(snapshot.games, 48);
    let value = |net| {
        let mut values = Vec::new();
        NetEvaluator::new(net, &compute).evaluate(march, &[march.start()], &mut values);
        values[0].get()
    };
    assert_eq!(value(&snapshot.net), value(&model.net));
    assert_eq!(
        view["positions"][0]["value"].as_f64().unwrap() as f32,
        value(&model.net)
    );
    server.play_out(view).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_checkpoints_are_passed_over_or_named() {
    let runs = tempfile::tempdir().unwrap();
    let folder = smoke_run(runs.path(), "mine", &["--set", "games=144"]);
    let server = Server::with_runs(runs.path());
    let terms = json!({ "game": "march-blitz", "opponent": "run:mine", "side": "first" });
    let damage = |step: &str| {
        let file = folder.join(format!("checkpoints/{step}/state/net.bpk"));
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();
    };
    damage("000003");
    let view = server.start(terms.clone()).await;
    assert_eq!(view["opponent_name"], "mine after 96 games");
    // A network that is known for one game is not another's.
    let other = json!({ "game": "march-grand", "opponent": "run:mine", "side": "first" });
    let (status, value, _) = server.post("/api/games", other).await;
    assert_eq!((status, kind(&value)), (StatusCode::CONFLICT, "no_network"));
    let why = "not trained on these rules of march-grand";
    assert!(text(&value["message"]).contains(why), "{value}");
    for step in ["000001", "000002"] {
        damage(step);
    }
    let server = Server::with_runs(runs.path());
    let (status, value, _) = server.post("/api/games", terms).await;
    assert_eq!((status, kind(&value)), (StatusCode::CONFLICT, "no_network"));
    assert!(
        text(&value["message"]).contains("net.bpk is damaged"),
        "{value}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_watched_and_played_against_while_it_goes_on() {
    let runs = tempfile::tempdir().unwrap();
    let server = Server::with_runs(runs.path());
    assert_eq!(server.ok(server.get("/api/runs")).await["runs"], json!([]));
    let mut training = Running(
        tanren(&[
            "train",
            "smoke",
            "--device",
            "cpu",
            "--checkpoint-seconds",
            "0",
            "--quiet",
        ])
        .args(["--set", "games=4000000", "--threads", "1", "--out"])
        .arg(runs.path().join("mine"))
        .spawn()
        .unwrap(),
    );
    let (mut from, mut steps) = (0, Vec::new());
    let mut played = std::collections::BTreeSet::new();
    let started = Instant::now();
    while steps.len() < 20 || played.len() < 3 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{steps:?} {played:?}"
        );
        let (status, answer, _) = server.get(&format!("/api/runs/mine/metrics/{from}")).await;
        if status == StatusCode::OK {
            let new = list(&answer["lines"])
                .iter()
                .map(|line| line["step"].as_u64().unwrap());
            steps.extend(new);
            from = answer["next"].as_u64().unwrap();
        }
        let listed = server.ok(server.get("/api/runs")).await;
        let Some(run) = listed["runs"].get(0) else {
            continue;
        };
        if !run["play"].is_null() {
            assert_eq!(run["state"], "running");
            // Checkpoints come and go many times a second.
            let terms = json!({ "game": "march-blitz", "opponent": "run:mine", "side": "second" });
            let view = server.start(terms).await;
            let view = server.await_turn(view).await;
            played.insert(text(&view["opponent_name"]).to_string());
        }
    }
    assert!(
        steps.iter().copied().eq(1..=steps.len() as u64),
        "{steps:?}"
    );
    training.0.kill().unwrap();
    training.0.wait().unwrap();
    let listed = server.ok(server.get("/api/runs")).await;
    assert_eq!(listed["runs"][0]["state"], "stopped");
}

/// A process that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `tanren serve` on a free port; returns it and its address, such as
/// `127.0.0.1:40123`.
pub(crate) fn serve(arguments: &[&str]) -> (Running, String) {
    let mut command = tanren(&["serve", "--port", "0"]);
    command
        // Where there are no models but those that are compiled in.
        .current_dir(std::env::temp_dir())
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line
        .trim()
        .strip_prefix("http://")
        .and_then(|rest| rest.strip_suffix('/'));
    let address = address
        .unwrap_or_else(|| panic!("{line:?} is no address"))
        .to_string();
    (Running(child), address)
}

/// A request without a library, as a socket sees it.
fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(unix)]
fn terminate(running: &Running) {
    let pid = running.0.id().to_string();
    let status = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(status.unwrap().success());
}

#[cfg(unix)]
#[test]
fn the_program_serves_and_shuts_down_cleanly() {
    let empty = tempfile::tempdir().unwrap();
    let (mut server, address) = serve(&["--runs", empty.path().to_str().unwrap()]);
    let page = raw(
        &address,
        &format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"),
    );
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("<title>Tanren</title>"));
    let setup = format!("GET /api/setup HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert!(raw(&address, &setup).contains("\"model:march-blitz/conv\""));
    let foreign = raw(
        &address,
        "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    // A header without end, and a body that is announced as huge.
    let huge = "POST /api/games HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Content-Length: 99999999999\r\nConnection: close\r\n\r\n{";
    assert!(raw(&address, huge).starts_with("HTTP/1.1 413 "));
    let garbage = raw(&address, "\u{1}\u{2}nonsense\r\n\r\n");
    assert!(garbage.starts_with("HTTP/1.1 400 "), "{garbage}");

    // Somebody waits for a move that does not come, somebody else says nothing.
    let terms = game("baby").to_string();
    let created = raw(
        &address,
        &format!(
            "POST /api/games HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{terms}",
            terms.len()
        ),
    );
    let body = created.split_once("\r\n\r\n").unwrap().1;
    let view: Value = serde_json::from_str(body).unwrap();
    let mut waiting = TcpStream::connect(&address).unwrap();
    let path = format!("/api/games/{}/after/0", text(&view["id"]));
    write!(waiting, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let _silent = TcpStream::connect(&address).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    terminate(&server);
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let status = server.0.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    let mut said = String::new();
    server
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(
        said.contains("Ctrl-C stops the server") && !said.contains("panicked"),
        "{said}"
    );
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (_, stderr) = run(&mut tanren(&["serve", "--port", &port]), 1);
    assert!(
        stderr.contains(&format!("at port {port}; choose another with --port")),
        "{stderr}"
    );
    for (arguments, code, part) in [
        (&["--port", "99999"][..], 2, "99999"),
        (
            &["--host", "no such host", "--port", "0"],
            2,
            "neither an address nor a known name",
        ),
        (&["--models", "/nonexistent"], 2, "/nonexistent"),
        (&["march-blits"], 2, "march-blitz"),
        (&["/nonexistent.toml"], 1, "/nonexistent.toml"),
    ] {
        let (_, stderr) = run(tanren(&["serve"]).args(arguments), code);
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}

#[test]
fn models_are_found_and_damaged_ones_named() {
    let models = tempfile::tempdir().unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/march-blitz/mlp");
    let copy = |name: &str| {
        let folder = models.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        for file in ["model.toml", "weights.safetensors"] {
            fs::copy(shipped.join(file), folder.join(file)).unwrap();
        }
        folder
    };
    copy("good/one");
    let bad = copy("bad");
    let mut weights = fs::read(bad.join("weights.safetensors")).unwrap();
    weights[1000] ^= 1;
    fs::write(bad.join("weights.safetensors"), weights).unwrap();
    fs::create_dir(models.path().join("empty")).unwrap();
    let mut catalog = Catalog::new(&[], "/nonexistent".into()).unwrap();
    let problems = catalog.add_models(models.path()).unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].contains("bad") && problems[0].contains("has changed"),
        "{problems:?}"
    );
    // A folder that is named itself.
    catalog.add_models(&models.path().join("good/one")).unwrap();
    let ids = |catalog: &Catalog| -> Vec<String> {
        let offer = &catalog.offers()[0];
        offer.opponents().iter().map(|o| o.id.clone()).collect()
    };
    let found = ids(&catalog);
    assert_eq!(
        &found[..5],
        ["baby", "easy", "normal", "hard", "model:good/one"]
    );
    assert!(found[5].ends_with("good/one"), "{found:?}");
    assert_eq!(found.len(), 6);
}

#[test]
fn boards_are_what_the_drawings_show() {
    struct Shown;
    impl GameVisitor for Shown {
        type Output = ();
        fn visit<G: BoardGame>(self, game: Arc<G>) {
            let (files, ranks) = game.board_size();
            let kinds = game.piece_kinds();
            let mut rng = Seed(9).stream("boards");
            for _ in 0..20 {
                let mut position = game.start();
                let mut moves = Vec::new();
                while game.outcome(&position).is_none() {
                    moves.clear();
                    game.legal_moves(&position, &mut moves);
                    let mv = moves[rng.random_range(0..moves.len())];
                    let squares = game.move_squares(&position, mv);
                    let before = position.clone();
                    game.play_unchecked(&mut position, mv);
                    let side = game.side_to_move(&before);
                    for square in 0..files * ranks {
                        let (was, is) = (
                            game.piece_on(&before, square),
                            game.piece_on(&position, square),
                        );
                        if square == squares.to {
                            let moved = is.expect("a piece has come here");
                            assert_eq!(moved.side, side);
                            assert!(moved.kind < kinds.len());
                            if let Some(from) = squares.from {
                                assert_eq!(game.piece_on(&before, from), Some(moved));
                            }
                        } else if Some(square) == squares.from {
                            assert_eq!(is, None);
                        } else {
                            assert_eq!(was, is);
                        }
                    }
                }
            }
        }
    }
    for entry in GAMES {
        (entry.build)().visit(Shown);
    }
}
