// The reducer, against a plain map as the oracle.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom } from '../../tests/random.ts';
import { CHANGES_MAX, describe, emptyModel, reduce, type Model, type StreamEvent } from './model.ts';
import type { Host, Intent, Link, Port, Switch, ViewObject } from './objects.ts';

const sw = (number: number, state: 'up' | 'down' = 'up'): Switch => ({
  kind: 'switch', id: `of:${number}`, state, openflow: '1.3', nTables: 1, nBuffers: 0, description: {}, sinceMs: 0, annotations: {},
});
const host = (number: number, at: string): Host => ({ kind: 'host', id: `h${number}`, addresses: [], at, sinceMs: 0, configured: false, annotations: {} });
const put = (object: ViewObject): StreamEvent => ({ event: 'put', object, atMs: 1 });
const snapshot = (...objects: ViewObject[]): StreamEvent[] => [{ event: 'begin' }, ...objects.map(put), { event: 'complete' }];

test('model: a batch gives what its events give one by one, for random events', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = randomFrom(seed);
    const oracle = new Map<string, ViewObject>();
    let pending: Map<string, ViewObject> | null = null;
    let whole = emptyModel();
    let single = emptyModel();
    for (let round = 0; round < 8; round += 1) {
      const batch: StreamEvent[] = [];
      for (let i = 0; i < 12; i += 1) {
        const dice = random();
        const target = pending ?? oracle;
        const object = random() < 0.5 ? sw(Math.floor(random() * 6), random() < 0.5 ? 'up' : 'down') : host(Math.floor(random() * 6), `of:${Math.floor(random() * 3)}/1`);
        const key = `${object.kind}/${object.id}`;
        if (dice < 0.06) {
          batch.push({ event: 'begin' });
          pending = new Map();
        } else if (dice < 0.16 && pending) {
          batch.push({ event: 'complete' });
          oracle.clear();
          pending.forEach((value, name) => oracle.set(name, value));
          pending = null;
        } else if (dice < 0.35) {
          batch.push({ event: 'remove', key, atMs: 1 });
          target.delete(key);
        } else {
          batch.push(put(object));
          target.set(key, object);
        }
      }
      whole = reduce(whole, batch);
      for (const event of batch) single = reduce(single, [event]);
      const shown = [...whole.switches.values(), ...whole.hosts.values()].map((object) => `${object.kind}/${object.id}=${JSON.stringify(object)}`).sort();
      assert.deepEqual(shown, [...oracle].map(([key, object]) => `${key}=${JSON.stringify(object)}`).sort(), `seed ${seed}`);
      assert.deepEqual(single, whole, `seed ${seed}`);
    }
  }
});

test('model: an earlier model stays as it was', () => {
  const before = reduce(emptyModel(), snapshot(sw(1)));
  const copy = structuredClone(before);
  reduce(before, [put(sw(2)), { event: 'remove', key: 'switch/of:1', atMs: 1 }, { event: 'begin' }, put(sw(3))]);
  assert.deepEqual(before, copy);
});

test('model: a table that nothing touched is the same object', () => {
  const before = reduce(emptyModel(), snapshot(sw(1), host(1, 'of:1/1')));
  const after = reduce(before, [put(sw(2))]);
  assert.equal(after.hosts, before.hosts);
  assert.notEqual(after.switches, before.switches);
});

test('model: half a snapshot is not shown', () => {
  const before = reduce(emptyModel(), snapshot(sw(1), sw(2)));
  const during = reduce(before, [{ event: 'begin' }, put(sw(3))]);
  assert.deepEqual([...during.switches.keys()], ['of:1', 'of:2']);
  assert.equal(during.synced, false);
  const after = reduce(during, [{ event: 'complete' }]);
  assert.deepEqual([...after.switches.keys()], ['of:3']);
});

test('model: a snapshot is no news, and a change is', () => {
  const model = reduce(emptyModel(), snapshot(sw(1)));
  assert.deepEqual(model.changes, []);
  const after = reduce(model, [put(sw(1, 'down')), put(sw(1, 'up')), { event: 'remove', key: 'switch/of:1', atMs: 2 }]);
  assert.deepEqual(after.changes.map((change) => change.text), ['disconnected', 'connected again', 'removed']);
});

test('model: the list of changes is bounded', () => {
  let model: Model = reduce(emptyModel(), snapshot(sw(1)));
  for (let i = 0; i < CHANGES_MAX + 10; i += 1) model = reduce(model, [put(sw(1, i % 2 ? 'up' : 'down'))]);
  assert.equal(model.changes.length, CHANGES_MAX);
});

test('model: the total of the traffic is the sum of the counters', () => {
  const random = randomFrom(7);
  let model = emptyModel();
  for (let i = 0; i < 50; i += 1) {
    const items = [1, 2, 3].map((port) => ({ id: `of:1/${Math.floor(random() * 5) + port}`, atMs: i, rxBps: 0, txBps: Math.floor(random() * 1e9), errors: 0, dropped: 0 }));
    model = reduce(model, [{ event: 'counters', items, atMs: i * 1000 }]);
    const sum = [...model.counters.values()].reduce((total, { txBps }) => total + txBps, 0);
    assert.equal(model.totalBps, sum);
  }
});

test('model: what happened to an object is told in words', () => {
  const check = (before: ViewObject | undefined, after: ViewObject, expected: string | null) => assert.equal(describe(before, after)?.text ?? null, expected);
  const link = (state: 'up' | 'down'): Link => ({ kind: 'link', id: 'a/1-b/1', from: 'a/1', to: 'b/1', found: 'direct', state, capacityKbps: 0, latencyUs: null, sinceMs: 0 });
  const port = (live: boolean): Port => ({ kind: 'port', id: 'a/1', name: '', mac: '', live, enabled: true, speedKbps: 0 });
  const intent = (state: string, reason: string | null): Intent => ({
    kind: 'intent', id: '1', name: '', type: 'host_to_host', ends: [], state, reason, owner: '', priority: null, protection: null, bandwidthKbps: null, sinceMs: 0,
  });
  check(link('up'), link('up'), null);
  check(link('up'), link('down'), 'failed');
  check(link('down'), link('up'), 'is up again');
  check(undefined, link('up'), 'found');
  check(port(true), port(false), 'lost its signal');
  check(undefined, port(false), null);
  check(host(1, 'a/1'), host(1, 'b/2'), 'moved to b/2');
  check(undefined, intent('waiting', 'two: unknown'), 'waiting: two: unknown');
});
