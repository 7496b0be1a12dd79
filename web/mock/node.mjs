// What the mock server tells of the node beside its network: apps, incidents, the audit log.
//
// In: the time and random numbers. Out: objects of the REST interface. Pure but for the samples that it adds up.

const MIB = 1024 * 1024;

const APPS = [
  ['forwarding', 'app', 18, 6], ['proxy-arp', 'app', 6, 1], ['acl', 'app', 7, 1], ['router', 'app', 12, 2], ['dhcp', 'app', 5, 0.4],
  ['qos', 'app', 58, 3], ['discovery', 'service', 14, 4], ['hosts', 'service', 9, 2], ['flows', 'service', 31, 5], ['paths', 'service', 26, 7],
  ['northbound', 'service', 22, 3], ['store', 'service', 11, 1], ['audit', 'service', 6, 0.5], ['resource', 'service', 4, 0.3], ['security', 'service', 4, 0.1],
];

export class Apps {
  constructor(random, startedMs) {
    this.random = random;
    this.all = APPS.map(([id, role, mib, cpu], i) => ({
      kind: 'app', id, role, state: 'running', zone: i + 1, zone_kind: 'process', pid: 4700 + i, restarts: 0, since_ms: startedMs, last_end: null,
      events: 0, dropped: 0, commands: 0, refusals: 0,
      limits: [{ resource: 'memory', soft: 48 * MIB, hard: 64 * MIB }, { resource: 'cpu', soft: 50, hard: 100 }],
      samples: [], base: { mib, cpu },
    }));
    for (let age = 60; age > 0; age -= 1) this.sample(startedMs + 3_600_000 - age * 2000);
    Object.assign(this.find('dhcp'), { state: 'quarantined', restarts: 5, pid: null, last_end: 'It exceeded its memory limit five times in a minute.' });
  }

  find(id) {
    return this.all.find((app) => app.id === id);
  }

  sample(atMs) {
    for (const app of this.all) {
      if (app.state !== 'running') continue;
      const last = app.samples.at(-1);
      const memory = (last?.memory_bytes ?? app.base.mib * MIB) * (1 + (this.random() - 0.5) * 0.03);
      const cpu = Math.max(0.1, app.base.cpu * (0.6 + this.random() * 0.8));
      app.samples = [...app.samples, { unix_ms: atMs, memory_bytes: Math.round(memory), cpu_percent: Math.round(cpu * 10) / 10 }].slice(-60);
      app.events += Math.round(this.random() * 40);
      app.commands += Math.round(this.random() * 12);
    }
  }

  listed() {
    return this.all.map(({ base: _, ...app }) => ({ ...app, links: { self: `/api/v1/apps/${app.id}` } }));
  }
}

export function incidents(nowMs) {
  const [limit, slow] = ['It exceeded its hard limit of memory (64 MiB)', 'It did not read its events for 2 s'];
  return [
    { kind: 'incident', id: '1', source: 'monitor', number: 1, unix_ms: nowMs - 3_000_000, what: 'app_ended', app: 'qos', generation: 3, reason: slow, then: 'restarted after 1 s', finding: { culprit: 'qos', sentence: 'Its handler of packet-ins took 2.1 s' } },
    { kind: 'incident', id: '2', source: 'monitor', number: 2, unix_ms: nowMs - 420_000, what: 'quarantined', app: 'dhcp', generation: 6, reason: limit, then: 'stopped until the operator restarts it', finding: { culprit: 'dhcp', sentence: '' } },
  ];
}

/** The evidence of the first incident. That of the second one is deleted, and the node says so. */
export function evidence(id, nowMs) {
  if (id !== '1') return null;
  const samples = Array.from({ length: 20 }, (_, i) => ({ unix_ms: nowMs - 3_010_000 + i * 500, memory_bytes: (48 + i) * MIB, cpu_percent: 80 }));
  const log = [{ unix_ms: nowMs - 3_005_000, line: 'app qos uses more than a soft limit: memory_bytes 52 MiB of 48 MiB' }];
  return { id, exit_code: 101, core_dumped: false, called: [], last_lines: ['learnt 3 queues', "thread 'main' panicked at src/main.rs:7:9:", 'no room for 4'], log, samples };
}

export function auditLog(nowMs) {
  const rows = [
    ['asked', 'operator', 'qos', undefined, 'restart'], ['refused', 'app', 'forwarding', 'rule.write', 'priority 40000 is outside 0 to 30000'],
    ['app_installed', 'operator', 'qos', undefined, 'qos 1.2.0, signed by key ops'], ['started', 'monitor', 'qos', undefined, 'in a process zone'],
    ['denied', 'app', 'dhcp', 'net.connect', 'connection to 192.0.2.7:443 is not granted'], ['app_granted', 'operator', 'router', 'packet.out', '500 a second'],
    ['quarantined', 'monitor', 'dhcp', undefined, 'after five failures in a minute'], ['switch_refused', 'switch', undefined, undefined, '192.0.2.14: the datapath id belongs to a connected switch'],
  ];
  return Array.from({ length: 48 }, (_, i) => {
    const [what, who, app, capability, text] = rows[i % rows.length];
    return { line: 4000 - i, unix_ms: nowMs - i * 61_000, what, who, app, capability, count: i % 5 === 1 ? 12 : 1, text };
  });
}
