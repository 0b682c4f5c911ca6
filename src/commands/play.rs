//! `tanren play`: a game against an agent, in the terminal.
//!
//! Reads lines and writes text, nothing more: a script can play as well as a person.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::search::Verdict;
use super::{UsageError, open_position, prepare_agent};
use crate::agents::{Agent, AgentSpec, Effort, PreparedAgent};
use crate::game::{Game, Outcome, Side};
use crate::games::{GameVisitor, with_game};
use crate::random::{Rng, Seed};
use crate::search::{AlphaBeta, Evaluator, Found, Limits, Options};

/// Arguments of `tanren play`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The opponent: easy, hard, model:PATH, ... (see `tanren match --help`).
    #[arg(default_value = "easy")]
    agent: String,
    /// A built-in game or a rules file.
    #[arg(long, default_value = "march-blitz")]
    game: String,
    /// Which side you take.
    #[arg(long, value_enum, default_value = "first")]
    side: SideArg,
    /// Where to begin, instead of the start of the game.
    #[arg(long, value_name = "FEN")]
    position: Option<String>,
    /// Makes the opponent's choices among equal moves repeatable [default: the time].
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SideArg {
    First,
    Second,
}

/// Plays one game.
///
/// # Errors
/// If the game, the position or the agent is not what it should be, or the terminal
/// fails.
pub fn run(args: Args) -> anyhow::Result<()> {
    let start = Start {
        spec: args.agent.parse().map_err(UsageError::wrap)?,
        name: args.agent,
        human: match args.side {
            SideArg::First => Side::First,
            SideArg::Second => Side::Second,
        },
        position: args.position,
        seed: Seed(args.seed.unwrap_or_else(clock_seed)),
    };
    with_game(&args.game, start).map_err(UsageError::blame_name)?
}

/// A person wants another game each time.
fn clock_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |time| time.as_nanos() as u64)
}

struct Start {
    spec: AgentSpec,
    name: String,
    human: Side,
    position: Option<String>,
    seed: Seed,
}

impl GameVisitor for Start {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<()> {
        let position = open_position(&*game, self.position.as_deref())?;
        let agent = prepare_agent(&*game, &self.spec)?;
        let mut session = Session {
            game: &*game,
            opponent: agent.agent(),
            opponent_name: self.name,
            adviser: Adviser::new(&*game, &agent, &self.spec),
            human: self.human,
            positions: vec![position],
            rng: self.seed.stream("play"),
        };
        let ended = session.play(&mut io::stdin().lock(), &mut io::stdout().lock());
        Ok(ended?)
    }
}

/// The one who answers `hint` and `eval`: the opponent's own judgement.
struct Adviser<G: Game> {
    search: AlphaBeta<G, Box<dyn Evaluator<G>>>,
    limits: Limits,
    counts_material: bool,
}

impl<G: Game> Adviser<G> {
    /// An opponent that does not search is helped out with EasyAI's three plies.
    fn new(game: &G, agent: &PreparedAgent<G>, spec: &AgentSpec) -> Adviser<G> {
        let effort = spec.effort().unwrap_or(Effort::Plies(3));
        Adviser {
            search: AlphaBeta::new(agent.evaluator(), Options::AGENT),
            limits: effort.limits(game),
            counts_material: agent.counts_material(),
        }
    }

    fn advise(&mut self, game: &G, position: &G::Position) -> Found<G::Move> {
        self.search.search(game, position, self.limits)
    }
}

/// What a line of input asks for.
enum Request<M> {
    Play(M),
    Undo,
    Hint,
    Eval,
    Resign,
    Help,
    Quit,
}

const HELP: &str = "\
Type a move as it is shown (hint shows one), or
  undo    take back your last move and the answer to it
  hint    the move that your opponent would make in your place
  eval    what your opponent thinks of your position
  resign  give up
  quit    leave the game unfinished";

/// A board with a person on one side and an agent on the other.
struct Session<'a, G: Game> {
    game: &'a G,
    opponent: Box<dyn Agent<G>>,
    opponent_name: String,
    adviser: Adviser<G>,
    human: Side,
    /// From the first to the one at hand.
    positions: Vec<G::Position>,
    rng: Rng,
}

