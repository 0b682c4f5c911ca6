//! From a preset or a TOML file and `--set` arguments to a complete
//! configuration.
//!
//! A configuration is a tree of keys, handled here as a flat map from dotted
//! keys (`net.kind`) to values. Layers override each other: the base preset,
//! then the file, then each `--set`. Every value remembers where it came from,
//! so that a mistake is reported with its file and line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::files::{self, FileError};
use super::{AnyExperiment, Experiment, Preset};

/// The key that names the experiment of a configuration file.
const EXPERIMENT: &str = "experiment";
/// The key that names the preset that a configuration file starts from.
const BASE: &str = "base";

/// A complete configuration that its experiment accepts.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The experiment it is for.
    pub experiment: &'static AnyExperiment,
    /// Name of the preset, or of the file without its extension.
    pub name: String,
    /// Every key, in the order of the experiment's own struct: a configuration
    /// file that resolves to itself.
    pub toml: String,
}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A built-in preset, by name.
    Preset(&'static str),
    /// A file as a whole.
    File(PathBuf),
    /// A line of a file, counted from 1.
    Line(PathBuf, usize),
    /// A `--set` argument.
    Set(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Preset(name) => write!(f, "preset {name}"),
            Origin::File(file) => write!(f, "{}", file.display()),
            Origin::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Origin::Set(argument) => write!(f, "--set {argument}"),
        }
    }
}

/// A configuration that does not resolve. The messages name the fix.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no TOML.
    #[error("{}: {message}", .file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Line, column and reason.
        message: String,
    },
    /// No preset of this name is built in.
    #[error("{}there is no preset `{name}`{}; presets: {}. A file is given by a path that has a `/` or ends in .toml",
        prefix(.origin), hint(.nearest), .known.join(", "))]
    UnknownPreset {
        /// Where it was named, unless on the command line.
        origin: Option<Origin>,
        /// The name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// All presets.
        known: Vec<String>,
    },
    /// A file that names neither an experiment nor a base.
    #[error("{} does not say what it configures: add `base = \"PRESET\"` to change some keys of a preset, \
        or `experiment = \"NAME\"` to give all keys; presets: {}; experiments: {}",
        .file.display(), .presets.join(", "), .experiments.join(", "))]
    NoExperiment {
        /// The file.
        file: PathBuf,
        /// All presets.
        presets: Vec<String>,
        /// All experiments.
        experiments: Vec<String>,
    },
    /// No experiment of this name, or not the one that the base preset is for.
    #[error("{origin}: `{name}` is not an experiment that fits here; accepted: {}", .known.join(", "))]
    UnknownExperiment {
        /// Where it was named.
        origin: Origin,
        /// The name.
        name: String,
        /// What would be accepted.
        known: Vec<String>,
    },
    /// A key that the experiment does not have.
    #[error("{origin}: unknown key `{key}`{}; keys {}: {}", hint(.nearest), place(.key), .known.join(", "))]
    UnknownKey {
        /// Where it was given.
        origin: Origin,
        /// The dotted key.
        key: String,
        /// The most similar key.
        nearest: Option<String>,
        /// The keys of the same table, or all keys.
        known: Vec<String>,
    },
    /// A value of the wrong type.
    #[error("{origin}: `{key}` is {found}, but {expected} is expected")]
    WrongType {
        /// Where it was given.
        origin: Origin,
        /// The dotted key.
        key: String,
        /// What was given.
        found: String,
        /// What would be accepted.
        expected: String,
    },
    /// A file with `experiment` and without `base` that lacks keys.
    #[error("{} lacks {}; add {}, or start from a preset with `base = \"PRESET\"`", .file.display(), .keys.join(", "),
        if .keys.len() == 1 { "it" } else { "them" })]
    Missing {
        /// The file.
        file: PathBuf,
        /// The keys that it lacks.
        keys: Vec<String>,
    },
    /// A value that the experiment does not accept.
    #[error("{origin}: {message}")]
    Refused {
        /// Where the value was given.
        origin: Origin,
        /// The key and what would be accepted.
        message: String,
    },
    /// A `--set` argument without `=`.
    #[error("--set {0}: expected KEY=VALUE")]
    NoValue(String),
}

fn prefix(origin: &Option<Origin>) -> String {
    origin
        .as_ref()
        .map_or(String::new(), |origin| format!("{origin}: "))
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or(String::new(), |name| format!(" (did you mean `{name}`?)"))
}

