// The driver of cojson's SQLite storage on node:sqlite.
import { DatabaseSync } from "node:sqlite";
import { createTables, dropRedundantIndexes } from "./layout.mjs";

/** Open a file, and return the driver that `getSqliteStorage` of cojson takes. */
export function openDatabase(file) {
  const db = new DatabaseSync(file);
  createTables(db);
  // WAL with NORMAL survives a crash of the process; a power failure may lose the latest commits, which clients send again.
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000;");
  // What is deleted is overwritten with zeros, so that erased content can't be read from the file.
  db.exec("PRAGMA secure_delete = ON;");
  const statements = new Map();
  const prepare = (sql) => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = db.prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  };
  let depth = 0;
  return {
    run: (sql, params) => void prepare(sql).run(...params),
    query: (sql, params) => prepare(sql).all(...params),
    get: (sql, params) => prepare(sql).get(...params),
    transaction(callback) {
      if (depth > 0) return callback();
      db.exec("BEGIN");
      depth += 1;
      try {
        const result = callback();
        db.exec("COMMIT");
        return result;
      } catch (error) {
        db.exec("ROLLBACK");
        throw error;
      } finally {
        depth -= 1;
      }
    },
    truncateLog: () => void db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get(),
    dropRedundantIndexes: () => dropRedundantIndexes(db),
    closeDb: () => db.close(),
    getMigrationVersion: () => Number(db.prepare("PRAGMA user_version").get().user_version),
    saveMigrationVersion: (version) => db.exec(`PRAGMA user_version = ${Number(version)}`),
  };
}
