// An object as a region of an aggregator above it: carries there what it has to say, and
// the answers back. What that is, and when, is decided in Rust.
//
// It speaks for a while after it was spoken to, and is silent then, with no timer left:
// so the platform may let it sleep. What waits still is seen to by the object's alarm.

import { Service, within } from "./region.js";

// How long it speaks after it was last spoken to: until all that was counted is told,
// and what is held is given back.
const SPEAKS_MS = 3_000;
// How long an answer may take, as in aggregator/src/serve/upstream.rs.
const ANSWER_MS = 3_000;
// How long a source's first message waits for the first answer from above: a source takes
// its region to be away after half a second.
const GREETING_MS = 300;
// Messages that are under way at once. The platform opens six connections and lets more
// wait; here what would wait goes together into a later one.
const UNDER_WAY_MAX = 6;
const STEP_MS = 2;

export class Above {
  #ctx;
  #module;
  #object;
  #ways;
  #present = 0;
  #underWay = 0;
  #until = 0;
  #timer = null;
  #timerAt = 0;
  #heard = Promise.withResolvers();
  #greeted = false;
  #failed = false;

  // `upstream` is as settings.js has it. `object.change(act)` changes the books and says
  // what is due then; `object.hear(id, answer)` takes an answer in, or null.
  constructor(upstream, ctx, module, object) {
    this.#ctx = ctx;
    this.#module = module;
    this.#object = object;
    this.#ways = upstream.urls.map((url) => new Service(url, upstream.token, ANSWER_MS));
  }

  // Says what there is to say from now on, for a while.
  speak() {
    this.#until = Date.now() + SPEAKS_MS;
  }

  // Speaks, and waits until the aggregator above was heard in this life of the object, or
  // has had time enough. Before that nothing is known of what other regions hold, nor
  // whether there are other rules.
  async greeted() {
    this.speak();
    if (this.#greeted) return;
    this.#object.change(() => {});
    await within(GREETING_MS, this.#heard.promise).catch(() => {});
    this.#greeted = true;
  }

  // What is to be said now. It tells of records that are yet to be written.
  due() {
    const reports = [];
    while (this.#speaks() && this.#underWay + reports.length < UNDER_WAY_MAX) {
      const id = this.#module.exports.object_report(Date.now());
      if (id === 0) break;
      reports.push({ id, body: this.#module.outbox() });
    }
    return reports;
  }

  // Says it. To be called when the records are written: the platform holds back what
  // leaves an object, a `fetch` like an answer, until all writes before are durable.
  send(reports) {
    for (const report of reports) {
      this.#underWay += 1;
      this.#ctx.waitUntil(this.#carry(report));
    }
    this.#arm();
  }

  async #carry({ id, body }) {
    const present = this.#present;
    let answer = null;
    try {
      answer = await this.#ways[present % this.#ways.length].sync(null, 0, body);
    } catch (error) {
      if (!this.#failed) console.warn(`weir: of the aggregator above: ${error.message}`);
      // The next one is asked next time.
      if (this.#present === present) this.#present += 1;
    }
    this.#failed = answer === null;
    this.#underWay -= 1;
    this.#object.hear(id, answer);
    if (answer !== null) this.#heard.resolve();
  }

  #speaks() {
    return Date.now() < this.#until;
  }

  // Looks again when something will be due. With all places taken the next answer does.
  #arm() {
    if (!this.#speaks() || this.#underWay >= UNDER_WAY_MAX) return;
    const now = Date.now();
    const at = Math.max(this.#module.exports.object_due(), now + STEP_MS);
    if (this.#timer !== null && this.#timerAt <= at) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#object.change(() => {});
    }, at - now);
  }
}
