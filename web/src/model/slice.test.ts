// The picture of a slice's network.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linkName, noteHead, picture, portName, withPortNames } from './slice.ts';
import type { SliceNetwork } from './objects.ts';

const of = (number: number) => `of:${String(number).padStart(16, '0')}`;
const network: SliceNetwork = {
  switches: [1, 3, 4].map((number) => ({ id: of(number), shownAs: number === 4 ? of(44) : of(number), up: number !== 4 })),
  links: [{ id: `${of(3)}/1-${of(1)}/1`, up: true }, { id: `${of(4)}/1-${of(1)}/2`, up: false }, { id: `${of(9)}/1-${of(1)}/3`, up: true }].map((link) => ({ ...link, doesNotFit: null })),
  vnics: [['E', `${of(3)}/3`], ['F', `${of(4)}/3`]],
  cut: false,
};

test('slice: each direction of a link has its label near the end where packets enter', () => {
  const labels = [
    { link: `${of(3)}/1-${of(1)}/1`, capacityKbps: 10_000, labelKbps: 2_000 },
    { link: `${of(1)}/1-${of(3)}/1`, capacityKbps: 10_000, labelKbps: 10_000 },
  ];
  const drawn = picture(network, labels);
  const [first, second] = drawn.links;
  assert.equal(drawn.links.length, 2, 'a link to a switch that is not told is left out');
  assert.deepEqual(first!.directions.map(({ text, left }) => [text, left]), [['2 Mbit/s', 0.2], ['10 Mbit/s', 1]]);
  assert.deepEqual(second!.directions, [], 'nobody has told its label');
  const far = (at: { x: number; y: number }, end: { x: number; y: number }) => Math.hypot(at.x - end.x, at.y - end.y);
  for (const { at } of first!.directions) assert(far(at, first!.from) !== far(at, first!.to));
  assert(far(first!.directions[0]!.at, first!.from) < far(first!.directions[0]!.at, first!.to));
});

test('slice: switches have their names, their VNICs and places of their own within the box', () => {
  const { switches, box: [x, y, width, height] } = picture(network, []);
  assert.deepEqual(switches.map(({ name, shownAs, up, vnics }) => [name, shownAs, up, vnics]),
    [['s1', null, true, []], ['s3', null, true, ['E']], ['s4', of(44), false, ['F']]]);
  assert.equal(new Set(switches.map(({ at }) => `${Math.round(at.x)} ${Math.round(at.y)}`)).size, 3);
  for (const { at } of switches) assert(at.x > x && at.x < x + width && at.y > y && at.y < y + height);
  assert(picture({ switches: [], links: [], vnics: [], cut: false }, []).box.every(Number.isFinite));
});

test('slice: ports and links have the words of a slices file', () => {
  assert.equal(portName(`${of(3)}/12`), 's3:12');
  assert.equal(linkName(`${of(3)}/1-${of(1)}/2`), 's3:1-s1:2');
  assert.equal(portName('of:00ab000000000001/7'), 'of:00ab000000000001:7');
  assert.equal(noteHead('does not fit: D asks for 4.0M; the NIC of server 3 has 2.0M: less'), 'does not fit');
  assert.equal(noteHead('waits'), 'waits');
  assert.equal(withPortNames(`hop ${of(3)}/12-${of(1)}/2 lacks 1.0M`), 'hop s3:12-s1:2 lacks 1.0M');
});
