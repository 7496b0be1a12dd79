// The part of the page's address behind `#`: which view is shown, and which object is selected.
//
//   #/network/link/of:…/3-of:…/1   <──>   { view: 'network', selected: { kind: 'link', id: 'of:…/3-of:…/1' } }
//
// In: one of the two. Out: the other. An address that is none shows the network.

import type { Selection } from './model/objects.ts';

export const VIEWS = ['network', 'inventory', 'intents', 'apps', 'incidents', 'audit', 'slices'] as const;
export type View = (typeof VIEWS)[number];

const KINDS: readonly Selection['kind'][] = ['switch', 'port', 'link', 'host', 'intent', 'app'];

export function parseAddress(hash: string): { view: View; selected: Selection | null } {
  const [, view, kind, ...id] = hash.replace(/^#/, '').split('/');
  const known = VIEWS.find((name) => name === view) ?? 'network';
  const selectable = KINDS.find((name) => name === kind);
  return { view: known, selected: selectable && id.length > 0 ? { kind: selectable, id: id.join('/') } : null };
}

export function addressOf(view: View, selected: Selection | null): string {
  return selected ? `#/${view}/${selected.kind}/${selected.id}` : `#/${view}`;
}
