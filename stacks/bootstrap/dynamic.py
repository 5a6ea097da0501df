"""The dynamic resources of the bootstrap: each is one step, whose create is idempotent.

Pulumi's state contains these providers pickled, with the names of this module and its classes. Renaming one would make
`destroy` of existing stacks fail ("No module named"); a test freezes the names. The code runs in the dynamic provider's
process, which has neither the program's memory nor its environment: it depends on its inputs only. The resources form a
chain, because that process runs at most four creates at a time. Inputs and outputs contain no secrets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import pulumi  # noqa: TC002 - Pulumi evaluates the annotations of resource classes
from pulumi.dynamic import ConfigureRequest, CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings


class StepProvider(ResourceProvider, ABC):
    """A step; a change of one of the settings named by `watched` runs it again."""

    watched: tuple[str, ...] = ()

    @abstractmethod
    def run(self, settings: BootstrapSettings) -> dict[str, Any]:
        """Run the step, unless it is complete already; return the outputs."""

    def configure(self, _request: ConfigureRequest) -> None:
        """Make the provider's process exit when its engine exits; Pulumi calls this first."""
        from reside.seed import engine_watch  # noqa: PLC0415 - see _settings

        engine_watch.exit_with_engine()

    def undo(self, settings: BootstrapSettings) -> None:
        """Remove what the step created; do nothing if another step does so."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Run the step; its id is the step's name and namespace."""
        return CreateResult(id_=f"{type(self).__name__}-{_settings(props).namespace}", outs=self._outputs(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Run the step again with new settings."""
        return UpdateResult(outs=self._outputs(news))

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare the settings: another namespace replaces the resource, another watched setting updates it."""
        old, new = _settings(olds), _settings(news)
        replaces = ["settings"] if old.namespace != new.namespace else []
        changed = any(getattr(old, member) != getattr(new, member) for member in self.watched)
        return DiffResult(changes=changed or bool(replaces), replaces=replaces, delete_before_replace=True)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Undo the step; needs at most the Kubernetes API, never the program."""
        self.undo(_settings(props))

    def _outputs(self, props: dict[str, Any]) -> dict[str, Any]:
        return {"settings": props["settings"], **self.run(_settings(props))}


def _settings(props: dict[str, Any]) -> BootstrapSettings:
    from reside.seed.settings import BootstrapSettings  # noqa: PLC0415 - needed only in the provider's process

    return BootstrapSettings.from_json(props["settings"])


class NamespaceProvider(StepProvider):
    """Create the namespace unless it exists; never delete it, because others may use it."""

    def run(self, settings: BootstrapSettings) -> dict[str, Any]:
        """Create the namespace, or read it if it exists."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        return steps.namespace(settings)

    def undo(self, settings: BootstrapSettings) -> None:
        """Delete what an interrupted phase created and Pulumi's state does not contain; keep the namespace."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        steps.delete_all(settings.target)


class ReadyProvider(StepProvider):
    """Wait until Jazz and etcd are ready."""

    def run(self, settings: BootstrapSettings) -> dict[str, Any]:
        """Wait until both are ready."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        return steps.ready(settings)


class IdentitiesProvider(StepProvider):
    """Create the accounts of Alpha and the Sentinel and their data, unless they exist."""

    def run(self, settings: BootstrapSettings) -> dict[str, Any]:
        """Create the accounts, or read them if they exist; output their ids."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        return steps.identities(settings)

    def undo(self, settings: BootstrapSettings) -> None:
        """Delete what an interrupted later phase created, and the Secrets with the credentials of Alpha."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        steps.delete_all(settings.target)


class LaunchedProvider(StepProvider):
    """Start Alpha and the Sentinel in this process and wait for their permissions."""

    def run(self, settings: BootstrapSettings) -> dict[str, Any]:
        """Start both and wait."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        return steps.launch(settings)


class LoadedProvider(StepProvider):
    """Load the seed, the Sentinel and Alpha."""

    watched = (
        "images",
        "registry_mirrors",
        "image_repository",
        "registry_authorities",
        "registry_credentials",
        "domain",
        "cluster_issuer",
        "default_placement_group",
        "allowed_registries",
        "request_expiry_hours",
        "request_history",
        "traces_endpoint",
        "policy",
        "network_policies",
        "state_backend",
        "secrets_provider",
        "ingress_namespace",
        "ingress_class",
        "ingress_annotations",
        "gateway",
    )

    def run(self, settings: BootstrapSettings) -> dict[str, Any]:
        """Load the images that are not current."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        return steps.load(settings)


class HandedOverProvider(StepProvider):
    """Declare the stack `platform` and end careful mode."""

    watched = (
        "images",
        "jazz_mode",
        "storage_class",
        "storage_size",
        "network_policies",
        "domain",
        "cluster_issuer",
        "ingress_namespace",
        "ingress_class",
        "ingress_annotations",
        "gateway",
        "image_repository",
        "registry_credentials",
    )

    def run(self, settings: BootstrapSettings) -> dict[str, Any]:
        """Hand the platform over."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        return steps.hand_over(settings)

    def undo(self, settings: BootstrapSettings) -> None:
        """Stop the Sentinel, then delete all objects that it manages."""
        from reside.seed import steps  # noqa: PLC0415 - see _settings

        steps.delete_managed(settings.target)


class _Step(Resource):
    """A step as a resource of the program."""

    def __init__(
        self,
        provider: StepProvider,
        name: str,
        settings: BootstrapSettings,
        options: pulumi.ResourceOptions,
        outputs: tuple[str, ...] = (),
    ) -> None:
        super().__init__(provider, name, {"settings": settings.to_json(), **dict.fromkeys(outputs)}, options)


class Namespace(_Step):
    """The cluster's namespace."""

    def __init__(self, name: str, settings: BootstrapSettings, options: pulumi.ResourceOptions) -> None:
        super().__init__(NamespaceProvider(), name, settings, options)


class Ready(_Step):
    """The wait for Jazz and etcd."""

    def __init__(self, name: str, settings: BootstrapSettings, options: pulumi.ResourceOptions) -> None:
        super().__init__(ReadyProvider(), name, settings, options)


class Identities(_Step):
    """The accounts of Alpha and the Sentinel."""

    alpha: pulumi.Output[str]
    sentinel: pulumi.Output[str]

    def __init__(self, name: str, settings: BootstrapSettings, options: pulumi.ResourceOptions) -> None:
        super().__init__(IdentitiesProvider(), name, settings, options, ("alpha", "sentinel"))


class Launched(_Step):
    """The run of Alpha and the Sentinel in the seed until every expected permission is granted."""

    def __init__(self, name: str, settings: BootstrapSettings, options: pulumi.ResourceOptions) -> None:
        super().__init__(LaunchedProvider(), name, settings, options)


class Loaded(_Step):
    """The load of the seed, the Sentinel and Alpha; Sentinel and Alpha then run as pods."""

    def __init__(self, name: str, settings: BootstrapSettings, options: pulumi.ResourceOptions) -> None:
        super().__init__(LoadedProvider(), name, settings, options)


class HandedOver(_Step):
    """The hand-over of the platform to the Sentinel in the cluster."""

    def __init__(self, name: str, settings: BootstrapSettings, options: pulumi.ResourceOptions) -> None:
        super().__init__(HandedOverProvider(), name, settings, options)
