// The region as Durable Objects: each keeps the books of its part of the keys.
//
// The books are in memory, and what they put on record is in SQLite before the
// answer leaves: the platform holds an answer back until all that was written is
// durable. One message is one row. Now and then a snapshot takes the place of the
// log.
//
// Below an aggregator each object is a region of its own: a key is in one of them alone.

import { DurableObject } from "cloudflare:workers";
import rules from "./rules.bin";
import { Above } from "./above.js";
import { Module } from "./module.js";
import { framed, joined, pieces, unframed } from "./rows.js";
import { upstreamOf } from "./settings.js";

// As in limiter/src/key.rs.
const PARTITIONS = 64;

// How often what no longer matters is forgotten.
const SWEEP_MS = 60_000;

const TABLES = `
  CREATE TABLE IF NOT EXISTS log (
    first INTEGER, piece INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (first, piece));
  CREATE TABLE IF NOT EXISTS snapshot (
    partition INTEGER, place INTEGER, piece INTEGER, contains INTEGER NOT NULL,
    bytes BLOB NOT NULL, PRIMARY KEY (partition, place, piece));
  CREATE TABLE IF NOT EXISTS clock (id INTEGER PRIMARY KEY CHECK (id = 0), millis INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS region (
    id INTEGER PRIMARY KEY CHECK (id = 0), part TEXT NOT NULL, life INTEGER NOT NULL,
    regions INTEGER NOT NULL);
`;

// As object_heard says it.
const LOWER_RULES = 2;

export class Region extends DurableObject {
  // The least that the log grows to before a snapshot takes its place, in bytes; it
  // may grow to the size of the last snapshot.
  static logBytes = 1 << 20;
  // The most bytes in a row: the platform takes 2 MB, and rules may be longer.
  static rowBytes = 1 << 20;
  // How soon the object is woken for hits that the aggregator above has not heard of. The
  // longer that is away, the later.
  static passOnMs = 5_000;

  #sql;
  #module;
  #kept = [];
  #logBytes = 0;
  #snapshotBytes = 0;
  // When an alarm is due, as far as this life of the object knows; null if none is.
  #alarmAt = null;
  #tries = 0;
  #started = false;
  // The way to the aggregator above, and what the object is called there; null if there
  // is none.
  #above = null;
  #name = null;
  #regions = 0;

  constructor(ctx, env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(TABLES);
    this.#module = new Module((bytes) => this.#kept.push(bytes));
    this.#load(upstreamOf(env));
    this.#started = true;
  }

  // The body of a `POST /v1/sync`; its answer.
  sync(message) {
    if (this.#above === null) return this.#sync(message);
    return this.#above.greeted().then(() => this.#sync(message));
  }

  #sync(message) {
    return this.#change((exports) => {
      const refused = exports.object_sync(this.#module.put(message), Date.now()) !== 0;
      if (refused) throw new Error(this.#module.outboxText());
      return this.#module.outbox();
    });
  }

  // Puts rules in force, if they are newer than those that are.
  enforce(rules) {
    if (this.#above !== null) throw new Error("rules are set above");
    return this.#change((exports) => {
      const length = this.#module.put(new Uint8Array(rules));
      if (exports.object_enforce(length, Date.now()) !== 0) throw new Error(this.#module.outboxText());
    });
  }

