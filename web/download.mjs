// Large files: counted while they come, unpacked, and kept for the next time.

const KEPT = "keras_onlstm files"; // their names change with what is in them

// The bytes of a file { path, packed, bytes }; progress is told of each piece that came.
export async function download({ path, bytes }, progress) {
  const url = new URL(path, import.meta.url).href;
  const cache = await opened();
  let response = await cache?.match(url);
  const known = Boolean(response);
  response ??= await fetch(url);
  if (!response.ok) throw new Error(`${path}: the server says ${response.status}.`);
  const packed = await read(response, progress);
  const content = await unpacked(packed);
  if (content.length !== bytes) {
    await cache?.delete(url);
    throw new Error(`${path}: has ${content.length} bytes in place of ${bytes}.`);
  }
  // Where there is no room it is loaded again the next time.
  if (!known) await cache?.put(url, new Response(packed)).catch(() => {});
  return content;
}

// Where the browser keeps nothing, on insecure addresses say, files are loaded every time.
async function opened() {
  try {
    return await caches.open(KEPT);
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

// Some servers say that .gz is how they send a file; then it is unpacked when it comes.
async function unpacked(content) {
  if (content[0] !== 0x1f || content[1] !== 0x8b) return content;
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
