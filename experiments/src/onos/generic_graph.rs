//! The baseline of table 1: the network view as a generic property graph in a key-value store, as in the paper's first prototype.
//!
//! ```text
//!   add_switch ──10 reads, 8 writes──> store (a thread behind a socket: each operation is a round trip)
//!   add_typed ───a write for each object──> the same store
//! ```
//!
//! In: a switch with ports. Out: how long it took, by reads, writes and serialisation. Vertices and edges are maps of
//! properties without a schema, as a graph database keeps them. Each object refers to others, and both ends of an edge
//! are rewritten. It is a model of that design, not Titan, Cassandra or RAMCloud.

use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const GET: u8 = 0;
const PUT: u8 = 1;

/// Where the time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Reading, in milliseconds.
    pub read_ms: f64,
    /// Writing, in milliseconds.
    pub write_ms: f64,
    /// From objects to bytes, in milliseconds.
    pub serialise_ms: f64,
    /// From bytes to objects, in milliseconds.
    pub deserialise_ms: f64,
    /// All, in milliseconds.
    pub total_ms: f64,
    /// Reads from the store.
    pub reads: usize,
    /// Writes to the store.
    pub writes: usize,
}

/// A client of the store.
pub struct GraphStore {
    line: UnixStream,
    cost: Cost,
}

impl GraphStore {
    /// Starts the store's thread. It ends with the client.
    ///
    /// # Errors
    /// There are no sockets.
    pub fn start() -> Result<GraphStore, String> {
        let trouble = |error: std::io::Error| format!("the store of the baseline: {error}");
        let (line, far) = UnixStream::pair().map_err(trouble)?;
        let serve = move || {
            // It ends when the client closes its end.
            let _ = serve(far);
        };
        std::thread::Builder::new().name("graph store".to_owned()).spawn(serve).map_err(trouble)?;
        Ok(GraphStore { line, cost: Cost::default() })
    }

    /// Adds a switch and its ports to the property graph: ten reads and eight writes for the switch, as the paper counts.
    ///
    /// # Errors
    /// The store is gone.
    pub fn add_switch(&mut self, switch: &str, ports: usize) -> Result<Cost, String> {
        self.measure(|store| {
            // Is it there already, by either index? What are the root, the type's vertex, and their counters?
            for key in ["index/dpid", "index/type", "counter", "type/switch", "root"] {
                store.read(&format!("{key}/{switch}"))?;
            }
            let mut root = store.read("vertex/root")?;
            let mut of_type = store.read("vertex/type/switch")?;
            let mut by_id = store.read("index/dpid")?;
            let mut by_type = store.read("index/type")?;
            let mut counter = store.read("counter")?;
            let ports: Vec<Value> = (1..=ports).map(|number| property_map("port", switch, number)).collect();
            let vertex =
                json!({"type": "switch", "dpid": switch, "state": "ACTIVE", "out": ["edge"], "ports": ports});
            append(&mut root, "out", switch);
            append(&mut of_type, "out", switch);
            append(&mut by_id, "ids", switch);
            append(&mut by_type, "ids", switch);
            append(&mut counter, "ids", "one more");
            store.write(&format!("vertex/{switch}"), &vertex)?;
            store.write(
                &format!("edge/root/{switch}"),
                &json!({"label": "has", "in": switch, "out": "root"}),
            )?;
            store.write(
                &format!("edge/type/{switch}"),
                &json!({"label": "is", "in": switch, "out": "type"}),
            )?;
            store.write("vertex/root", &root)?;
            store.write("vertex/type/switch", &of_type)?;
            store.write("index/dpid", &by_id)?;
            store.write("index/type", &by_type)?;
            store.write("counter", &counter)
        })
    }

    /// Writes objects, one operation for each: the paper's second data model.
    ///
    /// # Errors
    /// The store is gone.
    pub fn add_typed<T: Serialize>(&mut self, objects: &[(String, T)]) -> Result<Cost, String> {
        self.measure(|store| objects.iter().try_for_each(|(key, object)| store.write(key, object)))
    }

