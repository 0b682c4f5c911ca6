//! What a player has learned, in words.

use super::q_table::{Decision, QTable, Tables, VARIANTS, coming_out_row, fake_role_row};
use super::role_pattern::{StateKey, TargetKind};
use super::rules::Role;
use super::talk::{Claim, ComingOut};

/// Fewest visits of an action that is worth showing.
const FEWEST_VISITS: u32 = 30;

/// The learned policy for `role`: coming out, what to fake, and for the `states`
/// most frequent states of each decision the kinds of targets, best first.
pub fn explain(tables: &Tables, key: &StateKey, role: Role, states: usize) -> String {
    let mut lines = vec![format!(
        "What the {} has learned; values are wins in %",
        role.name()
    )];
    for &claim in claims(role) {
        lines.push(String::new());
        lines.extend(explain_coming_out(tables, role, claim));
    }
    lines.extend(explain_fake_role(tables, role));
    for (decision, title) in decisions(role) {
        lines.push(String::new());
        lines.push(format!("{title}:"));
        lines.extend(explain_targets(tables, key, role, decision, states));
    }
    lines.join("\n")
}

/// What `role` may ever claim to be.
fn claims(role: Role) -> &'static [Claim] {
    match role {
        Role::Seer => &[Claim::Seer],
        Role::Medium => &[Claim::Medium],
        Role::Possessed | Role::Werewolf => &Claim::ALL,
        Role::Villager | Role::Bodyguard => &[],
    }
}

/// The decisions of `role`, with titles.
fn decisions(role: Role) -> Vec<(Decision, &'static str)> {
    let lies = [
        (Decision::FakeDivination, "Made-up divination"),
        (Decision::FakeInquest, "Made-up inquest"),
    ];
    let mut decisions = vec![(Decision::Vote(role), "Vote")];
    match role {
        Role::Seer => decisions.push((Decision::Divine, "Divination")),
        Role::Bodyguard => decisions.push((Decision::Guard, "Guard")),
        Role::Werewolf => {
            decisions.push((Decision::Attack, "Attack"));
            decisions.extend(lies);
        }
        Role::Possessed => decisions.extend(lies),
        Role::Villager | Role::Medium => {}
    }
    decisions
}

fn explain_coming_out(tables: &Tables, role: Role, claim: Claim) -> Vec<String> {
    const SHOWN: usize = 3;
    let row = coming_out_row(role, claim);
    let mut lines = vec![format!(
        "Coming out as the {}, best first:",
        claim.role().name()
    )];
    for (action, value) in ranked(&tables.coming_out, row).into_iter().take(SHOWN) {
        lines.push(format!("  {value:5.1}  {}", ComingOut::from_index(action)));
    }
    lines
}

fn explain_fake_role(tables: &Tables, role: Role) -> Vec<String> {
    let situations: &[(&str, Option<Option<Claim>>)] = match role {
        Role::Possessed => &[("", None)],
        Role::Werewolf => &[
            (", first to whisper", None),
            (" after a partner fakes villager", Some(None)),
            (" after a partner fakes seer", Some(Some(Claim::Seer))),
            (" after a partner fakes medium", Some(Some(Claim::Medium))),
        ],
        _ => return Vec::new(),
    };
    let mut lines = vec![String::new()];
    for (situation, whispered) in situations {
        let row = fake_role_row(role, *whispered);
        let names = ["villager", "seer", "medium"];
        let ranked = ranked(&tables.fake_role, row);
        let ranked = ranked
            .iter()
            .map(|&(action, value)| format!("{} {value:.1}", names[action]));
        lines.push(format!(
            "Fakes{situation}: {}",
            ranked.collect::<Vec<_>>().join(", ")
        ));
    }
    lines
}

fn explain_targets(
    tables: &Tables,
    key: &StateKey,
    role: Role,
    decision: Decision,
    states: usize,
) -> Vec<String> {
    let table = &tables.targets[decision.index()];
    let counts = &tables.counts[decision.view(Some(role))];
    let visits = |&state: &usize| {
        table
            .visits(state)
            .iter()
            .map(|&n| u64::from(n))
            .sum::<u64>()
    };
    let mut order: Vec<usize> = (0..table.states())
        .filter(|state| visits(state) > 0)
        .collect();
    order.sort_by_key(|state| std::cmp::Reverse(visits(state)));
    let mut lines = Vec::new();
    for &state in order.iter().take(states) {
        let weight = counts.weight(state);
        lines.push(format!("  {} (weight {weight:.2})", key.describe(state)));
        for (action, value) in ranked(table, state) {
            if table.visits(state)[action] >= FEWEST_VISITS {
                lines.push(format!(
                    "    {value:5.1}  {}",
                    action_name(decision, action)
                ));
            }
        }
    }
    lines
}

/// The credited actions of a row with their values, best first.
fn ranked(table: &QTable, row: usize) -> Vec<(usize, f32)> {
    let values = table.row(row).iter().copied().enumerate();
    let mut ranked: Vec<(usize, f32)> = values
        .filter(|&(action, _)| table.visits(row)[action] > 0)
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

fn action_name(decision: Decision, action: usize) -> String {
    let kind = TargetKind::ALL[action / VARIANTS].name();
    match (decision.is_lie(), action % VARIANTS) {
        (true, 0) => format!("{kind} is human"),
        (true, _) => format!("{kind} is a werewolf"),
        (false, 0) => kind.to_string(),
        (false, 1) => format!("{kind}, near the top of the declared votes"),
        (false, _) => format!("{kind}, at the top of the declared votes"),
    }
}
