// Takes the picture of the docs: the page over the network of `burnet demo`, while a link is down and a protected intent is selected.
//
//   BURNET_BINARY=target/debug/burnet node build/picture.mjs [FILE]
//
// Out: docs/pictures/web-page.png, or FILE.

import { chromium } from 'playwright-core';
import { fileURLToPath } from 'node:url';
import { startDemo } from '../tests/demo.mjs';
import { drawn } from '../tests/map.mjs';

const FILE = process.argv[2] ?? fileURLToPath(new URL('../../docs/pictures/web-page.png', import.meta.url));
const VIEW = { width: 1200, height: 740 };
const [BUDAPEST, SETTLED_MS, PATIENCE_MS] = ['of:0000000000000001', 1500, 120_000];

const demo = await startDemo();
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: VIEW, colorScheme: 'dark' });
  await page.goto(`${demo.address}/`);
  await drawn(page, BUDAPEST);
  const { items } = await (await fetch(`${demo.address}/api/v1/intents`)).json();
  const intent = items.find(({ protection }) => protection === 'protected');
  await page.evaluate((id) => (location.hash = `#/network/intent/${id}`), intent.id);
  await page.getByText('installed', { exact: true }).first().waitFor();
  // The picture shows a failure, and the traffic of all links.
  const figures = page.getByLabel('State of the network');
  await figures.getByText(/[1-9].*bit\/s/).waitFor({ timeout: PATIENCE_MS });
  await figures.getByText(/\d+\s*\/\s*\d+/).first().waitFor({ timeout: PATIENCE_MS });
  await page.waitForTimeout(SETTLED_MS);
  await page.screenshot({ path: FILE });
  console.log(FILE);
} finally {
  await browser.close();
  await demo.stop();
}
