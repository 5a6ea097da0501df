// The official storage of cojson on a file, as a server without the layout of images/jazz has it.
//
//   node official_storage.mjs copy FROM TO ID...   store the values of a file in another one, in cojson's own tables
//   node official_storage.mjs count FILE ID...     print the number of transactions of each value
import { DatabaseSync } from "node:sqlite";
import { getSqliteStorage } from "cojson";

function open(file) {
  const db = new DatabaseSync(file);
  db.exec("PRAGMA journal_mode = WAL");
  const driver = {
    run: (sql, params) => void db.prepare(sql).run(...params),
    query: (sql, params) => db.prepare(sql).all(...params),
    get: (sql, params) => db.prepare(sql).get(...params),
    transaction: (callback) => callback(),
    closeDb: () => db.close(),
  };
  return getSqliteStorage(driver);
}

async function read(storage, id) {
  const messages = [];
  await storage.load(id, (message) => messages.push(message), (found) => found || console.error(`no ${id}`));
  return messages;
}

const [command, from, ...rest] = process.argv.slice(2);
const source = open(from);
if (command === "copy") {
  const [to, ...ids] = rest;
  const target = open(to);
  for (const id of ids) {
    for (const message of await read(source, id)) target.store(message, () => undefined);
  }
} else {
  const counts = {};
  for (const id of rest) {
    const sessions = (await read(source, id)).filter((message) => message.id === id).flatMap((m) => Object.values(m.new));
    counts[id] = sessions.reduce((sum, session) => sum + session.newTransactions.length, 0);
  }
  console.log(JSON.stringify(counts));
}
