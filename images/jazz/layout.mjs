// The tables of a new file. They take two thirds of the space that cojson's own tables take, and all statements of cojson
// work on them, so the official server can use the file, too. cojson's tables have an index of all headers, which nothing
// searches, and two indexes that repeat others. A file of an earlier release keeps its tables, without one of the latter.

/** Twice SQLite's default: what is longer than a quarter of a page takes whole pages of its own. */
const PAGE_BYTES = 8192;

const TABLES = [
  "CREATE TABLE coValues (rowID INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, header TEXT NOT NULL)",
  `CREATE TABLE sessions (
    rowID INTEGER PRIMARY KEY, coValue INTEGER NOT NULL, sessionID TEXT NOT NULL, lastIdx INTEGER, lastSignature TEXT,
    UNIQUE (coValue, sessionID)
  )`,
];

/** Create the tables of a file that is empty, before the migrations of cojson. */
export function createTables(db) {
  db.exec(`PRAGMA page_size = ${PAGE_BYTES}`); // takes effect in an empty file only
  if (db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get()) return;
  db.exec(`BEGIN; ${TABLES.join("; ")}; COMMIT`);
}

/** Drop the indexes that repeat others, after cojson's migrations. */
export function dropRedundantIndexes(db) {
  db.exec("DROP INDEX IF EXISTS coValuesByID");
  const columns = db.prepare("SELECT name FROM pragma_index_info('sqlite_autoindex_sessions_1') ORDER BY seqno").all();
  if (columns[0]?.name === "coValue") db.exec("DROP INDEX IF EXISTS sessionsByCoValue");
}