    fn measure(&mut self, act: impl FnOnce(&mut GraphStore) -> Result<(), String>) -> Result<Cost, String> {
        self.cost = Cost::default();
        let began = Instant::now();
        act(self)?;
        self.cost.total_ms = ms(began.elapsed());
        Ok(self.cost)
    }

    /// The object of a key; an empty one if there is none.
    fn read(&mut self, key: &str) -> Result<Value, String> {
        let began = Instant::now();
        let bytes = self.operate(GET, key, &[])?;
        let read = Instant::now();
        let value = serde_json::from_slice(&bytes).unwrap_or(Value::Object(Map::new()));
        self.cost.deserialise_ms += ms(read.elapsed());
        self.cost.read_ms += ms(read - began);
        self.cost.reads += 1;
        Ok(value)
    }

    fn write(&mut self, key: &str, object: &impl Serialize) -> Result<(), String> {
        let began = Instant::now();
        let bytes = serde_json::to_vec(object).map_err(|error| error.to_string())?;
        let serialised = Instant::now();
        self.operate(PUT, key, &bytes)?;
        self.cost.serialise_ms += ms(serialised - began);
        self.cost.write_ms += ms(serialised.elapsed());
        self.cost.writes += 1;
        Ok(())
    }

    fn operate(&mut self, operation: u8, key: &str, value: &[u8]) -> Result<Vec<u8>, String> {
        let trouble = |error: std::io::Error| format!("the store of the baseline: {error}");
        self.line.write_all(&frame(operation, key.as_bytes(), value)).map_err(trouble)?;
        let (_, _, value) = read_frame(&mut self.line).map_err(trouble)?;
        Ok(value)
    }
}

fn property_map(kind: &str, switch: &str, number: usize) -> Value {
    json!({"type": kind, "switch": switch, "number": number, "name": format!("{switch}-eth{number}"), "state": "ACTIVE",
           "mac": format!("02:00:00:00:00:{number:02x}")})
}

/// Adds a reference to a list of an object.
fn append(object: &mut Value, list: &str, reference: &str) {
    if let Value::Object(object) = object
        && let Value::Array(all) = object.entry(list).or_insert_with(|| json!([]))
    {
        all.push(json!(reference));
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Operation, two lengths, key, value.
fn frame(operation: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes).concat();
    [&[operation], &lengths[..], key, value].concat()
}

fn read_frame(stream: &mut UnixStream) -> std::io::Result<(u8, Vec<u8>, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let [operation, a, b, c, d, e, f, g, h] = head;
    let mut part = |length: [u8; 4]| {
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut bytes).map(|()| bytes)
    };
    Ok((operation, part([a, b, c, d])?, part([e, f, g, h])?))
}

fn serve(mut stream: UnixStream) -> std::io::Result<()> {
    let mut table: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    loop {
        let (operation, key, value) = read_frame(&mut stream)?;
        let answer = match operation {
            PUT => {
                table.insert(key, value);
                Vec::new()
            }
            _ => table.get(&key).cloned().unwrap_or_default(),
        };
        stream.write_all(&frame(operation, &[], &answer))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_takes_as_many_operations_as_the_paper_counts() {
        let mut store = GraphStore::start().unwrap();
        for number in 0..3 {
            let cost = store.add_switch(&format!("s{number}"), 4).unwrap();
            assert_eq!((cost.reads, cost.writes), (10, 8));
        }
        let root = store.read("vertex/root").unwrap();
        assert_eq!(root["out"], json!(["s0", "s1", "s2"]), "each is known");
    }

    #[test]
    fn typed_objects_take_a_write_each() {
        let mut store = GraphStore::start().unwrap();
        let objects = [("a".to_owned(), 1), ("b".to_owned(), 2)];
        let cost = store.add_typed(&objects).unwrap();
        assert_eq!((cost.reads, cost.writes), (0, 2));
    }
}
