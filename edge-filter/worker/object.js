// The region as Durable Objects: each keeps the books of its part of the keys.
//
// The books are in memory, and what they put on record is in SQLite before the
// answer leaves: the platform holds an answer back until all that was written is
// durable. One message is one row. Now and then a snapshot takes the place of the
// log.

import { DurableObject } from "cloudflare:workers";
import rules from "./rules.bin";
import { Module } from "./module.js";
import { framed, joined, pieces, unframed } from "./rows.js";

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
`;

export class Region extends DurableObject {
  // The least that the log grows to before a snapshot takes its place, in bytes; it
  // may grow to the size of the last snapshot.
  static logBytes = 1 << 20;
  // The most bytes in a row: the platform takes 2 MB, and rules may be longer.
  static rowBytes = 1 << 20;

  #sql;
  #module;
  #kept = [];
  #logBytes = 0;
  #snapshotBytes = 0;
  // Whether an alarm is set, as far as this life of the object knows.
  #awake = false;

  constructor(ctx, env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(TABLES);
    this.#module = new Module((bytes) => this.#kept.push(bytes));
    this.#load();
  }

  // The body of a `POST /v1/sync`; its answer.
  sync(message) {
    return this.#change((exports) => {
      const refused = exports.object_sync(this.#module.put(message), Date.now()) !== 0;
      if (refused) throw new Error(this.#module.outboxText());
      return this.#module.outbox();
    });
  }

  // Puts rules in force, if they are newer than those that are.
  enforce(rules) {
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
      return { ...books, log_rows: log.rows, log_bytes: this.#logBytes };
    });
  }

  async alarm() {
    this.#change(({ object_sweep }) => {
      for (let partition = 0; partition < PARTITIONS; partition += 1) {
        while (object_sweep(partition, Date.now()) === 1);
      }
    });
    const { keys } = this.status();
    if (keys > 0) return this.#wake();
    this.#compact();
    this.#awake = false;
  }

  // Sees to it that what was written is swept some time. Where there is nothing the
  // object sleeps.
  async #wake() {
    this.#awake = true;
    if ((await this.ctx.storage.getAlarm()) === null) {
      await this.ctx.storage.setAlarm(Date.now() + SWEEP_MS);
    }
  }

  // Reads back what was written. It may fail: then nobody is answered, and the
  // next message tries again.
  #load() {
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
    if (rules.byteLength > 0) this.enforce(rules);
  }

  #good(status) {
    if (status !== 0) throw new Error(this.#module.outboxText());
  }

  // Changes the books, and writes what they put on record. If that fails they are
  // ahead of their log: the object starts anew, from the log.
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
      this.#commit();
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
    if (!this.#awake) this.ctx.waitUntil(this.#wake());
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
