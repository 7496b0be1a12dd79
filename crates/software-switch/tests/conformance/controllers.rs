//! Several controllers at a time (1.3.5, 6.3.4 to 6.3.6).

use super::dsl::*;
use crate::has;
use flow::{Field, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use software_switch::{SwitchOptions, Versions};

const EVERYTHING: AsyncConfig = AsyncConfig {
    packet_in_mask: [0b111, 0b111],
    port_status_mask: [0b111, 0b111],
    flow_removed_mask: [0b1111, 0b1111],
};

/// A switch with three controllers of 1.3.
fn three() -> Bench {
    let mut bench = Bench::new(V13);
    bench.join(1, Version::V1_3);
    bench.join(2, Version::V1_3);
    bench
}

/// A switch with a controller of 1.3 and one of 1.0.
fn of_both_versions() -> Bench {
    let options = SwitchOptions { versions: Versions::Both, n_buffers: 8, ..SwitchOptions::default() };
    let mut bench = Bench::with(options);
    bench.join(1, Version::V1_0);
    bench
}

fn role(role: u32, generation_id: u64) -> Body {
    Body::RoleRequest(Role { role, generation_id })
}

fn role_of(bench: &mut Bench, controller: usize) -> u32 {
    match &bench.say_as(controller, role(ROLE_NOCHANGE, 0))[..] {
        [(_, Body::RoleReply(role))] => role.role,
        other => panic!("{other:?}"),
    }
}

fn who(heard: &[(usize, Body)]) -> Vec<usize> {
    heard.iter().map(|(controller, _)| *controller).collect()
}

fn refusal(heard: &[(usize, Body)]) -> Option<(u16, u16)> {
    heard.iter().find_map(|(_, body)| match body {
        Body::Error(error) => Some((error.kind, error.code)),
        _ => None,
    })
}

#[test]
fn a_reply_goes_to_who_asked_and_to_nobody_else() {
    let mut bench = three();
    for controller in 0..3 {
        for question in [Body::BarrierRequest, Body::FeaturesRequest, Body::GetConfigRequest] {
            assert_eq!(who(&bench.say_as(controller, question)), [controller]);
        }
    }
}

#[test]
fn an_error_goes_to_who_made_it() {
    let mut bench = three();
    let heard = bench.say_as(2, rule(1).output("TABLE").body());
    assert_eq!((who(&heard), refusal(&heard)), (vec![2], Some((2, 4))));
}

#[test]
fn everybody_begins_as_an_equal_and_equals_hear_everything() {
    let mut bench = three();
    bench.say_as(0, rule(0).output("CONTROLLER").body());
    bench.say_as(
        1,
        rule(5).timeouts(0, 3).flags(FLOW_MOD_SEND_FLOW_REMOVED).on(Field::InPort, PortNo(4)).body(),
    );
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 1, 2]);
    assert_eq!(who(&bench.link_for_all(2, false)), [0, 1, 2]);
    assert_eq!(who(&bench.pass_for_all(3)), [0, 1, 2]);
    assert!((0..3).all(|controller| role_of(&mut bench, controller) == ROLE_EQUAL));
}

#[test]
fn a_new_master_makes_the_old_one_a_slave_without_a_word() {
    let mut bench = three();
    bench.say_as(0, role(ROLE_MASTER, 1));
    let heard = bench.say_as(1, role(ROLE_MASTER, 2));
    assert_eq!(heard, [(1, Body::RoleReply(Role { role: ROLE_MASTER, generation_id: 2 }))]);
    assert_eq!(role_of(&mut bench, 0), ROLE_SLAVE);
    assert_eq!(role_of(&mut bench, 2), ROLE_EQUAL);
}

#[test]
fn a_master_that_asks_to_be_master_again_stays_master() {
    let mut bench = three();
    bench.say_as(0, role(ROLE_MASTER, 1));
    bench.say_as(0, role(ROLE_MASTER, 1));
    assert_eq!(role_of(&mut bench, 0), ROLE_MASTER);
}

#[test]
fn an_election_is_the_switchs_and_not_the_connections() {
    let mut bench = three();
    bench.say_as(0, role(ROLE_MASTER, 10));
    assert_eq!(refusal(&bench.say_as(1, role(ROLE_MASTER, 9))), Some((11, 0)));
    assert_eq!(refusal(&bench.say_as(1, role(ROLE_SLAVE, 9))), Some((11, 0)));
    assert_eq!((role_of(&mut bench, 0), role_of(&mut bench, 1)), (ROLE_MASTER, ROLE_EQUAL));
    bench.switch.on_disconnected(C0);
    assert_eq!(refusal(&bench.say_as(1, role(ROLE_MASTER, 9))), Some((11, 0)), "it outlives who told it");
}

