//! One scheduler that knows the flows of all tenants: the best that this experiment finds, beside which tenants with labels are judged.
//!
//! In: flows with their rates and paths. Out: a path for each. It is a search and no proof: there may be better choices.

use super::draws::Draws;
use std::collections::BTreeMap;

/// How many moves are tried.
const TRIES: usize = 200_000;

/// A flow to place: its rate, and its paths as lists of links.
pub struct Wish {
    /// What it needs of each link.
    pub rate_bps: u64,
    /// The paths that it may take; at least one.
    pub paths: Vec<Vec<usize>>,
}

/// Chooses the index of a path for each flow: the largest first, each where most is left. Then random moves of flows on overbooked links are kept if they
/// do not increase what is overbooked.
pub fn schedule(capacity_bps: u64, wishes: &[Wish], seed: u64) -> Vec<usize> {
    let mut board = Board { capacity_bps, loads: BTreeMap::new(), chosen: vec![0; wishes.len()] };
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(wishes[*index].rate_bps));
    for index in order {
        let wish = &wishes[index];
        let most = (0..wish.paths.len()).max_by_key(|path| board.room(&wish.paths[*path]));
        board.chosen[index] = most.unwrap_or(0);
        board.put(wish, board.chosen[index]);
    }
    let mut draws = Draws::new(seed);
    for _ in 0..TRIES {
        if !board.loads.values().any(|load| *load > capacity_bps) {
            break;
        }
        let index = draws.below(wishes.len() as u64) as usize;
        let (wish, now) = (&wishes[index], board.chosen[index]);
        let then = draws.below(wish.paths.len() as u64) as usize;
        let before = board.excess(&wish.paths[now]) + board.excess(&wish.paths[then]);
        board.take(wish, now);
        board.put(wish, then);
        let after = board.excess(&wish.paths[now]) + board.excess(&wish.paths[then]);
        if after > before {
            board.take(wish, then);
            board.put(wish, now);
        } else {
            board.chosen[index] = then;
        }
    }
    board.chosen
}

/// What is on each link.
struct Board {
    capacity_bps: u64,
    loads: BTreeMap<usize, u64>,
    chosen: Vec<usize>,
}

impl Board {
    fn load(&self, link: usize) -> u64 {
        self.loads.get(&link).copied().unwrap_or(0)
    }

    fn room(&self, path: &[usize]) -> u64 {
        path.iter().map(|link| self.capacity_bps.saturating_sub(self.load(*link))).min().unwrap_or(0)
    }

    /// By how much the links of a path are overbooked. Links that two paths share count for both, before and after.
    fn excess(&self, path: &[usize]) -> u64 {
        path.iter().map(|link| self.load(*link).saturating_sub(self.capacity_bps)).sum()
    }

    fn put(&mut self, wish: &Wish, path: usize) {
        wish.paths[path].iter().for_each(|link| *self.loads.entry(*link).or_insert(0) += wish.rate_bps);
    }

    fn take(&mut self, wish: &Wish, path: usize) {
        for link in &wish.paths[path] {
            let load = self.loads.entry(*link).or_insert(0);
            *load = load.saturating_sub(wish.rate_bps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_fit_are_placed_so_that_they_fit() {
        let paths = vec![vec![0], vec![1], vec![2]];
        let rates = [6, 6, 5, 4, 4, 5];
        let wishes: Vec<Wish> =
            rates.iter().map(|rate_bps| Wish { rate_bps: *rate_bps, paths: paths.clone() }).collect();
        let chosen = schedule(10, &wishes, 1);
        let mut loads = [0; 3];
        wishes.iter().zip(chosen).for_each(|(wish, path)| loads[path] += wish.rate_bps);
        assert_eq!(loads, [10; 3]);
    }
}
