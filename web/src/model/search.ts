// Finds objects by what an operator types: a name, an address, an id.
//
// In: the model, the apps, a text. Out: at most `FOUND_MAX` keys with names, the best first. Pure.

import type { Known } from './model.ts';
import type { App } from './objects.ts';
import type { Cable } from './topology.ts';
import { hostName, intentName, shortId, switchName } from './topology.ts';

export interface Found {
  key: string;
  kind: 'switch' | 'link' | 'host' | 'intent' | 'app';
  name: string;
  detail: string;
}

/** More than this nobody reads: the operator types one more letter instead. */
const FOUND_MAX = 12;

export function search(model: Known, cables: readonly Cable[], apps: readonly App[], typed: string): Found[] {
  const words = typed.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return [];
  const scored: { found: Found; score: number }[] = [];
  for (const found of candidates(model, cables, apps)) {
    const score = scoreOf(found, words);
    if (score > 0) scored.push({ found, score });
  }
  return scored.sort((x, y) => y.score - x.score).slice(0, FOUND_MAX).map(({ found }) => found);
}

/** Every word must be somewhere; the beginning of a name counts most, and of two equal ones the shorter name. */
function scoreOf({ name, detail }: Found, words: readonly string[]): number {
  const [low, more] = [name.toLowerCase(), detail.toLowerCase()];
  let score = 0;
  for (const word of words) {
    const place = low.indexOf(word);
    if (place === -1 && !more.includes(word)) return 0;
    score += place === 0 ? 8 : place > 0 ? 4 : 1;
  }
  return score + 1 / (1 + low.length);
}

function* candidates(model: Known, cables: readonly Cable[], apps: readonly App[]): Generator<Found> {
  for (const sw of model.switches.values()) {
    yield { key: `switch/${sw.id}`, kind: 'switch', name: switchName(sw, sw.id), detail: `${shortId(sw.id)} ${sw.id}` };
  }
  for (const host of model.hosts.values()) {
    const addresses = host.addresses.join(' ');
    yield { key: `host/${host.id}`, kind: 'host', name: hostName(host, host.id), detail: `${addresses} ${host.id}` };
  }
  for (const intent of model.intents.values()) {
    yield { key: `intent/${intent.id}`, kind: 'intent', name: intentName(model, intent), detail: `intent ${intent.id} ${intent.state}` };
  }
  for (const app of apps) yield { key: `app/${app.id}`, kind: 'app', name: app.id, detail: `${app.role} ${app.state}` };
  const name = (id: string) => switchName(model.switches.get(id), id);
  for (const cable of cables) {
    yield { key: `link/${cable.id}`, kind: 'link', name: `${name(cable.a)} – ${name(cable.b)}`, detail: cable.up ? 'link up' : 'link down failed' };
  }
}
