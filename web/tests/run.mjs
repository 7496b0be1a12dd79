// Runs all tests of the page: the unit tests beside the sources, and the tests in a browser.
//
// In: `src/**/*.test.ts`, `tests/page/*.mjs`, `tests/node/*.mjs`, the built page in `dist`. Out: a line for each test, in the words of Rust's test harness.

import { build } from 'esbuild';
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'node_modules', '.burnet-tests');

function below(folder, end) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? below(path, end) : path.endsWith(end) ? [path] : [];
  });
}

const units = below('src', '.test.ts').sort();
await build({ entryPoints: units.map((path) => join(ROOT, path)), outdir: OUT, outbase: ROOT, bundle: true, format: 'esm', platform: 'node', target: 'node18', outExtension: { '.js': '.mjs' }, logLevel: 'warning' });
const files = [...units.map((path) => join(OUT, path.replace(/\.ts$/, '.mjs'))), ...['tests/page', 'tests/node'].flatMap((folder) => below(folder, '.mjs').sort()).map((path) => join(ROOT, path))];
mkdirSync(OUT, { recursive: true });
writeFileSync(join(OUT, 'all.mjs'), files.map((path) => `import ${JSON.stringify(path)};\n`).join(''));
const reporter = join(ROOT, 'tests', 'reporter.mjs');
const words = [`--test-reporter=${reporter}`, '--test-reporter-destination=stdout', join(OUT, 'all.mjs')];
spawn(process.execPath, words, { cwd: ROOT, stdio: 'inherit' }).on('exit', (code) => process.exit(code ?? 1));
