// The way to the region: a service by its address, or Durable Objects.
//
// Both have `sync(env, shard, body)`, which gives the body of the answer or fails.
// Objects can be taught rules: the isolates of a new deployment know them first.

// The largest answer taken, in bytes.
const ANSWER_MAX = 8 << 20;

export class Service {
  // How many objects it is: none.
  shards = 0;
  upstream = null;

  constructor(aggregator, token, timeoutMs) {
    this.url = new URL("/v1/sync", aggregator);
    this.timeoutMs = timeoutMs;
    this.headers = { "content-type": "application/x-protobuf" };
    if (token !== null) this.headers.authorization = `Bearer ${token}`;
  }

  async sync(_env, _shard, body) {
    const answer = await fetch(this.url, {
      method: "POST",
      headers: this.headers,
      body,
      signal: AbortSignal.timeout(this.timeoutMs),
    });
    const length = Number(answer.headers.get("content-length") ?? 0);
    if (answer.status !== 200 || length > ANSWER_MAX) {
      await answer.body?.cancel();
      throw new Error(`the aggregator answered ${answer.status}, ${length} bytes`);
    }
    return new Uint8Array(await answer.arrayBuffer());
  }
}

export class Objects {
  #ids = [];

  // `upstream`: the aggregator above them, as settings.js has it; or null.
  constructor(shards, timeoutMs, upstream) {
    this.shards = shards;
    this.timeoutMs = timeoutMs;
    this.upstream = upstream;
  }

  async sync(env, shard, body) {
    return within(this.timeoutMs, this.object(env, shard).sync(body));
  }

  async teach(env, shard, rules) {
    return within(this.timeoutMs, this.object(env, shard).enforce(rules));
  }

  // A stub belongs to the request that made it; an id does not.
  object(env, shard) {
    this.#ids[shard] ??= env.WEIR_OBJECTS.idFromName(`weir-${shard}`);
    return env.WEIR_OBJECTS.get(this.#ids[shard]);
  }
}

// Fails if `promise` takes longer than this.
export async function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
