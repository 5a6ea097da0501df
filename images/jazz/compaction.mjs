// What an erasure leaves of a page stays a page, because SQLite joins pages only when two thirds of them are free. So the
// transactions beside an erased session are deleted and inserted again, in one commit: this fills the pages.

/** How much is written again on either side of an erased session: about one page. */
const BYTES = 8192;
const ROWS = 64;
const BUDGET_MS = 100;

const ERASABLE = `
  SELECT sessions.rowID AS ses FROM deletedCoValues
  JOIN coValues ON coValues.id = deletedCoValues.coValueID
  JOIN sessions ON sessions.coValue = coValues.rowID
  WHERE deletedCoValues.status = 0 AND sessions.sessionID NOT LIKE '%$' ORDER BY ses`;
const BEFORE = `
  SELECT ses, idx, octet_length(tx) AS size FROM transactions WHERE ses < ? ORDER BY ses DESC, idx DESC LIMIT ${ROWS}`;
const AFTER = `SELECT ses, idx, octet_length(tx) AS size FROM transactions WHERE ses > ? ORDER BY ses, idx LIMIT ${ROWS}`;

/** Return the ids of the sessions that the next erasure deletes, in their order. */
export function erasableSessions(database) {
  return database.query(ERASABLE, []).map(({ ses }) => ses);
}

/** Write the transactions beside erased sessions again; return the sessions for which there was no time. */
export function compact(database, sessions) {
  const end = Date.now() + BUDGET_MS;
  let done = -1; // the last session that was written again
  for (const [place, erased] of sessions.entries()) {
    if (Date.now() > end) return sessions.slice(place);
    if (erased < done || database.get("SELECT 1 AS one FROM sessions WHERE rowID = ?", [erased])) continue;
    const after = within(database.query(AFTER, [erased]));
    database.transaction(() => writeAgain(database, [...within(database.query(BEFORE, [erased])), ...after]));
    done = after.at(-1)?.ses ?? erased;
  }
  return [];
}

function within(rows) {
  let size = 0;
  const end = rows.findIndex((row) => (size += row.size) > BYTES);
  return end < 0 ? rows : rows.slice(0, end);
}

function writeAgain(database, rows) {
  const full = rows.map(({ ses, idx }) => database.get("SELECT ses, idx, tx FROM transactions WHERE ses = ? AND idx = ?", [ses, idx]));
  for (const { ses, idx } of full) database.run("DELETE FROM transactions WHERE ses = ? AND idx = ?", [ses, idx]);
  full.sort((a, b) => a.ses - b.ses || a.idx - b.idx);
  for (const { ses, idx, tx } of full) database.run("INSERT INTO transactions (ses, idx, tx) VALUES (?, ?, ?)", [ses, idx, tx]);
}
