// Numbers and times as an operator reads them. Pure.

const UNITS = ['', 'k', 'M', 'G', 'T'] as const;

function scaled(value: number, base: number): [string, string] {
  let [rest, unit] = [value, 0];
  while (rest >= base && unit < UNITS.length - 1) [rest, unit] = [rest / base, unit + 1];
  return [rest >= 100 || unit === 0 ? String(Math.round(rest)) : rest.toFixed(1).replace(/\.0$/, ''), UNITS[unit]!];
}

/** `1.2 Gbit/s` */
export function bitrate(bps: number): string {
  const [number, unit] = scaled(bps, 1000);
  return `${number} ${unit}bit/s`;
}

/** `18.4 MiB` */
export function bytes(count: number): string {
  const [number, unit] = scaled(count, 1024);
  return unit === '' ? `${number} B` : `${number} ${unit === 'k' ? 'K' : unit}iB`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
}

export function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

export function latency(us: number): string {
  return us >= 1000 ? `${(us / 1000).toFixed(1)} ms` : `${us} µs`;
}

/** `3 min`, the age of something. */
export function age(sinceMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.floor((nowMs - sinceMs) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return two(Math.floor(seconds / 3600), 'h', Math.floor((seconds % 3600) / 60), 'min');
  return two(Math.floor(seconds / 86_400), 'd', Math.floor((seconds % 86_400) / 3600), 'h');
}

function two(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** `14:03:11`, with the day if it is not today. */
export function clock(atMs: number, nowMs: number): string {
  if (atMs === 0) return '–';
  return new Date(atMs).toDateString() === new Date(nowMs).toDateString() ? CLOCK.format(atMs) : DAY.format(atMs);
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** The used part and the limits of a resource, in its own unit. */
export function amount(resource: string, value: number): string {
  if (/memory|bytes/.test(resource)) return bytes(value);
  if (/cpu/.test(resource)) return `${Math.round(value * 10) / 10} %`;
  return count(value);
}
