// Keeps the page, so that it works without a network. The models are kept by download.mjs, under
// names that change with what is in them.

importScripts("files.js");

const { version, page, runtime, parsers } = self.SITE;
const OURS = `keras_onlstm page ${self.registration.scope} `;
const PAGE = OURS + version;
const FILES = "keras_onlstm files";

self.addEventListener("install", (event) => event.waitUntil(keep()));
self.addEventListener("activate", (event) => event.waitUntil(tidy()));
self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(self.registration.scope))
    event.respondWith(answer(event.request));
});

async function keep() {
  const cache = await caches.open(PAGE);
  await cache.addAll(page.map((path) => new Request(path, { cache: "no-cache" })));
  await self.skipWaiting();
}

// What belongs to earlier versions of this page goes.
async function tidy() {
  const scope = self.registration.scope;
  for (const name of await caches.keys()) {
    if (name.startsWith(OURS) && name !== PAGE) await caches.delete(name);
  }
  const models = Object.values(parsers).flatMap(({ models }) => models);
  const needed = new Set([runtime, ...models].map(({ path }) => new URL(path, scope).href));
  const files = await caches.open(FILES);
  for (const { url } of await files.keys()) {
    if (url.startsWith(scope) && !needed.has(url)) await files.delete(url);
  }
  await self.clients.claim();
}

async function answer(request) {
  const kept = await (await caches.open(PAGE)).match(request, { ignoreSearch: true });
  return kept ?? fetch(request);
}
