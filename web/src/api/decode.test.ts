// Decoding: damaged input first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom } from '../../tests/random.ts';
import { decodeApp, decodeAudit, decodeCounters, decodeEvent, decodeEvidence, decodeIncident, decodeNode, decodeObject, decodeSlice, decodeSliceFlow, decodeSliceLabel, decodeSliceNetwork, decodeSliceVnic, decodeTrace } from './decode.ts';
import { Lines } from './events.ts';

const MEMBERS = ['details', 'log', 'last_lines', 'kind', 'id', 'state', 'at', 'links', 'addresses', 'one', 'from', 'limits', 'samples', 'steps', 'object', 'event', 'items', 'key', 'annotations', 'constraints'];
const WORDS = ['switch', 'port', 'link', 'host', 'intent', 'path', 'put', 'remove', 'counters', 'incident', 'of:1/1-of:2/1', 'of:1/1', '', '-', 'up'];

/** Any JSON, with members that the decoder looks at. */
function anyJson(random: () => number, depth: number): unknown {
  const dice = random();
  if (dice < 0.35 || depth === 0) return WORDS[Math.floor(random() * WORDS.length)];
  if (dice < 0.5) return [null, true, 1e308 * 10, -1, 0.5][Math.floor(random() * 5)];
  if (dice < 0.6) return Array.from({ length: 3 }, () => anyJson(random, depth - 1));
  const named = random() < 0.5 ? { kind: WORDS[Math.floor(random() * 6)], id: WORDS[10 + Math.floor(random() * 4)] } : {};
  return { ...named, ...Object.fromEntries(Array.from({ length: 6 }, () => [MEMBERS[Math.floor(random() * MEMBERS.length)], anyJson(random, depth - 1)])) };
}

test('decode: no JSON is too damaged', () => {
  const random = randomFrom(3);
  let objects = 0;
  for (let i = 0; i < 20_000; i += 1) {
    const json = anyJson(random, 3);
    for (const decode of [decodeApp, decodeAudit, decodeCounters, decodeEvidence, decodeIncident, decodeNode, decodeSlice, decodeSliceFlow, decodeSliceLabel, decodeSliceNetwork, decodeSliceVnic, decodeTrace]) decode(json);
    const found = decodeObject(json);
    if (found) objects += 1;
    if (found?.kind === 'link') assert.ok(found.from !== '' && found.to !== '');
    const event = decodeEvent(json, 1);
    if (event?.event === 'put') assert.equal(typeof event.object.id, 'string');
  }
  assert.ok(objects > 100, `only ${objects} inputs were objects`);
});

test('decode: what is no object is nothing', () => {
  const check = (json: unknown) => assert.equal(decodeObject(json), null, JSON.stringify(json));
  check(null);
  check([]);
  check({ kind: 'switch' });
  check({ kind: 'rule', id: '1' });
  check({ kind: 'link', id: 'of:1/1' });
  check({ kind: 'host', id: '00:00:00:00:00:01' });
});

test('decode: the objects of the REST interface', () => {
  const check = (json: unknown, expected: object) => {
    const found = decodeObject(json) as object | null;
    for (const [name, value] of Object.entries(expected)) assert.deepEqual((found as Record<string, unknown>)[name], value, name);
  };
  check({ kind: 'switch', id: 'of:0000000000000001', state: 'down', annotations: { name: 'Vienna', bad: 3 } }, { state: 'down', annotations: { name: 'Vienna' } });
  check({ kind: 'link', id: 'of:1/3-of:2/1', state: 'up', capacity_kbps: 5 }, { from: 'of:1/3', to: 'of:2/1', capacityKbps: 5, latencyUs: null });
  check({ kind: 'intent', id: 7, type: 'host_to_host', one: 'a', two: 'b', constraints: { bandwidth_kbps: 9 } }, { id: '7', ends: ['a', 'b'], bandwidthKbps: 9 });
  check({ kind: 'intent', id: 7, type: 'multi_to_single', from: ['a/1', 'b/1'], to: 'c/1' }, { ends: ['a/1', 'b/1', 'c/1'] });
  check({ kind: 'path', id: '7.1b', intent: 7, links: ['a/1-b/1'] }, { intent: '7', leg: 1, role: 'backup' });
});

