// The component in node, by what jco makes of it: what the interface promises, seen from
// JavaScript. Arguments: the module that jco wrote, compiled rules (`per-key`: 3 an hour
// per `x-key`, each instance on its own), and the counter of `a` as 48 hexadecimal digits.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, compiled, named] = process.argv.slice(2);
const { source } = await import(pathToFileURL(module).href);
const rules = new Uint8Array(readFileSync(compiled));
const bytes = (text) => new TextEncoder().encode(text);
const now = 1_700_002_800_000_000n;
const settings = { source: 7n, epoch: now, hashSeeds: [1n, 2n, 3n, 4n] };
const request = (key) => ({
  method: bytes("GET"),
  host: bytes("a.example"),
  path: bytes("/"),
  headers: [["x-key", bytes(key)]],
  peer: "192.0.2.7",
  attributes: [],
});
const check = (key) => source.check(request(key), "first", now);

// Before it is configured, everything passes.
assert.equal(check("a").verdict, "pass");
assert.throws(() => source.setRules(rules), /not configured/);

// What is refused says why.
assert.throws(() => source.configure({ ...settings, keysMax: 1 }), /keys-max.*16 to 10000000/);
source.configure(settings);
assert.throws(() => source.setRules(bytes("rules: []")), /weir rules compile/);
assert.equal(source.setRules(rules), 1n);
assert.deepEqual(source.needed().headers, ["x-key"]);

// A counter has the same name everywhere, and is the same by any way to check.
const counter = source.counterOf("per-key", [bytes("a")]);
const hex = [counter.rule, counter.high, counter.low].map((n) => n.toString(16).padStart(16, "0"));
assert.equal(hex.join(""), named);
const allowed = check("a");
assert.deepEqual([allowed.verdict, allowed.rule, allowed.remaining], ["allow", "per-key", 2n]);
const one = source.checkKey(counter.rule, counter.high, counter.low, 1n, "first", now);
assert.equal(one & 3n, 1n);
const many = source.checkBatch([{ counter, cost: 1n }, { counter, cost: 1n }], "first", now);
assert.deepEqual([...many].map((packed) => packed & 3n), [1n, 2n]);
const denied = check("a");
assert.equal(denied.verdict, "deny");
assert.equal(denied.refusal.status, 429);
assert.ok(denied.refusal.headers.some(([name, value]) => name === "retry-after" && value === "3600"));
assert.equal(check("b").verdict, "allow");

// Messages are bytes, and one that was not answered is there again.
const [first] = source.drain(now, true);
assert.ok(first.body instanceof Uint8Array && first.body.length > 0);
assert.deepEqual(source.apply([{ id: first.id, body: undefined }], now), []);
const [again] = source.drain(now + 2_000_000n, true);
const [trouble] = source.apply([{ id: again.id, body: bytes("\xff") }], now);
assert.equal(trouble.id, again.id);
const sum = (name) => source.metrics(now).filter((m) => m.name === name).reduce((n, m) => n + m.value, 0n);
assert.equal(sum("weir_requests_total"), 6n);
assert.equal(sum("weir_sync_total"), 2n);

console.log("conforms");
