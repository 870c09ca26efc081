// Variables and bindings, read and checked. What is wrong is said by name.

import { Objects, Service } from "./region.js";

// What a deployment may set, besides its bindings.
const KNOWN = [
  "WEIR_REGION",
  "WEIR_AGGREGATOR_URL",
  "WEIR_TOKEN",
  "WEIR_OBJECTS",
  "WEIR_SHARDS",
  "WEIR_ORIGIN",
  "WEIR_ORIGIN_WORKER",
  "WEIR_OPERATOR_TOKEN",
  "WEIR_METRICS",
  "WEIR_POP",
  "WEIR_JWT_HEADER",
  "WEIR_EXPLAIN_HEADER",
  "WEIR_TIMEOUT_MS",
  "WEIR_FLUSH_INTERVAL_MS",
  "WEIR_KEYS_MAX",
  "WEIR_UPSTREAM_URL",
  "WEIR_UPSTREAM_TOKEN",
  "WEIR_UPSTREAM_REGION",
];

const SHARDS = 4;
const SHARDS_MAX = 64;
const TIMEOUT_MS = 1_000;
const FLUSH_INTERVAL_MS = 1_000;
// A key takes some 500 bytes while it is leased, and an isolate has 128 MB for
// everything.
const KEYS_MAX = 100_000;

// The name of a region, before the number of an object.
const REGION_NAME = /^[!-~]{1,64}$/;

export class SettingsError extends Error {}

// `colo`: the place this runs in, if Cloudflare says so.
export function settingsOf(env, colo) {
  const unknown = Object.keys(env).find((name) => name.startsWith("WEIR_") && !KNOWN.includes(name));
  if (unknown !== undefined) {
    throw new SettingsError(`${unknown} is not known; known are ${KNOWN.join(", ")}`);
  }
  const region = env.WEIR_REGION ?? (env.WEIR_AGGREGATOR_URL ? "url" : "object");
  if (region !== "url" && region !== "object") {
    throw new SettingsError(`WEIR_REGION is "${region}", must be "object" or "url"`);
  }
  if (region === "object" && env.WEIR_OBJECTS === undefined) {
    throw new SettingsError("WEIR_REGION is object: bind the class Region as WEIR_OBJECTS");
  }
  const timeoutMs = number(env, "WEIR_TIMEOUT_MS", TIMEOUT_MS, 1, 60_000);
  const aggregator = region === "url" ? address("WEIR_AGGREGATOR_URL", env.WEIR_AGGREGATOR_URL) : null;
  const shards = number(env, "WEIR_SHARDS", SHARDS, 1, SHARDS_MAX);
  const token = env.WEIR_TOKEN ?? null;
  const upstream = upstreamOf(env);
  if (region === "url" && upstream !== null) {
    throw new SettingsError("WEIR_UPSTREAM_URL is for a region of objects, and WEIR_REGION is url");
  }
  return {
    region: region === "url" ? new Service(aggregator, token, timeoutMs) : new Objects(shards, timeoutMs, upstream),
    operatorToken: env.WEIR_OPERATOR_TOKEN ?? null,
    forward: origin(env),
    // As edge-filter/src/config.rs reads them.
    config: {
      timeout_ms: timeoutMs,
      flush_interval_ms: number(env, "WEIR_FLUSH_INTERVAL_MS", FLUSH_INTERVAL_MS, 50, 60_000),
      keys_max: number(env, "WEIR_KEYS_MAX", KEYS_MAX, 16, 10_000_000),
      pop: env.WEIR_POP ?? colo ?? undefined,
      explain_header: env.WEIR_EXPLAIN_HEADER,
      attributes: env.WEIR_JWT_HEADER === undefined ? undefined : { jwt: env.WEIR_JWT_HEADER },
    },
  };
}

// The aggregator above a region of objects, one address or several to be tried in
// turn; null if there is none. Each object reads this for itself.
export function upstreamOf(env) {
  if (env.WEIR_UPSTREAM_URL === undefined) {
    const useless = ["WEIR_UPSTREAM_TOKEN", "WEIR_UPSTREAM_REGION"].find((name) => env[name] !== undefined);
    if (useless === undefined) return null;
    throw new SettingsError(`${useless} is set: it needs WEIR_UPSTREAM_URL, too`);
  }
  const region = env.WEIR_UPSTREAM_REGION ?? "";
  if (!REGION_NAME.test(region)) {
    throw new SettingsError(
      `WEIR_UPSTREAM_REGION is "${region}": WEIR_UPSTREAM_URL needs the region's name, 1 to 64 visible ASCII characters`,
    );
  }
  const urls = env.WEIR_UPSTREAM_URL.split(",").map((url) => place("WEIR_UPSTREAM_URL", url.trim()));
  return { urls, token: env.WEIR_UPSTREAM_TOKEN ?? null, region };
}

// Where a request goes that may pass: another Worker, another address, or the
// origin of the zone that this Worker is a route of.
function origin(env) {
  if (env.WEIR_ORIGIN_WORKER !== undefined) return (request, env) => env.WEIR_ORIGIN_WORKER.fetch(request);
  if (env.WEIR_ORIGIN === undefined) return (request) => fetch(request);
  const origin = place("WEIR_ORIGIN", env.WEIR_ORIGIN);
  return (request) => {
    const url = new URL(request.url);
    url.protocol = origin.protocol;
    url.host = origin.host;
    url.port = origin.port;
    return fetch(new Request(url, request));
  };
}

function address(name, text = "") {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") {
    throw new SettingsError(`${name} is "${text}", must be a URL like https://weir.example.com`);
  }
  return url;
}

function place(name, text) {
  const url = address(name, text);
  if (url.pathname !== "/" || url.search !== "" || url.username !== "" || url.password !== "") {
    throw new SettingsError(`${name} must be scheme, host and port alone`);
  }
  return url;
}

function number(env, name, fallback, least, most) {
  if (env[name] === undefined) return fallback;
  const value = Number(env[name]);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new SettingsError(`${name} is "${env[name]}", must be a whole number, ${least} to ${most}`);
  }
  return value;
}
