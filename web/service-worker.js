// Caches the page, so that it works offline. The models are cached by download.mjs. Their names
// contain a hash of the content.

importScripts("files.js");

const { version, page, runtime, parsers } = self.SITE;
const PREFIX = `keras_onlstm page ${self.registration.scope} `;
const PAGE = PREFIX + version;
const FILES = "keras_onlstm files";

self.addEventListener("install", (event) => event.waitUntil(cachePage()));
self.addEventListener("activate", (event) => event.waitUntil(removeOld()));
self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(self.registration.scope))
    event.respondWith(answer(event.request));
});

async function cachePage() {
  const cache = await caches.open(PAGE);
  await cache.addAll(page.map((path) => new Request(path, { cache: "no-cache" })));
  await self.skipWaiting();
}

// Removes the files of earlier versions of this page.
async function removeOld() {
  const scope = self.registration.scope;
  for (const name of await caches.keys()) {
    if (name.startsWith(PREFIX) && name !== PAGE) await caches.delete(name);
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
  const cached = await (await caches.open(PAGE)).match(request, { ignoreSearch: true });
  return cached ?? fetch(request);
}
