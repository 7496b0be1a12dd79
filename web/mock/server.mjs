// A stand-in for the service `northbound`: the built page and the REST interface over a network that it plays.
//
//   node mock/server.mjs --size 20|205|2000 [--port 8180] [--seed 1] [--pace 2] [--token SECRET] [--still]
//
// In: command-line options; HTTP; orders of tests at `/mock/…` (fail, heal, switch, cut, away, token). Out: docs/reference/rest.md.
// `--pace` is the number of failures and repairs a minute; `--still` is none, and no counters. It is for developers and tests only.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { networkOf, randomFrom } from './network.mjs';
import { Apps, auditLog, evidence, incidents } from './node.mjs';
import { World } from './world.mjs';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.txt': 'text/plain; charset=utf-8', '.json': 'application/json' };
/** The policy under which northbound serves the page. */
const POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PLURALS = { switches: 'switch', ports: 'port', links: 'link', hosts: 'host', intents: 'intent', paths: 'path' };

class Refused extends Error {
  constructor(status, type, title, detail, field) {
    super(detail);
    this.status = status;
    this.body = { type: `urn:burnet:problem:${type}`, title, status, detail, ...(field ? { field } : {}) };
  }
}

export function start({ size = 20, port = 0, seed = 1, pace = 2, token = '', still = false, dist = DIST } = {}) {
  const streams = new Set();
  const emit = (event) => streams.forEach((client) => client.send(event));
  const world = new World(networkOf(size, seed), seed, emit);
  const state = { world, streams, token, dist, awayUntilMs: 0, apps: new Apps(randomFrom(seed + 2), Date.now() - 3_600_000) };
  const timers = play(state, pace, still);
  const server = createServer((request, response) => {
    if (Date.now() < state.awayUntilMs && !request.url.startsWith('/mock/')) return request.socket.destroy();
    answer(state, request, response).catch((error) => refuse(response, error));
  });
  const close = () => (timers.forEach(clearInterval), streams.forEach((client) => client.end()), server.close(), server.closeAllConnections());
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve({ port: server.address().port, state, close })));
}

function refuse(response, error) {
  const body = error.body ?? { type: 'urn:burnet:problem:bug', title: 'The mock server failed', status: 500, detail: String(error.stack) };
  response.writeHead(body.status, { 'Content-Type': 'application/problem+json' }).end(JSON.stringify(body));
}

/** Counters of some switches at a time, samples of apps, and now and then a failure that heals. */
function play({ world, apps }, pace, still) {
  firstIntents(world);
  if (still) return [];
  const ids = [...world.tables.switch.keys()];
  let next = 0;
  const share = Math.max(1, Math.ceil(ids.length / 20));
  const measure = () => {
    for (let n = 0; n < share; n += 1) world.measure(ids[next++ % ids.length]);
  };
  const fail = () => {
    const links = [...world.tables.link.values()].filter((link) => link.state === 'up');
    const link = links[Math.floor(world.random() * links.length)];
    world.setLink(link.id, 'down');
    setTimeout(() => world.setLink(link.id, 'up'), 12_000 + world.random() * 8000).unref();
  };
  return [setInterval(measure, 100), setInterval(() => apps.sample(Date.now()), 2000), pace > 0 ? setInterval(fail, 60_000 / pace) : undefined];
}

function firstIntents(world) {
  const hosts = [...world.tables.host.keys()];
  if (hosts.length < 8) return;
  const pick = (part) => hosts[Math.floor(part * (hosts.length - 1))];
  [[0, 0.85, 'protected'], [0.25, 0.6, 'restored'], [0.3, 1, 'restored'], [0.1, 0.5, 'protected']].forEach(([a, b, protection], i) => {
    const intent = world.addIntent({ type: 'host_to_host', one: pick(a), two: pick(b), protection }, i === 1 ? 'router' : 'operator');
    world.install(intent.id);
  });
}

