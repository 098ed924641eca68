// page.mjs PAGES PICTURES: checks the pages in Chromium, in light and dark, wide and narrow. Each page must have no console
// errors, no requests, no violations that axe finds, headings in order, and no more width than the window. Names must be text,
// and the form must decode ids as the server does.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [pages, pictures] = process.argv.slice(2);
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const states = { quiet: 'quiet', busy: 'busy', clock: 'clock', registry: 'node' };

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

// Opens the page of a state, and collects its complaints.
async function open(state, colorScheme, width = 1200) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 1000 }, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => /^(file|data):/.test(request.url()) || complaints.push(request.url()));
  await page.goto(`file://${pages}/${states[state]}.html`);
  return { page, complaints, close: () => context.close() };
}

async function looksRight({ page, complaints }, what) {
  // Folded parts are checked, too.
  await page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 150)).join('\n  ')}`);
  assert.deepEqual(told, [], `axe, ${what}`);
  const levels = await page.$$eval('h1, h2, h3, h4', (all) => all.map((heading) => Number(heading.tagName[1])));
  assert.equal(levels.filter((level) => level === 1).length, 1, what);
  assert.ok(levels.every((level, index) => index === 0 || level <= levels[index - 1] + 1), `headings ${levels}, ${what}`);
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= room, `${wide} wide in ${room}, ${what}`);
  assert.deepEqual(complaints, [], what);
}

// Returns the parts that the form shows, or its refusal.
async function decoded(page, text, layout) {
  await page.fill('#id', text);
  const options = await page.$$eval('#layout option', (all) => all.map((option) => option.textContent));
  await page.selectOption('#layout', { index: options.findIndex((option) => option.startsWith(`${layout}:`)) });
  await page.click('button');
  return page.$eval('#parts', (parts) => parts.querySelector('dl')
    ? Object.fromEntries([...parts.querySelectorAll('dl > div')].map((row) => [...row.children].map((cell) => cell.textContent)))
    : parts.textContent);
}

const micros = (at) => at.replace(/(\.\d+)?Z$/, (_, fraction = '.') => `${fraction.padEnd(7, '0')}Z`);

async function decodes({ page, complaints }) {
  for (const { text, layout, parts } of JSON.parse(readFileSync(`${pages}/known.json`, 'utf8'))) {
    const found = await decoded(page, text, layout);
    // The server tells no more of a UUID than what is compared.
    const told = Object.fromEntries(Object.keys(parts).map((name) => [name, found[name]]));
    assert.deepEqual({ ...told, timestamp: micros(told.timestamp) }, { ...parts, timestamp: micros(parts.timestamp) },
      `${text} in ${layout}`);
  }
  assert.equal((await decoded(page, '1541815603606036480', 'yitter')).timestamp, 'about the year 13948');
  assert.equal(await decoded(page, '-1', 'twitter'), 'An id is not negative.');
  assert.equal(await decoded(page, '9223372036854775807', 'javascript'), 'The id has more bits than the layout.');
  assert.match(await decoded(page, 'f47ac10b-58cc-4372-a567-0e02b2c3d479', 'twitter'), /not of version 7/);
  assert.match(await decoded(page, '<b>1</b>', 'twitter'), /neither an id/);
  assert.deepEqual(complaints, []);
}

async function showsNamesAsText({ page }) {
  const text = await page.evaluate(() => document.body.textContent);
  for (const name of ['<script>document.title = "hit"</script>', '"><img src=x onerror="document.title=1">',
    '\'><svg onload=alert(1)>', '&lt;b&gt; &amp;', '</script></style><h1>', '<!-- ', '<'.repeat(128),
    '\u{1F600}'.repeat(63), '\u05E9\u05DC\u05D5\u05DD 1', 'user\\u{202e}gnp.exe', '<b>web</b>']) {
    assert.ok(text.includes(name), `${name} is not on the page as text`);
  }
  assert.match(await page.title(), /^busy, 127\.0\.0\.1:\d+ - snowflake_ids$/);
  assert.equal(await page.$$eval('img, iframe, object, [onload], [onerror], b', (all) => all.length), 0);
  assert.equal(await page.$$eval('script', (all) => all.length), 2);
}

for (const state of Object.keys(states)) {
  for (const scheme of ['light', 'dark']) {
    for (const width of [1200, 400, 360]) {
      const opened = await open(state, scheme, width);
      await looksRight(opened, `${state}, ${scheme}, ${width}`);
      await opened.close();
    }
  }
  const opened = await open(state, state === 'busy' ? 'dark' : 'light');
  await opened.page.setViewportSize({ width: 1200, height: 1560 });
  await opened.page.screenshot({ path: `${pictures}/status_${state}.png` });
  if (state === 'busy') {
    await opened.page.setViewportSize({ width: 400, height: 1560 });
    await opened.page.screenshot({ path: `${pictures}/status_${state}_narrow.png` });
  }
  await opened.close();
}
const busy = await open('busy', 'light');
await busy.page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
await showsNamesAsText(busy);
await decodes(busy);
await busy.close();
await browser.close();
console.log('four states in light and dark, wide and narrow: no errors, no violations, names are text, ids are taken apart');