#[test]
fn an_equal_needs_no_election() {
    let mut bench = three();
    bench.say_as(0, role(ROLE_SLAVE, 10));
    assert_eq!(refusal(&bench.say_as(0, role(ROLE_EQUAL, 3))), None);
    assert_eq!(role_of(&mut bench, 0), ROLE_EQUAL);
}

#[test]
fn a_slave_changes_nothing_and_reads_everything() {
    let mut bench = three();
    bench.say_as(1, role(ROLE_SLAVE, 1));
    let port_mod =
        PortMod { port_no: PortNo(1), hw_addr: flow::MacAddr([0; 6]), config: 0, mask: 0, advertise: 0 };
    let group_mod = GroupMod { command: 0, group_type: 0, group_id: 1, buckets: vec![] };
    let meter_mod = MeterMod { command: 2, flags: 0, meter_id: METER_ALL, bands: vec![] };
    for change in [
        rule(1).body(),
        packet_out(PortNo(1), &[output("2")], ping()),
        Body::PortMod(port_mod),
        Body::GroupMod(group_mod),
        Body::MeterMod(meter_mod),
        Body::TableMod(TableMod { table_id: 0, config: 0 }),
    ] {
        assert_eq!(refusal(&bench.say_as(1, change.clone())), Some((1, 10)), "{change:?}");
    }
    for question in [RequestBody::Desc, RequestBody::Table, RequestBody::PortDesc, RequestBody::GroupDesc] {
        let request = Body::MultipartRequest(MultipartRequest { flags: 0, body: question });
        assert_eq!(refusal(&bench.say_as(1, request)), None);
    }
    assert_eq!(bench.left_by(), "");
}

#[test]
fn a_slave_hears_of_ports_alone_until_it_asks_for_more() {
    let mut bench = three();
    bench.say_as(0, rule(0).output("CONTROLLER").body());
    bench.say_as(1, role(ROLE_SLAVE, 1));
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 2]);
    assert_eq!(who(&bench.link_for_all(2, false)), [0, 1, 2]);
    bench.say_as(1, Body::SetAsync(EVERYTHING));
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 1, 2]);
}

#[test]
fn a_mask_is_for_one_controller() {
    let mut bench = three();
    bench.say_as(0, rule(0).output("CONTROLLER").body());
    let deaf = AsyncConfig::default();
    bench.say_as(2, Body::SetAsync(deaf));
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 1]);
    assert_eq!(who(&bench.link_for_all(2, false)), [0, 1]);
    assert_eq!(bench.say_as(2, Body::GetAsyncRequest), [(2, Body::GetAsyncReply(deaf))]);
    assert_ne!(bench.say_as(1, Body::GetAsyncRequest), [(1, Body::GetAsyncReply(deaf))]);
}

#[test]
fn masks_of_master_and_slave_are_kept_apart() {
    let mut bench = three();
    bench.say_as(0, rule(0).output("CONTROLLER").body());
    let only_as_slave = AsyncConfig { packet_in_mask: [0, 0b111], ..EVERYTHING };
    bench.say_as(1, Body::SetAsync(only_as_slave));
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 2]);
    bench.say_as(1, role(ROLE_SLAVE, 1));
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 1, 2]);
}

#[test]
fn a_reason_that_is_masked_out_is_not_heard() {
    let mut bench = three();
    bench.say_as(0, rule(0).output("CONTROLLER").body());
    bench.say_as(0, rule(1).on(Field::InPort, PortNo(2)).output("CONTROLLER").body());
    let only_actions = AsyncConfig { packet_in_mask: [0b010, 0], ..EVERYTHING };
    bench.say_as(1, Body::SetAsync(only_actions));
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 2], "a table-miss");
    assert_eq!(who(&bench.arrive_for_all(2, &ping())), [0, 1, 2], "an action");
}

#[test]
fn one_kept_packet_serves_all_and_the_first_has_it() {
    let options = SwitchOptions { versions: V13, n_buffers: 8, ..SwitchOptions::default() };
    let mut bench = Bench::with(options);
    bench.join(1, Version::V1_3);
    bench.say_as(0, rule(0).output("CONTROLLER").body());
    let heard = bench.arrive_for_all(1, &ping());
    let ids: Vec<u32> = heard
        .iter()
        .filter_map(|(_, body)| match body {
            Body::PacketIn(packet_in) => Some(packet_in.buffer_id),
            _ => None,
        })
        .collect();
    assert!(ids.len() == 2 && ids[0] == ids[1] && ids[0] != NO_BUFFER, "{ids:?}");
    let take = Body::PacketOut(PacketOut {
        buffer_id: ids[0],
        in_port: PortNo(1),
        actions: vec![output("3")],
        data: vec![],
    });
    assert_eq!(refusal(&bench.say_as(1, take.clone())), None);
    assert_eq!(bench.left_by(), "3");
    assert_eq!(refusal(&bench.say_as(0, take)), Some((1, 7)));
}

