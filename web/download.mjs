// Downloads, decompresses and caches large files.

const CACHE = "keras_onlstm files"; // file names contain a hash of the content

// The bytes of a file { path, packed, bytes }; progress is called with the size of each chunk.
export async function download({ path, bytes }, progress) {
  const url = new URL(path, import.meta.url).href;
  const cache = await openCache();
  let response = await cache?.match(url);
  const isCached = Boolean(response);
  response ??= await fetch(url);
  if (!response.ok) {
    throw new Error(`${path}: the server responded with status ${response.status}.`);
  }
  const packed = await read(response, progress);
  const content = await decompress(packed);
  if (content.length !== bytes) {
    await cache?.delete(url);
    throw new Error(`${path}: expected ${bytes} bytes, got ${content.length}.`);
  }
  // Without enough storage the file is downloaded again on the next visit.
  if (!isCached) await cache?.put(url, new Response(packed)).catch(() => {});
  return content;
}

// On insecure addresses, for example, there is no cache, and files are downloaded every time.
async function openCache() {
  try {
    return await caches.open(CACHE);
  } catch {
    return null;
  }
}

async function read(response, progress) {
  const parts = [];
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    progress(value.length);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// Some servers send .gz files with a content encoding; then the browser has decompressed them.
async function decompress(content) {
  if (content[0] !== 0x1f || content[1] !== 0x8b) return content;
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
