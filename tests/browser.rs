//! The page in a real browser: Chromium, driven by way of WebDriver.
//!
//! Nothing here sleeps for a guessed time: every step waits for what it needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, MouseActions, PointerAction};
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use crate::cli::tanren;
use crate::web::{Running, serve};

/// The longest that a step may take; a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser, its driver and a server.
struct Page {
    client: Client,
    /// Of the driver, such as `127.0.0.1:34567`.
    driver: String,
    /// Of the server.
    address: String,
    _driver: Running,
    _server: Running,
}

/// What the window is like.
enum Screen {
    Desktop,
    /// 360 CSS pixels wide, with touch.
    Phone,
}

impl Page {
    async fn open(screen: Screen, arguments: &[&str]) -> Page {
        let (server, address) = serve(arguments);
        let (process, driver) = start_driver();
        let mut options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--window-size=1280,900", "--lang=en"],
        });
        if matches!(screen, Screen::Phone) {
            options["mobileEmulation"] =
                json!({ "deviceMetrics": { "width": 360, "height": 740, "pixelRatio": 2.0 } });
        }
        let capabilities = json!({
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities.as_object().unwrap().clone())
            .connect(&format!("http://{driver}"))
            .await
            .expect("chromedriver starts chromium");
        let page = Page {
            client,
            driver,
            address,
            _driver: process,
            _server: server,
        };
        page.goto("/").await;
        page
    }

    async fn goto(&self, path: &str) {
        let url = format!("http://{}{path}", self.address);
        self.client.goto(&url).await.unwrap();
    }

    /// The value of an expression on the page.
    async fn eval(&self, expression: &str) -> Value {
        let script = format!("return {expression}");
        let value = self.client.execute(&script, Vec::new()).await;
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until the expression is true.
    async fn until(&self, expression: &str) {
        let started = Instant::now();
        while self.eval(&format!("Boolean({expression})")).await != true {
            if started.elapsed() > PATIENCE {
                let live = self.eval("document.body.innerText").await;
                panic!("waited in vain for {expression}; the page says\n{live}");
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    }

    /// Clicks on an element, once it is there.
    async fn click(&self, selector: &str) {
        let quoted = json!(selector);
        self.until(&format!("document.querySelector({quoted})"))
            .await;
        let element = self.client.find(Locator::Css(selector)).await.unwrap();
        let clicked = element.click().await;
        clicked.unwrap_or_else(|error| panic!("click on {selector}: {error}"));
    }

    async fn text(&self, id: &str) -> String {
        let value = self
            .eval(&format!("document.getElementById('{id}').textContent"))
            .await;
        value.as_str().unwrap().to_string()
    }

    async fn fill(&self, id: &str, text: &str) {
        let field = self.client.find(Locator::Id(id)).await.unwrap();
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Chooses in the form.
    async fn choose(&self, group: &str, value: &str) {
        let input = format!("input[name='{group}'][value='{value}']");
        self.click(&format!(".choice:has({input})")).await;
        self.until(&format!("document.querySelector(\"{input}\").checked"))
            .await;
    }

    async fn set_up(&self, game: &str, opponent: &str, side: &str) {
        self.until("document.querySelector('#setup:not([hidden]) input[name=opponent]')")
            .await;
        self.choose("game", game).await;
        self.choose("opponent", opponent).await;
        self.choose("side", side).await;
    }

    async fn start(&self, game: &str, opponent: &str, side: &str) {
        self.set_up(game, opponent, side).await;
        self.click("#start").await;
        self.until("!document.getElementById('panel').hidden").await;
    }

    /// Waits until the person can move, or the game is over: then true.
    async fn await_turn(&self) -> bool {
        self.until(
            "document.getElementById('headline').textContent === 'Your move' || \
             !document.getElementById('seal').hidden",
        )
        .await;
        self.eval("!document.getElementById('seal').hidden").await == true
    }

    async fn play(&self, from: &str, to: &str) {
        self.click(&format!("[data-square='{from}']")).await;
        self.click(&format!("[data-square='{to}']")).await;
    }

    async fn move_count(&self) -> u64 {
        let count = self
            .eval("document.querySelectorAll('#moves [data-ply]').length")
            .await;
        count.as_u64().unwrap()
    }

    /// The pieces, from a1.
    async fn squares(&self) -> String {
        let squares = "[...document.querySelectorAll('.cell')]\
             .sort((a, b) => a.dataset.index - b.dataset.index).map(c => c.dataset.piece).join('')";
        self.eval(squares).await.as_str().unwrap().to_string()
    }

    /// Whether the page is wider than the window.
    async fn check_width(&self, width: u64) {
        let seen = self
            .eval("[innerWidth, document.documentElement.scrollWidth]")
            .await;
        assert_eq!(seen[0], width);
        assert!(
            seen[1].as_u64().unwrap() <= width,
            "the page scrolls sideways: {seen}"
        );
    }

    /// Ends the browser; it must have had nothing to complain about.
    async fn close(self) {
        let id = self.client.session_id().await.unwrap().unwrap();
        let log = post(
            &self.driver,
            &format!("/session/{id}/se/log"),
            r#"{"type":"browser"}"#,
        );
        assert_eq!(log["value"], json!([]), "the browser complains");
        self.client.close().await.unwrap();
    }
}

/// Posts to the driver what the library has no words for. The driver keeps connections
/// open, so the answer ends where it says.
fn post(address: &str, path: &str, body: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}");
    write!(
        stream,
        "{head}\r\nContent-Type: application/json\r\n\r\n{body}"
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

/// Starts the driver on a free port.
fn start_driver() -> (Running, String) {
    let child = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap_or_else(|error| {
        panic!(
            "cannot start chromedriver ({error}): the tests of the page need the Debian packages \
             chromium and chromium-driver; scripts/test installs them"
        )
    });
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines.map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("started successfully on port ")?;
        rest.trim_end_matches('.').parse::<u16>().ok()
    });
    let running = Running(child);
    let port = port.expect("chromedriver says on which port it listens");
    (running, format!("127.0.0.1:{port}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_game_by_clicks() {
    let page = Page::open(Screen::Desktop, &["--runs", "/nonexistent"]).await;
    page.start("march-blitz", "baby", "first").await;
    let start = page.squares().await;
    assert_eq!(start, "....K.PPPPPP............pppppp.k....");
    while !page.await_turn().await {
        let before = page.move_count().await;
        // The foremost piece that can move: the shortest way to an end.
        let from = page
            .eval("[...document.querySelectorAll('.cell.movable')].at(0).dataset.square")
            .await;
        page.click(&format!("[data-square='{}']", from.as_str().unwrap()))
            .await;
        page.until("document.querySelector('.cell.target, .cell.take')")
            .await;
        let to = page
            .eval("(document.querySelector('.cell.take') ?? document.querySelector('.cell.target')).dataset.square")
            .await;
        page.click(&format!("[data-square='{}']", to.as_str().unwrap()))
            .await;
        page.until(&format!(
            "document.querySelectorAll('#moves [data-ply]').length > {before}"
        ))
        .await;
        page.until("document.querySelector('.cell.last')").await;
    }
    let headline = page.text("headline").await;
    let subline = page.text("subline").await;
    assert!(["You win", "You lose"].contains(&&*headline), "{headline}");
    assert!(
        ["Catch", "Try", "Stuck"]
            .iter()
            .any(|cause| subline.starts_with(cause)),
        "{subline}"
    );
    assert!(
        page.text("live").await.contains(&headline),
        "it is said aloud"
    );
    let seal = page.text("seal").await;
    assert_eq!(seal, if headline == "You win" { "勝" } else { "負" });

    // The value at the end is the result; before, a number of the network's.
    let end = page.text("value").await;
    assert_eq!(
        end,
        if headline == "You win" {
            "+1.00"
        } else {
            "−1.00"
        }
    );
    let last = page.squares().await;
    let plies = page.move_count().await;
    page.click("#step-back").await;
    page.until("!document.getElementById('past').hidden").await;
    assert_ne!(page.squares().await, last);
    // The graph leads to any position: its left end to the start.
    page.eval("document.getElementById('graph').scrollIntoView({ block: 'center' })")
        .await;
    let place = "(({ x, y, height }) => [x, y + height / 2])\
                 (document.getElementById('graph').getBoundingClientRect())";
    let graph = page.eval(place).await;
    let click = click_at(graph[0].as_f64().unwrap() + 9.0, graph[1].as_f64().unwrap());
    page.client.perform_actions(click).await.unwrap();
    page.until("document.getElementById('step-back').disabled")
        .await;
    assert_eq!(page.squares().await, start);
    assert_ne!(page.text("value").await, end);
    // A move of the list leads to the position after it.
    page.click("[data-ply='1']").await;
    page.until("document.querySelector('[data-ply=\"1\"]').getAttribute('aria-current')")
        .await;
    assert_ne!(page.squares().await, start);
    page.click("#to-now").await;
    page.until("document.getElementById('past').hidden").await;
    assert_eq!(
        (page.squares().await, page.move_count().await),
        (last, plies)
    );

    // The same again from the other side.
    page.click("#rematch").await;
    page.until("document.getElementById('seal').hidden").await;
    assert!(!page.await_turn().await);
    assert_eq!(page.move_count().await, 1);
    assert_eq!(
        page.eval("document.querySelector('.cell').dataset.square")
            .await,
        "f1"
    );
    page.close().await;
}

fn click_at(x: f64, y: f64) -> MouseActions {
    MouseActions::new("mouse".to_string())
        .then(PointerAction::MoveTo {
            duration: None,
            x,
            y,
        })
        .then(PointerAction::Down { button: 0 })
        .then(PointerAction::Up { button: 0 })
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_flip_values_keys_and_drags() {
    let page = Page::open(Screen::Desktop, &["--runs", "/nonexistent"]).await;
    page.start("march-blitz", "normal", "first").await;
    let start = page.squares().await;
    page.play("c2", "c3").await;
    page.until("document.querySelectorAll('#moves [data-ply]').length === 2")
        .await;
    assert!(!page.await_turn().await);
    let after = page.squares().await;
    page.click("#undo").await;
    page.until("document.querySelectorAll('#moves [data-ply]').length === 0")
        .await;
    assert_eq!(page.squares().await, start);
    assert_eq!(
        page.eval("document.getElementById('undo').disabled").await,
        true
    );
    assert_ne!(start, after);

    // The person sits below; flipped, above.
    let corner = "document.querySelector('.cell').dataset.square";
    assert_eq!(page.eval(corner).await, "a6");
    assert_eq!(
        page.eval("document.querySelector('#player-near .who').textContent")
            .await,
        "You"
    );
    page.click("#flip").await;
    assert_eq!(page.eval(corner).await, "f1");
    assert_eq!(
        page.eval("document.querySelector('#player-far .who').textContent")
            .await,
        "You"
    );
    assert_eq!(page.squares().await, start);
    page.click("#flip").await;

    // Every move with its value, best first, and as many arrows.
    assert_eq!(
        page.eval("document.querySelectorAll('.arrow').length")
            .await,
        0
    );
    page.click(".network .switch").await;
    page.until("document.querySelectorAll('#values [data-move]').length === 16")
        .await;
    assert_eq!(
        page.eval("document.querySelectorAll('.arrow').length")
            .await,
        16
    );
    let values = page
        .eval("[...document.querySelectorAll('#values .number')].map(n => Number(n.textContent.replace('−', '-')))")
        .await;
    let values: Vec<f64> = values
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_f64().unwrap())
        .collect();
    assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");

    // By keys alone: along the rank to d2, ahead, home.
    page.eval("document.querySelector('[data-square=\"a1\"]').focus()")
        .await;
    let press = async |keys: &[Key]| {
        for &key in keys {
            let focused = page.client.active_element().await.unwrap();
            focused
                .send_keys(&char::from(key).to_string())
                .await
                .unwrap();
        }
    };
    press(&[Key::Up, Key::Right, Key::Right, Key::Right]).await;
    assert_eq!(
        page.eval("document.activeElement.dataset.square").await,
        "d2"
    );
    press(&[Key::Enter]).await;
    page.until(
        "document.querySelector('[data-square=\"d2\"]').getAttribute('aria-selected') === 'true'",
    )
    .await;
    let label = page
        .eval("document.querySelector('[data-square=\"d3\"]').getAttribute('aria-label')")
        .await;
    assert_eq!(label, "d3, empty, can be entered");
    press(&[Key::Up, Key::Enter]).await;
    page.until("document.querySelectorAll('#moves [data-ply]').length === 2")
        .await;
    assert!(!page.await_turn().await);
    page.until("document.getElementById('live').textContent.includes('NormalAI played') || document.getElementById('live').textContent.includes('NormalAI took')").await;

    // Dragged from square to square; one dropped elsewhere goes home.
    let middle = async |square: &str| {
        let script = format!(
            "(r => [r.x + r.width / 2, r.y + r.height / 2])\
             (document.querySelector('[data-square=\"{square}\"] .floor').getBoundingClientRect())"
        );
        let place = page.eval(&script).await;
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    };
    page.eval("scrollTo(0, 0)").await;
    let drag = async |from: &str, to: &str| {
        let ((x, y), (to_x, to_y)) = (middle(from).await, middle(to).await);
        let actions = MouseActions::new("mouse".to_string())
            .then(PointerAction::MoveTo {
                duration: None,
                x,
                y,
            })
            .then(PointerAction::Down { button: 0 })
            .then(PointerAction::MoveTo {
                duration: None,
                x: (x + to_x) / 2.0,
                y: (y + to_y) / 2.0,
            })
            .then(PointerAction::MoveTo {
                duration: None,
                x: to_x,
                y: to_y,
            })
            .then(PointerAction::Up { button: 0 });
        page.client.perform_actions(actions).await.unwrap();
    };
    let before = page.squares().await;
    drag("a2", "a5").await;
    assert_eq!(page.squares().await, before);
    assert_eq!(page.move_count().await, 2);
    drag("a2", "a3").await;
    page.until("document.querySelectorAll('#moves [data-ply]').length === 4")
        .await;

    // Given up, after a second click.
    page.click("#resign").await;
    assert_eq!(page.text("resign").await, "Really resign?");
    page.click("#resign").await;
    page.until("document.getElementById('subline').textContent === 'You resigned.'")
        .await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_have_their_own_games_and_reloads_keep_them() {
    let page = Page::open(Screen::Desktop, &["--runs", "/nonexistent"]).await;
    page.start("march-blitz", "easy", "first").await;
    page.play("b2", "b3").await;
    page.until("document.querySelectorAll('#moves [data-ply]').length === 2")
        .await;
    let mine = page.squares().await;
    let first = page.client.window().await.unwrap();

    let second = page.client.new_window(true).await.unwrap().handle;
    page.client.switch_to_window(second.clone()).await.unwrap();
    page.goto("/").await;
    page.start("connect-four", "easy", "first").await;
    assert_eq!(page.squares().await, ".".repeat(42));
    // A drop: any square of the file will do.
    page.click("[data-square='d5']").await;
    page.until("document.querySelectorAll('#moves [data-ply]').length === 2")
        .await;
    assert_eq!(&page.squares().await[3..4], "O");
    // Nobody has taught a network this game.
    assert_eq!(
        page.eval("document.getElementById('network-body').hidden")
            .await,
        true
    );
    assert!(
        page.text("no-network")
            .await
            .starts_with("No network has learned Connect Four yet")
    );

    page.client.switch_to_window(first).await.unwrap();
    assert_eq!(page.squares().await, mine);
    page.client.refresh().await.unwrap();
    page.until("document.querySelectorAll('#moves [data-ply]').length === 2")
        .await;
    assert_eq!(page.squares().await, mine);
    page.client.switch_to_window(second).await.unwrap();
    page.client.refresh().await.unwrap();
    page.until("document.querySelectorAll('#moves [data-ply]').length === 2")
        .await;
    assert_eq!(&page.squares().await[3..4], "O");
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_on_time_with_nobody_moving() {
    let page = Page::open(Screen::Desktop, &["--runs", "/nonexistent"]).await;
    page.set_up("breakthrough-6", "baby", "first").await;
    page.fill("initial", "1.2").await;
    page.fill("increment", "0").await;
    page.click("#start").await;
    page.until("document.querySelector('#player-near .time.running')")
        .await;
    let time = page
        .eval("document.querySelector('#player-near .time').textContent")
        .await;
    assert!(time.as_str().unwrap().starts_with("0:0"), "{time}");
    page.until("document.getElementById('headline').textContent === 'You lose'")
        .await;
    assert_eq!(page.text("subline").await, "Time: you ran out of it.");
    let left = page
        .eval("document.querySelector('#player-near .time').textContent")
        .await;
    assert_eq!(left, "0:00.0");
    assert_eq!(
        page.eval("document.querySelectorAll('.cell.movable').length")
            .await,
        0
    );
    assert_eq!(
        page.eval("document.getElementById('undo').disabled").await,
        true
    );
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_shows_it_all() {
    let runs = tempfile::tempdir().unwrap();
    let folder = runs.path().join("on-the-phone");
    let mut training = tanren(&["train", "smoke", "--device", "cpu", "--quiet", "--out"]);
    crate::cli::run(training.arg(&folder), 0);
    let page = Page::open(Screen::Phone, &["--runs", runs.path().to_str().unwrap()]).await;
    page.until("!document.getElementById('setup').hidden").await;
    page.check_width(360).await;
    page.start("march-grand", "normal", "first").await;
    page.play("c2", "c3").await;
    page.until("document.querySelectorAll('#moves [data-ply]').length === 2")
        .await;
    page.check_width(360).await;
    page.click(".network .switch").await;
    page.until("document.querySelector('#values [data-move]')")
        .await;
    page.check_width(360).await;
    // Squares are large enough for fingers.
    let square = page
        .eval("document.querySelector('.cell .floor').getBoundingClientRect().width")
        .await;
    assert!(square.as_f64().unwrap() >= 44.0, "{square}");
    page.goto("/training").await;
    page.until("document.querySelector('#score-chart .line')")
        .await;
    page.check_width(360).await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn training_is_watched_and_played_against() {
    let runs = tempfile::tempdir().unwrap();
    let page = Page::open(Screen::Desktop, &["--runs", runs.path().to_str().unwrap()]).await;
    page.goto("/training").await;
    page.until("!document.getElementById('no-runs').hidden")
        .await;
    let training = tanren(&[
        "train",
        "smoke",
        "--device",
        "cpu",
        "--checkpoint-seconds",
        "0",
        "--quiet",
    ])
    .args([
        "--set",
        "games=4000000",
        "--set",
        "evaluation.pairs=2",
        "--threads",
        "1",
        "--out",
    ])
    .arg(runs.path().join("live"))
    .spawn();
    let _training = Running(training.unwrap());
    // It comes by itself, and so does what it learns.
    page.until("document.querySelector('[data-run=\"live\"] .state.running')")
        .await;
    let games =
        "Number(document.querySelector('#numbers dd')?.textContent.replaceAll(',', '') ?? 0)";
    page.until(&format!("{games} > 0")).await;
    let before = page.eval(games).await.as_f64().unwrap();
    page.until(&format!("{games} > {before}")).await;
    page.until("document.querySelector('#score-chart .easy .line') && document.querySelector('#loss-chart .loss .line')").await;
    page.until("document.querySelector('#score-chart .easy .band')")
        .await;
    page.click("#play").await;
    page.until("document.querySelector('input[name=opponent]:checked')?.value === 'run:live'")
        .await;
    page.click("#start").await;
    page.until("!document.getElementById('panel').hidden").await;
    let opponent = page
        .eval("document.querySelector('#player-far .who').textContent")
        .await;
    let opponent = opponent.as_str().unwrap().to_string();
    assert!(
        opponent.starts_with("live after ") && opponent.ends_with(" games"),
        "{opponent}"
    );
    assert!(!page.await_turn().await);
    assert!(
        page.text("value-words")
            .await
            .ends_with(&format!("says {opponent}"))
    );
    page.close().await;
}
