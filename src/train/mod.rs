//! Learning a value network by self-play: games ([`selfplay`]) give positions
//! with targets ([`target`]), kept in a window ([`replay`]), from which the
//! network learns ([`learner`], [`adam`]), on a device ([`choose`]) that computes
//! rightly ([`self_check`]) and fast ([`throughput`]).

pub mod adam;
pub mod choose;
pub mod learner;
pub mod replay;
pub mod self_check;
pub mod selfplay;
pub mod target;
pub mod throughput;
