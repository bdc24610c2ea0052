"""The sandbox as a process: started with options, ready when it prints one line, stopped cleanly by a signal.

`Sandbox` is the server within a running loop (tests use it directly); `main` is the process around it. `process.py`
starts that process from another one.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ksched.errors import SandboxError
from ksched.sandbox import certificates, kubeconfig
from ksched.sandbox.clock import Clock
from ksched.sandbox.control import Control
from ksched.sandbox.controllers import DeploymentController, NodeAgent
from ksched.sandbox.http import Connection
from ksched.sandbox.journal import FileJournal
from ksched.sandbox.nodes import plain_nodes
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.routes import Routes

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_EVENT_SWEEP_SECONDS = 60.0
_STOP_SECONDS = 5.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """How a sandbox is started."""

    port: int = 0
    """0 takes a free one."""
    host: str = "127.0.0.1"
    tls: bool = False
    kubeconfig_out: str | None = None
    """Where the kubeconfig is written; a new temporary directory if not given."""
    nodes: int = 0
    """How many plain nodes exist from the start."""
    agent: bool = True
    """Whether a node agent runs the bound pods and taints nodes."""
    deployments: bool = True
    """Whether deployments and replica sets have a controller."""
    history: int = 50_000
    """Changes remembered per kind; watches from before are answered 410."""
    bookmark_seconds: float = 60.0
    event_seconds: float = 3600.0
    """How long events are kept."""
    seed: int = 0
    data_dir: str | None = None
    """Where objects survive a restart; nowhere if not given."""
    token: str | None = None
    """A bearer token that every request must carry; none is asked for if not given."""


class Sandbox:
    """A server in a running loop."""

    def __init__(self, options: SandboxOptions) -> None:
        self.options = options
        self.url = ""
        self.kubeconfig = Path()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._journal: FileJournal | None = None
        self._controllers: list[NodeAgent | DeploymentController] = []
        self._sweep: asyncio.TimerHandle | None = None
        self.control = Control(Revisions(options.history), Clock(), seed=options.seed, token=options.token)

    async def start(self) -> None:
        """Listen and answer; raises `SandboxError` with one line that says why it cannot."""
        loop = asyncio.get_running_loop()
        options = self.options
        self._open_store(loop)
        directory = self._directory()
        made = certificates.ensure(directory / "pki", options.host) if options.tls else None
        routes = Routes(self.control)
        try:
            self._server = await loop.create_server(
                lambda: Connection(routes, self._connections),
                options.host,
                options.port,
                ssl=made.server_context() if made is not None else None,
                backlog=1024,
            )
        except OSError as error:
            raise SandboxError(f"cannot listen on {options.host}:{options.port}: {error.strerror}") from error
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if options.tls else 'http'}://{_in_url(options.host)}:{port}"
        self.kubeconfig = Path(options.kubeconfig_out) if options.kubeconfig_out else directory / "kubeconfig"
        kubeconfig.write(self.kubeconfig, self.url, certificates=made, token=options.token)
        self.control.watches.start(loop, options.bookmark_seconds)
        self._sweep = loop.call_later(_EVENT_SWEEP_SECONDS, self._sweep_events, loop)
        await self._start_controllers()

    async def stop(self) -> None:
        """End the watches properly, close every connection, and keep what is to be kept."""
        for controller in reversed(self._controllers):
            await controller.stop()
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        self.control.watches.stop()
        for connection in list(self._connections):
            connection.shut()
        if self._server is not None:
            try:
                await asyncio.wait_for(self._server.wait_closed(), _STOP_SECONDS)
            except TimeoutError:
                for connection in list(self._connections):
                    connection.cut()
        if self._journal is not None:
            self._journal.compact(self.control.revisions)
            self._journal.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _open_store(self, loop: asyncio.AbstractEventLoop) -> None:
        control, options = self.control, self.options
        control.verbs.defer_to(loop.call_soon)
        if options.data_dir is not None:
            self._journal = FileJournal.open(Path(options.data_dir), control.revisions)
        for name in _NAMESPACES:
            if control.store.get("Namespace", "", name) is None:
                control.store.create("Namespace", {"metadata": {"name": name}})
        for node in plain_nodes(options.nodes):
            if control.store.get("Node", "", node["metadata"]["name"]) is None:
                control.store.create("Node", node)

    def _directory(self) -> Path:
        if self.options.data_dir is not None:
            return Path(self.options.data_dir)
        self._temporary = tempfile.TemporaryDirectory(prefix="ksched-sandbox-")
        return Path(self._temporary.name)

    async def _start_controllers(self) -> None:
        store = self.control.store
        if self.options.agent:
            self._controllers.append(NodeAgent(store))
        if self.options.deployments:
            self._controllers.append(DeploymentController(store))
        for controller in self._controllers:
            await controller.start()

    def _sweep_events(self, loop: asyncio.AbstractEventLoop) -> None:
        self.control.verbs.drop_events_before(self.control.clock.stamp_after(-self.options.event_seconds))
        self._sweep = loop.call_later(_EVENT_SWEEP_SECONDS, self._sweep_events, loop)


async def serve(options: SandboxOptions, announce: Callable[[str], None] = print) -> None:
    """Run a sandbox until SIGTERM or SIGINT; `announce` is given one line when it is ready."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    sandbox = Sandbox(options)
    try:
        await sandbox.start()
        # The server's objects are few and live long, or are bytes: collections in between would only cost time.
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        announce(f"sandbox listening on {sandbox.url}, kubeconfig {sandbox.kubeconfig}")
        await stopped.wait()
    finally:
        await sandbox.stop()
        # Closing uvloop's loop leaves its handlers, and a process that goes on could not be stopped any more.
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)


def main(
    options: SandboxOptions,
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    announce: Callable[[str], None] = lambda line: print(line, flush=True),
) -> None:
    """Run a sandbox in this process until it is told to stop."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(serve(options, announce))


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
