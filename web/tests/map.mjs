// Where objects are on the map of an open page, and clicks on them.
//
// In: a page of Playwright, and the kind and id of an object. Out: points on the screen, once the map stands still.

/** Only there to end a hang. */
export const PATIENCE_MS = 60_000;

/** Waits until the map has given the switches their places and stands still. */
export async function drawn(page, id) {
  await page.waitForFunction((id) => globalThis.burnet?.placeOf({ kind: 'switch', id }) != null, id, { timeout: PATIENCE_MS });
  await still(page, { kind: 'switch', id });
}

export async function still(page, found) {
  await page.waitForFunction(
    async (found) => {
      const place = () => JSON.stringify(globalThis.burnet.placeOf(found));
      const before = place();
      for (let i = 0; i < 6; i += 1) await new Promise(requestAnimationFrame);
      return before === place();
    },
    found,
    { timeout: PATIENCE_MS },
  );
}

export async function placeOf(page, found) {
  await still(page, found);
  const [place, box] = [await page.evaluate((found) => globalThis.burnet.placeOf(found), found), await page.locator('.input canvas').boundingBox()];
  return { x: box.x + place.x, y: box.y + place.y };
}

export async function click(page, kind, id) {
  const { x, y } = await placeOf(page, { kind, id });
  await page.mouse.move(x, y);
  await page.mouse.click(x, y);
}

/** Whether a pixel near the middle of a cable has the colour of a failure. */
export function isRed(page, id) {
  return page.evaluate((id) => {
    const { x, y } = globalThis.burnet.placeOf({ kind: 'link', id });
    const canvas = document.querySelector('.map > canvas');
    const ratio = canvas.width / canvas.clientWidth;
    const { data } = canvas.getContext('2d').getImageData((x - 9) * ratio, (y - 9) * ratio, 18 * ratio, 18 * ratio);
    for (let i = 0; i < data.length; i += 4) if (data[i] > 200 && data[i + 1] < 130 && data[i + 2] < 140 && data[i + 3] > 200) return true;
    return false;
  }, id);
}

export const panel = (page) => page.locator('aside');
