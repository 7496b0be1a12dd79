// Numbers, times, addresses and names as the operator reads them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, parseAddress } from './address.ts';
import { emptyModel, reduce } from './model/model.ts';
import { search } from './model/search.ts';
import { shortId } from './model/topology.ts';
import { age, bitrate, bytes, latency } from './text.ts';

test('text: numbers have the unit that fits', () => {
  const check = (shown: string, expected: string) => assert.equal(shown, expected);
  check(bitrate(0), '0 bit/s');
  check(bitrate(999), '999 bit/s');
  check(bitrate(1500), '1.5 kbit/s');
  check(bitrate(10e9), '10 Gbit/s');
  check(bitrate(412.6e9), '413 Gbit/s');
  check(bytes(512), '512 B');
  check(bytes(2048), '2 KiB');
  check(bytes(18.4 * 1024 * 1024), '18.4 MiB');
  check(latency(40), '40 µs');
  check(latency(10_400), '10.4 ms');
});

test('text: an age is never negative', () => {
  const check = (seconds: number, expected: string) => assert.equal(age(0, seconds * 1000), expected);
  check(-5, '0 s');
  check(59, '59 s');
  check(61, '1 min');
  check(3600, '1 h');
  check(3661, '1 h 1 min');
  check(90_000, '1 d 1 h');
});

test('text: a datapath id is short if it is a small number', () => {
  const check = (id: string, expected: string) => assert.equal(shortId(id), expected);
  check('', '');
  check('of:xyz', 'of:xyz');
  check('of:00000000000000a2', 's162');
  check('of:00001af3c0ffee00', 'of:00001af3c0ffee00');
});

test('address: damaged ones show the network, and others survive', () => {
  for (const damaged of ['', '#', '#/nowhere', '#/network/rule/1', '#/network/switch']) {
    assert.deepEqual(parseAddress(damaged), { view: 'network', selected: null }, damaged);
  }
  const selected = { kind: 'link', id: 'of:0000000000000001/3-of:0000000000000002/1' } as const;
  assert.deepEqual(parseAddress(addressOf('inventory', selected)), { view: 'inventory', selected });
});

test('search: every word counts, and the beginning of a name counts most', () => {
  const named = (id: string, name: string) => ({
    event: 'put' as const, atMs: 0, object: { kind: 'switch' as const, id, state: 'up' as const, openflow: '', nTables: 0, nBuffers: 0, description: {}, sinceMs: 0, annotations: { name } },
  });
  const model = reduce(emptyModel(), [named('of:01', 'Vienna'), named('of:02', 'Old Vienna'), named('of:03', 'Rome')]);
  const check = (typed: string, expected: string[]) => assert.deepEqual(search(model, [], [], typed).map(({ name }) => name), expected, typed);
  check('', []);
  check('  ', []);
  check('paris', []);
  check('vienna rome', []);
  check('vienna', ['Vienna', 'Old Vienna']);
  check('old vi', ['Old Vienna']);
  check('of:03', ['Rome']);
});
