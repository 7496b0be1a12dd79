// The network that the mock server plays: its objects, its changes, its intents and paths.
//
// In: a network, a clock, orders (fail, heal, add an intent). Out: objects of the REST interface, and events to `emit`. It knows
// nothing of HTTP, and its routing is breadth first.

import { dpid, macOf, randomFrom } from './network.mjs';

export const reverse = (id) => id.split('-').reverse().join('-');
const switchOf = (connectPoint) => connectPoint.slice(0, connectPoint.lastIndexOf('/'));

export class World {
  constructor(network, seed, emit) {
    this.random = randomFrom(seed + 1);
    this.emit = emit;
    this.version = 1;
    this.started = Date.now();
    this.tables = { switch: new Map(), port: new Map(), link: new Map(), host: new Map(), intent: new Map(), path: new Map() };
    this.counters = new Map();
    this.events = [];
    this.nextIntent = 1;
    this.build(network, Date.now() - 3_600_000);
  }

  build(network, sinceMs) {
    network.points.forEach((point, i) => {
      const id = dpid(i + 1);
      const place = point.latitude === undefined ? {} : { latitude: String(point.latitude), longitude: String(point.longitude) };
      const description = { manufacturer: 'Burnet', hardware: 'Emulated switch', software: '0.4', serial_number: String(i + 1), datapath: `s${i + 1}` };
      this.tables.switch.set(id, {
        kind: 'switch', id, state: 'up', openflow: '1.3', n_tables: 254, n_buffers: 256, description, since_ms: sinceMs,
        annotations: { name: point.name, ...place },
      });
      for (let port = 1; port <= network.ports[i]; port += 1) {
        const mac = macOf(0x020000000000 + (i + 1) * 256 + port);
        const object = { kind: 'port', id: `${id}/${port}`, name: `s${i + 1}-eth${port}`, mac, live: true, enabled: true, speed_kbps: 10_000_000 };
        this.tables.port.set(object.id, object);
      }
    });
    for (const { a, b, kbps } of network.cables) {
      const latency_us = 200 + Math.round(this.random() * 4000);
      for (const id of [`${a}-${b}`, `${b}-${a}`]) {
        this.tables.link.set(id, { kind: 'link', id, found: 'direct', state: 'up', capacity_kbps: kbps, latency_us, since_ms: sinceMs });
      }
    }
    for (const { mac, address, at } of network.hosts) {
      this.tables.host.set(mac, { kind: 'host', id: mac, addresses: [address], at, since_ms: sinceMs, annotations: {} });
    }
    this.base = new Map([...this.tables.port.keys()].map((port) => [port, 0.02 + 0.8 * this.random() ** 2.5]));
    for (const [port, load] of this.base) this.count(port, load);
  }

  put(object) {
    this.version += 1;
    this.tables[object.kind].set(object.id, object);
    this.tell({ event: 'put', version: this.version, key: `${object.kind}/${object.id}`, object });
  }

  remove(kind, id) {
    if (!this.tables[kind].delete(id)) return;
    this.version += 1;
    this.tell({ event: 'remove', version: this.version, key: `${kind}/${id}` });
  }

  tell(event) {
    this.events.push({ at_ms: Date.now(), ...event });
    if (this.events.length > 1000) this.events.shift();
    this.emit(event);
  }

  // --- Failures ---

  setLink(id, state) {
    for (const one of [id, reverse(id)]) {
      const link = this.tables.link.get(one);
      if (!link || link.state === state) continue;
      const port = this.tables.port.get(one.split('-')[0]);
      this.put({ ...port, live: state === 'up' });
      this.put({ ...link, state, since_ms: Date.now() });
    }
    this.repair();
  }

  setSwitch(id, state) {
    const sw = this.tables.switch.get(id);
    if (!sw || sw.state === state) return;
    this.put({ ...sw, state, since_ms: Date.now() });
    for (const link of this.tables.link.values()) {
      if (switchOf(link.id.split('-')[0]) === id) this.setLink(link.id, state);
    }
  }

  // --- Paths and intents ---

  placeOf(end) {
    return end.includes('/') ? switchOf(end) : this.tables.host.has(end) ? switchOf(this.tables.host.get(end).at) : null;
  }

  /** The links of a shortest path that is up; nothing if there is none. */
  route(from, to, avoid = new Set()) {
    const [start, goal] = [this.placeOf(from), this.placeOf(to)];
    const outgoing = new Map();
    for (const link of this.tables.link.values()) {
      if (link.state !== 'up' || avoid.has(link.id)) continue;
      const at = switchOf(link.id.split('-')[0]);
      if (!outgoing.has(at)) outgoing.set(at, []);
      outgoing.get(at).push(link.id);
    }
    const cameBy = new Map([[start, null]]);
    const queue = [start];
    for (const sw of queue) {
      if (sw === goal) break;
      for (const id of outgoing.get(sw) ?? []) {
        const next = switchOf(id.split('-')[1]);
        if (cameBy.has(next)) continue;
        cameBy.set(next, id);
        queue.push(next);
      }
    }
    if (!cameBy.has(goal)) return null;
    const links = [];
    for (let sw = goal; cameBy.get(sw); sw = switchOf(cameBy.get(sw).split('-')[0])) links.unshift(cameBy.get(sw));
    return links;
  }

