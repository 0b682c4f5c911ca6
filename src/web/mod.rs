//! A page to play on and to watch training, and the server behind it.
//!
//! The server enforces rules and clocks; the page ([`assets`]) shows them. Requests
//! name games and opponents of the [`catalog`] and nothing else, and every request and
//! answer passes the [`guard`].
//!
//! ```text
//! page --api--> store: id -> session (whose turn, clock, result)
//!                               `- record (positions, moves, values; erases the game)
//!        `----> catalog: games, opponents     `----> training: run folders
//! ```

pub mod api;
pub mod assets;
pub mod catalog;
pub mod clock;
pub mod error;
pub mod guard;
pub mod record;
pub mod session;
pub mod store;
pub mod training;

use std::io;
use std::net::TcpListener;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::catalog::Catalog;
use self::guard::OwnName;
use self::store::{SharedSession, Store, lock};

/// The most sessions that are kept.
pub const MAX_SESSIONS: usize = 1000;

/// Sessions that nobody uses for this long are forgotten.
pub const LONGEST_IDLE: Duration = Duration::from_secs(24 * 3600);

/// What requests share.
pub struct App {
    /// What there is to play.
    pub catalog: Catalog,
    /// What is being played.
    pub sessions: Store,
    /// True once the server is to stop.
    pub stopping: watch::Receiver<bool>,
    /// One permit a search that may run at the same time.
    searches: Arc<Semaphore>,
}

impl App {
    /// Nothing is being played yet.
    pub fn new(catalog: Catalog, stopping: watch::Receiver<bool>) -> App {
        let cores = available_parallelism().map_or(1, NonZero::get);
        App {
            catalog,
            sessions: Store::new(MAX_SESSIONS, LONGEST_IDLE),
            stopping,
            searches: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Lets the opponent move as soon as a core is free, if it is still its turn then.
    fn let_opponent_think(&self, session: SharedSession) {
        let searches = self.searches.clone();
        tokio::spawn(async move {
            let permit = searches.acquire_owned().await;
            spawn_blocking(move || {
                // Held until the search is over, even if nobody waits for it any more.
                let _permit = permit;
                let task = lock(&session).task(Instant::now());
                let Some(task) = task else { return };
                let reply = task.think();
                let played = lock(&session).reply(&reply, Instant::now());
                played.expect("agents play by the rules");
            });
        });
    }
}

/// Serves on a bound socket until `stop` is true, then lets requests under way come to
/// an end, but does not wait for them long.
///
/// # Errors
/// If the system refuses to serve on the socket.
pub fn serve(
    listener: TcpListener,
    catalog: Catalog,
    own_name: OwnName,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    /// For requests under way.
    const GRACE: Duration = Duration::from_secs(3);
    /// For searches that nobody waits for.
    const LAST_WORK: Duration = Duration::from_millis(200);
    /// Enough for everything that takes a moment; searches are fewer.
    const BLOCKING_THREADS: usize = 64;
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    let served = runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let router = api::router(Arc::new(App::new(catalog, stop.clone())), own_name);
        let stopped = |mut stop: watch::Receiver<bool>| async move {
            // If nobody is left who could say stop, that is the time to stop too.
            let _ = stop.wait_for(|&stop| stop).await;
        };
        let server = axum::serve(listener, router).with_graceful_shutdown(stopped(stop.clone()));
        let server = tokio::spawn(server.into_future());
        stopped(stop).await;
        match timeout(GRACE, server).await {
            Ok(served) => served?,
            // Someone keeps a request open; it will see the connection close.
            Err(_) => Ok(()),
        }
    });
    runtime.shutdown_timeout(LAST_WORK);
    served
}
