//! The action set of a packet: the actions at the end of the pipeline (1.3.5, 5.10).
//!
//! It keeps at most one action of each kind, and orders them as the specification says. It never carries an action
//! out.

use flow::{Action, Field};

/// An action set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
    actions: Vec<Action>,
}

/// The specification's order: copy inwards, pop, push (MPLS, PBB, VLAN), copy outwards, decrement, set, queue, group, output.
fn rank(action: &Action) -> u8 {
    use Action::*;
    match action {
        CopyTtlIn => 0,
        PopVlan | StripVlan | PopMpls(_) | PopPbb => 1,
        PushMpls(_) => 2,
        PushPbb(_) => 3,
        PushVlan(_) => 4,
        CopyTtlOut => 5,
        DecMplsTtl | DecNwTtl => 6,
        SetQueue(_) => 8,
        Group(_) => 9,
        Output { .. } | Enqueue { .. } => 10,
        _ => 7,
    }
}

/// Whether only the later of two actions can be in a set: both are of one kind, or are set-field actions for one
/// field.
fn same_kind(one: &Action, two: &Action) -> bool {
    let field = |action: &Action| -> Option<Field> {
        match action {
            Action::SetField { field, .. } => Some(*field),
            _ => None,
        }
    };
    std::mem::discriminant(one) == std::mem::discriminant(two) && field(one) == field(two)
}

impl ActionSet {
    /// The set with these actions.
    pub(crate) fn of(actions: &[Action]) -> Self {
        let mut set = ActionSet::default();
        set.write(actions);
        set
    }

    /// Adds actions. Each replaces the action of its kind.
    pub(crate) fn write(&mut self, actions: &[Action]) {
        for action in actions {
            match self.actions.iter_mut().find(|there| same_kind(there, action)) {
                Some(there) => *there = action.clone(),
                None => self.actions.push(action.clone()),
            }
        }
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.actions.clear();
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The actions in the order in which they are carried out. If there is a group, there is no output.
    pub(crate) fn in_order(&mut self) -> &[Action] {
        let has_group = self.actions.iter().any(|action| matches!(action, Action::Group(_)));
        if has_group {
            self.actions.retain(|action| !matches!(action, Action::Output { .. } | Action::Enqueue { .. }));
        }
        self.actions.sort_by_key(rank);
        &self.actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;

    #[test]
    fn the_later_of_two_of_a_kind_stays_and_the_order_is_the_specifications() {
        let vlan = |value| Action::SetField { field: Field::VlanVid, value };
        let mut set = ActionSet::of(&[
            Action::output(PortNo(1)),
            vlan(5),
            Action::PushVlan(0x8100),
            vlan(6),
            Action::output(PortNo(2)),
            Action::PopVlan,
        ]);
        let expected = [Action::PopVlan, Action::PushVlan(0x8100), vlan(6), Action::output(PortNo(2))];
        assert_eq!(set.in_order(), expected);
    }

    #[test]
    fn a_group_takes_the_place_of_an_output() {
        let mut set = ActionSet::of(&[Action::Group(1), Action::output(PortNo(1))]);
        assert_eq!(set.in_order(), [Action::Group(1)]);
    }
}