/// Which keys an [`ConfigError::UnknownKey`] lists.
fn place(key: &str) -> String {
    table_of(key).map_or("are".to_string(), |table| format!("of `{table}` are"))
}

/// Resolves `source`, the name of a preset or the path of a TOML file, and then
/// `sets`, arguments of the form `KEY=VALUE`.
///
/// A file starts from the preset that it names as `base`; one that names an
/// `experiment` alone gives every key.
///
/// # Errors
/// If the source is unknown or cannot be read, or if a key or a value is not one
/// that the experiment accepts.
pub fn resolve(
    experiments: &'static [AnyExperiment],
    source: &str,
    sets: &[String],
) -> Result<Resolved, ConfigError> {
    let (mut draft, name) = if is_path(source) {
        let file = Path::new(source);
        (Draft::from_file(experiments, file)?, stem(file))
    } else {
        (
            Draft::from_preset(experiments, source, None)?,
            source.to_string(),
        )
    };
    for argument in sets {
        draft.set_argument(argument)?;
    }
    let resolved = draft.finish(name)?;
    (resolved.experiment.validate_inputs)(&resolved.toml)
        .map_err(|refusal| draft.refused(refusal))?;
    Ok(resolved)
}

/// Resolves the TOML file `file` of a run that has been started, see [`resolve`]:
/// the files that its start has read may be gone.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_file(
    experiments: &'static [AnyExperiment],
    file: &Path,
) -> Result<Resolved, ConfigError> {
    Draft::from_file(experiments, file)?.finish(stem(file))
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .unwrap_or(file.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// All presets of all experiments, in the order of the tables.
pub fn presets(experiments: &'static [AnyExperiment]) -> impl Iterator<Item = &'static Preset> {
    experiments.iter().flat_map(|experiment| experiment.presets)
}

/// The preset called `name`.
///
/// # Errors
/// If there is none.
pub fn preset(
    experiments: &'static [AnyExperiment],
    name: &str,
) -> Result<&'static Preset, ConfigError> {
    find_preset(experiments, name, None).map(|(_, preset)| preset)
}

fn find_preset(
    experiments: &'static [AnyExperiment],
    name: &str,
    origin: Option<Origin>,
) -> Result<(&'static AnyExperiment, &'static Preset), ConfigError> {
    let mut all = experiments
        .iter()
        .flat_map(|e| e.presets.iter().map(move |preset| (e, preset)));
    all.find(|(_, preset)| preset.name == name).ok_or_else(|| {
        let known: Vec<String> = preset_names(experiments);
        let nearest = nearest(
            known.iter(),
            |known| strsim::damerau_levenshtein(name, known),
            name,
        );
        ConfigError::UnknownPreset {
            origin,
            name: name.to_string(),
            nearest,
            known,
        }
    })
}

fn preset_names(experiments: &'static [AnyExperiment]) -> Vec<String> {
    presets(experiments)
        .map(|preset| preset.name.to_string())
        .collect()
}

fn is_path(source: &str) -> bool {
    source.contains(['/', std::path::MAIN_SEPARATOR]) || source.ends_with(".toml")
}

/// A configuration on its way through the layers.
struct Draft {
    experiment: &'static AnyExperiment,
    /// Where the lowest layer came from.
    source: Origin,
    /// Every key of the experiment, with a value that shows its type.
    examples: BTreeMap<String, Value>,
    /// The values so far, with their origins.
    values: BTreeMap<String, (Value, Origin)>,
}

impl Draft {
    fn from_preset(
        experiments: &'static [AnyExperiment],
        name: &str,
        origin: Option<Origin>,
    ) -> Result<Draft, ConfigError> {
        let (experiment, preset) = find_preset(experiments, name, origin)?;
        let source = Origin::Preset(preset.name);
        let examples = preset_values(preset);
        let with_origin =
            |(key, value): (&String, &Value)| (key.clone(), (value.clone(), source.clone()));
        let values = examples.iter().map(with_origin).collect();
        Ok(Draft {
            experiment,
            source,
            examples,
            values,
        })
    }

    fn from_file(experiments: &'static [AnyExperiment], file: &Path) -> Result<Draft, ConfigError> {
        let mut layer = FileLayer::read(file)?;
        let base = layer.take_name(BASE)?;
        let experiment = layer.take_name(EXPERIMENT)?;
        let has_base = base.is_some();
        let mut draft = match (base, &experiment) {
            (Some((base, origin)), _) => Draft::from_preset(experiments, &base, Some(origin))?,
            (None, Some((name, origin))) => Draft::empty(experiments, name, origin, file)?,
            (None, None) => {
                return Err(ConfigError::NoExperiment {
                    file: file.to_path_buf(),
                    presets: preset_names(experiments),
                    experiments: experiments.iter().map(|e| e.name.to_string()).collect(),
                });
            }
        };
        if let Some((name, origin)) = experiment
            && name != draft.experiment.name
        {
            let known = vec![draft.experiment.name.to_string()];
            return Err(ConfigError::UnknownExperiment {
                origin,
                name,
                known,
            });
        }
        for (key, (value, origin)) in layer.values {
            draft.set(&key, value, origin)?;
        }
        if !has_base {
            draft.require_all_keys(file)?;
        }
        Ok(draft)
    }

    /// The draft of a file that gives every key itself.
    fn empty(
        experiments: &'static [AnyExperiment],
        name: &str,
        origin: &Origin,
        file: &Path,
    ) -> Result<Draft, ConfigError> {
        let experiment = experiments.iter().find(|e| e.name == name).ok_or_else(|| {
            ConfigError::UnknownExperiment {
                origin: origin.clone(),
                name: name.to_string(),
                known: experiments.iter().map(|e| e.name.to_string()).collect(),
            }
        })?;
        Ok(Draft {
            experiment,
            source: Origin::File(file.to_path_buf()),
            examples: experiment
                .presets
                .first()
                .map(preset_values)
                .unwrap_or_default(),
            values: BTreeMap::new(),
        })
    }

    fn require_all_keys(&self, file: &Path) -> Result<(), ConfigError> {
        let lacks = |key: &&String| !self.values.contains_key(*key);
        let keys: Vec<String> = self.examples.keys().filter(lacks).cloned().collect();
        if keys.is_empty() {
            return Ok(());
        }
        Err(ConfigError::Missing {
            file: file.to_path_buf(),
            keys,
        })
    }

    fn set_argument(&mut self, argument: &str) -> Result<(), ConfigError> {
        let Some((key, text)) = argument.split_once('=') else {
            return Err(ConfigError::NoValue(argument.to_string()));
        };
        // What is no TOML value is a string, so that its quotes need not be
        // protected from the shell.
        let value = text
            .trim()
            .parse()
            .unwrap_or_else(|_| Value::String(text.to_string()));
        let mut values = BTreeMap::new();
        flatten(key.trim(), value, &mut values);
        for (key, value) in values {
            self.set(&key, value, Origin::Set(argument.to_string()))?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: Value, origin: Origin) -> Result<(), ConfigError> {
        let Some(example) = self.examples.get(key) else {
            return Err(self.unknown_key(key, &value, origin));
        };
        let value = match (example, value) {
            (Value::Float(_), Value::Integer(whole)) => Value::Float(whole as f64),
            (_, value) => value,
        };
        if !example.same_type(&value) {
            return Err(ConfigError::WrongType {
                origin,
                key: key.to_string(),
                found: found(&value),
                expected: format!("{} such as {example}", kind(example)),
            });
        }
        self.values.insert(key.to_string(), (value, origin));
        Ok(())
    }

    fn unknown_key(&self, key: &str, value: &Value, origin: Origin) -> ConfigError {
        let below = self.keys_of_table(key);
        if !below.is_empty() {
            return ConfigError::WrongType {
                origin,
                key: key.to_string(),
                found: found(value),
                expected: format!("a table with the keys {}", below.join(", ")),
            };
        }
        let siblings = table_of(key)
            .map(|table| self.keys_of_table(table))
            .unwrap_or_default();
        // The table may be what is misspelt; then all keys help more than none.
        let known = if siblings.is_empty() {
            self.examples.keys().cloned().collect()
        } else {
            siblings
        };
        let nearest = nearest(self.examples.keys(), |known| key_distance(key, known), key);
        ConfigError::UnknownKey {
            origin,
            key: key.to_string(),
            nearest,
            known,
        }
    }

    fn keys_of_table(&self, table: &str) -> Vec<String> {
        let inside = |key: &&String| {
            key.strip_prefix(table)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        self.examples.keys().filter(inside).cloned().collect()
    }

    /// Lets the experiment check the values and render them.
    fn finish(&self, name: String) -> Result<Resolved, ConfigError> {
        let mut table = Table::new();
        for (key, (value, _)) in &self.values {
            insert(&mut table, key, value.clone());
        }
        let toml = (self.experiment.canonical)(&table).map_err(|refusal| self.refused(refusal))?;
        Ok(Resolved {
            experiment: self.experiment,
            name,
            toml,
        })
    }

    /// The refusal, with the place where the value was given.
    fn refused(&self, refusal: Refusal) -> ConfigError {
        let given = refusal.key.and_then(|key| self.values.get(&key));
        let origin = given.map_or(&self.source, |(_, origin)| origin).clone();
        ConfigError::Refused {
            origin,
            message: plain(&refusal.message),
        }
    }
}

/// The values of a file.
struct FileLayer {
    values: BTreeMap<String, (Value, Origin)>,
}

impl FileLayer {
    fn read(file: &Path) -> Result<FileLayer, ConfigError> {
        let text = files::read_text(file)?;
        let syntax = |error: toml::de::Error| ConfigError::Syntax {
            file: file.to_path_buf(),
            message: error.to_string().trim_end().to_string(),
        };
        let values = leaves(text.parse().map_err(syntax)?);
        let spanned = DeTable::parse(&text).map_err(syntax)?;
        let mut lines = BTreeMap::new();
        collect_spans("", spanned.get_ref(), &mut |key, value_start| {
            lines.insert(key, 1 + text[..value_start].matches('\n').count());
        });
        let with_line = |(key, value): (String, Value)| {
            let origin = Origin::Line(file.to_path_buf(), lines[&key]);
            (key, (value, origin))
        };
        Ok(FileLayer {
            values: values.into_iter().map(with_line).collect(),
        })
    }

    /// Takes out one of the keys that are not the experiment's own.
    fn take_name(&mut self, key: &str) -> Result<Option<(String, Origin)>, ConfigError> {
        match self.values.remove(key) {
            None => Ok(None),
            Some((Value::String(name), origin)) => Ok(Some((name, origin))),
            Some((value, origin)) => Err(ConfigError::WrongType {
                origin,
                key: key.to_string(),
                found: found(&value),
                expected: "the name of one, in quotes,".to_string(),
            }),
        }
    }
}

/// What an experiment does not accept, and the key to blame, if known.
#[derive(Debug)]
pub(super) struct Refusal {
    key: Option<String>,
    message: String,
}

impl Refusal {
    /// By the rule of [`Experiment::validate`], the message starts with the key.
    fn by_experiment(error: anyhow::Error) -> Refusal {
        let message = format!("{error:#}");
        let key = message
            .split_whitespace()
            .next()
            .map(|key| key.trim_matches('`').to_string());
        Refusal { key, message }
    }
}

/// Checks the values of a configuration and renders it, see [`canonical`].
pub(super) type Canonical = fn(&Table) -> Result<String, Refusal>;

/// Checks `values` and renders them as a configuration file of `E`.
pub(super) fn canonical<E: Experiment>(values: &Table) -> Result<String, Refusal> {
    // By way of text, since errors in text have a place, and so a key.
    let text = values.to_string();
    let config: E::Config = toml::from_str(&text).map_err(|error| {
        let key = error.span().and_then(|span| key_at(&text, span.start));
        let name = key
            .as_ref()
            .map_or(String::new(), |key| format!("`{key}`: "));
        Refusal {
            message: format!("{name}{}", error.message()),
            key,
        }
    })?;
    E::validate(&config).map_err(Refusal::by_experiment)?;
    let config = toml::to_string(&config).map_err(|error| Refusal {
        key: None,
        message: format!("the configuration cannot be written as TOML: {error}"),
    })?;
    Ok(format!("{EXPERIMENT} = \"{}\"\n{config}", E::NAME))
}

/// [`Experiment::validate_inputs`] of some experiment, on what its [`canonical`]
/// rendered.
pub(super) type ValidateInputs = fn(&str) -> Result<(), Refusal>;

/// See [`ValidateInputs`].
pub(super) fn validate_inputs<E: Experiment>(text: &str) -> Result<(), Refusal> {
    E::validate_inputs(&parse_canonical::<E>(text)).map_err(Refusal::by_experiment)
}

/// Reads the resolved configuration in a run folder, which was checked when the run
/// was started; `None` if the run is one of another experiment than `E`.
///
/// # Errors
/// If the file cannot be read, or is not what a run writes.
pub fn read_resolved<E: Experiment>(file: &Path) -> Result<Option<E::Config>, ConfigError> {
    let syntax = |error: toml::de::Error| ConfigError::Syntax {
        file: file.to_path_buf(),
        message: error.to_string().trim_end().to_string(),
    };
    let mut table: Table = files::read_text(file)?.parse().map_err(syntax)?;
    match table.remove(EXPERIMENT) {
        Some(Value::String(name)) if name == E::NAME => table.try_into().map(Some).map_err(syntax),
        _ => Ok(None),
    }
}

/// Reads what [`canonical`] rendered.
pub(super) fn parse_canonical<E: Experiment>(text: &str) -> E::Config {
    let parse = || {
        let mut table: Table = text.parse()?;
        table.remove(EXPERIMENT);
        table.try_into()
    };
    parse().expect("a configuration struct reads back what it wrote")
}

fn preset_values(preset: &Preset) -> BTreeMap<String, Value> {
    let table = preset
        .toml
        .parse()
        .unwrap_or_else(|error| panic!("preset {}: {error}", preset.name));
    let mut values = leaves(table);
    values.remove(EXPERIMENT);
    values
}

/// A table as a flat map from dotted keys.
fn leaves(table: Table) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    for (name, value) in table {
        flatten(&name, value, &mut leaves);
    }
    leaves
}

/// Adds the leaves of `value` to `leaves` by dotted key. An empty table is a
/// leaf, so that a misspelt one is noticed.
fn flatten(key: &str, value: Value, leaves: &mut BTreeMap<String, Value>) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (name, value) in table {
                flatten(&join(key, &name), value, leaves);
            }
        }
        leaf => {
            leaves.insert(key.to_string(), leaf);
        }
    }
}

