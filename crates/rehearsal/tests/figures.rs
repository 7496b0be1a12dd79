//! The figures of "The Price of Virtualization" on the fluid network, and tenants that hear their labels.

use rehearsal::{
    Choose, Cloud, Demand, Fabric, Fluid, Meter, Pair, Plan, Rig, STAY_MS, Sends, SliceNo, Telling, Vnic,
    VnicNo,
};

const G: u64 = 1_000_000_000;
const RED: SliceNo = SliceNo(0);
const BLUE: SliceNo = SliceNo(1);

fn pair(slice: SliceNo, source: u32, destination: u32) -> Pair {
    Pair { slice, source: VnicNo(source), destination: VnicNo(destination) }
}

fn plan(fabric: &Fabric, vnics: &[(&str, u64)], choose: Choose) -> Plan {
    let vnic = |(server, rate): &(&str, u64)| Vnic {
        server: fabric.server_named(server).expect("it is in the figure"),
        rate_bps: rate * G,
    };
    let vnics = vnics.iter().map(vnic).collect();
    Plan { vnics, choose, stay_ms: STAY_MS, notice_us: 500, is_metered: true, step: None, links: None }
}

/// Red has A and B, blue has C, D, E and F.
fn plans(fabric: &Fabric, choose: Choose) -> Vec<Plan> {
    vec![
        plan(fabric, &[("s5", 8), ("s7", 8)], choose),
        plan(fabric, &[("s5", 2), ("s7", 2), ("s6", 10), ("s8", 10)], choose),
    ]
}

#[test]
fn with_labels_each_flow_of_figure_two_has_its_rate() {
    let fabric = Fabric::figure_one(10 * G);
    let plans = plans(&fabric, Choose::Label);
    let mut cloud = Cloud::new(fabric.clone(), Telling::Damped, Meter::After(400), plans).unwrap();
    let label = |cloud: &Cloud, slice, name| {
        cloud.service().label_bps(slice, fabric.named(name).expect("it is in the figure")) / G
    };
    cloud.begin(pair(RED, 0, 1), Sends::All, 0);
    cloud.run_until(500_000).unwrap();
    assert_eq!((label(&cloud, BLUE, "s3-s1"), label(&cloud, BLUE, "s3-s2")), (2, 10));
    cloud.begin(pair(BLUE, 2, 3), Sends::All, 0);
    cloud.run_until(1_000_000).unwrap();
    assert_eq!((label(&cloud, RED, "s3-s1"), label(&cloud, RED, "s3-s2")), (10, 0));
    cloud.begin(pair(BLUE, 0, 1), Sends::All, 0);
    cloud.run_until(1_500_000).unwrap();
    assert_eq!((label(&cloud, RED, "s3-s1"), label(&cloud, BLUE, "s3-s1")), (8, 2));
    let got: Vec<u64> = cloud.rates().iter().map(|it| (it.got_bps + G / 2) / G).collect();
    assert_eq!((got, cloud.moves().len()), (vec![8, 2, 10], 0));
}

#[test]
fn a_tenant_that_came_to_an_overbooked_link_moves_when_it_hears() {
    let fabric = Fabric::figure_one(10 * G);
    let plans = plans(&fabric, Choose::Label);
    let mut cloud = Cloud::new(fabric.clone(), Telling::Damped, Meter::After(400), plans).unwrap();
    // Both at the same time, by the same path.
    cloud.begin(pair(RED, 0, 1), Sends::All, 0);
    cloud.begin(pair(BLUE, 2, 3), Sends::All, 0);
    cloud.run_until(2_000_000).unwrap();
    assert_eq!(cloud.moves().len(), 1, "{:?}", cloud.moves());
    assert!(cloud.rates().iter().all(|it| it.got_bps == 10 * G), "{:?}", cloud.rates());
}

#[test]
fn agents_on_the_fluid_network_reach_the_rates_and_say_who_began() {
    let fabric = Fabric::figure_one(10 * G);
    let plans = plans(&fabric, Choose::Label);
    let mut fluid = Fluid::new(&fabric, &plans).unwrap();
    let [s5, s7] = ["s5", "s7"].map(|name| fabric.server_named(name).expect("it is in the figure"));
    let path = &fabric.paths(s5, s7)[0];
    fluid.carry(pair(RED, 0, 1), Demand::All, path);
    fluid.run(20_000_000);
    assert!((fluid.rate_bps(pair(RED, 0, 1)) - 10e9).abs() < 0.5e9);
    let bursts = Demand::Bursts { bps: 10 * G, on_ns: 2_000_000, period_ns: 5_000_000 };
    fluid.carry(pair(BLUE, 0, 1), bursts, path);
    fluid.run(50_000_000);
    let rates = [fluid.rate_bps(pair(RED, 0, 1)), fluid.rate_bps(pair(BLUE, 0, 1))];
    assert!((rates[0] - 8e9).abs() < 0.4e9 && (rates[1] - 2e9).abs() < 0.1e9, "{rates:?}");
    let began: Vec<_> = fluid.take_heard().into_iter().filter(|(_, began)| *began).map(|it| it.0).collect();
    assert!(began.contains(&pair(RED, 0, 1)) && began.contains(&pair(BLUE, 0, 1)), "{began:?}");
    assert_eq!(fluid.refusals(), 0);
}

/// Figure 1: without labels, A to B and E to F take the same spine.
#[test]
fn without_labels_an_overbooked_link_is_shared_in_proportion_and_the_nic_has_the_rest() {
    let fabric = Fabric::figure_one(10 * G);
    let mut rig = Rig::new(&fabric, Telling::Never, plans(&fabric, Choose::Number)).unwrap();
    let flows = [(pair(RED, 0, 1), 0), (pair(BLUE, 2, 3), 0), (pair(BLUE, 0, 1), 1)];
    for (pair, number) in flows {
        rig.begin(pair, Demand::All, number);
    }
    rig.run(100_000_000).unwrap();
    for ((pair, _), expected) in flows.into_iter().zip([4.444e9, 5.556e9, 5.556e9]) {
        let rate = rig.rate_bps(pair);
        assert!((rate - expected).abs() < 0.05 * expected, "{pair:?}: {rate}");
    }
    assert!(flows.iter().all(|(pair, _)| rig.heard_ns(*pair) > rig.began_ns(*pair)));
}
