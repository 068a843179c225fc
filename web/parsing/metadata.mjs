// Reads the metadata of an exported file, which ONNX Runtime's JavaScript does not provide.

const KEY = "keras_onlstm";

// The byte fields of a Protocol Buffers message: pairs of field number and Uint8Array.
function* fields(bytes) {
  let position = 0;
  function varint() {
    for (let value = 0, factor = 1; position < bytes.length; factor *= 128) {
      const byte = bytes[position++];
      value += (byte & 127) * factor; // multiplication, because shifts are limited to 32 bits
      if (byte < 128) return value;
    }
    throw new RangeError("the file ends inside a number");
  }
  while (position < bytes.length) {
    const tag = varint();
    const [number, type] = [Math.floor(tag / 8), tag % 8];
    if (type === 0) varint();
    else if (type === 1) position += 8;
    else if (type === 5) position += 4;
    else if (type === 2) {
      const length = varint();
      yield [number, bytes.subarray(position, position + length)];
      position += length;
    } else throw new RangeError(`unexpected field of type ${type}`);
    if (position > bytes.length) throw new RangeError("the file ends inside a field");
  }
}

// Field 14 of a model contains metadata entries with a key (field 1) and a value (field 2).
export function readMetadata(bytes) {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  for (const [number, entry] of fields(bytes)) {
    if (number !== 14) continue;
    const { 1: key, 2: value } = Object.fromEntries(fields(entry));
    if (key && value && utf8.decode(key) === KEY) return JSON.parse(utf8.decode(value));
  }
  throw new Error(`metadata ${KEY} is missing`);
}
