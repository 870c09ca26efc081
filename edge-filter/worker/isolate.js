// This isolate's source: which requests wait, what is sent for it, what is due.
//
// An isolate has no life of its own: it runs while a request does, or while one of
// its promises is waited for. So whatever is sent is sent in the name of the
// request at hand, and one request at a time carries the *flusher*, which sends
// what is due when no other request comes to do it.
//
// Requests take turns at every `await`. The module is never entered across one.

import rules from "./rules.bin";
import { Module } from "./module.js";
import { SettingsError } from "./settings.js";

// As in edge-filter/src/worker/isolate.rs.
const TODO = { NOTHING: 0, SEND: 1, RESUME: 2, REFUSE: 3 };
const FATE = { PASS: 0, HOLD: 1, REFUSE: 2 };

// After how many calls another takes its place: where a request is allowed the
// fewest it may make 50, and spend 10 ms.
const FLUSHER_CALLS = 16;
// How much later than it said a flusher may be before another takes its place:
// nobody is told when one is cut off.
const FLUSHER_GRACE_MS = 2_000;
const FLUSHER_STEP_MS = 10;

// Random bytes for a source's name and the seeds of its tables.
const SEED_BYTES = 40;

export class Isolate {
  // How long one request carries the flusher: what it waits for is cut off after 30
  // seconds.
  static flusherMs = 20_000;
  // How long an origin's response is waited for: longer than Cloudflare does.
  static answerMs = 150_000;

  // Whether the module has trapped: it is not to be entered any more.
  broken = false;
  #requests = 0;
  // What each request that waits is told, by its number.
  #held = new Map();
  // When each request went on whose response matters, by its number, the first first.
  #awaited = new Map();
  #flusherUntil = 0;
  #touched = false;
  #failed = false;

  // To be made while a request is at hand: there is no randomness before.
  constructor(settings) {
    this.region = settings.region;
    this.pop = settings.config.pop ?? "";
    this.flushMs = settings.config.flush_interval_ms;
    this.module = new Module();
    const config = new TextEncoder().encode(JSON.stringify(settings.config));
    const bytes = this.module.inbox(SEED_BYTES + config.length + rules.byteLength);
    crypto.getRandomValues(bytes.subarray(0, SEED_BYTES));
    bytes.set(config, SEED_BYTES);
    bytes.set(new Uint8Array(rules), SEED_BYTES + config.length);
    const { isolate_start } = this.module.exports;
    const above = this.region.upstream === null ? 0 : 1;
    if (isolate_start(config.length, rules.byteLength, this.region.shards, above, Date.now()) !== 0) {
      throw new SettingsError(this.module.outboxText());
    }
  }

  // A number for a request.
  number() {
    this.#requests = (this.#requests + 1) >>> 0;
    return this.#requests;
  }

  // Null: the request may pass. Else what it is answered; or a promise of one of
  // the two.
  decide(id, request, env, ctx) {
    return this.#guarded(null, () => {
      const decided = (exports) => exports.isolate_request(id, Date.now());
      const fate = this.module.during(request, decided);
      const refusal = fate === FATE.REFUSE ? JSON.parse(this.module.outboxText()) : null;
      const told = fate === FATE.HOLD ? new Promise((tell) => this.#held.set(id, tell)) : null;
      this.#work(env, ctx);
      this.#touched = true;
      if (Date.now() >= this.#flusherUntil) ctx.waitUntil(this.#flush(env, ctx));
      return told === null ? refusal : this.#wait(id, told, env, ctx);
    });
  }

  // Whether the response to a request is to be shown, or that there was none.
  awaits(id) {
    const awaits = this.#guarded(false, () => this.module.exports.isolate_awaits(id) === 1);
    if (awaits) this.#awaited.set(id, Date.now());
    return awaits;
  }