async function answer(state, request, response) {
  const url = new URL(request.url, 'http://mock');
  if (url.pathname.startsWith('/mock/')) return order(state, url, response);
  if (!url.pathname.startsWith('/api/v1/')) return file(state.dist, url.pathname, response);
  if (state.token !== '' && request.headers.authorization !== `Bearer ${state.token}`) {
    const known = request.headers.authorization ? 'wrong-token' : 'no-token';
    throw new Refused(401, known, 'No access', known === 'no-token' ? 'Send a token.' : 'This token is not known.');
  }
  const words = decodeURIComponent(url.pathname.slice('/api/v1/'.length)).split('/');
  if (words[0] === 'stream') return stream(state, url, request, response);
  const body = await bodyOf(request);
  const found = resource(state, request.method, words, url.searchParams, body);
  response.writeHead(found === null ? 204 : request.method === 'POST' ? 201 : 200, { 'Content-Type': 'application/json' });
  response.end(found === null ? undefined : JSON.stringify(found));
}

async function bodyOf(request) {
  let text = '';
  for await (const piece of request) text += piece;
  return text === '' ? {} : JSON.parse(text);
}

function resource({ world, apps }, method, [name, ...rest], query, body) {
  const id = rest.join('/');
  if (name === 'intents' && method === 'POST') return addIntent(world, body);
  if (name === 'intents' && method === 'DELETE') return world.removeIntent(id), null;
  if (name === 'apps' && method === 'POST') return orderApp(apps, ...rest);
  if (name in PLURALS) {
    const table = world.tables[PLURALS[name]];
    return id === '' ? page(name, [...table.values()], query) : (table.get(id) ?? missing(id));
  }
  switch (name) {
    case 'node': return { name: 'mock', version: '0.4.0', uptime_ms: Date.now() - world.started + 3_600_000, role: 'operator' };
    case 'apps': return id === '' ? page(name, apps.listed(), query) : (apps.listed().find((app) => app.id === id) ?? missing(id));
    case 'incidents': return id.endsWith('/evidence') ? evidence(id.slice(0, -'/evidence'.length), world.started) ?? gone(id.slice(0, -'/evidence'.length)) : page(name, incidents(world.started), query);
    case 'slices': return slice(id, query);
    case 'audit': return page(name, auditLog(Date.now()), query);
    case 'events': return page(name, world.events, query);
    case 'port-counters': return page(name, [...world.counters.values()], query);
    case 'routes': {
      const links = world.route(query.get('from'), query.get('to'));
      return { items: links ? [{ links, cost: links.length, latency_us: links.length * 900, free_kbps: 9_000_000 }] : [] };
    }
    case 'explain': return world.explain(query.get('from'), query.get('to'));
    default: return missing(name);
  }
}

/** Two slices as in the paper's figure: blue's flow leaves red 2 of 10 Mbit/s. */
function slice(id, query) {
  const one = (id) => ({ kind: 'slice', id, state: 'running', since_ms: 0, restarts: 0, switches: 4, switches_up: 4, connections: 4, connections_up: 4, rules: 6, flows: 1, links_unfit: id === 'red' ? 1 : 0, ...(id === 'red' && { note: 'does not fit: its VNICs can put 3.0M on link s3:1-s1:1, which has 2.0M of 10.0M left' }) });
  const link = 'of:0000000000000003/1-of:0000000000000001/1';
  const [name, what] = id.split('/');
  if (name === '') return page('slices', [one('blue'), one('red')], query);
  if (!['blue', 'red'].includes(name)) return missing(id);
  switch (what) {
    case undefined: return one(name);
    case 'network': return sliceNetwork(name);
    case 'labels': return { items: [{ link, capacity_kbps: 10_000, label_kbps: name === 'red' ? 2_000 : 10_000 }], total: 1, stale: false };
    case 'vnics': return { items: [{ vnic: 'E', promised_bps: 10_000_000, sends_bps: 8_000_000, receives_bps: 0, flows: 1, why_less: 'F receives all that it may' }], total: 1 };
    case 'flows': return { items: [{ from: 'E', to: 'F', links: [link], rules: 2, counts: true, rate_bps: 8_000_000, ...(name === 'red' ? { cap_bps: 4_000_000, measured_bps: 3_900_000, shaped: 'shaped by agent 2' } : {}) }], total: 1 };
    default: return missing(id);
  }
}