#[test]
fn how_much_of_a_packet_is_sent_is_each_controllers_own() {
    let options = SwitchOptions { versions: V10, n_buffers: 8, ..SwitchOptions::default() };
    let mut bench = Bench::with(options);
    bench.join(1, Version::V1_0);
    bench.say_as(1, Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 20 }));
    let lengths: Vec<usize> = bench
        .arrive_for_all(1, &tcp(1, 2))
        .iter()
        .map(|(_, body)| match body {
            Body::PacketIn(packet_in) => packet_in.data.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lengths, [tcp(1, 2).len(), 20]);
}

#[test]
fn each_hears_in_its_own_version() {
    let mut bench = of_both_versions();
    let told = rule(3).timeouts(0, 5).flags(FLOW_MOD_SEND_FLOW_REMOVED).on(Field::InPort, PortNo(1));
    bench.say_as(0, told.output("CONTROLLER").body());
    // `heard` checks that each message has its receiver's version and can be encoded in it.
    assert_eq!(who(&bench.arrive_for_all(1, &ping())), [0, 1]);
    assert_eq!(who(&bench.link_for_all(3, false)), [0, 1]);
    assert_eq!(who(&bench.pass_for_all(5)), [0, 1]);
}

#[test]
fn a_packet_without_a_rule_is_for_controllers_of_1_0_alone() {
    assert_eq!(who(&of_both_versions().arrive_for_all(1, &ping())), [1]);
}

#[test]
fn a_rule_that_1_0_cannot_say_is_not_told_in_1_0() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = of_both_versions();
    let labelled = rule(9).on(Field::EthType, 0x8847u16).on(Field::MplsLabel, 7u32);
    bench.say_as(0, labelled.timeouts(0, 5).flags(FLOW_MOD_SEND_FLOW_REMOVED).body());
    bench.say_as(0, rule(1).on(Field::InPort, PortNo(1)).output("2").body());
    let request = multipart(RequestBody::Flow(every_rule()));
    let mut told = |controller| match &bench.say_as(controller, request.clone())[..] {
        [(_, Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(flows), .. }))] => flows.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!((told(0), told(1)), (2, 1));
    assert_eq!(who(&bench.pass_for_all(5)), [0]);
}

#[test]
fn a_port_taken_out_of_floods_in_1_0_is_so_for_all_and_unsaid_in_1_3() {
    let mut bench = of_both_versions();
    let ports = bench.say_as(1, Body::FeaturesRequest);
    let [(_, Body::FeaturesReply(features))] = &ports[..] else { panic!("{ports:?}") };
    let hw_addr = features.ports[1].hw_addr;
    let no_flood = PortMod { port_no: PortNo(2), hw_addr, config: 1 << 4, mask: 1 << 4, advertise: 0 };
    let heard = bench.say_as(1, Body::PortMod(no_flood));
    let configs: Vec<(usize, u32)> = heard
        .iter()
        .map(|(controller, body)| match body {
            Body::PortStatus(status) => (*controller, status.port.config),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(configs, [(0, 0), (1, 1 << 4)]);
    bench.say_as(0, rule(1).output("FLOOD").body());
    assert_eq!(bench.arrive(1, &ping()).0, "3 4");
}

#[test]
fn who_comes_back_begins_anew_and_the_others_stay_as_they_were() {
    let mut bench = three();
    bench.say_as(0, role(ROLE_MASTER, 1));
    bench.say_as(1, Body::SetAsync(AsyncConfig::default()));
    bench.switch.on_disconnected(C0);
    bench.join(0, Version::V1_3);
    assert_eq!(role_of(&mut bench, 0), ROLE_EQUAL);
    assert_eq!(bench.say_as(1, Body::GetAsyncRequest), [(1, Body::GetAsyncReply(AsyncConfig::default()))]);
}

#[test]
fn a_rule_of_one_is_changed_by_another() {
    let mut bench = three();
    bench.say_as(0, rule(1).output("2").body());
    bench.say_as(1, rule(1).output("3").command(FLOW_MODIFY).body());
    assert_eq!(bench.arrive(1, &ping()).0, "3");
    bench.say_as(2, rule(1).command(FLOW_DELETE).body());
    assert_eq!(bench.switch.flow_count(), 0);
}
