// What an exported file says of itself. ONNX Runtime's JavaScript does not hand that on.

const KEY = "keras_onlstm";

// The fields of a Protocol Buffers message whose values are bytes: pairs of number and Uint8Array.
function* fields(bytes) {
  let place = 0;
  function varint() {
    for (let value = 0, factor = 1; place < bytes.length; factor *= 128) {
      const byte = bytes[place++];
      value += (byte & 127) * factor; // exact below 2^53, and no shift beyond 32 bits
      if (byte < 128) return value;
    }
    throw new RangeError("it ends inside a number");
  }
  while (place < bytes.length) {
    const tag = varint();
    const [number, type] = [Math.floor(tag / 8), tag % 8];
    if (type === 0) varint();
    else if (type === 1) place += 8;
    else if (type === 5) place += 4;
    else if (type === 2) {
      const length = varint();
      yield [number, bytes.subarray(place, place + length)];
      place += length;
    } else throw new RangeError(`a field of type ${type}`);
    if (place > bytes.length) throw new RangeError("it ends inside a field");
  }
}

// The metadata are in field 14 of the model, entries with a key, field 1, and a value, field 2.
export function readMetadata(bytes) {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  for (const [number, entry] of fields(bytes)) {
    if (number !== 14) continue;
    const { 1: key, 2: value } = Object.fromEntries(fields(entry));
    if (key && value && utf8.decode(key) === KEY) return JSON.parse(utf8.decode(value));
  }
  throw new Error(`no metadata ${KEY}`);
}
