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
//!
//! In a large table, a change costs what it reads from memory, since nothing of it is in a cache. Therefore a node is one block: its
//! counts, then its entries.

use std::hint::black_box;
use std::sync::Arc;

/// The maximum number of entries of a node. A copy of a node counts each entry once more. Smaller nodes make higher trees.
const NODE_MAX: usize = 16;

/// A node with fewer entries is joined with its neighbour. Well below a half, so that a node just split is not joined again.
const NODE_MIN: usize = NODE_MAX / 4;

/// An ordered map with cheap copies.
#[derive(Clone, Debug)]
pub(crate) struct Tree<K, V> {
    root: Node<K, V>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node<K, V> {
    Leaf(Arc<[(K, V)]>),
    /// Each child with a key that is not greater than its keys, and greater than those of the child before. That of the first child
    /// is never compared.
    Branch(Arc<[Child<K, V>]>),
}

type Child<K, V> = (K, Node<K, V>);

/// Something that may share its memory with copies of itself.
pub(crate) trait Shared: Clone {
    /// How many copies there are; 0 if it is not counted.
    fn copies(&self) -> usize;
}

impl Shared for () {
    fn copies(&self) -> usize {
        0
    }
}

impl<K: Clone, V: Clone> Shared for Node<K, V> {
    fn copies(&self) -> usize {
        match self {
            Node::Leaf(entries) => Arc::strong_count(entries),
            Node::Branch(children) => Arc::strong_count(children),
        }
    }
}

impl<K, V> Default for Tree<K, V> {
    fn default() -> Self {
        Tree { root: Node::Leaf(Arc::new([])), len: 0 }
    }
}

impl<K: Ord + Clone, V: Shared> Tree<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = find(entries, key).ok()?;
                    return entries.get(at).map(|(_, value)| value);
                }
                Node::Branch(children) => node = &children[child_for(children, key)].1,
            }
        }
    }

    /// The value before, if there was one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, behind) = self.root.insert(key, value);
        if let Some(behind) = behind {
            let first = (behind.0.clone(), self.root.clone());
            self.root = Node::Branch(Arc::new([first, behind]));
        }
        self.len += usize::from(before.is_none());
        before
    }

    /// The value, if there was one. What is not there copies no node.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.get(key)?;
        let removed = self.root.remove(key);
        if let Node::Branch(children) = &self.root
            && let [(_, only)] = &**children
        {
            self.root = only.clone();
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

fn find<K: Ord, V>(entries: &[(K, V)], key: &K) -> Result<usize, usize> {
    entries.binary_search_by(|(known, _)| known.cmp(key))
}

fn child_for<K: Ord, C>(children: &[(K, C)], key: &K) -> usize {
    children.partition_point(|(least, _)| least <= key).saturating_sub(1)
}

/// The entries of a node, to be changed: a copy if others hold them too.
///
/// A copy counts each entry once more, and a processor changes one count after the other. Reads do not wait for each other. So all
/// counts are read before the first one is changed.
fn own<K: Clone, T: Shared>(entries: &mut Arc<[(K, T)]>) -> &mut [(K, T)] {
    if Arc::strong_count(entries) > 1 {
        black_box(entries.iter().map(|(_, shared)| shared.copies()).fold(0, usize::wrapping_add));
    }
    Arc::make_mut(entries)
}

/// A node that was split off, and its least key.
type Behind<K, V> = Option<Child<K, V>>;

impl<K: Ord + Clone, V: Shared> Node<K, V> {
    fn insert(&mut self, key: K, value: V) -> (Option<V>, Behind<K, V>) {
        match self {
            Node::Leaf(entries) => match find(entries, &key) {
                Ok(at) => (Some(std::mem::replace(&mut own(entries)[at].1, value)), None),
                Err(at) => {
                    *entries = with(entries, at, (key, value));
                    (None, self.split())
                }
            },
            Node::Branch(children) => {
                let at = child_for(children, &key);
                let (before, behind) = own(children)[at].1.insert(key, value);
                let Some(behind) = behind else { return (before, None) };
                *children = with(children, at + 1, behind);
                (before, self.split())
            }
        }
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Node::Leaf(entries) => {
                let at = find(entries, key).ok()?;
                let removed = entries[at].1.clone();
                *entries = [&entries[..at], &entries[at + 1..]].concat().into();
                Some(removed)
            }
            Node::Branch(children) => {
                let at = child_for(children, key);
                let child = &mut own(children)[at].1;
                let removed = child.remove(key);
                if child.len() < NODE_MIN && children.len() > 1 {
                    *children = joined(children, at.saturating_sub(1));
                }
                removed
            }
        }
    }

    /// This node and the next one, whose keys are not less than `least`, as one.
    fn and(&self, least: &K, next: &Node<K, V>) -> Node<K, V> {
        match (self, next) {
            (Node::Leaf(entries), Node::Leaf(more)) => Node::Leaf([&**entries, &**more].concat().into()),
            (Node::Branch(children), Node::Branch(more)) => {
                let mut all = [&**children, &**more].concat();
                // The key of a first child is not compared, so it can be greater than its keys.
                all[children.len()].0 = least.clone();
                Node::Branch(all.into())
            }
            _ => unreachable!("all leaves are at the same height"),
        }
    }

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
        Some(match self {
            Node::Leaf(entries) => {
                let behind: Arc<[_]> = entries[half..].into();
                *entries = entries[..half].into();
                (behind[0].0.clone(), Node::Leaf(behind))
            }
            Node::Branch(children) => {
                let behind: Arc<[_]> = children[half..].into();
                *children = children[..half].into();
                (behind[0].0.clone(), Node::Branch(behind))
            }
        })
    }
}

/// The entries with one more.
fn with<T: Clone>(entries: &[T], at: usize, one: T) -> Arc<[T]> {
    let (before, behind) = entries.split_at(at);
    let mut all = Vec::with_capacity(entries.len() + 1);
    all.extend_from_slice(before);
    all.push(one);
    all.extend_from_slice(behind);
    all.into()
}

/// The children, of which one is joined with the next one. They are split again if that is too much for one.
fn joined<K: Ord + Clone, V: Shared>(children: &[Child<K, V>], at: usize) -> Arc<[Child<K, V>]> {
    let (key, child) = &children[at];
    let (least, next) = &children[at + 1];
    let mut both = child.and(least, next);
    let behind = both.split();
    let both = std::iter::once((key.clone(), both)).chain(behind);
    children[..at].iter().cloned().chain(both).chain(children[at + 2..].iter().cloned()).collect()
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

    impl Shared for u32 {
        fn copies(&self) -> usize {
            0
        }
    }

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
        while let Node::Branch(children) = node {
            (height, node) = (height + 1, &children[0].1);
        }
        assert!(height <= 6, "{height}");
    }
}
