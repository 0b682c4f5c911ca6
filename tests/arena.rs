//! Agents by name, matches and round robins, and the commands that need them.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tanren::agents::{Agent, AgentSpec, Judgement, NetworkAgent, PreparedAgent};
use tanren::arena::{AgentFactory, Match, play_match, round_robin};
use tanren::game::Game;
use tanren::game::playout::random_positions;
use tanren::games::leaper::Leaper;
use tanren::games::{GameVisitor, load, with_game};
use tanren::nets::NetEvaluator;
use tanren::nets::device::Compute;
use tanren::nets::shipped::{SHIPPED, ShippedModel};
use tanren::random::{Rng, Seed};
use tanren::search::{AlphaBeta, Limits, Options, minimax};
use tanren::stats::{Hypothesis, Sprt};

use crate::cli::{run, tanren};

fn blitz() -> Leaper {
    load("march-blitz").unwrap().as_leaper().unwrap().clone()
}

fn prepare<'a, G: Game>(game: &'a G, agent: &str) -> PreparedAgent<'a, G> {
    let spec: AgentSpec = agent.parse().unwrap();
    spec.prepare(game, &Compute::cpu()).unwrap()
}

fn shipped_evaluator(game: &Leaper) -> NetEvaluator {
    let compute = Compute::cpu();
    let model = ShippedModel::of_game(game.name()).unwrap();
    NetEvaluator::new(&model.load(&compute.device).unwrap().net, &compute)
}

// --- Agents ---

#[test]
fn shipped_models_fit_their_games() {
    struct Check(&'static ShippedModel);
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            let model = self.0.load(&Compute::cpu().device).unwrap();
            model.check_game(&*game, self.0.folder.as_ref()).unwrap();
        }
    }
    for model in SHIPPED {
        with_game(model.game, Check(model)).unwrap();
    }
}

#[test]
fn a_search_of_one_ply_chooses_like_the_network_agent() {
    let game = blitz();
    let mut network = NetworkAgent::new("net", shipped_evaluator(&game));
    let mut search = AlphaBeta::new(shipped_evaluator(&game), Options::AGENT);
    for position in random_positions(&game, 10, &mut Seed(1).stream("positions")) {
        let judged = network.move_values(&game, &position);
        let best = judged.iter().map(|(_, value)| value.get()).reduce(f32::max);
        let found = search.search(&game, &position, Limits::depth(1));
        assert_eq!(Some(found.value.get()), best);
        let ties = judged.iter().filter(|(_, value)| *value == found.value);
        let ties: Vec<_> = ties.map(|(mv, _)| *mv).collect();
        if found.decided_in_plies.is_some() {
            // A network can be as sure as the rules; the search goes by the rules.
            assert!(found.best.iter().all(|mv| ties.contains(mv)));
        } else {
            assert_eq!(found.best, ties);
        }
    }
}

#[test]
fn a_search_with_a_network_equals_minimax_within_rounding() {
    // Batches of children and single positions add in another order.
    let game = blitz();
    let mut search = AlphaBeta::new(shipped_evaluator(&game), Options::AGENT);
    let mut evaluator = shipped_evaluator(&game);
    for position in random_positions(&game, 3, &mut Seed(2).stream("positions")) {
        let expected = minimax(&game, &position, 3, &mut evaluator, true);
        let found = search.search(&game, &position, Limits::depth(3));
        let difference = (found.value.get() - expected.value.get()).abs();
        assert!(difference < 1e-5, "{found:?}, not {expected:?}");
        assert_eq!(found.decided_in_plies, expected.decided_in_plies);
    }
}

