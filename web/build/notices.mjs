// Writes `notices.txt`: the licence texts of all packages of which code or data is in the built page.
//
// In: the modules of the bundle. Out: one asset. An allowed licence that is missing here ends the build.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ALLOWED = ['MIT', 'Apache-2.0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause'];

/** The folder of the package that a module belongs to, if it is a package's. */
function packageOf(id) {
  let folder = dirname(id.split('?')[0].replace(/^\0/, ''));
  while (folder.includes('/node_modules/')) {
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version) return folder;
    folder = dirname(folder);
  }
  return null;
}

function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (!ALLOWED.includes(license)) throw new Error(`${name} has the licence ${license}; allowed: ${ALLOWED.join(', ')}`);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}

export function notices() {
  return {
    name: 'notices',
    apply: 'build',
    generateBundle() {
      const folders = new Set([...this.getModuleIds()].map(packageOf).filter(Boolean));
      // The worker is a bundle of its own, which this hook does not see.
      for (const name of ['d3-force', 'd3-quadtree', 'd3-dispatch', 'd3-timer']) folders.add(join(process.cwd(), 'node_modules', name));
      const texts = [...folders].sort().map(notice);
      this.emitFile({ type: 'asset', fileName: 'notices.txt', source: texts.join(`\n${'-'.repeat(72)}\n\n`) });
    },
  };
}
