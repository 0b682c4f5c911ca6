//! Checkpoints: the whole state of a run after some step, in a directory named
//! by the step.
//!
//! A checkpoint is complete or absent (see [`files::write_dir_atomically`]), and
//! whether it is still what was written is known: `manifest.json` holds the
//! length and the SHA-256 of every file, and `manifest.sha256` the manifest's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, FileError};
use crate::hash::sha256_hex;

/// Number of checkpoints that a run folder keeps.
pub const KEEP: usize = 3;

const MANIFEST: &str = "manifest.json";
const MANIFEST_HASH: &str = "manifest.sha256";
/// The subdirectory that belongs to the experiment.
const STATE: &str = "state";

/// Where a run stands, as far as the runner is concerned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Number of steps done.
    pub step: u64,
    /// Wall-clock time of these steps, in seconds, over all resumes.
    pub seconds: f64,
    /// Length of `metrics.jsonl` in bytes.
    pub metrics_bytes: u64,
    /// SHA-256 of the configuration that the steps were done with, in hex.
    pub config_sha256: String,
}

/// A checkpoint whose files are all as they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Where the run stood.
    pub standing: Standing,
    /// The directory that the experiment filled.
    pub state: PathBuf,
}

/// A checkpoint that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged: {reason}", file.display())]
pub struct Damage {
    /// The first file that is not right.
    pub file: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// What [`newest`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The newest checkpoint that is as it was written, if there is one.
    pub checkpoint: Option<Checkpoint>,
    /// What is wrong with each newer one.
    pub damaged: Vec<Damage>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    standing: Standing,
    /// By path below the checkpoint, with `/` on every system.
    files: BTreeMap<String, Fingerprint>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fingerprint {
    bytes: u64,
    sha256: String,
}

impl Fingerprint {
    fn of(content: &[u8]) -> Fingerprint {
        Fingerprint {
            bytes: content.len() as u64,
            sha256: sha256_hex(content),
        }
    }
}

/// Writes the checkpoint of `standing` into the directory `checkpoints`; `save`
/// fills the experiment's part. Then removes checkpoints beyond the newest
/// [`KEEP`], and those of later steps: a run that had to fall back to an earlier
/// step has left that future.
///
/// # Errors
/// What `save` returns, or a failed operation; names the file. The checkpoints
/// that were there are then still there.
pub fn write(
    checkpoints: &Path,
    standing: &Standing,
    save: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    files::write_dir_atomically(&directory(checkpoints, standing.step), |partial| {
        let state = partial.join(STATE);
        files::create_dirs(&state)?;
        save(&state)?;
        let mut files = BTreeMap::new();
        fingerprint_tree(&state, STATE, &mut files)?;
        let manifest = Manifest {
            standing: standing.clone(),
            files,
        };
        let text = serde_json::to_string_pretty(&manifest)?;
        files::write_atomically(&partial.join(MANIFEST), text.as_bytes())?;
        let hash = sha256_hex(text.as_bytes());
        Ok::<_, anyhow::Error>(files::write_atomically(
            &partial.join(MANIFEST_HASH),
            hash.as_bytes(),
        )?)
    })?;
    Ok(remove_old(checkpoints, standing.step)?)
}

/// Finds the newest undamaged checkpoint in the directory `checkpoints` of the
/// run that writes the file `metrics`. One that counts on more metrics than there
/// are is damaged.
///
/// # Errors
/// If the directory cannot be read.
pub fn newest(checkpoints: &Path, metrics: &Path) -> Result<Found, FileError> {
    let mut damaged = Vec::new();
    for step in steps(checkpoints)?.into_iter().rev() {
        match verify(checkpoints, step, metrics) {
            Ok(checkpoint) => {
                return Ok(Found {
                    checkpoint: Some(checkpoint),
                    damaged,
                });
            }
            Err(damage) => damaged.push(damage),
        }
    }
    Ok(Found {
        checkpoint: None,
        damaged,
    })
}

/// The steps of which there are checkpoints, ascending.
///
/// # Errors
/// If the directory cannot be read.
pub fn steps(checkpoints: &Path) -> Result<Vec<u64>, FileError> {
    let step = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    let mut steps: Vec<u64> = files::entries(checkpoints)?
        .into_iter()
        .filter_map(step)
        .collect();
    steps.sort_unstable();
    Ok(steps)
}

/// The hash of the newest checkpoint's manifest, by which two checkpoints are told
/// apart without reading them; `None` if there is no checkpoint. What it names may
/// still be damaged.
///
/// # Errors
/// If the directory or the hash cannot be read.
pub fn newest_hash(checkpoints: &Path) -> Result<Option<String>, FileError> {
    let newest = steps(checkpoints)?.pop();
    let hash = |step| files::read_text(&directory(checkpoints, step).join(MANIFEST_HASH));
    newest.map(hash).transpose()
}

fn directory(checkpoints: &Path, step: u64) -> PathBuf {
    checkpoints.join(format!("{step:06}"))
}

fn verify(checkpoints: &Path, step: u64, metrics: &Path) -> Result<Checkpoint, Damage> {
    let directory = directory(checkpoints, step);
    let manifest = read_manifest(&directory)?;
    for (name, expected) in &manifest.files {
        let file = directory.join(name);
        if Fingerprint::of(&read(&file)?) != *expected {
            let reason = format!(
                "it should have {} bytes with SHA-256 {}",
                expected.bytes, expected.sha256
            );
            return Err(Damage { file, reason });
        }
    }
    let standing = manifest.standing;
    let length = fs::metadata(metrics).map_or(0, |metadata| metadata.len());
    if length < standing.metrics_bytes {
        let reason = format!("it should have at least {} bytes", standing.metrics_bytes);
        return Err(Damage {
            file: metrics.to_path_buf(),
            reason,
        });
    }
    Ok(Checkpoint {
        standing,
        state: directory.join(STATE),
    })
}

fn read_manifest(directory: &Path) -> Result<Manifest, Damage> {
    let file = directory.join(MANIFEST);
    let text = read(&file)?;
    if read(&directory.join(MANIFEST_HASH))? != sha256_hex(&text).as_bytes() {
        return Err(Damage {
            file,
            reason: format!("it does not match {MANIFEST_HASH}"),
        });
    }
    serde_json::from_slice(&text).map_err(|error| Damage {
        file,
        reason: error.to_string(),
    })
}

fn read(file: &Path) -> Result<Vec<u8>, Damage> {
    fs::read(file).map_err(|error| Damage {
        file: file.to_path_buf(),
        reason: match error.kind() {
            io::ErrorKind::NotFound => "it is missing".to_string(),
            _ => error.to_string(),
        },
    })
}

fn fingerprint_tree(
    directory: &Path,
    name: &str,
    files: &mut BTreeMap<String, Fingerprint>,
) -> Result<(), FileError> {
    for path in files::entries(directory)? {
        let name = format!(
            "{name}/{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        );
        if path.is_dir() {
            fingerprint_tree(&path, &name, files)?;
        } else {
            files.insert(name, Fingerprint::of(&files::read(&path)?));
        }
    }
    Ok(())
}

fn remove_old(checkpoints: &Path, newest: u64) -> Result<(), FileError> {
    let (mut kept, later): (Vec<u64>, Vec<u64>) = steps(checkpoints)?
        .into_iter()
        .partition(|&step| step <= newest);
    let old = kept.drain(..kept.len().saturating_sub(KEEP));
    for step in old.chain(later) {
        files::remove_dir(&directory(checkpoints, step))?;
    }
    Ok(())
}