/** Spines s1 and s2, leaves s3 and s4. A link of red is down, and another one does not fit. */
function sliceNetwork(slice) {
  const of = (number) => `of:${String(number).padStart(16, '0')}`;
  const switches = [1, 2, 3, 4].map((number) => ({ id: of(number), shown_as: of(number), up: true, ports: [] }));
  const link = (leaf, spine) => ({ id: `${of(leaf)}/${spine}-${of(spine)}/${leaf - 2}`, up: slice !== 'red' || leaf !== 4 || spine !== 2 });
  const hop = `${of(3)}/1-${of(1)}/1`;
  const unfit = slice === 'red' ? { does_not_fit: `hop ${hop} lacks 1.0M: its VNICs can put 3.0M there, and 2.0M of 10.0M is left` } : {};
  return { slice, switches, links: [{ ...link(3, 1), ...unfit }, link(3, 2), link(4, 1), link(4, 2)], vnics: { E: `${of(3)}/3`, F: `${of(4)}/3` } };
}

function orderApp(apps, id, verb) {
  const app = apps.find(id) ?? missing(id);
  Object.assign(app, { state: verb === 'stop' ? 'stopped' : 'running', since_ms: Date.now(), pid: 9000 });
  return null;
}

function addIntent(world, body) {
  const members = body.one ? ['one', 'two'] : ['from', 'to'];
  const ends = members.map((member) => body[member]);
  const unknown = ends.findIndex((end) => world.placeOf(String(end)) === null);
  if (unknown !== -1) throw new Refused(422, 'bad-field', 'A field is wrong', `${ends[unknown]} is no known host.`, members[unknown]);
  return world.addIntent(body, 'operator');
}

function missing(id) {
  throw new Refused(404, 'not-found', 'There is no such resource', `There is no ${id}.`);
}

/** As the node says it. */
function gone(incident) {
  throw new Refused(404, 'not-found', 'There is no such resource', `the evidence of incident ${incident} cannot be read: the node may have deleted it`);
}

function page(name, all, query) {
  const limit = Number(query.get('limit') ?? 100);
  const from = Number(query.get('after') ?? 0);
  const next = from + limit < all.length ? { next: `/api/v1/${name}?limit=${limit}&after=${from + limit}` } : {};
  return { items: all.slice(from, from + limit), total: all.length, ...next };
}

function stream(state, url, request, response) {
  const kinds = new Set((url.searchParams.get('kinds') ?? 'switch,port,link,host,path,intent').split(','));
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  const wanted = (event) => (event.key ? kinds.has(event.key.split('/')[0]) : event.event === 'counters' ? kinds.has('counters') : true);
  const send = (event) => wanted(event) && response.write(`event: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`);
  const client = { send, end: () => response.end() };
  send({ event: 'begin', run: '1', kinds: [...kinds] });
  for (const [kind, table] of Object.entries(state.world.tables)) {
    for (const [id, object] of table) send({ event: 'put', version: state.world.version, key: `${kind}/${id}`, object });
  }
  send({ event: 'complete', version: state.world.version });
  send({ event: 'counters', items: [...state.world.counters.values()] });
  state.streams.add(client);
  request.on('close', () => state.streams.delete(client));
}

/** What tests ask for. */
function order({ world, streams, ...state }, url, response) {
  const id = url.searchParams.get('id');
  switch (url.pathname) {
    case '/mock/fail': world.setLink(id, 'down'); break;
    case '/mock/heal': world.setLink(id, 'up'); break;
    case '/mock/switch': world.setSwitch(id, url.searchParams.get('state')); break;
    case '/mock/cut': streams.forEach((client) => client.end()); break;
    default: return response.writeHead(404).end();
  }
  return response.writeHead(204).end();
}

async function file(dist, path, response) {
  const name = normalize(path === '/' ? '/index.html' : path);
  const bytes = await readFile(join(dist, name)).catch(() => null);
  if (!bytes) return response.writeHead(404).end();
  response.writeHead(200, { 'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream', 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff' });
  response.end(bytes);
}

function optionsOf(words) {
  const value = (name, otherwise) => (words.includes(`--${name}`) ? words[words.indexOf(`--${name}`) + 1] : otherwise);
  return { size: Number(value('size', 20)), port: Number(value('port', 8180)), seed: Number(value('seed', 1)), pace: Number(value('pace', 2)), token: value('token', ''), still: words.includes('--still') };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { port } = await start(optionsOf(process.argv.slice(2)));
  console.log(`The mock server is at http://127.0.0.1:${port}`);
}
