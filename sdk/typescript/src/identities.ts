// Identities of ReSide's own contracts, replicas and examples (docs/wire.md, section 2).

const OWN = "registry.reside.internal/reside/";

/** Return the identity in this cluster that a name means: names under `registry.reside.internal/reside` are those of the
 * cluster's own images, whose identities are under `RESIDE_IDENTITY_REPOSITORY`, if that is set. */
export function resolved(name: string): string {
  const repository = process.env.RESIDE_IDENTITY_REPOSITORY;
  return repository && name.startsWith(OWN) ? `${repository}/${name.slice(OWN.length)}` : name;
}
