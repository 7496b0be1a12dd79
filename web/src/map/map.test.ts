// The camera, the layouts and the search for the object under the pointer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom } from '../../tests/random.ts';
import { fit, toScreen, toWorld, zoom } from './camera.ts';
import { layout, mercator, type Graph, type LayoutKind } from './layout.ts';
import { distanceToSegment } from './scene.ts';

const SIZE = { width: 800, height: 600 };
const INSETS = { top: 100, right: 20, bottom: 40, left: 20 };

function randomGraph(seed: number): Graph {
  const random = randomFrom(seed);
  const count = 1 + Math.floor(random() * 40);
  const pick = () => Math.floor(random() * count);
  return {
    places: Array.from({ length: count }, () => (random() < 0.6 ? { x: random() * 360 - 180, y: random() * 180 - 90 } : null)),
    edges: Array.from({ length: Math.floor(random() * count * 2) }, () => [pick(), pick()] as const),
    edgeSwitch: Array.from({ length: count }, () => random() < 0.5),
    before: Array.from({ length: count }, () => (random() < 0.3 ? { x: random() * 900, y: random() * 900 } : null)),
  };
}

test('layout: each gives a place to each switch, and no two switches the same', () => {
  for (let seed = 1; seed <= 25; seed += 1) {
    const graph = randomGraph(seed);
    for (const kind of ['geography', 'force', 'circle', 'layered'] as LayoutKind[]) {
      const points = layout(kind, graph);
      assert.equal(points.length, graph.places.length);
      const seen = new Set(points.map(({ x, y }) => `${x.toFixed(3)} ${y.toFixed(3)}`));
      assert.ok(points.every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y)), `${kind}, seed ${seed}`);
      assert.equal(seen.size, points.length, `${kind}, seed ${seed}`);
      assert.deepEqual(layout(kind, graph), points, `${kind} is not the same twice, seed ${seed}`);
    }
  }
});

test('layout: switches that the operator knows stay when another one joins', () => {
  const ring = Array.from({ length: 10 }, (_, i) => [i, (i + 1) % 10] as const);
  const none = Array.from({ length: 10 }, () => null);
  const first = layout('force', { places: none, edges: ring, edgeSwitch: none.map(() => false), before: none });
  const more = layout('force', { places: [...none, null], edges: [...ring, [3, 10]], edgeSwitch: [...none.map(() => false), false], before: [...first, null] });
  assert.deepEqual(more.slice(0, 10), first);
});

test('layout: switches at one place are beside each other, and the others stay', () => {
  const [london, paris] = [{ x: -0.13, y: 51.51 }, { x: 2.35, y: 48.85 }];
  const of = (places: Graph['places']) => layout('geography', { places, edges: [[0, 2]], edgeSwitch: places.map(() => false), before: places.map(() => null) });
  const [one, two, third] = of([london, london, paris]);
  assert.ok(Math.hypot(one!.x - two!.x, one!.y - two!.y) > 20);
  assert.deepEqual(third, of([london, paris, paris].map((place, i) => (i === 1 ? null : place)))[2]);
});

test('layout: north is up and east is right', () => {
  const [vienna, rome] = [mercator({ x: 16.4, y: 48.2 }), mercator({ x: 12.5, y: 41.9 })];
  assert.ok(vienna.y < rome.y && vienna.x > rome.x);
});

test('camera: a point of the screen and back is the same point', () => {
  const random = randomFrom(5);
  for (let i = 0; i < 200; i += 1) {
    const camera = { x: random() * 1000, y: random() * 1000, scale: 0.05 + random() * 4 };
    const point = { x: random() * 800, y: random() * 600 };
    const back = toScreen(camera, SIZE, toWorld(camera, SIZE, point));
    assert.ok(Math.hypot(back.x - point.x, back.y - point.y) < 1e-6);
    const zoomed = zoom(camera, SIZE, point, 1.3);
    const [before, after] = [toWorld(camera, SIZE, point), toWorld(zoomed, SIZE, point)];
    assert.ok(Math.hypot(before.x - after.x, before.y - after.y) < 1e-6);
  }
});

test('camera: all that it should fit is within the insets', () => {
  const random = randomFrom(9);
  for (let i = 0; i < 100; i += 1) {
    const points = Array.from({ length: 1 + Math.floor(random() * 9) }, () => ({ x: random() * 5000, y: random() * 5000 }));
    const camera = fit(points, SIZE, INSETS);
    for (const point of points) {
      const { x, y } = toScreen(camera, SIZE, point);
      assert.ok(x > 19.9 && x < 780.1 && y > 99.9 && y < 560.1, `${x} ${y}`);
    }
  }
});

test('scene: the distance to a cable', () => {
  const check = (x: number, y: number, expected: number) => assert.equal(Math.round(distanceToSegment({ x, y }, { x: 0, y: 0 }, { x: 10, y: 0 })), expected);
  check(5, 0, 0);
  check(5, 3, 3);
  check(14, 3, 5);
  check(-3, -4, 5);
});
