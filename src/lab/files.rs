//! Writing files so that a kill, a power cut or a full disk leaves either the
//! old content or the new one under a name, never half of it.
//!
//! Everything is written under a temporary name next to its destination, forced
//! to the disk, and renamed. The caller sees to it that a path has one writer at
//! a time; in a run folder the lock does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Extension of files and directories that are not complete yet.
const PARTIAL: &str = "partial";

/// An operation on a file or directory failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// For `map_err`: says that `action` on `path` failed.
    pub fn new(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
        let path = path.to_path_buf();
        move |source| FileError {
            action,
            path,
            source,
        }
    }
}

/// A text as one word of a command line, for hints that people copy.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/\\._-:@".contains(c);
    if text.chars().all(plain) {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Reads a whole file.
///
/// # Errors
/// If the file cannot be read; names it.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(FileError::new("read", path))
}

/// Reads a whole file of UTF-8 text.
///
/// # Errors
/// If the file cannot be read or is no UTF-8; names it.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(FileError::new("read", path))
}

/// Creates a directory and its parents; one that exists is fine.
///
/// # Errors
/// If that fails; names the directory.
pub fn create_dirs(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(FileError::new("create the directory", path))?;
    sync_directory(parent(path))
}

/// Makes `bytes` the content of the file at `path`, whether it existed or not.
///
/// # Errors
/// If any operation fails; names the file. What `path` held before is then
/// still there.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_together(&[(path, bytes)])
}

/// Writes files that belong together. All of them are on the disk before the first
/// gets its name, and they get their names in order.
///
/// # Errors
/// If any operation fails; names the file. Unless it is a renaming that fails, what
/// the paths held before is then still there.
pub fn write_together(files: &[(&Path, &[u8])]) -> Result<(), FileError> {
    let written = write_partials(files).and_then(|()| {
        files.iter().try_for_each(|(path, _)| {
            let renamed = fs::rename(partial_path(path), path);
            renamed.map_err(FileError::new("write", path))
        })
    });
    if written.is_err() {
        for (path, _) in files {
            // The first error tells more than one from cleaning up would.
            let _ = fs::remove_file(partial_path(path));
        }
    }
    written?;
    files
        .iter()
        .try_for_each(|(path, _)| sync_directory(parent(path)))
}

fn write_partials(files: &[(&Path, &[u8])]) -> Result<(), FileError> {
    files.iter().try_for_each(|(path, bytes)| {
        write_synced(&partial_path(path), bytes).map_err(FileError::new("write", path))
    })
}

/// Makes what `fill` puts into the directory it is given the content of the
/// directory at `path`. A directory that stands there is replaced: it is removed
/// once its successor is complete and on the disk.
///
/// # Errors
/// What `fill` returns, or the failure of an operation. What `path` held before
/// is then still there.
pub fn write_dir_atomically<E: From<FileError>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let partial = partial_path(path);
    remove_dir(&partial)?;
    create_dirs(&partial)?;
    let renamed = fill(&partial).and_then(|()| {
        sync_tree(&partial)?;
        remove_dir(path)?;
        Ok(fs::rename(&partial, path).map_err(FileError::new("create the directory", path))?)
    });
    if renamed.is_err() {
        // As above: report the first error.
        let _ = fs::remove_dir_all(&partial);
    }
    renamed?;
    Ok(sync_directory(parent(path))?)
}

/// Removes a directory with everything in it; none there is fine.
///
/// # Errors
/// If that fails; names the directory.
pub fn remove_dir(path: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(FileError::new("remove the directory", path)),
    }
}

/// Removes what an earlier, killed process left incomplete in `directory`.
///
/// # Errors
/// If the directory cannot be read or a leftover not be removed.
pub fn remove_leftovers(directory: &Path) -> Result<(), FileError> {
    for path in entries(directory)? {
        if path
            .extension()
            .is_some_and(|extension| extension == PARTIAL)
        {
            if path.is_dir() {
                remove_dir(&path)?;
            } else {
                fs::remove_file(&path).map_err(FileError::new("remove", &path))?;
            }
        }
    }
    Ok(())
}

/// The paths of everything in a directory, sorted by name.
///
/// # Errors
/// If the directory cannot be read; names it.
pub fn entries(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    let mut paths = list().map_err(FileError::new("list the directory", directory))?;
    paths.sort();
    Ok(paths)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Forces a directory and everything below it to the disk.
fn sync_tree(directory: &Path) -> Result<(), FileError> {
    for path in entries(directory)? {
        if path.is_dir() {
            sync_tree(&path)?;
        } else {
            // Windows flushes only files that are open for writing.
            let file = OpenOptions::new().write(true).open(&path);
            file.and_then(|file| file.sync_all())
                .map_err(FileError::new("write", &path))?;
        }
    }
    sync_directory(directory)
}

/// Forces the names in a directory to the disk, where the system knows how to.
fn sync_directory(directory: &Path) -> Result<(), FileError> {
    if cfg!(unix) {
        let opened = File::open(directory);
        opened
            .and_then(|directory| directory.sync_all())
            .map_err(FileError::new("write the directory", directory))?;
    }
    Ok(())
}

fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(PARTIAL);
    PathBuf::from(name)
}

/// The directory that holds `path`.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
