"""The units to build, with their packages, flags and binaries, as data."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

PULUMI_VERSION = "v3.259.0"
KUBERNETES_VERSION = "v1.34.3"
ETCD_VERSION = "3.6.7"
COREDNS_VERSION = "1.12.0"
TRAEFIK_VERSION = "3.6.12"
CERT_MANAGER_VERSION = "v1.19.4"
CERT_MANAGER_RESOURCES = (
    "acme.cert-manager.io_challenges.yaml",
    "acme.cert-manager.io_orders.yaml",
    "cert-manager.io_certificaterequests.yaml",
    "cert-manager.io_certificates.yaml",
    "cert-manager.io_clusterissuers.yaml",
    "cert-manager.io_issuers.yaml",
)
"""Files with cert-manager's resource definitions, which `reside local up --ingress` installs."""
GATEWAY_RESOURCES = (
    "gateway.networking.k8s.io_backendtlspolicies.yaml",
    "gateway.networking.k8s.io_gatewayclasses.yaml",
    "gateway.networking.k8s.io_gateways.yaml",
    "gateway.networking.k8s.io_grpcroutes.yaml",
    "gateway.networking.k8s.io_httproutes.yaml",
    "gateway.networking.k8s.io_referencegrants.yaml",
)
"""Files with the resource definitions of the Gateway API, which the same command installs."""
_KUBERNETES_LDFLAGS = " ".join(
    [
        "-s -w",
        f"-X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}",
        "-X k8s.io/component-base/version.gitMajor=1",
        "-X k8s.io/component-base/version.gitMinor=34",
    ]
)


@dataclass(frozen=True)
class VersionCheck:
    """How to check that a binary on PATH has the right version.

    Args:
        arguments: the arguments with which it is run.
        expected: what its output must contain, as a whole word.
        by: another binary of the same folder to run instead, for a binary that can't show its version.
    """

    arguments: tuple[str, ...]
    expected: str
    by: str | None = None

    def accepts(self, output: str) -> bool:
        """Return whether this is the output of the right version."""
        return re.search(rf"(?<![\w.-]){re.escape(self.expected)}(?![\w.+-])", output) is not None


@dataclass(frozen=True)
class Unit:
    """One Go module.

    Args:
        name: its name for `--only`.
        packages: binary → the Go package that it is built from.
        ldflags: flags for the linker.
        checks: binary that may be taken from PATH → how to check its version.
        copies: files to copy beside the binaries: name → (module, path in the module).
        together: whether all of its binaries are taken from one folder of PATH, or none.
        folder: its folder in the checkout; None: `tools/` and its name.
        after: units to build first; its go.mod requires the same versions, so it uses their compiled packages.
        patches: module → a folder in the unit's folder with what is changed in the module (`patches.py`).
        optional: whether it is built only if it is asked for, because few targets need it.
        cost: approximate processor time in seconds of building it after those, on one machine with two cores.
        compiled: approximate number of packages that this compiles.
    """

    name: str
    packages: Mapping[str, str]
    ldflags: str = "-s -w"
    checks: Mapping[str, VersionCheck] = field(default_factory=dict)
    copies: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    together: bool = False
    folder: str | None = None
    after: frozenset[str] = frozenset()
    patches: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    cost: float = 1.0
    compiled: int = 1

    @property
    def module(self) -> str:
        """Path of the module in the checkout."""
        return self.folder or f"tools/{self.name}"

    @property
    def binaries(self) -> list[str]:
        """Names of all its files."""
        return [*self.packages, *self.copies]


def _all(names: list[str], check: Callable[[str], VersionCheck]) -> dict[str, VersionCheck]:
    return {name: check(name) for name in names}


_KUBERNETES = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"]
_SDK = "github.com/pulumi/pulumi/sdk/v3"
_TRAEFIK = "github.com/traefik/traefik/v3"
_GATEWAY_API = "sigs.k8s.io/gateway-api"
_CERT_MANAGER = "github.com/cert-manager/cert-manager"
# Without its version, the engine refuses plugins and SDKs.
_PULUMI_LDFLAGS = f"-s -w -X {_SDK}/go/common/version.Version={PULUMI_VERSION}"

