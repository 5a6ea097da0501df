"""The link between the machine and the first node of a local cluster: its routes and packet filter rules.

The link is one pair of virtual interfaces: the machine's end has `layout.host_address`, the node's end
`layout.node_address`. The machine routes all addresses of the cluster to the node. Therefore the machine reaches pods
and Services, and packets for a cluster address do not leave it while the link is up. On the node, unused addresses are
unreachable; without this route, the node would send their packets back to the machine.

The rules on the machine let pods reach other networks, with the machine's address as source. They drop packets from
other networks and other local clusters to the pods and to what listens on the link. Each rule has a comment with the
local cluster's index.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reside.local.layout import Layout
from reside.local.node_layout import first_node
from reside.local.node_links import UPLINK
from reside.local.shell import run, succeeds

_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass(frozen=True)
class Rule:
    """One iptables rule.

    Args:
        table: name of the table.
        chain: name of the chain.
        spec: match and target.
    """

    table: str
    chain: str
    spec: tuple[str, ...]

    def command(self, action: str) -> list[str]:
        """Return the command that checks (`-C`) or inserts (`-I`) the rule."""
        return ["iptables", "-w", "-t", self.table, action, self.chain, *self.spec]


def comment(layout: Layout) -> str:
    """Return the comment of a local cluster's rules: its index, because names are not unique on a machine."""
    return f"reside-local:{layout.index}"


def rules(layout: Layout) -> list[Rule]:
    """Return the machine's rules for a local cluster in the order of insertion: the last one is first in its chain."""
    note = ("-m", "comment", "--comment", comment(layout))
    not_local = ("-m", "addrtype", "!", "--src-type", "LOCAL")
    net, link, port = layout.network, layout.link, str(layout.registry_bridge_port)
    return [
        Rule("nat", "POSTROUTING", ("-s", net, "!", "-d", net, "!", "-o", link, *note, "-j", "MASQUERADE")),
        Rule("filter", "FORWARD", ("-o", link, *note, "-j", "DROP")),
        Rule("filter", "FORWARD", ("-i", link, "!", "-o", "reside+", *note, "-j", "ACCEPT")),
        Rule(
            "filter",
            "FORWARD",
            ("-o", link, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", *note, "-j", "ACCEPT"),
        ),
        # Let pods reach the registry even if the machine's firewall drops packets by default
        Rule(
            "filter",
            "INPUT",
            ("-i", link, "-d", layout.host_address, "-p", "tcp", "--dport", port, *note, "-j", "ACCEPT"),
        ),
        # Linux accepts packets for all of its addresses on any interface: drop those that do not come over the link
        Rule(
            "filter",
            "INPUT",
            ("-d", layout.host_address, "!", "-i", link, *not_local, *note, "-j", "DROP"),
        ),
    ]


def ensure(layout: Layout) -> bool:
    """Create link, addresses, routes and rules if they are missing; return whether the link was created."""
    if _FORWARDING.read_text().strip() != "1":
        _FORWARDING.write_text("1")
    created = _ensure_link(layout)
    for command in _addresses_and_routes(layout):
        run(*command)
    if not all(succeeds(*rule.command("-C")) for rule in rules(layout)):
        _remove_rules(layout)  # their order matters, so insert all of them again
        for rule in rules(layout):
            run(*rule.command("-I"))
    return created


def remove(layout: Layout) -> None:
    """Remove the link, which removes its routes as well, and the rules."""
    if succeeds("ip", "link", "show", layout.link):
        run("ip", "link", "delete", layout.link)
    _remove_rules(layout)


def _remove_rules(layout: Layout) -> None:
    """Remove every rule with the local cluster's comment, including those of earlier versions of this module."""
    for table in ("nat", "filter"):
        for line in run("iptables", "-w", "-t", table, "-S").splitlines():
            words = shlex.split(line)
            if words[0] == "-A" and comment(layout) in words:
                run("iptables", "-w", "-t", table, "-D", *words[1:])


def is_used_by_others(layout: Layout) -> bool:
    """Return whether the machine has a route or an interface in the local cluster's network already."""
    prefix = layout.network.removesuffix(".0.0/16") + "."
    routes = json.loads(run("ip", "-j", "route", "show", "table", "all"))
    return any(str(route.get("dst", "")).startswith(prefix) for route in routes)


def _ensure_link(layout: Layout) -> bool:
    inside = ["ip", "-n", first_node(layout).namespace, "link", "show", UPLINK]
    if succeeds("ip", "link", "show", layout.link):
        if succeeds(*inside):
            return False
        run("ip", "link", "delete", layout.link)
    peer = ["peer", "name", UPLINK, "netns", first_node(layout).namespace]
    run("ip", "link", "add", layout.link, "type", "veth", *peer)
    return True


def _addresses_and_routes(layout: Layout) -> Iterator[list[str]]:
    node = ["ip", "-n", first_node(layout).namespace]
    yield ["ip", "address", "replace", f"{layout.host_address}/30", "dev", layout.link]
    yield ["ip", "link", "set", layout.link, "up"]
    yield [*node, "link", "set", "lo", "up"]
    yield [*node, "address", "replace", f"{layout.node_address}/30", "dev", UPLINK]
    yield [*node, "link", "set", UPLINK, "up"]
    yield [*node, "route", "replace", "default", "via", layout.host_address]
    yield [*node, "route", "replace", "unreachable", layout.network]
    # Processes of the node need a route to Services, or their packets never reach kube-proxy's rules
    yield [*node, "route", "replace", layout.service_range, "dev", UPLINK]
    yield ["ip", "route", "replace", layout.network, "via", layout.node_address, "dev", layout.link]
