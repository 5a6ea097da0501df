"""``reside cluster``: bring clusters up, describe them, become their first administrator."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from reside.cli import claim, config, output, project, shell
from reside.cli.accounts import create_account
from reside.cli.progress import Steps
from reside.local import LocalCluster, NoSuchInstanceError
from reside.model.errors import InvalidInput
from reside.seed.manifest import render
from stacks import settings as stack_settings

app = typer.Typer(no_args_is_help=True, help="Clusters: bring up, describe, claim.")

LOCAL = "local"
DEFAULT_ACCOUNT = "admin"
IMAGES = "images.json"
"""Name of the file of the images' digests in the state folder."""

Name = Annotated[str, typer.Argument(help="Name of the cluster in the local configuration, and of its stack.")]
Namespace = Annotated[str, typer.Option(help="Kubernetes namespace of the cluster.")]
Kubeconfig = Annotated[Path | None, typer.Option(help="Kubeconfig; the usual one if not given.")]
KubeContext = Annotated[str | None, typer.Option(help="Context of the kubeconfig; the current one if not given.")]
LocalName = Annotated[
    str | None, typer.Option("--local", help="Name of an embedded cluster (`reside local up`) instead of a kubeconfig.")
]
ImagesFile = Annotated[Path | None, typer.Option("--images", help="JSON of the platform's images by digest.")]
Domain = Annotated[str | None, typer.Option(help="Domain of the cluster's Ingresses; needs --cluster-issuer.")]
Issuer = Annotated[str | None, typer.Option("--cluster-issuer", help="cert-manager's ClusterIssuer for the domain.")]
Group = Annotated[str | None, typer.Option("--default-placement-group", help="Placement group of new replicas.")]
StorageClass = Annotated[str | None, typer.Option(help="StorageClass of the volumes; the default one if not given.")]
Mirror = Annotated[
    list[str] | None,
    typer.Option("--registry-mirror", help="HOST=ADDRESS: where a registry host answers (plain HTTP)."),
]
Form = Annotated[output.Output, typer.Option("--output", "-o", help="Form of the output.")]


def settings_from(  # one argument an option of the command line
    namespace: str,
    *,
    local: str | None,
    kubeconfig: Path | None,
    kube_context: str | None,
    images: Path | None,
    domain: str | None = None,
    cluster_issuer: str | None = None,
    default_placement_group: str | None = None,
    storage_class: str | None = None,
    mirrors: list[str] | None = None,
) -> stack_settings.BootstrapSettings:
    """Bootstrap settings out of the command line's options.

    Raises:
        InvalidInput: an option is malformed, or two contradict each other.
    """
    if local is not None and (kubeconfig is not None or kube_context is not None):
        raise InvalidInput("--local names an embedded cluster, which has a kubeconfig of its own: leave the others out")
    data: dict[str, Any] = {
        "namespace": namespace,
        "images": stack_settings.read_images(images or project.state_folder() / IMAGES),
        "kubeconfig": str(kubeconfig.absolute()) if kubeconfig else None,
        "kube_context": kube_context,
        "domain": domain,
        "cluster_issuer": cluster_issuer,
        "default_placement_group": default_placement_group,
        "storage_class": storage_class,
    }
    if local is not None:
        data |= {**stack_settings.local_cluster(local), "storage_class": storage_class or "standard"}
    data["registry_mirrors"] = data.get("registry_mirrors", {}) | dict(_mirror(entry) for entry in mirrors or ())
    return stack_settings.parse(data, "options")


def _mirror(entry: str) -> tuple[str, str]:
    host, found, address = entry.partition("=")
    if not (host and found and address):
        raise InvalidInput(f"--registry-mirror {entry!r} is not HOST=ADDRESS")
    return host, address


def default_local(kubeconfig: Path | None, kube_context: str | None) -> str | None:
    """The embedded default cluster, if it exists and no other one was named."""
    if kubeconfig is not None or kube_context is not None:
        return None
    try:
        LocalCluster("default").info()
    except NoSuchInstanceError:
        return None
    return "default"


def bootstrap_cluster(
    name: str, settings: stack_settings.BootstrapSettings, account: str, endpoint: str | None, steps: Steps
) -> config.Cluster:
    """Run the bootstrap program, add cluster and context to the configuration, and claim super admin.

    Running it again on a bootstrapped cluster changes nothing.
    """
    known = config.load()
    if not any(entry.name == account for entry in known.accounts):
        create_account(account)
    outputs = project.up(settings, name, steps.tell)
    cluster = config.Cluster(
        name=name,
        namespace=settings.namespace,
        endpoint=endpoint or (f"https://{settings.domain}" if settings.domain else None),
        alpha_replica_id=str(outputs["alphaAccountId"]),
        kube_context=settings.kube_context,
        kubeconfig=settings.kubeconfig,
        access="direct" if settings.access == "direct" else "port-forward",
    )
    config.save(config.load().with_cluster(cluster, account))
    steps.tell("super admin", "begins")
    claimed = asyncio.run(claim.claim_if_free(config.load(), name))
    steps.tell("super admin", "done" if claimed else "is unchanged")
    return cluster


