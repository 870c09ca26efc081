// An instance of the WebAssembly module, and bytes to and from it.
//
// The functions that it imports stand here, and no others: see
// edge-filter/src/worker/abi.rs.

import wasm from "./weir.wasm";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
// How much text is handled without asking the platform, in characters.
const SHORT = 64;
const LOG = [null, "log", "warn", "error"];

export class Module {
  // The request at hand, or the response, during a call.
  #request = null;
  #response = null;
  // All of the memory. A view is gone as soon as the memory grows.
  #memory = new Uint8Array();

  // `keep` takes records and chunks of the books; an isolate has none.
  constructor(keep = () => {}) {
    const imports = {
      log: (level, at, length) => console[LOG[level]](`weir: ${this.#text(at, length)}`),
      header: (at, length) => this.#string(this.#header(this.#text(at, length))),
      headers: () => this.#headers(),
      peer: () => this.#string(clientOf(this.#request)),
      attribute: (at, length) => this.#string(this.#attribute(this.#text(at, length))),
      answer: (at, length) => this.#string(this.#response.headers.get(this.#text(at, length))),
      keep: (at, length) => keep(this.#bytes(at, length).slice()),
    };
    this.exports = new WebAssembly.Instance(wasm, { weir: imports }).exports;
  }

  // Room for `length` bytes that go in.
  inbox(length) {
    const at = this.exports.inbox(length);
    return this.#bytes(at, length);
  }

  // Puts bytes in; returns how many.
  put(bytes) {
    this.inbox(bytes.length).set(bytes);
    return bytes.length;
  }

  putText(text) {
    return this.put(encoder.encode(text));
  }

  // A copy of what came out.
  outbox() {
    const { outbox, outbox_len } = this.exports;
    return this.#bytes(outbox(), outbox_len()).slice();
  }

  outboxText() {
    const { outbox, outbox_len } = this.exports;
    return this.#text(outbox(), outbox_len());
  }

  // Runs `act` while this request is at hand.
  during(request, act) {
    this.#request = request;
    try {
      return act(this.exports);
    } finally {
      this.#request = null;
    }
  }

  // Runs `act` while this response is at hand.
  duringResponse(response, act) {
    this.#response = response;
    try {
      return act(this.exports);
    } finally {
      this.#response = null;
    }
  }

  #bytes(at, length) {
    if (this.#memory.length === 0) this.#memory = new Uint8Array(this.exports.memory.buffer);
    return this.#memory.subarray(at, at + length);
  }

  // What is short and plain is read here, and written: asking the platform takes longer.
  #text(at, length) {
    const bytes = this.#bytes(at, length);
    const plain = length <= SHORT && bytes.every((byte) => byte < 0x80);
    return plain ? String.fromCharCode.apply(null, bytes) : decoder.decode(bytes);
  }

  // Puts a string into the inbox; -1 for none.
  #string(text) {
    if (text === null) return -1;
    const bytes = this.inbox(text.length * 3);
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code >= 0x80 || at === SHORT) return encoder.encodeInto(text, bytes).written;
      bytes[at] = code;
    }
    return text.length;
  }

  #header(name) {
    const request = this.#request;
    switch (name) {
      case ":method":
        return request.method;
      case ":path":
        return pathOf(request.url);
      case ":authority":
        return request.headers.get("host") ?? new URL(request.url).host;
      default:
        return request.headers.get(name);
    }
  }

  // What Cloudflare knows of the request, as rules call it.
  #attribute(name) {
    const cf = this.#request.cf;
    const value = name === "ja4" ? cf?.botManagement?.ja4 : cf?.[name];
    return value === undefined || value === null ? null : String(value);
  }

  // The count, all lengths, then names and values, each followed by a NUL: see
  // edge-filter/src/pairs.rs.
  #headers() {
    const parts = [];
    for (const name of [":method", ":path", ":authority"]) parts.push(name, this.#header(name));
    for (const [name, value] of this.#request.headers) parts.push(name, value);
    const head = 4 + 4 * parts.length;
    const room = parts.reduce((room, part) => room + 3 * part.length + 1, head);
    const bytes = this.inbox(room);
    const lengths = new DataView(bytes.buffer, bytes.byteOffset, head);
    lengths.setUint32(0, parts.length / 2, true);
    let at = head;
    parts.forEach((part, n) => {
      const { written } = encoder.encodeInto(part, bytes.subarray(at));
      lengths.setUint32(4 + 4 * n, written, true);
      at += written;
      bytes[at] = 0;
      at += 1;
    });
    return at;
  }
}

// From the first slash after the host on, without a fragment.
function pathOf(url) {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

// Who the client is: Cloudflare's word, where it is Cloudflare that this runs on.
// Elsewhere the header is whatever somebody sent.
function clientOf(request) {
  return request.cf === undefined ? null : request.headers.get("cf-connecting-ip");
}
