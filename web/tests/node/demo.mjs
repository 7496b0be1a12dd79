// The page in a real browser over a real node: the network of `burnet demo`, in which links fail and heal all the time.
//
// In: the program in BURNET_BINARY, and beside it the laboratory; Debian's Chromium. Out: tests, which share one demo. The page is the one in
// the program. Without the program, the tests are left out. None depends on the machine's speed.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { BINARY, startDemo } from '../demo.mjs';
import { click, drawn, hasFault, isOnRoute, isRed, panel, PATIENCE_MS, placeOf } from '../map.mjs';

const CHROMIUM = process.env.BURNET_CHROMIUM ?? '/usr/bin/chromium';
const SKIP = BINARY === '' ? 'BURNET_BINARY names no burnet; cargo xtask test builds one' : false;
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
/** Madrid has two links, and its host is not the other end of Milan's intent. */
const [MILAN, MADRID] = ['of:0000000000000009', 'of:000000000000000c'];

let browser, demo;
/** At the first test, so that the demo takes nothing of the machine before. */
async function begin() {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  demo ??= await startDemo();
}
after(async () => {
  await browser?.close();
  await demo?.stop();
});

/** A test with an open page of the demo's node. Errors in the console, and requests to other servers, fail it. */
function nodeTest(name, { viewport = DESKTOP, hasTouch = false, colorScheme = 'dark', expected = [] }, body) {
  test(`node: ${name}`, { skip: SKIP }, async () => {
    await begin();
    const context = await browser.newContext({ viewport, hasTouch, colorScheme });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const faults = [];
    page.on('console', (message) => message.type() === 'error' && !expected.some((part) => message.text().includes(part)) && faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('request', (request) => new URL(request.url()).origin !== demo.address && faults.push(`a request to ${request.url()}`));
    try {
      await page.goto(`${demo.address}/`);
      await drawn(page, MADRID);
      await body(page);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  });
}

const api = async (path) => (await fetch(`${demo.address}/api/v1/${path}`)).json();
/** The host at a switch. */
const hostAt = async (id) => (await api(`switches/${id}/hosts`)).items[0];

async function search(page, text) {
  await page.keyboard.press('/');
  await page.keyboard.type(text);
  await page.getByRole('listbox').getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
}

nodeTest('the figures, the map by geography, and an object at each click', {}, async (page) => {
  const figures = page.getByLabel('State of the network');
  assert.match(await figures.innerText(), /Switches\s*22[\s\S]*Hosts\s*22/);
  await page.getByText('Live').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Geography' }).getAttribute('aria-pressed'), 'true');
  const [north, south] = [await placeOf(page, { kind: 'switch', id: 'of:0000000000000016' }), await placeOf(page, { kind: 'switch', id: MADRID })];
  assert.ok(north.y < south.y && north.x > south.x, 'Stockholm is north-east of Madrid');
  await click(page, 'switch', MADRID);
  await panel(page).getByRole('heading', { name: 'Madrid', exact: true }).waitFor();
  const host = await hostAt(MADRID);
  await click(page, 'host', host.id);
  await panel(page).getByRole('heading', { name: host.addresses[0], exact: true }).waitFor();
  const link = (await api(`switches/${MADRID}/links`)).items[0];
  await click(page, 'link', link.id);
  await panel(page).getByRole('heading', { name: /Madrid/ }).first().waitFor();
  await panel(page).getByText('10 Mbit/s').first().waitFor();
});

nodeTest('traffic is shown on the links', {}, async (page) => {
  const traffic = page.getByRole('complementary', { name: 'Overview' });
  await traffic.getByText(/Mbit\/s/).first().waitFor();
});

nodeTest('a protected intent shows both of its paths', {}, async (page) => {
  await search(page, 'Amsterdam');
  const intents = (await api('intents')).items;
  const intent = intents.find(({ protection }) => protection === 'protected');
  await page.evaluate((id) => (location.hash = `#/network/intent/${id}`), intent.id);
  await panel(page).getByText('installed', { exact: true }).first().waitFor();
  await panel(page).getByText(/backup/i).first().waitFor();
});

nodeTest('an intent is drawn with two clicks, its path is shown, and it is withdrawn', {}, async (page) => {
  const [one, two] = [await hostAt(MILAN), await hostAt(MADRID)];
  const known = new Set((await api('intents')).items.map(({ id }) => id));
  await page.keyboard.press('i');
  await page.getByText('Click the first host.').waitFor();
  await click(page, 'host', one.id);
  await page.getByText('Click the second host.').waitFor();
  await click(page, 'host', two.id);
  await panel(page).getByText('installed', { exact: true }).first().waitFor();
  const added = (await api('intents')).items.find(({ id }) => !known.has(id));
  assert.deepEqual([added.type, added.one, added.two, added.owner], ['host_to_host', one.id, two.id, 'northbound']);
  for (const name of ['Milan', 'Madrid']) await panel(page).getByRole('button', { name, exact: true }).first().waitFor();
  await panel(page).getByRole('button', { name: 'Withdraw' }).click();
  await page.getByText(`Intent ${added.id} withdrawn`).first().waitFor();
});

/** Asks again until there is an answer. If none comes, the error names `what`. */
async function eventually(page, what, ask) {
  for (const endMs = Date.now() + PATIENCE_MS; Date.now() < endMs; await page.waitForTimeout(100)) {
    const answer = await ask();
    if (answer) return answer;
  }
  throw new Error(`it did not happen: ${what}`);
}

nodeTest('a link that fails is an alert and turns red, until it heals', {}, async (page) => {
  const alert = page.getByRole('button', { name: /^Link .* is down/ }).first();
  await alert.waitFor();
  // A link may heal before it is looked at. Then the next one that fails is looked at.
  const failed = await eventually(page, 'a failed link is red', async () => {
    for (const { id } of (await api('links?state=down')).items) if (await isRed(page, id)) return id;
    return null;
  });
  await eventually(page, `${failed} is up and not red`, async () => (await api(`links/${failed}`)).state === 'up' && !(await isRed(page, failed)));
  await page.getByText(/is up again/).first().waitFor();
});

/** Draws a trace with two clicks. Returns what the node answered. */
async function trace(page, from, to) {
  await page.keyboard.press('t');
  await click(page, 'host', from);
  const [response] = await Promise.all([page.waitForResponse((response) => response.url().includes('/api/v1/explain?')), click(page, 'host', to)]);
  const answer = await response.json();
  await page.getByRole('complementary', { name: 'Trace' }).getByText(answer.verdict, { exact: true }).waitFor();
  return answer;
}

/** The link whose middle is farthest from the straight lines between these switches, so that none of them crosses it there. */
function farthest(page, links, way) {
  return page.evaluate(
    ({ links, way }) => {
      const at = (kind, id) => globalThis.burnet.placeOf({ kind, id });
      const stops = way.map((id) => at('switch', id));
      const distance = ({ x, y }, from, to) => {
        const [dx, dy] = [to.x - from.x, to.y - from.y];
        const along = Math.max(0, Math.min(1, ((x - from.x) * dx + (y - from.y) * dy) / (dx * dx + dy * dy || 1)));
        return Math.hypot(from.x + along * dx - x, from.y + along * dy - y);
      };
      const away = (id) => Math.min(...stops.slice(1).map((stop, i) => distance(at('link', id), stops[i], stop)));
      return links.reduce((best, id) => (away(id) > away(best) ? id : best));
    },
    { links, way },
  );
}

nodeTest('a packet is traced over the map, along the links that the node reports', {}, async (page) => {
  const intent = (await api('intents?state=installed')).items.find(({ type }) => type === 'host_to_host');
  // While a link fails, the packet may be lost. Then it is traced again.
  const found = await eventually(page, 'the packet arrives', async () => {
    const answer = await trace(page, intent.one, intent.two);
    return answer.verdict === 'delivered' && answer;
  });
  assert.ok(found.links.length > 0 && found.steps.length > found.links.length, `the way has ${found.links.length} links`);
  for (const link of found.links) assert.ok(await isOnRoute(page, link), `${link} is not drawn`);
  assert.equal(await hasFault(page, found.steps.at(-1).switch), false);
  const switches = new Set(found.steps.map((step) => step.switch));
  const steps = page.getByRole('complementary', { name: 'Trace' }).getByRole('listitem');
  assert.equal(await steps.count(), found.steps.length);
  const others = (await api('links?limit=1000')).items.map(({ id }) => id).filter((id) => id.split('-').every((place) => !switches.has(place.split('/')[0])));
  const away = await farthest(page, others, [...switches]);
  assert.equal(await isOnRoute(page, away), false, `${away} is drawn, and the packet does not pass it`);
  await page.keyboard.press('Escape');
  await page.getByRole('complementary', { name: 'Trace' }).waitFor({ state: 'detached' });
  assert.equal(await isOnRoute(page, found.links[0]), false);
});

nodeTest('a traced packet has a red ring at its last switch if it does not arrive', {}, async (page) => {
  const [one, two] = [await hostAt(MILAN), await hostAt(MADRID)];
  const found = await trace(page, one.id, two.id);
  assert.equal(await hasFault(page, found.steps.at(-1).switch), found.verdict !== 'delivered', found.verdict);
});

nodeTest('apps and services are shown with what they use', {}, async (page) => {
  await page.keyboard.press('4');
  for (const name of ['forwarding', 'paths', 'discovery']) await page.getByRole('button', { name: new RegExp(`^${name} running`) }).waitFor();
  await page.getByRole('button', { name: /^paths running/ }).click();
  await panel(page).getByText(/hard limit/).first().waitFor();
});

nodeTest('the keyboard reaches switches, views and the help', {}, async (page) => {
  await search(page, 'vienna');
  await panel(page).getByRole('heading', { name: 'Vienna', exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('application').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'Selected switch' }).waitFor();
  await page.keyboard.press('2');
  await page.getByRole('table', { name: 'Switches' }).getByText('Budapest').first().waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
});

nodeTest('a phone in light colours shows all views', { viewport: PHONE, hasTouch: true, colorScheme: 'light' }, async (page) => {
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
  for (const view of ['Inventory', 'Intents', 'Apps', 'Incidents', 'Audit', 'Network']) {
    await page.getByRole('navigation').getByRole('button', { name: view }).click();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view} is ${wide} pixels too wide`);
  }
  const place = await placeOf(page, { kind: 'switch', id: MADRID });
  await page.touchscreen.tap(place.x, place.y);
  await panel(page).getByRole('heading', { name: 'Madrid', exact: true }).waitFor();
});
