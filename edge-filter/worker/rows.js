// Bytes as rows of a table hold them: records one after the other, and what is too
// long for one row in several.

// Records with their lengths before them.
export function framed(records) {
  const size = records.reduce((size, record) => size + 4 + record.length, 0);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const record of records) {
    view.setUint32(at, record.length, true);
    bytes.set(record, at + 4);
    at += 4 + record.length;
  }
  return bytes;
}

export function unframed(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const records = [];
  for (let at = 0; at < bytes.length; ) {
    const length = view.getUint32(at, true);
    records.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return records;
}

// Bytes as rows take them: one piece at least, none longer than `most`.
export function pieces(bytes, most) {
  const cut = [];
  for (let at = 0; at === 0 || at < bytes.length; at += most) {
    cut.push(bytes.subarray(at, at + most));
  }
  return cut;
}

// Rows whose pieces follow each other, put together again.
export function* joined(rows) {
  let row = null;
  let parts = [];
  const whole = () => ({ ...row, bytes: concatenated(parts) });
  for (const next of rows) {
    if (next.piece === 0 && row !== null) yield whole();
    if (next.piece === 0) [row, parts] = [next, []];
    parts.push(new Uint8Array(next.bytes));
  }
  if (row !== null) yield whole();
}

function concatenated(parts) {
  const bytes = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