#[test]
fn agents_of_every_effort_play() {
    let game = blitz();
    let mut rng = Seed(3).stream("moves");
    for name in [
        "baby",
        "easy",
        "normal",
        "hard",
        "material@500n",
        "model@2",
        "model@900n",
    ] {
        let mut agent = prepare(&game, name).agent();
        agent.new_game();
        let mut position = game.start();
        for _ in 0..4 {
            let mv = agent.choose(&game, &position, &mut rng);
            game.play(&mut position, mv).unwrap();
        }
    }
    let mut hurried = prepare(&game, "model@20ms").agent();
    let started = Instant::now();
    hurried.choose(&game, &game.start(), &mut rng);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn agents_choose_what_they_judge_best() {
    let game = blitz();
    let mut rng = Seed(4).stream("moves");
    let positions = random_positions(&game, 3, &mut rng);
    for name in ["baby", "easy", "normal", "material@500n", "model@2"] {
        let mut agent = prepare(&game, name).agent();
        for position in positions.iter().step_by(5) {
            agent.new_game();
            let mut judged = agent.judge(&game, position);
            // Among few moves every one is chosen now and then.
            if judged.moves.len() <= 3 {
                let mut choose = || {
                    agent.new_game();
                    agent.choose(&game, position, &mut rng)
                };
                let mut chosen: Vec<_> = (0..60).map(|_| choose()).collect();
                chosen.sort();
                chosen.dedup();
                judged.moves.sort();
                assert_eq!(chosen, judged.moves, "{name}");
            }
            assert_eq!(judged.value.is_some(), name != "baby");
        }
    }
}

#[test]
fn a_model_of_another_game_is_refused() {
    let directory = env!("CARGO_MANIFEST_DIR").to_string() + "/models/march-grand/mlp";
    let spec: AgentSpec = format!("model:{directory}").parse().unwrap();
    let error = spec.prepare(&blitz(), &Compute::cpu()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("is for march-grand, not for march-blitz"),
        "{message}"
    );
}

// --- Matches ---

/// Plays the first legal move, whatever it is.
struct FirstMove;

impl<G: Game> Agent<G> for FirstMove {
    fn name(&self) -> String {
        "first move".to_string()
    }

    fn new_game(&mut self) {}

    fn choose(&mut self, game: &G, position: &G::Position, _: &mut Rng) -> G::Move {
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        moves[0]
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        moves.truncate(1);
        Judgement { value: None, moves }
    }
}

#[test]
fn matches_do_not_depend_on_threads_or_interruptions() {
    let game = blitz();
    let (easy, hard) = (prepare(&game, "easy"), prepare(&game, "model@3"));
    let (easy, hard) = (|| easy.agent(), || hard.agent());
    let play = || play_match(&game, [&hard, &easy], 100, Seed(4).purpose("match"), 7);
    let result = play();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(pool.install(play), result);

    let mut shown = Vec::new();
    let watched = Match::new(&game, [&hard, &easy], Seed(4).purpose("match"), 7);
    let watched = watched.play(100, None, |so_far| shown.push(so_far.pairs.pairs()));
    assert_eq!(watched, result);
    assert_eq!(shown, [64, 100]);

    assert_eq!(result.games(), 200);
    let by_ending = result.endings.values().flatten().sum::<u64>();
    assert_eq!(
        (by_ending, result.wins_draws_losses.iter().sum()),
        (200, 200)
    );
    assert!(result.wins_draws_losses[0] > 180, "{result:?}");
}

#[test]
fn games_that_repeat_are_noticed() {
    let game = blitz();
    let first = || -> Box<dyn Agent<Leaper>> { Box::new(FirstMove) };
    let result = play_match(&game, [&first, &first], 3000, Seed(5).purpose("match"), 0);
    // Both games of a pair are the same: one agent plays both sides.
    assert!(2 * result.distinct_games <= result.games());
    assert!(result.repeats_itself());
    assert_eq!(result.pairs.score().score, 0.5);
    let (easy, baby) = (prepare(&game, "easy"), prepare(&game, "baby"));
    let (easy, baby) = (|| easy.agent(), || baby.agent());
    assert!(!play_match(&game, [&easy, &baby], 50, Seed(5).purpose("match"), 0).repeats_itself());
}

#[test]
fn a_sequential_test_stops_by_itself() {
    let game = blitz();
    let (easy, baby) = (prepare(&game, "easy"), prepare(&game, "baby"));
    let (easy, baby) = (|| easy.agent(), || baby.agent());
    let sprt = Sprt::new(0.0, 30.0).unwrap();
    let contests: [([&AgentFactory<Leaper>; 2], Hypothesis); 2] = [
        ([&easy, &baby], Hypothesis::Elo1),
        ([&baby, &easy], Hypothesis::Elo0),
    ];
    for (contestants, answer) in contests {
        let contest = Match::new(&game, contestants, Seed(6).purpose("match"), 0);
        let result = contest.play(1_000_000, Some(&sprt), |_| {});
        assert_eq!(sprt.decision(&result.pairs), Some(answer));
        assert!(result.pairs.pairs() < 1000, "{result:?}");
    }
}

#[test]
fn everybody_meets_everybody_once() {
    let game = blitz();
    let agents = ["baby", "easy", "normal"].map(|name| prepare(&game, name));
    let makers = [0, 1, 2].map(|number: usize| {
        let agents = &agents;
        move || agents[number].agent()
    });
    let factories: Vec<&AgentFactory<Leaper>> = makers
        .iter()
        .map(|make| make as &AgentFactory<Leaper>)
        .collect();
    let mut shown = 0;
    let matches = round_robin(&game, &factories, 20, Seed(7).purpose("match"), |played| {
        shown = played;
    });
    let pairings: Vec<[usize; 2]> = matches.iter().map(|(p, _)| p.contestants).collect();
    assert_eq!(pairings, [[0, 1], [0, 2], [1, 2]]);
    assert_eq!(shown, 60);
    assert!(matches.iter().all(|(p, result)| p.results == result.pairs));
}

// --- The commands ---

#[test]
fn matches_on_the_command_line() {
    let arguments = ["match", "easy", "baby", "--pairs", "40", "--seed", "3"];
    let (stdout, stderr) = run(&mut tanren(&arguments), 0);
    for part in [
        "easy against baby on march-blitz: 80 games",
        "Catch",
        "Elo difference  +",
    ] {
        assert!(stdout.contains(part), "{stdout}");
    }
    assert!(stderr.contains("40/40"), "{stderr}");
    let json = || -> serde_json::Value {
        let (stdout, _) = run(tanren(&arguments).args(["--json", "--quiet"]), 0);
        serde_json::from_str(&stdout).unwrap()
    };
    let result = json();
    assert_eq!(result, json());
    assert_eq!(
        (&result["pairs"], &result["games"]),
        (&40.into(), &80.into())
    );
    let number = |key: &str| result[key].as_f64().unwrap();
    assert!(number("elo_low") < number("elo") && number("elo") <= number("elo_high"));
    assert!(number("score") > 0.8 && number("distinct_games") > 70.0);

    let (stdout, _) = run(
        &mut tanren(&["match", "baby", "easy", "--sprt", "-50", "50"]),
        0,
    );
    assert!(stdout.contains("ELO0 is accepted"), "{stdout}");
}

#[test]
fn round_robins_on_the_command_line() {
    let arguments = ["match", "easy", "baby", "normal", "--pairs", "20"];
    let (stdout, _) = run(&mut tanren(&arguments), 0);
    assert!(
        stdout.contains("baby = 0") && stdout.contains("against normal"),
        "{stdout}"
    );
    let (stdout, _) = run(tanren(&arguments).arg("--json"), 0);
    let result: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let names: Vec<_> = result["ratings"].as_array().unwrap().iter().collect();
    let names: Vec<_> = names.iter().map(|rating| &rating["agent"]).collect();
    assert_eq!(names, ["normal", "easy", "baby"]);
    assert_eq!(result["ratings"][2]["elo"], 0.0);
}

#[test]
fn senseless_matches_are_refused() {
    for (arguments, part) in [
        (&["easy"][..], "2 values required"),
        (
            &["easy", "eazy"],
            "there is no agent \"eazy\", did you mean easy?",
        ),
        (&["easy", "material@0"], "\"@0\" is no effort"),
        (
            &["easy", "model:/nowhere"],
            "cannot read /nowhere/model.toml",
        ),
        (
            &["easy", "baby", "--pairs", "0"],
            "0 is not in 1..=100000000",
        ),
        (
            &["easy", "baby", "--sprt", "5", "0"],
            "give the lower one first",
        ),
        (
            &["easy", "baby", "hard", "--sprt", "0", "5"],
            "--sprt compares two agents",
        ),
        (
            &["easy", "baby", "--game", "chess"],
            "there is no game \"chess\"",
        ),
        (
            &["easy", "normal", "--game", "connect-four"],
            "no model is shipped",
        ),
    ] {
        let (_, stderr) = run(&mut tanren(&[&["match"], arguments].concat()), 2);
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_script_plays_in_the_terminal() {
    let mut command = tanren(&["play", "hard", "--side", "second", "--seed", "1"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "hint\nc5c4\neval\nundo\nresign\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for part in [
        "you move second, against hard",
        "hard plays ",
        "hard would play ",
        "hard thinks: ",
        "You resign: hard wins.",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}