/// The twin of [`flatten`] on a parsed text: reports each leaf with the place
/// where its value starts, in bytes.
fn collect_spans(key: &str, table: &DeTable<'_>, report: &mut impl FnMut(String, usize)) {
    for (name, value) in table {
        let key = join(key, name.get_ref());
        match value.get_ref() {
            DeValue::Table(table) if !table.is_empty() => collect_spans(&key, table, report),
            _ => report(key, Spanned::span(value).start),
        }
    }
}

/// The key whose value covers the byte `place` of a TOML text.
fn key_at(text: &str, place: usize) -> Option<String> {
    let mut starts = BTreeSet::new();
    collect_spans(
        "",
        DeTable::parse(text).ok()?.get_ref(),
        &mut |key, start| {
            starts.insert((start, key));
        },
    );
    let before = starts.into_iter().take_while(|(start, _)| *start <= place);
    before.last().map(|(_, key)| key)
}

/// The inverse of [`flatten`] for one leaf.
fn insert(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_string(), value);
        }
        Some((name, rest)) => {
            let inner = table
                .entry(name)
                .or_insert_with(|| Value::Table(Table::new()));
            let inner = inner
                .as_table_mut()
                .expect("no key is both a value and a table");
            insert(inner, rest, value);
        }
    }
}

