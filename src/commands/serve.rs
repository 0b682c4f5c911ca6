//! `tanren serve`: the page to play on and to watch training.

use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio::sync::watch;

use super::{UsageError, print, print_error, signals};
use crate::games::GameError;
use crate::web::catalog::{Catalog, OfferError};
use crate::web::guard::OwnName;
use crate::web::serve;

/// Where model folders are looked for that are not named.
const MODELS: &str = "models";

/// Arguments of `tanren serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rules files of games to offer beside the built-in ones.
    #[arg(value_name = "GAME.toml")]
    games: Vec<String>,

    /// The port to listen on; 0 takes one that is free.
    #[arg(long, default_value_t = 8080)]
    port: u16,

    /// The address to listen on, or a name of this machine.
    #[arg(long, default_value = "127.0.0.1")]
    host: String,

    /// A model folder, or a directory with some in it, to play against; may be given
    /// several times [default: models, if it is there, else those compiled in].
    #[arg(long, value_name = "DIR")]
    models: Vec<PathBuf>,

    /// The directory of run folders.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// Serves until Ctrl-C.
///
/// # Errors
/// If a rules file or a model folder is not what it should be, or the port cannot be
/// listened on.
pub fn run(args: Args) -> anyhow::Result<()> {
    let mut catalog = Catalog::new(&args.games, args.runs).map_err(blame)?;
    let models = match args.models {
        given if !given.is_empty() => given,
        _ if Path::new(MODELS).is_dir() => vec![MODELS.into()],
        _ => {
            catalog.add_shipped_models();
            Vec::new()
        }
    };
    for directory in models {
        let problems = catalog.add_models(&directory).map_err(UsageError::wrap)?;
        for problem in problems {
            print_error(format_args!("warning: passed over {problem}"));
        }
    }
    let listener = listen(&args.host, args.port)?;
    let address = listener.local_addr()?;
    let (stop, stopping) = watch::channel(false);
    signals::on_first(move || {
        stop.send_replace(true);
    })?;
    print(format_args!("http://{}/", reachable(address)))?;
    if !address.ip().is_loopback() {
        print_error(
            "notice: everyone who reaches this machine can play here and see the names and curves \
             of your runs",
        );
    }
    print_error("Ctrl-C stops the server.");
    serve(listener, catalog, OwnName(args.host.into()), stopping).context("the server failed")
}

fn blame(error: OfferError) -> anyhow::Error {
    match error {
        OfferError::Game(error @ GameError::Unknown { .. }) => UsageError::wrap(error),
        OfferError::TakenName { .. } => UsageError::wrap(error),
        OfferError::Game(error) => error.into(),
    }
}

/// Binds the first address that the name has.
fn listen(host: &str, port: u16) -> anyhow::Result<TcpListener> {
    let addresses = (host, port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = addresses
        .with_context(|| format!("--host {host:?} is neither an address nor a known name"))
        .map_err(UsageError::wrap)?
        .collect();
    TcpListener::bind(&*addresses).with_context(|| {
        format!(
            "cannot listen on {host} at port {port}; choose another with --port, or --port 0 for \
             one that is free"
        )
    })
}

/// The address as a browser on this machine reaches it.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
