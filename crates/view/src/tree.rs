//! An ordered map whose copies share what they have in common: a B-tree of counted nodes.
//!
//! ```text
//!   clone ──┐
//!           v
//!   root ─> branch ─> branch ─> leaf      a change copies one node of each level, and only if a clone still holds it
//! ```
//!
//! In: keys and values. Out: the same, in the order of the keys. A clone costs one count. A change costs the same with many more
//! entries: the height is 6 with a million of them. It never reads what a value means.

use std::sync::Arc;

/// The maximum number of entries of a node. A copy of a node counts each entry once more, which reads memory that is in no cache: in
/// large tables, that is what a change costs. Smaller nodes make higher trees.
const NODE_MAX: usize = 16;

/// A node with fewer entries is joined with its neighbour. Well below a half, so that a node just split is not joined again.
const NODE_MIN: usize = NODE_MAX / 4;

/// How many entries a full node gets room for: doubling would leave half of the memory unused.
const GROW_BY: usize = 4;

/// An ordered map with cheap copies.
#[derive(Clone, Debug)]
pub(crate) struct Tree<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    /// Each child with a key that is not greater than its keys, and greater than those of the child before. That of the first child
    /// is never compared.
    Branch(Vec<Child<K, V>>),
}

type Child<K, V> = (K, Arc<Node<K, V>>);

impl<K, V> Default for Tree<K, V> {
    fn default() -> Self {
        Tree { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> Tree<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut node = &self.root;
        loop {
            match &**node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
                    return entries.get(at).map(|(_, value)| value);
                }
                Node::Branch(children) => node = &children[child_for(children, key)].1,
            }
        }
    }

    /// The value before, if there was one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, behind) = insert(&mut self.root, key, value);
        if let Some(behind) = behind {
            let first = (behind.0.clone(), Arc::clone(&self.root));
            self.root = Arc::new(Node::Branch(vec![first, behind]));
        }
        self.len += usize::from(before.is_none());
        before
    }

    /// The value, if there was one. What is not there copies no node.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.get(key)?;
        let removed = remove(&mut self.root, key);
        if let Node::Branch(children) = &*self.root
            && let [(_, only)] = children.as_slice()
        {
            self.root = Arc::clone(only);
        }
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// The entries in order, without those at the beginning for which this is true.
    pub(crate) fn behind(&self, is_before: impl Fn(&K) -> bool) -> Entries<'_, K, V> {
        let mut entries = Entries { branches: Vec::new(), leaf: [].iter() };
        entries.seek(&self.root, is_before);
        entries
    }

    /// The entries from a key on, in order.
    pub(crate) fn from(&self, first: &K) -> Entries<'_, K, V> {
        self.behind(|key| key < first)
    }

    pub(crate) fn iter(&self) -> Entries<'_, K, V> {
        self.behind(|_| false)
    }
}

fn child_for<K: Ord, C>(children: &[(K, C)], key: &K) -> usize {
    children.partition_point(|(least, _)| least <= key).saturating_sub(1)
}

/// Makes room for one more.
fn grow<T>(entries: &mut Vec<T>) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact(GROW_BY);
    }
}

/// A node that was split off, and its least key.
type Behind<K, V> = Option<Child<K, V>>;

fn insert<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> (Option<V>, Behind<K, V>) {
    let node = Arc::make_mut(node);
    let before = match node {
        Node::Leaf(entries) => match entries.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => return (Some(std::mem::replace(&mut entries[at].1, value)), None),
            Err(at) => {
                grow(entries);
                entries.insert(at, (key, value));
                None
            }
        },
        Node::Branch(children) => {
            let at = child_for(children, &key);
            let (before, behind) = insert(&mut children[at].1, key, value);
            let Some(behind) = behind else { return (before, None) };
            grow(children);
            children.insert(at + 1, behind);
            before
        }
    };
    (before, node.split())
}

fn remove<K: Ord + Clone, V: Clone>(node: &mut Arc<Node<K, V>>, key: &K) -> Option<V> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
            Some(entries.remove(at).1)
        }
        Node::Branch(children) => {
            let at = child_for(children, key);
            let removed = remove(&mut children[at].1, key);
            if children[at].1.len() < NODE_MIN && children.len() > 1 {
                join(children, at.saturating_sub(1));
            }
            removed
        }
    }
}

