//! `tanren export`: a network as a file that other programs read, and the
//! certificate that it computes what the model computes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, anyhow};
use burn::module::Module;
use serde_json::json;

use super::{UsageError, print};
use crate::game::Game;
use crate::games::{GAMES, GameVisitor, with_game};
use crate::lab::{Progress, files};
use crate::nets::device::Compute;
use crate::nets::export::{Certificate, Certified, Format, POSITIONS, Sample, certify, export};
use crate::nets::model::{Model, ModelCard, ModelError};
use crate::nets::shipped::{SHIPPED, ShippedModel};

/// Arguments of `tanren export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Beside FILE go FILE.certificate.json, with the errors of the export against the model on 1,000 \
positions of random games, and FILE.samples.jsonl, with these positions, the inputs that are 1 \
and the model's values, for those who want to check a port of their own.")]
pub struct Args {
    /// A model folder, or `model` for the network shipped for the game.
    #[arg(value_name = "MODEL")]
    model: String,
    /// onnx (operations and weights) or safetensors (weights, as PyTorch has them).
    #[arg(long)]
    format: Format,
    /// The file [default: in the current folder, named after the run or the shipped model].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A built-in game or a rules file [default: what the model folder says, for
    /// `model` march-blitz].
    #[arg(long)]
    game: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// Writes the export, if it computes what the model computes.
///
/// # Errors
/// A usage error if there is no such model or the file cannot be meant; otherwise
/// if the model is damaged, the export differs from it, or a file cannot be written.
pub fn run(args: Args) -> anyhow::Result<()> {
    let source = Source::read(&args.model);
    let game = match args.game {
        Some(game) => game,
        None => source.game()?,
    };
    let export = Export {
        source,
        format: args.format,
        out: args.out,
        json: args.json,
        progress: if args.quiet {
            Progress::quiet()
        } else {
            Progress::on_stderr()
        },
    };
    with_game(&game, export).map_err(UsageError::blame_name)?
}

/// Where the model comes from.
enum Source {
    /// The program itself.
    Shipped,
    /// A model folder.
    Folder(PathBuf),
}

impl Source {
    /// Reads what agents are written like, or a bare path.
    fn read(text: &str) -> Source {
        match text {
            "model" => Source::Shipped,
            _ => Source::Folder(text.strip_prefix("model:").unwrap_or(text).into()),
        }
    }

    /// The game of the model. A model folder whose game came from a rules file has a
    /// copy of it.
    fn game(&self) -> anyhow::Result<String> {
        let Source::Folder(folder) = self else {
            return Ok("march-blitz".to_string());
        };
        let card = ModelCard::read(folder).map_err(|error| blame_path(error, folder))?;
        let rules = folder.join("rules.toml");
        if GAMES.iter().all(|game| game.name != card.game) && rules.is_file() {
            return Ok(rules.display().to_string());
        }
        Ok(card.game)
    }

    fn load<G: Game>(&self, game: &G) -> anyhow::Result<Model> {
        let cpu = Compute::cpu().device;
        let (model, origin) = match self {
            Source::Shipped => {
                let shipped = ShippedModel::of_game(game.name()).ok_or_else(|| {
                    let games: Vec<&str> = SHIPPED.iter().map(|model| model.game).collect();
                    UsageError::wrap(anyhow!(
                        "no model is shipped for {}, only for {}; give a model folder",
                        game.name(),
                        games.join(", ")
                    ))
                })?;
                (shipped.load(&cpu), Path::new(shipped.folder))
            }
            Source::Folder(folder) => (Model::load(folder, &cpu), &**folder),
        };
        let model = model.map_err(|error| blame_path(error, origin))?;
        model.check_game(game, origin).map_err(UsageError::wrap)?;
        Ok(model)
    }

    /// What the file is called, without its extension.
    fn name(&self, card: &ModelCard) -> String {
        match self {
            Source::Folder(folder) => {
                // A card is a file that people can edit.
                let run = Path::new(&card.training.run).file_name();
                let name = run.or(folder.file_name()).unwrap_or("model".as_ref());
                name.to_string_lossy().into_owned()
            }
            Source::Shipped => format!("{}-{}", card.game, card.net.kind.name()),
        }
    }
}

/// A folder that holds no model is the fault of the command line; one with a damaged
/// model is a failure.
fn blame_path(error: ModelError, folder: &Path) -> anyhow::Error {
    match error {
        ModelError::File { .. } => {
            let inner = folder.join("model");
            let hint = if inner.is_dir() {
                format!("; did you mean {}?", inner.display())
            } else {
                String::new()
            };
            let what = format!("{} is no model folder{hint}", folder.display());
            UsageError::wrap(anyhow::Error::from(error).context(what))
        }
        _ => error.into(),
    }
}

struct Export {
    source: Source,
    format: Format,
    out: Option<PathBuf>,
    json: bool,
    progress: Progress,
}

impl GameVisitor for Export {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(mut self, game: Arc<G>) -> anyhow::Result<()> {
        let model = self.source.load(&*game)?;
        let out = self.out.take().unwrap_or_else(|| {
            let name = self.source.name(&model.card);
            PathBuf::from(format!("{name}.{}", self.format))
        });
        let places = Places::new(out).map_err(UsageError::wrap)?;

