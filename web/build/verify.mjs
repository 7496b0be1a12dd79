// Proves that the built page in `dist` is what the sources give: builds it elsewhere and compares each byte.
//
// In: the sources, `dist`. Out: exit code 0 if they are the same, else 1 and the names of the files that differ. It changes nothing in `dist`.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';

function filesOf(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => statSync(join(folder, name)).isFile());
  return new Map(names.map((name) => [name, readFileSync(join(folder, name))]));
}

const folder = mkdtempSync(join(tmpdir(), 'burnet-web-'));
try {
  await build({ logLevel: 'warn', build: { outDir: folder, emptyOutDir: true } });
  const [built, kept] = [filesOf(folder), filesOf('dist')];
  const differs = [...new Set([...built.keys(), ...kept.keys()])].sort().filter((name) => !built.has(name) || !kept.has(name) || !built.get(name).equals(kept.get(name)));
  for (const name of differs) console.log(`web/dist/${name} ${built.has(name) ? (kept.has(name) ? 'is not what the sources give' : 'is missing') : 'comes from no source'}`);
  if (differs.length > 0) console.log('Build it with `npm run build` in the folder web, and add it to the commit.');
  process.exitCode = differs.length > 0 ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true });
}
