//! The choices of this crate and those of `examples/slices/choice.py` on the same cases, which were drawn at random.

use multipath::{Balancer, Choose};
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

#[test]
fn the_example_in_python_decides_the_same() {
    let cases: Value = serde_json::from_str(include_str!("cases.json")).expect("it is JSON");
    let mut moves = 0;
    for case in list(&cases) {
        let choose = if case["by_label"] == true { Choose::Label } else { Choose::Number };
        let mut tenant = Balancer::new(choose);
        for step in list(&case["steps"]) {
            let labels: Vec<u64> = list(&step["labels"]).iter().map(number).collect();
            let label = |link: &usize| labels[*link];
            let path = |path: &Value| list(path).iter().map(|link| number(link) as usize).collect();
            let paths: Vec<Vec<usize>> = list(&step["paths"]).iter().map(path).collect();
            let (flow, draw) = (number(&step["flow"]), number(&step["number"]));
            let chosen = if step["what"] == "place" {
                tenant.place(flow, number(&step["rate"]), &paths, draw, label)
            } else {
                tenant.reconsider(&flow, &paths, draw, number(&step["now_ms"]), label).inspect(|_| moves += 1)
            };
            assert_eq!(chosen.map(|index| index as u64), step["chosen"].as_u64(), "{step}");
        }
    }
    assert!(moves > 5, "the cases have moves");
}
