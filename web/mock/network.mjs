// Networks for the mock server: a WAN of 20 cities, and generated ones of any size.
//
// In: a size and a seed. Out: switches, cables and hosts as plain data; the same input gives the same network. Pure.

/** A small generator of random numbers (mulberry32), so that a seed decides everything. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const CITIES = [
  ['Lisbon', 38.72, -9.14], ['Madrid', 40.42, -3.7], ['Barcelona', 41.39, 2.17], ['Bordeaux', 44.84, -0.58],
  ['Paris', 48.86, 2.35], ['London', 51.51, -0.13], ['Dublin', 53.35, -6.26], ['Amsterdam', 52.37, 4.9],
  ['Brussels', 50.85, 4.35], ['Frankfurt', 50.11, 8.68], ['Hamburg', 53.55, 9.99], ['Copenhagen', 55.68, 12.57],
  ['Stockholm', 59.33, 18.07], ['Berlin', 52.52, 13.4], ['Warsaw', 52.23, 21.01], ['Prague', 50.08, 14.44],
  ['Vienna', 48.21, 16.37], ['Zurich', 47.37, 8.54], ['Milan', 45.46, 9.19], ['Rome', 41.9, 12.5],
];

const CITY_CABLES = [
  [0, 1], [1, 2], [1, 3], [0, 3], [2, 18], [3, 4], [2, 4], [4, 5], [5, 6], [6, 7], [5, 7], [4, 8], [7, 8], [8, 9], [7, 10], [9, 10],
  [10, 11], [11, 12], [10, 13], [12, 14], [13, 14], [13, 15], [9, 15], [15, 16], [14, 16], [9, 17], [4, 17], [17, 18], [18, 19], [16, 19],
  [16, 18], [11, 13],
];

export const dpid = (number) => `of:${number.toString(16).padStart(16, '0')}`;
const hex = (number, digits) => number.toString(16).padStart(digits, '0');
export const macOf = (number) => hex(number, 12).match(/../g).join(':');

/** Switches with `cables` (pairs of numbers from 0) and hosts. */
export function networkOf(size, seed) {
  if (size === 20) return wire(CITIES.map(([name, latitude, longitude]) => ({ name, latitude, longitude })), CITY_CABLES, 1);
  const random = randomFrom(seed);
  const cables = size === 205 ? 414 : Math.round(size * 1.9);
  const points = Array.from({ length: size }, (_, i) => ({ name: `r${i + 1}`, ...scattered(random, size) }));
  return wire(points, joined(points, cables), size > 500 ? 0.2 : 0.5);
}

/** Around some centres, as sites are. */
function scattered(random, size) {
  const centre = Math.floor(random() * Math.max(3, size / 25));
  const angle = centre * 2.39996;
  const far = Math.sqrt(centre) * 10;
  const near = () => (random() + random() + random() - 1.5) * 6;
  return { x: Math.cos(angle) * far + near(), y: Math.sin(angle) * far + near() };
}

/** A tree of short cables that joins all, then the shortest other ones. */
function joined(points, count) {
  const distance = (a, b) => Math.hypot(points[a].x - points[b].x, points[a].y - points[b].y);
  const cables = [];
  const nearest = points.map(() => 0);
  const inTree = points.map((_, i) => i === 0);
  for (let n = 1; n < points.length; n += 1) {
    let best = -1;
    for (let i = 0; i < points.length; i += 1) {
      if (!inTree[i] && (best === -1 || distance(i, nearest[i]) < distance(best, nearest[best]))) best = i;
    }
    inTree[best] = true;
    cables.push([nearest[best], best]);
    for (let i = 0; i < points.length; i += 1) if (!inTree[i] && distance(i, best) < distance(i, nearest[i])) nearest[i] = best;
  }
  const have = new Set(cables.map(([a, b]) => `${Math.min(a, b)} ${Math.max(a, b)}`));
  const others = [];
  points.forEach((_, a) => {
    const near = points.map((_, b) => b).filter((b) => b > a && !have.has(`${a} ${b}`) && distance(a, b) < 8);
    others.push(...near.sort((x, y) => distance(a, x) - distance(a, y)).slice(0, 5).map((b) => [a, b]));
  });
  others.sort((x, y) => distance(...x) - distance(...y));
  return [...cables, ...others.slice(0, count - cables.length)];
}

function wire(points, pairs, hostShare) {
  const nextPort = points.map(() => 1);
  const port = (sw) => `${dpid(sw + 1)}/${nextPort[sw]++}`;
  const cables = pairs.map(([a, b], i) => ({ a: port(a), b: port(b), kbps: i % 7 === 0 ? 40_000_000 : i % 3 === 0 ? 1_000_000 : 10_000_000 }));
  const hosts = [];
  const perSwitch = hostShare >= 1 ? 2 : 1;
  points.forEach((_, i) => {
    if ((i * 7919) % 100 >= hostShare * 100) return;
    for (let n = 0; n < perSwitch; n += 1) {
      const number = hosts.length + 1;
      hosts.push({ mac: macOf(number), address: `10.${number >> 8}.${number & 255}.10`, at: port(i) });
    }
  });
  return { points, cables, hosts, ports: nextPort.map((next) => next - 1) };
}