@app.command("bootstrap")
def bootstrap(
    name: Name,
    *,
    endpoint: Annotated[str | None, typer.Option(help="Host under which the cluster is reached from outside.")] = None,
    namespace: Namespace = "reside",
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
    local: LocalName = None,
    images: ImagesFile = None,
    domain: Domain = None,
    cluster_issuer: Issuer = None,
    default_placement_group: Group = None,
    storage_class: StorageClass = None,
    registry_mirror: Mirror = None,
    account: Annotated[
        str, typer.Option(help="Account that becomes super admin; created if missing.")
    ] = DEFAULT_ACCOUNT,
) -> None:
    """Bring a cluster up, add it to the configuration and claim super admin. Run it again if it was interrupted."""
    settings = settings_from(
        namespace,
        local=local or default_local(kubeconfig, kube_context),
        kubeconfig=kubeconfig,
        kube_context=kube_context,
        images=images,
        domain=domain,
        cluster_issuer=cluster_issuer,
        default_placement_group=default_placement_group,
        storage_class=storage_class,
        mirrors=registry_mirror,
    )
    with Steps(f"cluster {name}") as steps:
        cluster = bootstrap_cluster(name, settings, account, endpoint, steps)
    output.console.print(f"cluster {name} is up in namespace {cluster.namespace}; context {name} is current")


@app.command("manifest")
def manifest(
    *,
    namespace: Namespace = "reside",
    kubeconfig: Kubeconfig = None,
    local: LocalName = None,
    images: ImagesFile = None,
    domain: Domain = None,
    cluster_issuer: Issuer = None,
    default_placement_group: Group = None,
    storage_class: StorageClass = None,
    registry_mirror: Mirror = None,
) -> None:
    """Print the seed as a manifest for `kubectl apply -f -`."""
    settings = settings_from(
        namespace,
        local=local or default_local(kubeconfig, None),
        kubeconfig=kubeconfig,
        kube_context=None,
        images=images,
        domain=domain,
        cluster_issuer=cluster_issuer,
        default_placement_group=default_placement_group,
        storage_class=storage_class,
        mirrors=registry_mirror,
    )
    sys.stdout.write(render(settings))


@app.command("env")
def env() -> None:
    """Print what a shell needs to run `pulumi` at the root: eval "$(reside cluster env)"."""
    sys.stdout.write("\n".join(shell.lines()) + "\n")


@app.command("info")
def info(
    name: Annotated[str | None, typer.Argument(help="Cluster; that of the current context if not given.")] = None,
    form: Form = output.Output.table,
) -> None:
    """Describe a cluster of the configuration."""
    known = config.load()
    cluster = known.cluster(name or known.context().cluster)
    document = cluster.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["contexts"] = [c.name for c in known.contexts if c.cluster == cluster.name]
    document["accounts"] = sorted({c.account for c in known.contexts if c.cluster == cluster.name})
    document["current"] = known.current_context in document["contexts"]
    output.record(document if form is output.Output.json else _flat(document), form)


def _flat(document: dict[str, Any]) -> dict[str, Any]:
    return {k: ", ".join(v) if isinstance(v, list) else v for k, v in document.items()}


@app.command("claim-super-admin-access")
def claim_super_admin_access(
    *,
    cluster_name: Annotated[
        str | None, typer.Option("--cluster", help="Cluster, added to the configuration if missing; the current one.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Its namespace, if it is not in the configuration yet.")] = None,
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
    local: LocalName = None,
    account: Annotated[
        str | None,
        typer.Option(help="Account that becomes super admin (that of the context, or admin); made if missing."),
    ] = None,
) -> None:
    """Become super admin with the one-time code that the bootstrap left in a Kubernetes Secret."""
    known = config.load()
    name = cluster_name or (known.context().cluster if known.current_context else LOCAL)
    used = next((c.account for c in known.contexts if c.name == name), DEFAULT_ACCOUNT)
    chosen = account or used
    if not any(entry.name == chosen for entry in known.accounts):
        create_account(chosen)
        known = config.load()
    if namespace is not None or not any(c.name == name for c in known.clusters):
        where = _where(local or default_local(kubeconfig, kube_context), kubeconfig, kube_context)
        cluster = asyncio.run(claim.find_cluster(name, namespace or "reside", where))
    else:
        cluster = known.cluster(name)
    known = known.with_cluster(cluster, chosen)
    asyncio.run(claim.claim(known, name))
    config.save(known)
    output.console.print(f"account {chosen} is super admin of cluster {name}")


def _where(local: str | None, kubeconfig: Path | None, kube_context: str | None) -> dict[str, Any]:
    if local is not None:
        found = stack_settings.local_cluster(local)
        return {key: found[key] for key in ("access", "kubeconfig", "kube_context")}
    return {
        "access": "port-forward",
        "kubeconfig": str(kubeconfig.absolute()) if kubeconfig else None,
        "kube_context": kube_context,
    }
