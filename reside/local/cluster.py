"""A local cluster: up, down, status.

This module connects the others: `layout` derives addresses and paths, `components` describes processes, `supervise`
runs them. `up` is level-triggered: it starts what is missing, and restarts what is unhealthy or runs with other
arguments. It does nothing on a healthy cluster.
"""

import os
import shutil
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from reside.local import (
    allocation,
    cgroups,
    components,
    health,
    info,
    ingress,
    ingress_objects,
    kubeconfigs,
    machine,
    namespaces,
    network,
    node,
    node_removal,
    pki,
    processes,
    workload,
)
from reside.local.components import Component, Find
from reside.local.errors import NeedsRootError, NoSuchClusterError, UnknownComponentError, UsageError
from reside.local.events import ComponentStatus, Progress, State, silent
from reside.local.info import ClusterInfo
from reside.local.layout import Layout, check_name
from reside.local.node_layout import NODES, nodes
from reside.local.starting import Clock, Starter
from reside.local.supervise import Place, Supervisor, end_all, end_processes
from reside.local.toolchain import OPTIONAL_TOOLS, Toolchain

UNRECORDED_SECONDS = 2.0
"""Seconds to wait for processes without a record to end."""

POD_SECONDS = 5.0
"""Seconds to wait for the processes of pods when the cluster is stopped."""


def default_state(name: str) -> Path:
    """Return the state folder of a local cluster: under `RESIDE_LOCAL_STATE`, else under the user's data folder."""
    base = os.environ.get("RESIDE_LOCAL_STATE")
    if base:
        return Path(base) / name
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(data) / "reside/local" / name


