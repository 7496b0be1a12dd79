// The stream of changes: server-sent events, read with `fetch` because `EventSource` cannot send a token.
//
//   bytes ──→ Lines ──→ one JSON message each ──→ decodeEvent ──→ on.events(batch), once a frame
//
// In: the address of the stream. Out: batches of events in order, and the state of the connection. If the connection ends, it
// connects again, later after each failure. It never gives up, unless the server asks for a token, or does not permit the stream.

import type { StreamEvent } from '../model/model.ts';
import { openStream, Problem } from './client.ts';
import { decodeEvent } from './decode.ts';

export type Connection =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'lost'; sinceMs: number; why: string; retryAtMs: number }
  | { state: 'locked'; why: string }
  /** The token shows one slice, and no stream of the network. */
  | { state: 'tenant' };

export interface Listener {
  events(batch: StreamEvent[]): void;
  connection(connection: Connection): void;
}

const KINDS = ['switch', 'port', 'link', 'host', 'intent', 'path', 'counters', 'incident'];

/** The service sends something each 15 seconds. A connection that is silent for longer is dead. */
const SILENCE_MS = 40_000;
const RETRY_FIRST_MS = 500;
/** An operator who looks at the page should not wait longer for a node that has restarted. */
const RETRY_MOST_MS = 8_000;

export function follow(on: Listener): { retryNow(): void; close(): void } {
  const batch = new Batch(on.events.bind(on));
  let attempt = new AbortController();
  let closed = false;
  let wake = () => {};

  async function run(): Promise<void> {
    let failures = 0;
    let lostAtMs = 0;
    while (!closed) {
      attempt = new AbortController();
      let why = 'The node closed the connection.';
      try {
        await readStream(attempt, (event) => {
          if (event.event === 'begin') on.connection({ state: 'live' });
          failures = lostAtMs = 0;
          batch.add(event);
        });
      } catch (error) {
        if (error instanceof Problem && error.status === 401) return on.connection({ state: 'locked', why: error.message });
        if (error instanceof Problem && error.status === 403) return on.connection({ state: 'tenant' });
        why = error instanceof Problem ? error.message : 'The node does not answer.';
      }
      if (closed) return;
      lostAtMs ||= Date.now();
      const pause = Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** failures++);
      on.connection({ state: 'lost', sinceMs: lostAtMs, why, retryAtMs: Date.now() + pause });
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        wake = () => (clearTimeout(timer), resolve());
      });
    }
  }

  on.connection({ state: 'connecting' });
  void run();
  return {
    retryNow: () => wake(),
    close() {
      closed = true;
      attempt.abort();
      wake();
    },
  };
}

async function readStream(attempt: AbortController, onEvent: (event: StreamEvent) => void): Promise<void> {
  const reader = (await openStream(KINDS, attempt.signal)).getReader();
  const lines = new Lines();
  const decoder = new TextDecoder();
  for (;;) {
    const silence = setTimeout(() => attempt.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    for (const data of lines.push(decoder.decode(value, { stream: true }))) {
      const event = decodeEvent(parse(data), Date.now());
      if (event) onEvent(event);
    }
  }
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

/** Cuts server-sent events out of pieces of text. Each message of ours is one `data:` line. */
export class Lines {
  private rest = '';

  push(piece: string): string[] {
    const lines = (this.rest + piece).split('\n');
    this.rest = lines.pop() ?? '';
    return lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim());
  }
}

/** Collects events and hands them on once a frame, so that a burst costs one turn of the reducer. */
class Batch {
  private waiting: StreamEvent[] = [];
  private asked = false;

  constructor(private deliver: (batch: StreamEvent[]) => void) {}

  add(event: StreamEvent): void {
    this.waiting.push(event);
    if (this.asked) return;
    this.asked = true;
    // A hidden tab has no frames; a timer keeps its queue short.
    if (document.hidden) setTimeout(() => this.flush(), 250);
    else requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    const batch = this.waiting;
    this.waiting = [];
    this.asked = false;
    this.deliver(batch);
  }
}
