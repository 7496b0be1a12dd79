// Requests to the REST interface, with the operator's token.
//
// In: an address and a body. Out: decoded JSON, or a `Problem` with the server's own words. It keeps the token for this tab only
// (session storage), and sends it nowhere but to the server that sent the page.

const TOKEN = 'burnet.token';

/** An answer that is no success, as `application/problem+json` describes it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly field: string | null,
  ) {
    super(detail || title);
  }
}

export function token(): string {
  return sessionStorage.getItem(TOKEN) ?? '';
}

export function setToken(value: string): void {
  if (value === '') sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, value);
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  const bearer = token();
  return bearer === '' ? more : { ...more, Authorization: `Bearer ${bearer}` };
}

export async function request(path: string, options: { method?: string; body?: unknown; signal?: AbortSignal } = {}): Promise<unknown> {
  const { method = 'GET', body, signal } = options;
  const json: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
  const answer = await fetch(`/api/v1/${path}`, {
    method,
    headers: headers({ Accept: 'application/json', ...json }),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  if (!answer.ok) throw await problemOf(answer);
  const text = await answer.text();
  return text === '' ? null : JSON.parse(text);
}

/** All items of a collection, page by page. */
export async function items(path: string, most = ITEMS_MAX): Promise<unknown[]> {
  const found: unknown[] = [];
  let next: string | null = path;
  while (next !== null && found.length < most) {
    const page = (await request(next)) as { items?: unknown[]; next?: string } | null;
    found.push(...(page?.items ?? []));
    next = page?.next?.replace(/^\/api\/v1\//, '') ?? null;
  }
  return found;
}

/** What a list of the page can show. Of a longer collection it shows the first items. */
const ITEMS_MAX = 5000;

export async function openStream(kinds: readonly string[], signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const answer = await fetch(`/api/v1/stream?kinds=${kinds.join(',')}`, { headers: headers({ Accept: 'text/event-stream' }), signal });
  if (!answer.ok || !answer.body) throw await problemOf(answer);
  return answer.body;
}

async function problemOf(answer: Response): Promise<Problem> {
  const body = (await answer.json().catch(() => ({}))) as Record<string, unknown>;
  const word = (name: string) => (typeof body[name] === 'string' ? (body[name] as string) : '');
  return new Problem(answer.status, word('title') || `The server answered ${answer.status}`, word('detail'), word('field') || null);
}

/** A sentence for the operator. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Problem) return error.field ? `${error.message} (${error.field})` : error.message;
  return 'The node does not answer.';
}
