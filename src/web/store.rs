//! The sessions that the server keeps, by an id that cannot be guessed. They are
//! bounded in number and age; the one that was left alone longest goes first.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::session::Session;
use crate::random::secret;

/// The name of a session: who knows it may play.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(u128);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A text that is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoId;

impl FromStr for SessionId {
    type Err = NoId;

    fn from_str(text: &str) -> Result<SessionId, NoId> {
        let is_id = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let id = is_id.then(|| u128::from_str_radix(text, 16));
        id.and_then(Result::ok).map(SessionId).ok_or(NoId)
    }
}

/// A session that several requests may want at once.
pub type SharedSession = Arc<Mutex<Session>>;

/// Locks a session. One that a panic has left behind is a single person's game, and of
/// more use to that person than none.
pub fn lock(session: &SharedSession) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Entry {
    session: SharedSession,
    used: Instant,
}

/// The sessions.
pub struct Store {
    most: usize,
    longest_idle: Duration,
    entries: Mutex<HashMap<SessionId, Entry>>,
}

impl Store {
    /// Keeps at most `most` sessions, none that nobody has used for `longest_idle`.
    pub fn new(most: usize, longest_idle: Duration) -> Store {
        Store {
            most,
            longest_idle,
            entries: Mutex::new(HashMap::new()),
        }
    }

    /// Keeps a session, at the expense of old ones if there are too many.
    pub fn insert(&self, session: Session, now: Instant) -> (SessionId, SharedSession) {
        let session = Arc::new(Mutex::new(session));
        let id = SessionId(secret());
        let mut entries = self.entries();
        entries.retain(|_, entry| self.is_fresh(entry, now));
        if entries.len() >= self.most {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used);
            let oldest = oldest.map(|(id, _)| *id).expect("there are some");
            entries.remove(&oldest);
        }
        let entry = Entry {
            session: session.clone(),
            used: now,
        };
        entries.insert(id, entry);
        (id, session)
    }

    /// The session of an id, if it is still kept.
    pub fn get(&self, id: SessionId, now: Instant) -> Option<SharedSession> {
        let mut entries = self.entries();
        let entry = entries.get_mut(&id)?;
        if !self.is_fresh(entry, now) {
            entries.remove(&id);
            return None;
        }
        entry.used = now;
        Some(entry.session.clone())
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn is_fresh(&self, entry: &Entry, now: Instant) -> bool {
        now.saturating_duration_since(entry.used) < self.longest_idle
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.entries
            .lock()
            .expect("nothing panics while it holds the sessions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_and_written() {
        let id = SessionId(0xa5);
        assert_eq!(id.to_string(), "000000000000000000000000000000a5");
        assert!(id.to_string().parse() == Ok(id));
        for wrong in ["", "a5", "+00000000000000000000000000000a5", "../../etc"] {
            assert!(wrong.parse::<SessionId>() == Err(NoId), "{wrong}");
        }
    }
}
