// The page: it asks for an account, then shows the replicas as they are in Jazz. It sends nothing to any server but Jazz.
import type { AgentSecret } from "cojson";
import { connect, watchReplicas, type Row, type Settings } from "./jazz.ts";

const KEY = "reside-key"; // in the storage of this tab: it ends with the tab
const find = <E extends HTMLElement = HTMLElement>(id: string): E => document.getElementById(id) as E;
const seen = new Set<number>();
let shown: Row[] | undefined;

function showStep(step: "sign-in" | "waiting" | "replicas"): void {
  for (const each of ["sign-in", "waiting", "replicas"]) find(each).hidden = each !== step;
  find("sign-out").hidden = step === "sign-in";
}

function showConnection(live: boolean): void {
  document.body.dataset.connection = live ? "live" : "lost";
  find("connection").textContent = live ? "live" : "connecting…";
}

function element(tag: string, className: string, text = ""): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text; // never HTML: names and reasons are data of others
  return made;
}

function tableRow(row: Row): HTMLElement {
  const made = element("tr", seen.has(row.id) ? "" : "new");
  const name = element("td", "name", row.name);
  if (row.reason) name.append(element("span", "reason", row.reason));
  const status = element("td", "status");
  status.append(element("span", `badge ${row.status}`, row.status));
  const image = element("td", "image");
  for (const part of row.image.split(/(?<=\/)/)) image.append(part, document.createElement("wbr"));
  if (row.digest) image.append(element("span", "digest", `@${row.digest.slice(0, 14)}…`));
  made.append(
    element("td", "id", String(row.id)),
    name,
    element("td", "version", row.version === undefined ? "–" : `v${row.version}`),
    status,
    element("td", "age", row.since === undefined ? "" : age(row.since)),
    image,
  );
  return made;
}

function age(since: number): string {
  const seconds = Math.max(0, Math.round((Date.now() - since) / 1000));
  const [size, unit] = seconds < 120 ? [1, "s"] : seconds < 7_200 ? [60, "min"] : seconds < 172_800 ? [3_600, "h"] : [86_400, "d"];
  return `${Math.floor(seconds / Number(size))} ${unit}`;
}

function showReplicas(rows: Row[] | undefined): void {
  shown = rows;
  if (!rows) find("rows").replaceChildren();
  if (!rows) return showStep("waiting");
  const sorted = rows.sort((one, other) => one.id - other.id);
  find("rows").replaceChildren(...sorted.map(tableRow));
  find("count").textContent = String(sorted.length);
  for (const { id } of sorted) seen.add(id);
  showStep("replicas");
}

/** Show the newest state once a frame, however many changes arrive. */
function latest(show: (rows: Row[] | undefined) => void): typeof show {
  let next: Row[] | undefined;
  let frame = 0;
  return (rows) => {
    next = rows;
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      show(next);
    });
  };
}

async function open(settings: Settings, url: string, key: AgentSecret | undefined): Promise<void> {
  const account = await connect(url, key, showConnection);
  sessionStorage.setItem(KEY, JSON.stringify({ key: account.key, url }));
  find("grant").textContent = `reside permission grant ${account.id} alpha replica:read:all`;
  showStep("waiting");
  await watchReplicas(settings, latest(showReplicas));
}

async function start(): Promise<void> {
  const settings = (await (await fetch("settings.json")).json()) as Settings;
  const url = find<HTMLInputElement>("jazz");
  url.value = settings.jazz ?? "ws://127.0.0.1:4200";
  find("jazz-field").hidden = settings.jazz !== null;
  const run = (address: string, key: AgentSecret | undefined) => {
    find("error").textContent = "";
    open(settings, address, key).catch((error: unknown) => {
      showStep("sign-in");
      find("error").textContent = error instanceof Error ? error.message : String(error);
    });
  };
  find<HTMLFormElement>("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = find<HTMLInputElement>("key");
    run(url.value, (key.value.trim() || undefined) as AgentSecret | undefined);
    key.value = "";
  });
  find("sign-out").addEventListener("click", () => {
    sessionStorage.removeItem(KEY);
    location.reload(); // ends the connection, too
  });
  const kept = sessionStorage.getItem(KEY);
  if (!kept) return showStep("sign-in");
  const { key, url: address } = JSON.parse(kept) as { key: AgentSecret; url: string };
  run(settings.jazz ?? address, key);
}

setInterval(() => shown && showReplicas(shown), 10_000); // the ages
void start();
