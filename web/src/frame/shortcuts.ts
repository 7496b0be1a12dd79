// The keyboard shortcuts: what they do, and how the help shows them.
//
// In: key presses outside of fields. Out: actions of the session, and orders for the map. A key with Ctrl, Alt or Meta is the browser's.

import { VIEWS } from '../address.ts';
import { mapOrders } from '../map/orders.ts';
import { session } from '../session.svelte.ts';

interface Shortcut {
  shown: readonly string[];
  text: string;
}

export const SHORTCUTS: readonly { title: string; keys: readonly Shortcut[] }[] = [
  {
    title: 'Page',
    keys: [
      { shown: ['1', '–', '7'], text: 'Views, from Network to Slices' },
      { shown: ['/'], text: 'Search' },
      { shown: ['a'], text: 'Next alert' },
      { shown: ['d'], text: 'Dark or light colours' },
      { shown: ['?'], text: 'This help' },
      { shown: ['Esc'], text: 'Back' },
    ],
  },
  {
    title: 'Map',
    keys: [
      { shown: ['i'], text: 'Draw an intent' },
      { shown: ['t'], text: 'Trace a packet' },
      { shown: ['f'], text: 'Show the whole network' },
      { shown: ['l'], text: 'Next layout' },
      { shown: ['u'], text: 'Utilisation on or off' },
      { shown: ['+', '−'], text: 'Zoom' },
      { shown: ['←', '↑', '→', '↓'], text: 'Next switch, on the map' },
      { shown: ['Enter'], text: 'Select that switch' },
    ],
  },
];

let nextAlert = 0;

const ACTIONS: Record<string, () => void> = {
  '/': () => (session.overlay = 'search'),
  '?': () => (session.overlay = 'help'),
  a: () => {
    const alert = session.alerts[nextAlert++ % Math.max(1, session.alerts.length)];
    if (alert) session.open(alert.key);
    else session.toast('There is no alert.', 'good');
  },
  d: () => session.switchTheme(),
  i: () => session.draw('intent'),
  t: () => session.draw('trace'),
  f: () => mapOrders.fit(),
  l: () => mapOrders.nextLayout(),
  u: () => mapOrders.toggleLoad(),
  '+': () => mapOrders.zoom(1.3),
  '=': () => mapOrders.zoom(1.3),
  '-': () => mapOrders.zoom(1 / 1.3),
  Escape: () => session.back(),
};

export function onShortcut(event: KeyboardEvent): void {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  const typing = event.target instanceof HTMLElement && event.target.closest('input, select, textarea, dialog') !== null;
  if ((typing && event.key !== 'Escape') || ['locked', 'tenant'].includes(session.connection.state)) return;
  const view = VIEWS[Number(event.key) - 1];
  const action = view ? () => session.show(view) : Object.hasOwn(ACTIONS, event.key) ? ACTIONS[event.key] : undefined;
  if (!action) return;
  event.preventDefault();
  action();
}