/// Joins a child with the next one, and splits them again if that is too much for one.
fn join<K: Ord + Clone, V: Clone>(children: &mut Vec<Child<K, V>>, at: usize) {
    let (least, next) = children.remove(at + 1);
    let child = Arc::make_mut(&mut children[at].1);
    match (&mut *child, Arc::unwrap_or_clone(next)) {
        (Node::Leaf(entries), Node::Leaf(more)) => entries.extend(more),
        (Node::Branch(entries), Node::Branch(mut more)) => {
            // The key of a first child is not compared, so it can be greater than its keys.
            more[0].0 = least;
            entries.extend(more);
        }
        _ => unreachable!("all leaves are at the same height"),
    }
    if let Some(behind) = child.split() {
        grow(children);
        children.insert(at + 1, behind);
    }
}

impl<K: Clone, V> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(children) => children.len(),
        }
    }

    /// Splits the greater half off, if it has more than the maximum.
    fn split(&mut self) -> Behind<K, V> {
        if self.len() <= NODE_MAX {
            return None;
        }
        let half = self.len() / 2;
        let (least, behind) = match self {
            Node::Leaf(entries) => {
                let behind = entries.split_off(half);
                entries.shrink_to_fit();
                (behind[0].0.clone(), Node::Leaf(behind))
            }
            Node::Branch(children) => {
                let behind = children.split_off(half);
                children.shrink_to_fit();
                (behind[0].0.clone(), Node::Branch(behind))
            }
        };
        Some((least, Arc::new(behind)))
    }
}

/// Entries in the order of their keys.
pub(crate) struct Entries<'t, K, V> {
    /// The children that are still to come, of each level above the leaf.
    branches: Vec<std::slice::Iter<'t, Child<K, V>>>,
    leaf: std::slice::Iter<'t, (K, V)>,
}

impl<'t, K, V> Entries<'t, K, V> {
    fn seek(&mut self, mut node: &'t Node<K, V>, is_before: impl Fn(&K) -> bool) {
        loop {
            match node {
                Node::Branch(children) => {
                    let at = children.partition_point(|(least, _)| is_before(least)).saturating_sub(1);
                    self.branches.push(children[at + 1..].iter());
                    node = &children[at].1;
                }
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|(known, _)| is_before(known));
                    self.leaf = entries[at..].iter();
                    return;
                }
            }
        }
    }
}

impl<'t, K, V> Iterator for Entries<'t, K, V> {
    type Item = (&'t K, &'t V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            match self.branches.last_mut()?.next() {
                Some((_, child)) => self.seek(child, |_| false),
                None => drop(self.branches.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16, u32),
        Remove(u16),
        Copy,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..3_000u16, any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
            5 => (0..3_000u16).prop_map(Step::Remove),
            1 => Just(Step::Copy),
        ]
    }

    fn listed(tree: &Tree<u16, u32>) -> Vec<(u16, u32)> {
        tree.iter().map(|(key, value)| (*key, *value)).collect()
    }

    /// The heights and sizes of the nodes are what the costs depend on.
    fn check_nodes(node: &Node<u16, u32>, is_root: bool) -> usize {
        assert!(node.len() <= NODE_MAX && (is_root || node.len() >= NODE_MIN), "{}", node.len());
        let Node::Branch(children) = node else { return 0 };
        let heights: Vec<_> = children.iter().map(|(_, child)| check_nodes(child, false)).collect();
        assert!(heights.iter().all(|height| *height == heights[0]));
        heights[0] + 1
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_is_the_ordered_map_and_copies_stay_as_they_were(
            steps in proptest::collection::vec(step(), 0..4_000), from in 0..3_000u16
        ) {
            let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => prop_assert_eq!(tree.insert(key, value), model.insert(key, value)),
                    Step::Remove(key) => prop_assert_eq!(tree.remove(&key), model.remove(&key)),
                    Step::Copy if copies.len() < 8 => copies.push((tree.clone(), model.clone())),
                    Step::Copy => {}
                }
            }
            copies.push((tree, model));
            for (tree, model) in copies {
                check_nodes(&tree.root, true);
                prop_assert_eq!(tree.len(), model.len());
                prop_assert_eq!(listed(&tree), model.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
                prop_assert_eq!(tree.get(&from), model.get(&from));
                let behind: Vec<_> = tree.behind(|key| *key <= from).map(|(key, _)| *key).collect();
                let expected: Vec<_> = model.keys().copied().filter(|key| *key > from).collect();
                prop_assert_eq!(behind, expected);
                let first = tree.from(&from).next().map(|(key, _)| *key);
                prop_assert_eq!(first, model.keys().copied().find(|key| *key >= from));
            }
        }
    }

    #[test]
    fn a_million_entries_are_six_levels_high() {
        let mut tree = Tree::default();
        for key in 0..1_000_000u32 {
            tree.insert(key.reverse_bits(), ());
        }
        let (mut height, mut node) = (1, &tree.root);
        while let Node::Branch(children) = &**node {
            (height, node) = (height + 1, &children[0].1);
        }
        assert!(height <= 6, "{height}");
    }
}