class LocalCluster:
    """A Kubernetes cluster of upstream binaries on this machine.

    Args:
        name: name of the cluster: at most 32 lower-case letters, digits and hyphens.
        state_dir: folder of all durable state; `default_state(name)` if None.
        control_plane_only: run only etcd, API server and controller-manager, on loopback, which needs no root.
            Ignored if the local cluster exists already.
        ingress: install Traefik and cert-manager as well. A local cluster that has them keeps them.
        nodes: number of nodes; None: as many as it has, and one for a new local cluster. `up` adds nodes, or drains and
            removes the last ones.
        toolchain: where to look for binaries; `Toolchain.default()` if None.

    Raises:
        UsageError: the name is invalid, the state folder belongs to a local cluster with another name, an ingress
            controller or nodes are asked for without a node, or so many nodes are impossible.
    """

    def __init__(
        self,
        name: str = "default",
        state_dir: Path | None = None,
        control_plane_only: bool = False,
        toolchain: Toolchain | None = None,
        *,
        ingress: bool = False,
        nodes: int | None = None,
    ) -> None:
        self.name = check_name(name)
        self.state = (state_dir or default_state(name)).absolute()
        existing = allocation.read_allocation(self.state)
        if existing is not None and existing.name != name:
            raise UsageError(f"{self.state} is the state of local cluster {existing.name!r}, not of {name!r}.")
        self.control_plane_only = existing.control_plane_only if existing else control_plane_only
        if ingress and self.control_plane_only:
            raise UsageError("A control plane alone has no pods, so it can't have an ingress controller.")
        self._wants_ingress = ingress
        self._nodes = _checked_nodes(nodes, existing, control_plane_only=self.control_plane_only)
        self._toolchain = toolchain or Toolchain.default()

    # Reading

    def info(self) -> ClusterInfo:
        """Return how to reach the cluster, even if it does not run.

        Raises:
            NoSuchClusterError: the local cluster was never up.
        """
        found = info.read_info(self.state)
        if found is None:
            raise NoSuchClusterError(self.name, self.state)
        return found

    def status(self) -> list[ComponentStatus]:
        """Return the status of every component.

        Raises:
            NoSuchClusterError: the local cluster was never up.
        """
        layout = self._existing_layout()
        supervisor = self._supervisor(layout)
        return [self._status(supervisor, component) for component in self._components(layout, Path)]

    def log(self, component: str) -> Path:
        """Return the log file of a component.

        Raises:
            UnknownComponentError: there is no such component.
        """
        layout = self._existing_layout()
        known = components.names(self._components(layout, Path))
        if component not in known:
            raise UnknownComponentError(component, known)
        return self._supervisor(layout).log(component)

    # Up and down

    def up(self, progress: Progress = silent) -> ClusterInfo:
        """Start the cluster; restart stopped or unhealthy components; return when it is usable.

        Raises:
            UsageError: root is required, or a tool is missing; the message contains the cure.
            DrainError: a node that is to be removed has a pod that does not end.
            ComponentFailedError: a component does not start.
        """
        clock = Clock(progress)
        with allocation.file_lock(self._lock_file()):
            self._stop_orphaned(clock)
            layout = self._without_surplus(self._allocate(), clock)
            supervisor = self._prepare(layout, clock)
            self._start_all(supervisor, layout, clock)
            result = info.describe(layout)
            info.write_info(self.state, result)
        return result

    def down(self, delete_state: bool = False, progress: Progress = silent) -> None:
        """Stop every process of the local cluster and remove what it created outside its state folder.

        Args:
            delete_state: whether to delete the state folder and release the index as well.
            progress: called with every step.
        """
        clock = Clock(progress)
        if allocation.read_allocation(self.state) is None and not self._orphaned():
            return
        with allocation.file_lock(self._lock_file()):
            self._stop_orphaned(clock)
            if allocation.read_allocation(self.state) is None:
                return
            layout = self._existing_layout()
            self._stop_all(layout, clock)
            if delete_state:
                self._allocator().release(layout.index, self.state)
                shutil.rmtree(self.state)

    # Internals

    def _lock_file(self) -> Path:
        """Return the lock file. It is next to the state folder, so that it remains when the folder is deleted."""
        return self.state.parent / f".{self.state.name}.lock"

    def _allocator(self) -> allocation.IndexAllocator:
        return allocation.IndexAllocator(
            allocation.user_folder() if self.control_plane_only else allocation.MACHINE_FOLDER
        )

    def _stop_orphaned(self, clock: Clock) -> None:
        """Stop what remains of a local cluster whose state folder was deleted, and release its index."""
        for allocator, orphan in self._orphaned():
            self._stop_all(allocation.layout_of(orphan, self.state), clock)
            allocator.release(orphan.index, self.state)

    def _orphaned(self) -> list[tuple[allocation.IndexAllocator, allocation.Allocation]]:
        """Return the allocations of this state folder if its content was deleted before `down`."""
        allocators = [allocation.IndexAllocator(f) for f in (allocation.user_folder(), allocation.MACHINE_FOLDER)]
        found = [(allocator, allocator.orphaned(self.name, self.state)) for allocator in allocators]
        return [(allocator, orphan) for allocator, orphan in found if orphan is not None]

    def _allocate(self) -> Layout:
        if not self.control_plane_only and os.geteuid() != 0:
            raise NeedsRootError
        allocated = self._allocator().allocate(
            self.name, self.state, self._is_usable, control_plane_only=self.control_plane_only
        )
        if self._wants_ingress:
            self._toolchain.find_all(OPTIONAL_TOOLS)
        allocated = allocation.extend(allocated, self.state, ingress=self._wants_ingress, nodes=self._nodes)
        return allocation.layout_of(allocated, self.state)

    def _without_surplus(self, layout: Layout, clock: Clock) -> Layout:
        """Drain and remove the nodes that the local cluster is not to have, and what an interrupted removal left."""
        if layout.control_plane_only:
            return layout
        supervisor = Supervisor(self.state, layout.pids, layout.logs, self._toolchain.search)
        removed = [each for each in nodes(layout) if each.number > self._nodes]
        running = [each for each in removed if supervisor.running(each.component("kubelet"))]
        if running and supervisor.running("kube-apiserver"):
            _run_step("drain", lambda: node_removal.drain(running, self._toolchain.find("kubectl")), clock)
        if removed:
            allocated = allocation.read_allocation(self.state)
            assert allocated is not None  # noqa: S101 - `_allocate` has written it
            layout = allocation.layout_of(allocation.with_nodes(allocated, self.state, self._nodes), self.state)
        for each in node_removal.clean(layout, supervisor, components.names(self._components(layout, Path))):
            clock.report(each.name, "stopped")
        return layout

    def _existing_layout(self) -> Layout:
        allocated = allocation.read_allocation(self.state)
        if allocated is None:
            raise NoSuchClusterError(self.name, self.state)
        return allocation.layout_of(allocated, self.state)

    def _is_usable(self, index: int) -> bool:
        layout = Layout(self.name, index, self.state, self.control_plane_only)
        if not all(_is_free(port) for port in layout.loopback_ports):
            return False
        return layout.control_plane_only or not network.is_used_by_others(layout)

    @staticmethod
    def _components(layout: Layout, find: Find) -> list[Component]:
        """Return the components of the local cluster; names and health checks do not depend on `find`."""
        node_components = [] if layout.control_plane_only else [*node.node(layout, find), *node.after_objects(layout)]
        ingress_components = ingress.ingress(layout, find) if layout.ingress else []
        return [*components.control_plane(layout, find), *node_components, *ingress_components]

    def _supervisor(self, layout: Layout) -> Supervisor:
        places = {node.number: Place(namespaces.entry(node), namespaces.token(node)) for node in nodes(layout)}
        return Supervisor(self.state, layout.pids, layout.logs, self._toolchain.search, places)

    def _prepare(self, layout: Layout, clock: Clock) -> Supervisor:
        written = pki.ensure(layout.pki, pki.certificates(layout), signers=pki.authorities(layout))
        kubeconfigs.write_kubeconfigs(layout)
        clock.report("certificates", "ready" if written else "unchanged")
        if not layout.control_plane_only:
            self._toolchain.find_all((*node.NODE_TOOLS, *(OPTIONAL_TOOLS if layout.ingress else ())))
            changed = machine.ensure(layout, self._toolchain.find)
            clock.report("network", "ready" if changed else "unchanged")
        return self._supervisor(layout)

    def _start_all(self, supervisor: Supervisor, layout: Layout, clock: Clock) -> None:
        find = self._toolchain.find
        supervisor.end_unrecorded_processes()
        starter = Starter(supervisor, clock)
        control_plane = components.control_plane(layout, find)
        if layout.control_plane_only:
            starter.start(control_plane)
            return
        starter.start([*control_plane, *node.node(layout, find)])
        node_removal.delete_objects(layout)
        for step, function in workload.install(layout, find):
            _run_step(step, function, clock)
        starter.start(node.after_objects(layout))
        for step, function in workload.wait(layout):
            _run_step(step, function, clock)
        if layout.ingress:
            _run_step("ingress objects", lambda: ingress_objects.install(layout, find), clock)
            starter.start(ingress.ingress(layout, find))
            _run_step("certificates issuer", lambda: ingress_objects.install_issuer(layout), clock)

    def _stop_all(self, layout: Layout, clock: Clock) -> None:
        supervisor = Supervisor(self.state, layout.pids, layout.logs, self._toolchain.search)
        if not layout.control_plane_only:
            supervisor.stop([pki.NODE_CONTROLLER])  # first, because it would have the pods of ended nodes deleted
            supervisor.stop([path.stem for path in layout.pids.glob("kubelet*.json")])  # they would restart the pods
            clock.report("pods", "stopping")
            end_processes(cgroups.processes(layout.cgroup), POD_SECONDS)
            clock.report("pods", "stopped")
        names = [path.stem for path in layout.pids.glob("*.json")] if layout.pids.exists() else []
        for wave in components.stop_order(names):
            for name in wave:
                clock.report(name, "stopping")
            supervisor.stop(wave)
            for name in wave:
                clock.report(name, "stopped")
        end_all(partial(processes.marked, self.state), UNRECORDED_SECONDS)
        if not layout.control_plane_only:
            end_all(partial(cgroups.processes, layout.cgroup), 0)
            machine.remove(layout)
            clock.report("network", "stopped")

    @staticmethod
    def _status(supervisor: Supervisor, component: Component) -> ComponentStatus:
        process = supervisor.running(component.name)
        log = str(supervisor.log(component.name))
        if process is None:
            return ComponentStatus(component.name, "stopped", None, log)
        state: State = "running" if health.is_healthy(component.health) else "unhealthy"
        return ComponentStatus(component.name, state, process.pid, log)


def _run_step(step: str, function: Callable[[], None], clock: Clock) -> None:
    clock.report(step, "starting")
    function()
    clock.report(step, "ready")


def _checked_nodes(wanted: int | None, existing: allocation.Allocation | None, *, control_plane_only: bool) -> int:
    """Return the number of nodes to have; refuse a number that is impossible.

    Raises:
        UsageError: it is.
    """
    number = wanted or (existing.nodes if existing else 1)
    if wanted is not None and wanted not in NODES:
        raise UsageError(f"A local cluster can't have {wanted} nodes: choose a number from 1 to {NODES[-1]}.")
    if number > 1 and control_plane_only:
        raise UsageError("A control plane alone has no nodes: leave out --nodes, or delete it with its state first.")
    return number


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
