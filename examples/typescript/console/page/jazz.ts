// The account of this browser, its connection to Jazz, and what it reads: Alpha's data (docs/model.md, section 3).
import { cojsonInternals, type AgentSecret, type CryptoProvider, type LocalNode, type Peer } from "cojson";
import { WasmCrypto } from "cojson/crypto/WasmCrypto";
import { WebSocketPeerWithReconnection } from "cojson-transport-ws";
import {
  co,
  createJazzContextForNewAccount,
  createJazzContextFromExistingCredentials,
  MockSessionProvider,
  z,
} from "jazz-tools";

const Version = co.map({ id: z.number(), status: z.string(), reason: z.string().optional(), digest: z.string() });
const Replica = co.map({
  id: z.number(),
  name: z.string(),
  identity: z.string(),
  currentVersion: z.number().optional(),
  deletion: z.json().optional(),
  versions: co.list(Version),
});
type Catch = { $onError: "catch" };
type Loaded = co.loaded<typeof Replica, { versions: { $each: Catch } & Catch }>;
const AlphaData = co.map({ replicas: co.list(Replica) });
const Alpha = co.account({ profile: co.profile({ contracts: z.record(z.string(), z.string()) }), root: co.map({}) });

/** What the page shows of a replica. */
export interface Row {
  id: number;
  name: string;
  version: number | undefined;
  status: string;
  reason: string | undefined;
  since: number | undefined;
  image: string;
  digest: string | undefined;
}

export type Account = { id: string; key: AgentSecret };

/** Where Jazz and Alpha are, as the replica says. */
export interface Settings {
  jazz: string | null;
  alpha: string | null;
  contract: string;
}

/** Connect with the account of a key, or with a new account; both live in this page only. */
export async function connect(url: string, key: AgentSecret | undefined, onChange: (live: boolean) => void): Promise<Account> {
  const crypto = await WasmCrypto.create();
  let node: LocalNode | undefined;
  const peers: Peer[] = [];
  const socket = new WebSocketPeerWithReconnection({
    peer: url,
    reconnectionTimeout: 500,
    addPeer: (peer) => (node ? node.syncManager.addPeer(peer) : peers.push(peer)),
    removePeer: () => undefined,
  });
  socket.subscribe(onChange);
  socket.enable();
  const shared = { crypto, peers, sessionProvider: new MockSessionProvider() };
  try {
    const { account, node: opened } = key
      ? await createJazzContextFromExistingCredentials({
          ...shared,
          credentials: { accountID: accountOf(crypto, key), secret: key },
          asActiveAccount: true,
        })
      : await createJazzContextForNewAccount({ ...shared, creationProps: { name: "console" } });
    node = opened;
    return { id: account.$jazz.id, key: opened.agentSecret };
  } catch (error) {
    socket.disable();
    throw error;
  }
}

/** The id of an account is the hash of its header, which follows from its key. */
function accountOf(crypto: CryptoProvider, key: AgentSecret): string {
  if (!/^sealerSecret_z\w+\/signerSecret_z\w+$/.test(key)) throw new Error("This is not the key of an account.");
  const header = cojsonInternals.accountHeaderForInitialAgentSecret(key, crypto);
  return cojsonInternals.idforHeader(header, crypto);
}

/** Show the replicas now and at each change; undefined while this account may not read them. */
export async function watchReplicas(settings: Settings, show: (rows: Row[] | undefined) => void): Promise<void> {
  const alpha = settings.alpha ? await Alpha.load(settings.alpha, { resolve: { profile: true } }) : undefined;
  const data = alpha?.$isLoaded ? alpha.profile.contracts[settings.contract] : undefined;
  if (!data) throw new Error("Alpha has not published its data yet: reload the page in a moment.");
  const part = { $onError: "catch" } as const; // one that can't be read hides no other one
  const resolve = { replicas: { $each: { versions: { $each: part, ...part }, ...part } } } as const;
  const none = () => show(undefined);
  AlphaData.subscribe(data, { resolve, onUnauthorized: none, onUnavailable: none }, ({ replicas }) =>
    show(replicas.filter((each) => each.$isLoaded).map(rowOf)),
  );
}

function rowOf({ id, name, identity, currentVersion, deletion, versions }: Loaded): Row {
  const readable = versions.$isLoaded ? versions.filter((each) => each.$isLoaded) : [];
  const current = readable.find((each) => each.id === currentVersion);
  const status = deletion ? "deleting" : (current?.status ?? "unknown");
  const shown = { id, name, image: identity, version: current?.id, status, reason: current?.reason };
  return { ...shown, digest: current?.digest, since: current?.$jazz.createdAt };
}