test('decode: an incident names its app, or what a service found in the network', () => {
  const check = (json: unknown, what: string, why: string) => {
    const found = decodeIncident(json);
    assert.deepEqual([found?.what, found?.why], [what, why]);
  };
  check({ id: '7', unix_ms: 1, source: 'monitor', what: 'app_ended', app: 'qos', reason: 'It leaked' }, 'App qos ended', 'It leaked');
  check({ id: 'hosts-1', unix_ms: 1, source: 'hosts', what: 'host_at_two_ports', app: 'hosts', reason: 'at of:1/1' }, 'Host at two ports', 'at of:1/1');
  check({ unix_ms: 1, what: 'safe_mode', finding: { sentence: 'Two services failed' } }, 'The node is in safe mode', 'Two services failed');
});

test('decode: the evidence of a service has the members that it published', () => {
  const monitor = decodeEvidence({ id: '7', exit_code: 3, signal: null, last_lines: ['a', 7], log: [{ unix_ms: 5, line: 'x' }], samples: [{ unix_ms: 4, memory_bytes: 9 }] });
  assert.deepEqual(monitor, { facts: [['Exit code', '3']], output: ['a'], log: [{ atMs: 5, line: 'x' }], samples: [{ atMs: 4, values: { memory_bytes: 9 } }] });
  const service = decodeEvidence({ id: 'hosts-1', details: { mac: '00:00:00:00:00:01', old_at: ['1/2'] } });
  assert.deepEqual(service.facts, [['mac', '00:00:00:00:00:01'], ['old at', '["1/2"]']]);
});

test('events: lines are cut wherever the pieces end', () => {
  const text = 'event: put\ndata: {"a":1}\n\n: alive\n\ndata: {"b":2}\n\n';
  for (let size = 1; size < text.length; size += 1) {
    const lines = new Lines();
    const found: string[] = [];
    for (let i = 0; i < text.length; i += size) found.push(...lines.push(text.slice(i, i + size)));
    assert.deepEqual(found, ['{"a":1}', '{"b":2}'], `pieces of ${size}`);
  }
});

test('decode: a slice and what it shares', () => {
  assert.equal(decodeSlice({ state: 'running' }), null);
  assert.equal(decodeSliceFlow({ from: 'E' }), null);
  assert.deepEqual(decodeSlice({ id: 'blue', state: 'stopped', switches: 2, switches_up: 1, last_end: 'exit code 1' }), {
    id: 'blue', state: 'stopped', switches: [1, 2], connections: [0, 0], rules: 0, refused: 0, flows: null, lastEnd: 'exit code 1', note: null, unfit: 0,
  });
  assert.equal(decodeSlice({ id: 'red', note: 'does not fit: D' })?.note, 'does not fit: D');
  assert.deepEqual(decodeSliceLabel({ link: 'a-b', capacity_kbps: 10, label_kbps: 2 }), { link: 'a-b', capacityKbps: 10, labelKbps: 2 });
  assert.deepEqual(decodeSliceVnic({ vnic: 'E', promised_bps: 8, sends_bps: 3 }), { name: 'E', promisedBps: 8, sendsBps: 3, receivesBps: 0, whyLess: '' });
  assert.deepEqual(decodeSliceFlow({ from: 'E', to: 'F', links: ['l'], counts: true, rate_bps: 4 }), { from: 'E', to: 'F', links: ['l'], counts: true, rateBps: 4, measuredBps: null, shaped: null, capBps: null });
  const shaped = decodeSliceFlow({ from: 'E', to: 'F', shaped: 'shaped by agent 2', cap_bps: 3, measured_bps: 2 });
  assert.deepEqual([shaped?.shaped, shaped?.capBps, shaped?.measuredBps], ['shaped by agent 2', 3, 2]);
  assert.equal(decodeSliceNetwork({ title: 'no answer' }), null);
  assert.deepEqual(decodeSliceNetwork({ slice: 'blue', switches: [{ id: 'of:1', shown_as: 'of:2', up: true, ports: [] }], links: [{ id: 'of:1/1-of:3/1', up: false }, { id: 'of:1/2-of:3/2', up: true, does_not_fit: 'hop' }, {}], vnics: { E: 'of:1/2' } }), {
    switches: [{ id: 'of:1', shownAs: 'of:2', up: true }], links: [{ id: 'of:1/1-of:3/1', up: false, doesNotFit: null }, { id: 'of:1/2-of:3/2', up: true, doesNotFit: 'hop' }], vnics: [['E', 'of:1/2']], cut: false,
  });
});