  // Shows it. Returns headers that it is to have.
  answered(id, response, env, ctx) {
    this.#awaited.delete(id);
    return this.#guarded([], () => {
      const shown = (exports) => exports.isolate_response(id, response.status, Date.now());
      this.module.duringResponse(response, shown);
      const headers = JSON.parse(this.module.outboxText());
      this.#work(env, ctx);
      this.#touched = true;
      return headers;
    });
  }

  forget(id) {
    this.#awaited.delete(id);
    this.#guarded(null, () => this.module.exports.isolate_forget(id));
  }

  // Waits for the region's word, as long as the rules say: this request's own
  // timer ends that, since another's may be gone by then.
  async #wait(id, told, env, ctx) {
    for (;;) {
      const { promise, cancel } = timer(this.#untilDue(1));
      const verdict = await Promise.race([told, promise]);
      cancel();
      if (verdict !== undefined) return verdict;
      if (this.broken) return null;
      this.#guarded(null, () => {
        this.module.exports.isolate_tick(Date.now());
        this.#work(env, ctx);
      });
    }
  }

  // Sends what is due, until no request has come for a while and all that was
  // counted is with the region. When its time is over the next request takes its
  // place, and what came until then is sent still.
  async #flush(env, ctx) {
    const end = Date.now() + Isolate.flusherMs;
    const announce = (wait) => {
      this.#flusherUntil = Date.now() + wait + FLUSHER_GRACE_MS;
    };
    let calls = 0;
    let more = true;
    while (more && calls < FLUSHER_CALLS && Date.now() < end) {
      const round = await this.#round(env, ctx, announce);
      calls += round.calls;
      more = round.more;
    }
    this.#flusherUntil = 0;
    if (more) await this.#round(env, ctx, () => {});
  }

  // Waits until something is due, and sends it: how many calls that took, and
  // whether there may be more to send.
  async #round(env, ctx, announce) {
    const wait = this.#untilDue(FLUSHER_STEP_MS);
    announce(wait);
    this.#touched = false;
    await timer(wait).promise;
    this.#forgetOverdue();
    const sent = this.#guarded([], () => {
      this.module.exports.isolate_tick(Date.now());
      return this.#work(env, ctx);
    });
    await Promise.all(sent);
    this.#report(env);
    return { calls: sent.length, more: (this.#touched || this.#failed) && !this.broken };
  }

  // Nobody says so when a client goes away, and its response with it.
  #forgetOverdue() {
    for (const [id, since] of this.#awaited) {
      if (Date.now() - since < Isolate.answerMs) return;
      this.forget(id);
    }
  }

  // Hands over what was counted: a data point for each number that moved, named by
  // metric, place, rule, and verdict or outcome.
  #report(env) {
    const moved = this.#guarded([], () => {
      this.module.exports.isolate_report(Date.now());
      return JSON.parse(this.module.outboxText());
    });
    for (const [name, by] of env.WEIR_METRICS === undefined ? [] : moved) {
      const [metric, ...labels] = name.split(";");
      const label = Object.fromEntries(labels.map((label) => label.split("=")));
      const blobs = [metric, this.pop, label.rule ?? "", label.verdict ?? label.outcome ?? ""];
      env.WEIR_METRICS.writeDataPoint({ blobs, doubles: [by], indexes: [metric] });
    }
  }

  // Does whatever the source wants. Returns what is under way.
  #work(env, ctx) {
    const { isolate_todo, number } = this.module.exports;
    const sent = [];
    for (;;) {
      switch (isolate_todo(Date.now())) {
        case TODO.NOTHING:
          return sent;
        case TODO.SEND: {
          const sending = this.#send(number(0), number(1), this.module.outbox(), env, ctx);
          ctx.waitUntil(sending);
          sent.push(sending);
          break;
        }
        case TODO.RESUME:
          this.#tell(number(0), null);
          break;
        case TODO.REFUSE:
          this.#tell(number(0), JSON.parse(this.module.outboxText()));
          break;
      }
    }
  }

  async #send(token, shard, body, env, ctx) {
    const ask = async () => {
      try {
        return await this.region.sync(env, shard, body);
      } catch (error) {
        if (!this.#failed) console.warn(`weir: ${error.message}`);
        return null;
      }
    };
    let answer = await ask();
    if (this.#take(token, answer) === false) {
      const rules = this.#guarded(new Uint8Array(), () => {
        this.module.exports.isolate_rules();
        return this.module.outbox();
      });
      await this.region.teach(env, shard, rules).catch(() => {});
      answer = await ask();
      if (this.#take(token, answer) === false) this.#take(token, null);
    }
    this.#failed = answer === null;
    this.#guarded([], () => this.#work(env, ctx));
  }

  // False: the object has to learn newer rules first.
  #take(token, answer) {
    return this.#guarded(true, () => {
      const length = answer === null ? -1 : this.module.put(answer);
      return this.module.exports.isolate_answer(token, length, Date.now()) === 0;
    });
  }

  #tell(request, verdict) {
    this.#held.get(request)?.(verdict);
    this.#held.delete(request);
  }

  #untilDue(least) {
    const due = this.broken ? 0 : this.module.exports.isolate_due() - Date.now();
    return Math.min(Math.max(Math.ceil(due), least), this.flushMs);
  }

  // Runs `act`, unless the module has trapped, or traps. Then what it knew is lost,
  // everybody passes, and the next request makes a new one.
  #guarded(otherwise, act) {
    if (this.broken) return otherwise;
    try {
      return act();
    } catch (error) {
      this.broken = true;
      console.error(`weir: the limiter of this isolate starts anew: ${error.stack}`);
      for (const id of this.#held.keys()) this.#tell(id, null);
      return otherwise;
    }
  }
}

function timer(ms) {
  let id;
  const promise = new Promise((resolve) => {
    id = setTimeout(resolve, ms);
  });
  return { promise, cancel: () => clearTimeout(id) };
}