UNITS = (
    Unit(
        "kubernetes",
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in [*_KUBERNETES, "kubectl"]},
        _KUBERNETES_LDFLAGS,
        {
            **_all(_KUBERNETES, lambda _: VersionCheck(("--version",), KUBERNETES_VERSION)),
            "kubectl": VersionCheck(("version", "--client"), KUBERNETES_VERSION),
        },
        cost=900,
        compiled=2657,
    ),
    Unit(
        "pulumi",
        {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
        _PULUMI_LDFLAGS,
        {"pulumi": VersionCheck(("version",), PULUMI_VERSION)},
        cost=600,
        compiled=1685,
    ),
    # Our own code, so no binary on PATH is used instead
    Unit(
        "reside-engine",
        {"reside-engine": "reside.dev/engine", "reside-plugin-guard": "reside.dev/engine/guard"},
        _PULUMI_LDFLAGS,
        folder="engine",
        after=frozenset({"pulumi"}),
        cost=15,
        compiled=40,
    ),
    Unit(
        "pulumi-language-python",
        {"pulumi-language-python": "."},
        # The language host does not report its version. It is installed in the same folder as a pulumi of its version.
        checks={"pulumi-language-python": VersionCheck(("version",), PULUMI_VERSION, by="pulumi")},
        copies={
            "pulumi-language-python-exec": (_SDK, "python/cmd/pulumi-language-python-exec"),
            "pulumi-resource-pulumi-python": (_SDK, "python/dist/pulumi-resource-pulumi-python"),
        },
        together=True,
        after=frozenset({"pulumi"}),
        cost=60,
        compiled=215,
    ),
    # The provider can't show its version, so one on PATH is never used
    Unit(
        "pulumi-kubernetes",
        {"pulumi-resource-kubernetes": "."},
        # The release sends three requests for each update
        patches={"github.com/pulumi/pulumi-kubernetes/provider/v4": "patches/provider"},
        after=frozenset({"kubernetes"}),
        cost=120,
        compiled=448,
    ),
    Unit(
        "etcd",
        {"etcd": "go.etcd.io/etcd/server/v3"},
        checks={"etcd": VersionCheck(("--version",), ETCD_VERSION)},
        after=frozenset({"kubernetes"}),
        cost=60,
        compiled=238,
    ),
    Unit(
        "coredns",
        {"coredns": "."},
        checks={"coredns": VersionCheck(("-version",), f"CoreDNS-{COREDNS_VERSION}")},
        cost=159,
        compiled=734,
    ),
    Unit("pause", {"pause": "."}),
    Unit(
        "traefik",
        {"traefik": "github.com/traefik/traefik/v3/cmd/traefik"},
        f"-s -w -X {_TRAEFIK}/pkg/version.Version={TRAEFIK_VERSION} -X {_TRAEFIK}/pkg/version.Codename=ramequin",
        {"traefik": VersionCheck(("version",), TRAEFIK_VERSION)},
        # A third of Traefik is clients of DNS services for certificates, which cert-manager gets instead
        patches={"github.com/go-acme/lego/v4": "patches/lego"},
        optional=True,
        cost=300,
        compiled=1650,
    ),
    # Upstream's commands are not served by Go's proxy, so `main.go` is our own, and none on PATH is used instead
    Unit(
        "cert-manager",
        {"cert-manager": "."},
        f"-s -w -X {_CERT_MANAGER}/pkg/util.AppVersion={CERT_MANAGER_VERSION}",
        copies={name: (_CERT_MANAGER, f"deploy/crds/{name}") for name in CERT_MANAGER_RESOURCES}
        | {name: (_GATEWAY_API, f"config/crd/standard/{name}") for name in GATEWAY_RESOURCES},
        optional=True,
        cost=210,
        compiled=1660,
    ),
)
"""In the order of building: the slowest first, so that none of the slow ones is built alone at the end.

Optional units follow.
"""
