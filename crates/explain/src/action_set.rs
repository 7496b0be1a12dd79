//! The action set of a packet (OpenFlow 1.3.5, 5.10).
//!
//! In: the actions of write-actions and of buckets. Out: the actions in the order in which a switch carries them out. It carries none out.

use flow::Action;

/// The place of an action in the order of the specification.
fn place(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 1,
        Action::PopVlan | Action::StripVlan | Action::PopMpls(_) | Action::PopPbb => 2,
        Action::PushMpls(_) => 3,
        Action::PushPbb(_) => 4,
        Action::PushVlan(_) => 5,
        Action::CopyTtlOut => 6,
        Action::DecMplsTtl | Action::DecNwTtl => 7,
        Action::SetQueue(_) => 9,
        Action::Group(_) => 10,
        Action::Output { .. } | Action::Enqueue { .. } => 11,
        _ => 8,
    }
}

/// What makes two actions one of a kind: the later one replaces the earlier one.
fn is_same_kind(one: &Action, other: &Action) -> bool {
    match (one, other) {
        (Action::SetField { field: one, .. }, Action::SetField { field: other, .. }) => one == other,
        (Action::SetUnknownField { header: one, .. }, Action::SetUnknownField { header: other, .. }) => {
            one >> 9 == other >> 9
        }
        _ => std::mem::discriminant::<Action>(one) == std::mem::discriminant(other),
    }
}

/// Adds actions to a set.
pub(crate) fn write(set: &mut Vec<Action>, actions: &[Action]) {
    for action in actions {
        match set.iter_mut().find(|there| is_same_kind(there, action)) {
            Some(there) => there.clone_from(action),
            None => set.push(action.clone()),
        }
    }
}

/// The actions of a set in their order. A group takes the place of an output.
pub(crate) fn in_order(mut set: Vec<Action>) -> Vec<Action> {
    if set.iter().any(|action| matches!(action, Action::Group(_))) {
        set.retain(|action| !matches!(action, Action::Output { .. } | Action::Enqueue { .. }));
    }
    set.sort_by_key(place);
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::text::{actions_to_string, parse_actions};

    #[test]
    fn the_later_of_a_kind_stays_and_a_group_replaces_an_output() {
        let check = |text: &str, expected: &str| {
            let mut set = Vec::new();
            write(&mut set, &parse_actions(text).unwrap());
            assert_eq!(actions_to_string(&in_order(set)), expected, "{text}");
        };
        check("output:1,output:2", "output:2");
        check("output:1,group:3", "group:3");
        check(
            "output:1,set_field:4101->vlan_vid,push_vlan:0x8100,pop_vlan",
            "pop_vlan,push_vlan:0x8100,set_field:4101->vlan_vid,output:1",
        );
    }
}