  // What the books say.
  status() {
    const log = this.#sql.exec("SELECT count(*) AS rows FROM log").one();
    return this.#change((exports) => {
      exports.object_status(Date.now());
      const books = JSON.parse(this.#module.outboxText());
      const upstream = books.upstream && { region: this.#name, ...books.upstream };
      return { ...books, upstream, log_rows: log.rows, log_bytes: this.#logBytes };
    });
  }

  async alarm() {
    this.#alarmAt = null;
    this.#change(({ object_sweep }) => {
      for (let partition = 0; partition < PARTITIONS; partition += 1) {
        while (object_sweep(partition, Date.now()) === 1);
      }
    });
    const { keys, upstream } = this.status();
    this.#tries = upstream?.away ? this.#tries + 1 : 0;
    if (upstream?.waiting > 0) return this.#passOn();
    if (keys > 0) return this.#wake(SWEEP_MS);
    this.#compact();
  }

  // Hits wait for the aggregator above, which may be away.
  #passOn() {
    this.#above.speak();
    this.#change(() => {});
    return this.#wake(Math.min(Region.passOnMs * 2 ** this.#tries, SWEEP_MS));
  }

  // Has the object woken after so long at the latest. Where there is nothing to sweep or
  // to pass on it sleeps.
  async #wake(ms) {
    const at = Date.now() + ms;
    if (this.#alarmAt !== null && this.#alarmAt <= at) return;
    this.#alarmAt = at;
    // To sweep any alarm will do. Hits that are to be passed on are not durable before the
    // alarm is: nothing is waited for in between.
    if (ms < SWEEP_MS || (await this.ctx.storage.getAlarm()) === null) {
      await this.ctx.storage.setAlarm(at);
    }
  }

  // Reads back what was written. It may fail: then nobody is answered, and the
  // next message tries again.
  #load(upstream) {
    const { exports } = this.#module;
    crypto.getRandomValues(this.#module.inbox(32));
    const clock = this.#sql.exec("SELECT millis FROM clock").toArray();
    exports.object_start(clock[0]?.millis ?? 0);
    const chunks = this.#sql.exec("SELECT * FROM snapshot ORDER BY partition, place, piece");
    for (const { partition, contains, bytes } of joined(chunks)) {
      this.#snapshotBytes += bytes.length;
      this.#good(exports.object_restore(partition, contains, this.#module.put(bytes)));
    }
    for (const { first, bytes } of joined(this.#sql.exec("SELECT * FROM log ORDER BY first, piece"))) {
      this.#logBytes += bytes.length;
      unframed(bytes).forEach((record, n) => {
        this.#good(exports.object_replay(first + n, this.#module.put(record)));
      });
    }
    if (upstream !== null) this.#join(upstream);
    else if (rules.byteLength > 0) this.enforce(rules);
  }

  // Begins another life as a region of the aggregator above. Who was built by an alarm may
  // not know its own name, and a clock may have gone back: both are on record.
  #join(upstream) {
    const [known] = this.#sql.exec("SELECT part, life, regions FROM region").toArray();
    const part = known?.part ?? /-(\d+)$/.exec(this.ctx.id.name ?? "")?.[1] ?? String(this.ctx.id).slice(0, 12);
    this.#name = `${upstream.region}-${part}`;
    this.#regions = known?.regions ?? 0;
    const change = (act) => this.#change(act);
    const hear = (id, answer) => this.#hear(id, answer);
    this.#above = new Above(upstream, this.ctx, this.#module, { change, hear });
    this.#change(({ object_join }) => {
      const length = this.#module.putText(this.#name);
      const life = object_join(length, known?.life ?? 0, this.#regions, Date.now());
      const row = "INSERT OR REPLACE INTO region (id, part, life, regions) VALUES (0, ?, ?, ?)";
      this.#sql.exec(row, part, life, this.#regions);
    });
  }

  // Takes in an answer from above, or (null) that there was none.
  #hear(id, answer) {
    const outcome = this.#change(({ object_heard, object_regions }) => {
      const heard = object_heard(id, answer === null ? -1 : this.#module.put(answer), Date.now());
      if (heard === 1) console.warn(`weir: of the aggregator above: ${this.#module.outboxText()}`);
      this.#keepRegions(object_regions(Date.now()));
      return heard;
    });
    // Of rules in the log the highest revision counts; of a snapshot, those in it.
    if (outcome === LOWER_RULES) this.#change(() => this.#compact());
  }

  #good(status) {
    if (status !== 0) throw new Error(this.#module.outboxText());
  }

  // A later life that cannot ask goes by this.
  #keepRegions(regions) {
    if (regions === 0 || regions === this.#regions) return;
    this.#regions = regions;
    this.#sql.exec("UPDATE region SET regions = ?", regions);
  }

  // Changes the books, writes what they put on record, and then says above what is due.
  // If the writing fails they are ahead of their log: the object starts anew, from the
  // log.
  #change(act) {
    let result;
    let refusal = null;
    try {
      try {
        result = act(this.#module.exports);
      } catch (error) {
        if (error instanceof WebAssembly.RuntimeError) throw error;
        refusal = error;
      }
      const reports = this.#above?.due() ?? [];
      this.#commit();
      this.#above?.send(reports);
    } catch (error) {
      console.error(`weir: the object starts anew: ${error.stack}`);
      this.ctx.abort(error.message);
      throw error;
    }
    if (refusal !== null) throw refusal;
    return result;
  }

  #commit() {
    const kept = this.#kept;
    this.#kept = [];
    if (kept.length === 0) return;
    const first = this.#module.exports.object_position() - kept.length + 1;
    const records = framed(kept);
    pieces(records, Region.rowBytes).forEach((bytes, piece) => {
      this.#sql.exec("INSERT INTO log (first, piece, bytes) VALUES (?, ?, ?)", first, piece, bytes);
    });
    this.#logBytes += records.length;
    if (this.#started) this.ctx.waitUntil(this.#wake(this.#above === null ? SWEEP_MS : Region.passOnMs));
    if (this.#logBytes > Math.max(Region.logBytes, this.#snapshotBytes)) this.#compact();
  }

  // A snapshot in place of the log.
  #compact() {
    const contains = this.#module.exports.object_position();
    this.ctx.storage.transactionSync(() => {
      this.#sql.exec("DELETE FROM snapshot");
      this.#snapshotBytes = 0;
      for (let partition = 0; partition < PARTITIONS; partition += 1) {
        this.#module.exports.object_snapshot(partition);
        const chunks = this.#kept;
        this.#kept = [];
        chunks.forEach((chunk, place) => {
          this.#snapshotBytes += chunk.length;
          pieces(chunk, Region.rowBytes).forEach((bytes, piece) => {
            const row = "INSERT INTO snapshot (partition, place, piece, contains, bytes) VALUES (?, ?, ?, ?, ?)";
            this.#sql.exec(row, partition, place, piece, contains, bytes);
          });
        });
      }
      this.#sql.exec("DELETE FROM log");
      this.#sql.exec("INSERT OR REPLACE INTO clock (id, millis) VALUES (0, ?)", Date.now());
    });
    this.#logBytes = 0;
  }
}
