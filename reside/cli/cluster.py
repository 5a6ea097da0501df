"""`reside cluster`: bootstrap clusters, describe them, claim super admin."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from reside.cli import (
    backups,
    claim,
    cluster_logs,
    config,
    contexts,
    deleting,
    joining,
    output,
    project,
    pruning,
    registry_login,
    shell,
    upgrading,
)
from reside.cli.accounts import create_account
from reside.cli.cluster_options import ClusterOptions, Kubeconfig, KubeContext, LocalName, connection_of, default_local
from reside.cli.fresh import FreshOptions, check_name, clear, prepare_local
from reside.cli.outages import AGAIN, leaving
from reside.cli.progress import Progress, ProgressOption, Steps, print_result
from reside.cli.shared_options import with_options
from reside.model.errors import InvalidInput
from reside.seed import outcome, recording
from reside.seed import settings as stack_settings
from reside.seed.rendering import render

app = typer.Typer(no_args_is_help=True)
app.command("prune")(pruning.prune)
app.command("add")(joining.add)
app.command("list")(contexts.list_clusters)
app.command("use")(contexts.use)
app.command("info")(contexts.info)
app.command("backup")(backups.backup)
app.command("restore")(backups.restore)
app.command("delete")(deleting.delete)
app.command("upgrade")(upgrading.upgrade)
app.command("logs")(cluster_logs.logs)

LOCAL = "local"
DEFAULT_ACCOUNT = "admin"

Name = Annotated[str, typer.Argument(help="Name of the cluster in the local configuration, and of its stack.")]


def bootstrap_cluster(
    name: str, settings: stack_settings.BootstrapSettings, account: str, endpoint: str | None, steps: Steps
) -> config.Cluster:
    """Run the bootstrap program, add cluster and context to the configuration, and claim super admin.

    A second run on the same cluster changes nothing.
    """
    configuration = config.load()
    if not any(entry.name == account for entry in configuration.accounts):
        create_account(account)
    start = outcome.timestamp()
    try:
        outputs = project.up(settings, name, steps.report)
    except project.BootstrapFailedError as error:
        recording.record_failure(settings.target, None, str(error), since=start)
        raise
    if not steps.seconds:
        recording.confirm(settings.target)
    cluster = config.Cluster(
        name=name,
        namespace=settings.namespace,
        endpoint=endpoint or (f"https://{settings.domain}" if settings.domain else None),
        alpha_replica_id=str(outputs["alphaAccountId"]),
        kube_context=settings.kube_context,
        kubeconfig=settings.kubeconfig,
        access="direct" if settings.access == "direct" else "port-forward",
    )
    config.change(lambda current: current.with_cluster(cluster, account))
    steps.report("super admin", "started")
    claimed = asyncio.run(claim.claim_if_unclaimed(config.load(), name))
    steps.report("super admin", "done" if claimed else "unchanged")
    return cluster


@app.command("bootstrap")
@with_options(ClusterOptions)
@with_options(FreshOptions, "fresh")
def bootstrap(
    name: Name,
    *,
    endpoint: Annotated[str | None, typer.Option(help="URL of the cluster for clients outside of Kubernetes.")] = None,
    kube_context: KubeContext = None,
    account: Annotated[
        str, typer.Option(help="Account that becomes super admin. Created if missing.")
    ] = DEFAULT_ACCOUNT,
    fresh: FreshOptions,
    options: ClusterOptions,
    format_: ProgressOption = Progress.text,
) -> None:
    """Create a cluster, add it to the configuration and claim super admin. Run it again if it was interrupted."""
    project.checkout("`reside cluster bootstrap`")
    config.check_cluster_name(name)
    settings = prepare_local(fresh, options).settings(kube_context)
    check_name(fresh, name, settings)
    clear(fresh, name, settings.target)
    with leaving(AGAIN), Steps(f"cluster {name}", format_) as steps:
        if options.registry_config is not None:
            asyncio.run(registry_login.store_login(settings.target, registry_login.read_login(options.registry_config)))
        cluster = bootstrap_cluster(name, settings, account, endpoint, steps)
    text = f"cluster {name} is up in namespace {cluster.namespace}; context {name} is current"
    print_result(format_, text, cluster=name, namespace=cluster.namespace, alphaAccount=cluster.alpha_replica_id)


@app.command("manifest")
@with_options(ClusterOptions)
def manifest(options: ClusterOptions) -> None:
    """Print the Kubernetes objects of the seed as YAML for `kubectl apply -f -`."""
    settings = options.settings()
    if settings.registry_credentials:
        output.errors.print(registry_login.hint(settings.namespace), highlight=False, soft_wrap=True)
    sys.stdout.write(render(settings))


@app.command("env")
def env() -> None:
    """Print the shell commands that set up `pulumi` for the repository's root: eval "$(reside cluster env)"."""
    sys.stdout.write("\n".join(shell.lines()) + "\n")


@app.command("claim-super-admin-access")
def claim_super_admin_access(
    *,
    cluster_name: Annotated[
        str | None,
        typer.Option("--cluster", help="Cluster, added to the configuration if missing; the current one if not given."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Namespace of the cluster, if it is not in the configuration yet.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
    local: LocalName = None,
    account: Annotated[
        str | None,
        typer.Option(
            help="Account that becomes super admin; that of the context, or admin, if not given. Created if missing."
        ),
    ] = None,
    recover: Annotated[
        bool,
        typer.Option(
            "--recover",
            help="Write a new code to the Secret and restart Alpha, if the super admin's key is lost. The lost account "
            "keeps its permissions until `reside permission clear`.",
        ),
    ] = False,
) -> None:
    """Claim super admin with the one-time code that the bootstrap wrote to a Kubernetes Secret."""
    configuration = config.load()
    location = [namespace, kubeconfig, kube_context, local]
    if cluster_name is None and configuration.current_context and any(option is not None for option in location):
        raise InvalidInput(
            "--cluster is missing: name the cluster, or omit --namespace, --kubeconfig, --kube-context and --local"
        )
    name = cluster_name or (configuration.context().cluster if configuration.current_context else LOCAL)
    if not any(each.name == name for each in configuration.clusters):
        config.check_cluster_name(name)
    used = next((c.account for c in configuration.contexts if c.name == name), DEFAULT_ACCOUNT)
    chosen = account or used
    if not any(entry.name == chosen for entry in configuration.accounts):
        create_account(chosen)
        configuration = config.load()
    if namespace is not None or not any(c.name == name for c in configuration.clusters):
        connection = connection_of(local or default_local(kubeconfig, kube_context), kubeconfig, kube_context)
        cluster = asyncio.run(claim.find_cluster(name, namespace or "reside", connection))
    else:
        cluster = configuration.cluster(name)
    configuration = configuration.with_cluster(cluster, chosen)
    asyncio.run(claim.claim(configuration, name, recover=recover))
    config.change(lambda current: current.with_cluster(cluster, chosen))
    output.console.print(f"account {chosen} is super admin of cluster {name}")