fn join(table: &str, name: &str) -> String {
    if table.is_empty() {
        name.to_string()
    } else {
        format!("{table}.{name}")
    }
}

fn table_of(key: &str) -> Option<&str> {
    key.rsplit_once('.').map(|(table, _)| table)
}

/// A type of TOML, as people say it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false,",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "an array",
        Value::Table(_) => "a table",
    }
}

/// Serde's messages in the words of people who do not know Rust.
fn plain(message: &str) -> String {
    ["u64", "u32", "u16", "usize"]
        .iter()
        .fold(message.to_string(), |text, name| {
            text.replace(
                &format!("expected {name}"),
                "expected a whole number, 0 or more",
            )
        })
}

/// A value that is not what was expected.
fn found(value: &Value) -> String {
    match value {
        Value::String(_) => format!("the string {value}"),
        Value::Boolean(_) => value.to_string(),
        Value::Integer(_) | Value::Float(_) => format!("the number {value}"),
        other => kind(other).to_string(),
    }
}

/// Keys are alike if they are so as a whole or in their last part: who forgets
/// the table should still be led to the key.
fn key_distance(a: &str, b: &str) -> usize {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_string();
    strsim::damerau_levenshtein(a, b).min(strsim::damerau_levenshtein(&last(a), &last(b)))
}

/// The closest candidate, if it is close enough to be what was meant.
fn nearest<'a>(
    candidates: impl Iterator<Item = &'a String>,
    distance: impl Fn(&str) -> usize,
    word: &str,
) -> Option<String> {
    let (distance, best) = candidates.map(|name| (distance(name), name)).min()?;
    (distance <= word.len().div_ceil(3)).then(|| best.clone())
}
