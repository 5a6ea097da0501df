"""The links between the first node and the further ones, and the routes between all nodes.

The first node is the router: each further node has a pair of virtual interfaces to it, and sends everything that is not
for its own pods there. So the machine has one link and one route, whatever the number of nodes, and all links end with
the namespaces.
"""

from collections.abc import Iterator

from reside.local.layout import Layout
from reside.local.namespaces import entry
from reside.local.node_layout import NodeLayout, first_node, nodes
from reside.local.shell import run, succeeds

UPLINK = "uplink"
"""Name of a node's interface to the machine or to the first node."""


def ensure(layout: Layout) -> bool:
    """Create the links, addresses and routes that are missing; return whether a link was created."""
    further = [node for node in nodes(layout) if not node.is_first]
    if not further:
        return False
    first = first_node(layout)
    _forward(first)
    created = False
    for node in further:
        _forward(node)
        created = _ensure_link(first, node) or created
        for command in _addresses_and_routes(first, node):
            run(*command)
    return created


def _forward(node: NodeLayout) -> None:
    """Let the node forward packets; the CNI plugin does this only when the node gets its first pod."""
    run(*entry(node), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")


def _ensure_link(first: NodeLayout, node: NodeLayout) -> bool:
    inside = ["ip", "-n", first.namespace, "link"]
    if succeeds(*inside, "show", node.interface):
        if succeeds("ip", "-n", node.namespace, "link", "show", UPLINK):
            return False
        run(*inside, "delete", node.interface)
    run(*inside, "add", node.interface, "type", "veth", "peer", "name", UPLINK, "netns", node.namespace)
    return True


def _addresses_and_routes(first: NodeLayout, node: NodeLayout) -> Iterator[list[str]]:
    here, there = ["ip", "-n", first.namespace], ["ip", "-n", node.namespace]
    yield [*here, "address", "replace", first.address, "peer", f"{node.address}/32", "dev", node.interface]
    yield [*here, "link", "set", node.interface, "up"]
    yield [*here, "route", "replace", node.pod_range, "via", node.address, "dev", node.interface]
    yield [*there, "link", "set", "lo", "up"]
    yield [*there, "address", "replace", node.address, "peer", f"{first.address}/32", "dev", UPLINK]
    yield [*there, "link", "set", UPLINK, "up"]
    yield [*there, "route", "replace", "default", "via", first.address, "dev", UPLINK]
    # Unused addresses: the first node would send their packets back
    yield [*there, "route", "replace", "unreachable", node.pod_range]
