"""Run the node controller of a local cluster (see `reside.local.node_controller`).

The command is `python -m reside.local.control_nodes`.
"""

from functools import partial
from pathlib import Path

from reside.local import cgroups
from reside.local.allocation import layout_of, read_allocation
from reside.local.component_client import connect, read_options, serve_health
from reside.local.node_controller import NodeController, run
from reside.local.node_layout import NodeLayout, nodes
from reside.local.supervise import Supervisor


def ended_nodes(state: Path) -> set[str]:
    """Return the names of the nodes of which neither the kubelet nor a process of a pod runs."""
    allocated = read_allocation(state)
    if allocated is None:
        return set()
    layout = layout_of(allocated, state)
    supervisor = Supervisor(state, layout.pids, layout.logs, "")
    return {node.name for node in nodes(layout) if not _runs(node, supervisor)}


def _runs(node: NodeLayout, supervisor: Supervisor) -> bool:
    return supervisor.running(node.component("kubelet")) is not None or bool(cgroups.processes(node.pods_cgroup))


def main() -> None:
    """Run the node controller of one local cluster."""
    options = read_options(__doc__, "state")
    ready = serve_health(options.socket)
    with connect(options) as client:
        run(NodeController(client, partial(ended_nodes, options.state)), ready)


if __name__ == "__main__":
    main()