impl<G: Game> Session<'_, G> {
    /// Plays until the game is over, or the person or the input ends it.
    fn play(&mut self, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
        let number = match self.human {
            Side::First => "first",
            Side::Second => "second",
        };
        let (title, opponent) = (self.game.title(), &self.opponent_name);
        writeln!(
            output,
            "{title}: you move {number}, against {opponent}. Type help for help."
        )?;
        self.opponent.new_game();
        loop {
            let position = self.position().clone();
            if let Some(outcome) = self.game.outcome(&position) {
                let board = self.game.draw(&position);
                return writeln!(output, "\n{board}\n{}", self.result(outcome));
            }
            if self.game.side_to_move(&position) == self.human {
                write!(output, "\n{}\n", self.game.draw(&position))?;
                if !self.turn(input, output)? {
                    return Ok(());
                }
            } else {
                let mv = self.opponent.choose(self.game, &position, &mut self.rng);
                let mv_text = self.game.format_move(mv);
                writeln!(output, "{} plays {mv_text}", self.opponent_name)?;
                self.push(mv);
            }
        }
    }

    fn position(&self) -> &G::Position {
        self.positions.last().expect("the first one stays")
    }

    fn push(&mut self, mv: G::Move) {
        let mut position = self.position().clone();
        self.game.play_unchecked(&mut position, mv);
        self.positions.push(position);
    }

    fn result(&self, outcome: Outcome) -> String {
        let ending = self.game.ending(self.position());
        match outcome {
            Outcome::Draw => format!("Draw ({ending})."),
            Outcome::Win(side) if side == self.human => format!("You win ({ending})."),
            Outcome::Win(_) => format!("{} wins ({ending}).", self.opponent_name),
        }
    }

    /// Asks until the position has changed. False: the person has left.
    fn turn(&mut self, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<bool> {
        loop {
            write!(output, "your move> ")?;
            output.flush()?;
            // Bytes that are no text are no move either, but no reason to stop.
            let mut bytes = Vec::new();
            if input.read_until(b'\n', &mut bytes)? == 0 {
                writeln!(output, "\nEnd of input: the game is left unfinished.")?;
                return Ok(false);
            }
            let line = String::from_utf8_lossy(&bytes);
            match self.understand(line.trim()) {
                Ok(Request::Play(mv)) => {
                    self.push(mv);
                    return Ok(true);
                }
                Ok(Request::Undo) => match self.undo() {
                    true => return Ok(true),
                    false => writeln!(output, "There is no move of yours to take back.")?,
                },
                Ok(Request::Hint) => writeln!(output, "{}", self.hint())?,
                Ok(Request::Eval) => writeln!(output, "{}", self.evaluation())?,
                Ok(Request::Help) => writeln!(output, "{HELP}")?,
                Ok(Request::Resign) => {
                    writeln!(output, "You resign: {} wins.", self.opponent_name)?;
                    return Ok(false);
                }
                Ok(Request::Quit) => return Ok(false),
                Err(why) => writeln!(output, "{why}")?,
            }
        }
    }

    fn understand(&self, line: &str) -> Result<Request<G::Move>, String> {
        Ok(match line.to_ascii_lowercase().as_str() {
            "undo" => Request::Undo,
            "hint" => Request::Hint,
            "eval" => Request::Eval,
            "resign" => Request::Resign,
            "help" => Request::Help,
            "quit" => Request::Quit,
            text => {
                let mv = self
                    .game
                    .parse_move(text)
                    .map_err(|error| format!("{error}; help lists what else you can type"))?;
                let mut position = self.position().clone();
                let played = self.game.play(&mut position, mv);
                played.map_err(|error| error.to_string())?;
                Request::Play(mv)
            }
        })
    }

    /// Goes back to where the person moved last. False: they have not moved yet.
    fn undo(&mut self) -> bool {
        let earlier = &self.positions[..self.positions.len() - 1];
        let own_turn = |position: &G::Position| self.game.side_to_move(position) == self.human;
        match earlier.iter().rposition(own_turn) {
            Some(index) => {
                self.positions.truncate(index + 1);
                true
            }
            None => false,
        }
    }

    fn hint(&mut self) -> String {
        let position = self.position().clone();
        let found = self.adviser.advise(self.game, &position);
        format!(
            "{} would play {}",
            self.opponent_name,
            self.game.format_move(found.best[0])
        )
    }

    fn evaluation(&mut self) -> String {
        let position = self.position().clone();
        let found = self.adviser.advise(self.game, &position);
        let unit = if self.adviser.counts_material {
            "pieces ahead"
        } else {
            "from -1, lost, to 1, won"
        };
        let verdict = Verdict::new(&found, self.adviser.counts_material);
        match found.decided_in_plies {
            Some(_) => format!("{} thinks: you have {verdict} plies", self.opponent_name),
            None => format!("{} thinks: {verdict} ({unit})", self.opponent_name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays these lines on March against a material searcher.
    fn played(position: &str, human: Side, lines: &str) -> String {
        let game = crate::games::load("march-blitz").unwrap();
        let game = game.as_leaper().unwrap();
        let spec: AgentSpec = "easy".parse().unwrap();
        let agent = prepare_agent(game, &spec).unwrap();
        let mut session = Session {
            game,
            opponent: agent.agent(),
            opponent_name: "easy".to_string(),
            adviser: Adviser::new(game, &agent, &spec),
            human,
            positions: vec![game.parse_position(position).unwrap()],
            rng: Seed(1).stream("play"),
        };
        let mut output = Vec::new();
        session.play(&mut lines.as_bytes(), &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_game_is_won_by_a_typed_move() {
        let text = played("6/1K4/6/6/k5/6 w", Side::First, "b5b6\n");
        assert!(text.contains("2 k . . . . .\n"), "{text}");
        assert!(text.ends_with("You win (Try).\n"), "{text}");
    }

    #[test]
    fn the_opponent_moves_first_if_the_person_is_second() {
        let text = played("6/1K4/6/6/k5/6 w", Side::Second, "");
        assert!(text.contains("easy plays b5"), "{text}");
        assert!(text.ends_with("easy wins (Try).\n"), "{text}");
    }

    #[test]
    fn everything_that_can_be_typed() {
        let start = "1k4/pppppp/6/6/PPPPPP/4K1 w";
        let lines = "help\n undo \nC2C3\neval\nhint\nundo\nundo\nc2c4\nfoo\n\nresign\n";
        let text = played(start, Side::First, lines);
        for part in [
            "resign  give up",
            "your move> There is no move of yours to take back.",
            "easy plays ",
            "easy thinks: +0 (pieces ahead)",
            "easy would play ",
            "c2c4 is not legal in 1k4/pppppp/6/6/PPPPPP/4K1 w; legal moves: a2a3",
            "\"foo\" is not; help lists what else you can type",
            "\"\" is not",
            "You resign: easy wins.",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert_eq!(text.matches("no move of yours").count(), 2);
    }

    #[test]
    fn decided_positions_are_told() {
        let text = played("6/1K4/6/6/k5/6 w", Side::First, "eval\n");
        assert!(
            text.contains("easy thinks: you have won in 1 plies"),
            "{text}"
        );
        assert!(
            text.ends_with("End of input: the game is left unfinished.\n"),
            "{text}"
        );
    }
}
