//! Topologies as text: a name and its numbers, as in Mininet's `--topo`.
//!
//! In: `tree,2,3` or `tree,depth=2,fanout=3`. Out: a topology, or what is wrong with the text. It reads no file.

use std::str::FromStr;

use super::Topology;
use super::bounds::NotATopology;
use super::zoo::zoo_names;

/// The names with their numbers.
const NAMES: &str = "minimal, single,HOSTS, linear,SWITCHES[,HOSTS_EACH], tree,DEPTH[,FANOUT], ring,SWITCHES[,HOSTS_EACH], \
                     torus,X,Y[,HOSTS_EACH], fattree,K, leafspine,LEAVES,SPINES,HOSTS_EACH, random,SWITCHES,DEGREE[,SEED], \
                     zoo,NAME, FILE.graphml or FILE.json";

/// Mininet's forms: `minimal`, `single[,HOSTS]`, `linear[,SWITCHES[,HOSTS_EACH]]`, `tree[,DEPTH[,FANOUT]]`,
/// `torus,X,Y[,HOSTS_EACH]`. In the same manner: `ring,SWITCHES[,HOSTS_EACH]`, `fattree,K`,
/// `leafspine,LEAVES,SPINES,HOSTS_EACH`, `random,SWITCHES,DEGREE[,SEED]`. Arguments may have names
/// (`tree,depth=2,fanout=3`).
impl FromStr for Topology {
    type Err = NotATopology;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default();
        let given = Arguments { text, words: words.collect() };
        match name {
            "minimal" => given.numbers(&[], []).and_then(|[]| Topology::single(2)),
            "single" => given.numbers(&["k"], [2]).and_then(|[hosts]| Topology::single(hosts)),
            "linear" => given
                .numbers(&["k", "n"], [2, 1])
                .and_then(|[switches, each]| Topology::linear(switches, each)),
            "tree" => given
                .numbers(&["depth", "fanout"], [1, 2])
                .and_then(|[depth, fanout]| Topology::tree(depth, fanout)),
            "ring" => {
                given.numbers(&["k", "n"], [3, 1]).and_then(|[switches, each]| Topology::ring(switches, each))
            }
            "torus" => given
                .numbers(&["x", "y", "n"], [3, 3, 1])
                .and_then(|[x, y, each]| Topology::torus(x, y, each)),
            "fattree" => given.numbers(&["k"], [4]).and_then(|[k]| Topology::fat_tree(k)),
            "leafspine" => given
                .numbers(&["leaves", "spines", "hosts"], [2, 2, 2])
                .and_then(|[leaves, spines, hosts]| Topology::leaf_spine(leaves, spines, hosts)),
            "random" => given
                .numbers(&["n", "degree", "seed"], [8, 3, 1])
                .and_then(|[switches, degree, seed]| Topology::random(switches, degree, seed as u64)),
            "zoo" => given.zoo(),
            _ => Err(NotATopology::new(text, format!("'{name}' is not one of them; write {NAMES}"))),
        }
    }
}

/// The arguments after a topology's name.
struct Arguments<'a> {
    text: &'a str,
    words: Vec<&'a str>,
}

impl Arguments<'_> {
    /// The network of the Topology Zoo that the only argument names.
    fn zoo(&self) -> Result<Topology, NotATopology> {
        let name = match self.words.as_slice() {
            [name] => name,
            _ => return Err(NotATopology::new(self.text, "write zoo,NAME")),
        };
        let known = || zoo_names().collect::<Vec<_>>().join(", ");
        Topology::zoo(name, false)
            .ok_or_else(|| NotATopology::new(self.text, format!("'{name}' is not one of {}", known())))
    }

    /// The numbers, by position or by name.
    fn numbers<const N: usize>(
        &self,
        names: &[&str; N],
        defaults: [usize; N],
    ) -> Result<[usize; N], NotATopology> {
        let refused = |why: String| NotATopology::new(self.text, why);
        let mut values = defaults;
        for (place, word) in self.words.iter().enumerate() {
            let (place, value) = match word.split_once('=') {
                Some((name, value)) => {
                    let place = names.iter().position(|known| *known == name);
                    (place.ok_or_else(|| refused(format!("it has no argument '{name}'")))?, value)
                }
                None => (place, *word),
            };
            let slot =
                values.get_mut(place).ok_or_else(|| refused(format!("it takes {N} numbers at most")))?;
            *slot = value.parse().map_err(|_| refused(format!("'{value}' is not a number")))?;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(text: &str, why: &str) {
        let refused = text.parse::<Topology>().unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }

    #[test]
    fn what_is_no_topology_is_refused_with_the_reason() {
        check_refused("", "'' is not one of them");
        check_refused("square,4", "'square' is not one of them; write minimal, single");
        check_refused("single,x", "'x' is not a number");
        check_refused("single,-1", "'-1' is not a number");
        check_refused("single,2,3", "takes 1 numbers");
        check_refused("tree,height=2", "no argument 'height'");
        check_refused("single,0", "no switch or no host");
        check_refused("tree,0", "no switch or no host");
        check_refused("ring,2", "3 switches or more");
        check_refused("torus,2,3", "3 by 3 switches or more");
        check_refused("torus,3,256", "255 of them at most");
        check_refused("fattree,3", "even");
        check_refused("fattree,0", "even");
        check_refused("leafspine,0,1,1", "no switch or no host");
        check_refused("random,9,9", "between 2 and 8");
        check_refused("random,9,1", "between 2 and 8");
        check_refused("random,1,1", "2 switches or more");
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_made() {
        check_refused("single,16385", "the limit is 16384");
        check_refused("linear,4097", "4097 switches");
        check_refused("tree,13", "8191 switches");
        check_refused("tree,1000000000", "too large");
        check_refused("tree,2,18446744073709551615", "too large");
        check_refused("tree,18446744073709551615,1", "4097 switches");
        check_refused("linear,2,18446744073709551615", "too large");
        check_refused("ring,4097", "4097 switches, and the limit is 4096");
        check_refused("torus,65,64", "4160 switches");
        check_refused("fattree,42", "18522 hosts, and the limit is 16384");
        check_refused("fattree,18446744073709551614", "too large");
        check_refused("leafspine,300,300,1", "90300 links, and the limit is 65536");
        check_refused("random,4096,4095", "the limit is");
    }
}