        let bytes = export(&*game, &model, self.format);
        self.progress.begin(0, POSITIONS as u64, Duration::ZERO);
        let progress = Mutex::new(self.progress);
        let certified = certify(&*game, &model, self.format, &bytes, |done| {
            let mut progress = progress.lock().expect("showing progress does not panic");
            progress.update(done as u64, Some("positions compared".to_string()));
        });
        drop(progress);
        let Certified {
            certificate,
            samples,
        } = certified.context("the export fails its check, so nothing is written")?;
        places.write(&bytes, &certificate, &samples)?;
        print(if self.json {
            places.json(&certificate).to_string()
        } else {
            places.text(&certificate, &model, bytes.len())
        })
    }
}

/// Where the files go.
struct Places {
    file: PathBuf,
    certificate: PathBuf,
    samples: PathBuf,
}

impl Places {
    fn new(file: PathBuf) -> anyhow::Result<Places> {
        let beside = |extension: &str| {
            let mut name = file.as_os_str().to_owned();
            name.push(extension);
            PathBuf::from(name)
        };
        let places = Places {
            certificate: beside(".certificate.json"),
            samples: beside(".samples.jsonl"),
            file,
        };
        places.check()?;
        Ok(places)
    }

    /// Refuses places that cannot be meant, before any work is done.
    fn check(&self) -> anyhow::Result<()> {
        let file = self.file.display();
        let folder = match self.file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        anyhow::ensure!(
            folder.is_dir(),
            "there is no folder {}; make it, or choose another --out",
            folder.display()
        );
        anyhow::ensure!(
            !self.file.is_dir(),
            "{file} is a folder; choose another --out"
        );
        anyhow::ensure!(
            !self.file.exists() || self.certificate.is_file(),
            "{file} exists and is no earlier export (it has no certificate beside it); remove it, \
             or choose another --out"
        );
        Ok(())
    }

    /// Writes the export last: where it is, all else is.
    fn write(
        &self,
        bytes: &[u8],
        certificate: &Certificate,
        samples: &[Sample],
    ) -> anyhow::Result<()> {
        let certificate = serde_json::to_string_pretty(certificate)? + "\n";
        let mut lines = String::new();
        for sample in samples {
            lines += &serde_json::to_string(sample)?;
            lines.push('\n');
        }
        Ok(files::write_together(&[
            (&self.samples, lines.as_bytes()),
            (&self.certificate, certificate.as_bytes()),
            (&self.file, bytes),
        ])?)
    }

    fn json(&self, certificate: &Certificate) -> serde_json::Value {
        json!({
            "file": self.file,
            "certificate_file": self.certificate,
            "samples_file": self.samples,
            "certificate": certificate,
        })
    }

    fn text(&self, certificate: &Certificate, model: &Model, bytes: usize) -> String {
        let card = &model.card;
        let changed = match certificate.changed_best_moves {
            0 => "0".to_string(),
            moves => format!("{moves}, worse by at most {:.1e}", certificate.change_loss),
        };
        [
            format!(
                "{} for {}, {} parameters, as {}, {bytes} bytes",
                card.net.kind.name(),
                card.game,
                model.net.num_params(),
                certificate.format
            ),
            format!(
                "read back and compared with the model on {} positions of random games:",
                certificate.positions
            ),
            format!(
                "largest error       {:.1e} (accepted: {:.0e})",
                certificate.max_error, certificate.tolerance
            ),
            format!("mean error          {:.1e}", certificate.mean_error),
            format!("sign flips          {}", certificate.sign_flips),
            format!("changed best moves  {changed}"),
            format!("file                {}", self.file.display()),
            format!("SHA-256             {}", certificate.file_sha256),
            format!("certificate         {}", self.certificate.display()),
            format!("samples             {}", self.samples.display()),
        ]
        .join("\n")
    }
}