  addIntent(body, owner) {
    const id = String(this.nextIntent++);
    this.put({ kind: 'intent', id, ...body, state: 'installing', owner, priority: body.priority ?? 20000, since_ms: Date.now() });
    setTimeout(() => this.install(id), 150);
    return this.tables.intent.get(id);
  }

  measured(links) {
    return { links, latency_us: links.reduce((sum, link) => sum + this.tables.link.get(link).latency_us, 0) };
  }

  install(id) {
    const intent = this.tables.intent.get(id);
    if (!intent) return;
    const [from, to] = intent.one ? [intent.one, intent.two] : [intent.from, intent.to];
    const working = this.route(from, to);
    const before = this.tables.path.get(`${id}.0`);
    if (!working) {
      this.remove('path', `${id}.0`);
      this.remove('path', `${id}.0b`);
      return this.put({ ...intent, state: 'waiting', reason: 'No path is up between the two ends.', since_ms: Date.now() });
    }
    if (before?.links.join() !== working.join()) this.put({ kind: 'path', id: `${id}.0`, intent: id, ...this.measured(working) });
    if (intent.protection === 'protected') {
      const backup = this.route(from, to, new Set(working.flatMap((link) => [link, reverse(link)])));
      if (backup) this.put({ kind: 'path', id: `${id}.0b`, intent: id, ...this.measured(backup) });
      else this.remove('path', `${id}.0b`);
    }
    const { reason: _, ...rest } = intent;
    if (intent.state !== 'installed') this.put({ ...rest, state: 'installed', since_ms: Date.now() });
  }

  /** After a failure or repair: intents whose path is gone, or which had none. */
  repair() {
    for (const intent of [...this.tables.intent.values()]) {
      const path = this.tables.path.get(`${intent.id}.0`);
      const whole = path?.links.every((link) => this.tables.link.get(link)?.state === 'up');
      if (path && whole) continue;
      this.put({ ...intent, state: path ? 'rerouting' : 'installing', reason: path ? 'A link of its path failed.' : undefined, since_ms: Date.now() });
      setTimeout(() => this.install(intent.id), 120);
    }
  }

  removeIntent(id) {
    this.remove('path', `${id}.0`);
    this.remove('path', `${id}.0b`);
    this.remove('intent', id);
  }

  // --- Traffic ---

  count(port, load) {
    const capacity = this.capacityOf(port);
    const before = this.counters.get(port);
    const bps = Math.round(load * capacity);
    const bytes = (before?.tx_bytes ?? 0) + bps / 8;
    this.counters.set(port, {
      id: port, at_ms: Date.now(), rx_packets: bytes / 700, tx_packets: bytes / 700, rx_bytes: bytes, tx_bytes: bytes, rx_dropped: 0, tx_dropped: 0,
      rx_errors: 0, tx_errors: 0, rx_bps: Math.round(bps * 0.7), tx_bps: bps,
    });
  }

  capacityOf(port) {
    this.capacities ??= new Map([...this.tables.link.values()].map((link) => [link.id.split('-')[0], link.capacity_kbps * 1000]));
    return this.capacities.get(port) ?? 1e9;
  }

  /** New counters of one switch: around the base of each port, with a wave through all. */
  measure(id) {
    const items = [];
    const wave = 1 + 0.25 * Math.sin(Date.now() / 9000);
    for (let n = 1; this.counters.has(`${id}/${n}`); n += 1) {
      const port = `${id}/${n}`;
      this.count(port, Math.min(0.98, this.base.get(port) * wave * (0.9 + this.random() * 0.2)));
      items.push(this.counters.get(port));
    }
    this.emit({ event: 'counters', items });
  }

  /** A packet's way, as `burnet explain` would tell it. */
  explain(from, to) {
    const links = this.route(from, to);
    if (!links) return { verdict: 'dropped', reason: 'No rule matches, and the table-miss rule drops the packet.', steps: [this.stepAt(this.placeOf(from), from, null)], links: [] };
    const stops = [this.placeOf(from), ...links.map((link) => switchOf(link.split('-')[1]))];
    const steps = stops.map((sw, i) => this.stepAt(sw, links[i - 1]?.split('-')[1] ?? from, links[i]?.split('-')[0] ?? to));
    return { verdict: 'delivered', reason: `The packet reaches ${to}.`, steps, links };
  }

  stepAt(sw, inPort, out) {
    const port = (place) => (place?.includes('/') ? place.slice(place.lastIndexOf('/') + 1) : null);
    return {
      switch: sw, in_port: port(inPort), table: 0, rule: out ? 'priority 100, eth_dst' : 'table-miss', owner: out ? 'paths' : 'kernel',
      action: out ? `output ${port(out) ?? 'to the host'}` : 'drop', out_port: port(out), packets: Math.round(this.random() * 1e5), intent: null, notes: [],
    };
  }
}
