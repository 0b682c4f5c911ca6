//! Learning a value network by self-play: games ([`selfplay`]) give positions
//! with targets ([`target`]), kept in a window ([`replay`]), from which the
//! network learns ([`learner`]), on a device that computes rightly ([`self_check`]).

pub mod learner;
pub mod replay;
pub mod self_check;
pub mod selfplay;
pub mod target;
