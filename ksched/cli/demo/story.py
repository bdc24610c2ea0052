"""A demo from beginning to end, as numbered steps: server, cluster, scheduler, pods, the wait, the report.

The sandbox and the scheduler are processes of their own, as they are in life; this one creates objects, asks how
far things are, and judges. It fails as soon as either of the others ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ksched.api.client import Client
from ksched.cli.demo.follow import Follower, Server
from ksched.cli.demo.load import create_all
from ksched.cli.demo.plan import Plan
from ksched.cli.demo.report import Pending, Report
from ksched.cli.demo.screen import Screen
from ksched.cli.processes import KschedProcess
from ksched.errors import KschedError
from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions

LOOK_SECONDS = 0.2
"""Time between two looks at the server."""

START_SECONDS = 60.0
"""How long the scheduler may take until it watches."""

STALL_SECONDS = 60.0
"""A demo in which nothing is bound for so long will not end well."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the demo is run, apart from what is scheduled."""

    seed: int
    tls: bool
    backlog: bool
    """Whether all pods are there before the scheduler is started."""
    keep: bool
    log_dir: Path | None = None
    scheduler_flags: tuple[str, ...] = ()


async def demonstrate(
    plan: Plan, settings: Settings, screen: Screen, stop: asyncio.Event, finished: Callable[[Report], None]
) -> bool:
    """Run `plan` and give the report to `finished`; False when it was stopped before there was one."""
    with tempfile.TemporaryDirectory(prefix="ksched-demo-") as temporary:
        folder = settings.log_dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run = _Run(plan, settings, screen, folder)
        work = asyncio.create_task(run.to_the_end(finished))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
                if settings.keep:
                    await run.keep(stopping)
            return work.done()
        finally:
            work.cancel()
            stopping.cancel()
            await asyncio.gather(work, stopping, return_exceptions=True)
            await run.clean_up()


class _Run:
    def __init__(self, plan: Plan, settings: Settings, screen: Screen, folder: Path) -> None:
        self.plan = plan
        self.settings = settings
        self.screen = screen
        self.folder = folder
        self.sandbox = SandboxProcess(
            SandboxOptions(tls=settings.tls, seed=settings.seed, kubeconfig_out=str(folder / "kubeconfig")),
            command=(sys.executable, "-m", "ksched", "sandbox", "--parent", str(os.getpid())),
        )
        self.scheduler: KschedProcess | None = None
        self.client: Client | None = None

    async def to_the_end(self, finished: Callable[[Report], None]) -> None:
        """All steps, in order."""
        state = self.screen.state
        state.nodes_total, state.pods_total = len(self.plan.nodes), len(self.plan.pods)
        # 1. The server.
        state.step = "starting the API server"
        await asyncio.to_thread(self.sandbox.start)
        self.client = client = await Client.from_kubeconfig(str(self.sandbox.kubeconfig))
        server = Server(client)
        follower = Follower(server, self.plan, self.screen)
        self.screen.say(f"API server at {self.sandbox.url}, kubeconfig {self.sandbox.kubeconfig}")
        # 2. The cluster.
        state.step = "creating the cluster"
        await self._create_cluster(client)
        # 3. The scheduler and the pods, in one order or the other.
        if self.settings.backlog:
            await self._create_pods(client, follower)
        state.step = "starting the scheduler"
        self.scheduler = self._start_scheduler()
        await self._until_it_watches(server)
        if not self.settings.backlog:
            await self._create_pods(client, follower)
        # 4. The wait, and what came of it.
        state.step = "scheduling"
        pending = await self._until_settled(server, follower)
        finished(await self._report(server, follower, pending))

    async def keep(self, stopping: asyncio.Task[bool]) -> None:
        """Leave everything running until a signal comes."""
        self.screen.say("The API server and the scheduler go on until Ctrl-C:")
        self.screen.say(f"  kubectl --kubeconfig {self.sandbox.kubeconfig} get pods -A -o wide")
        await stopping

    async def clean_up(self) -> None:
        """Stop what was started, the scheduler first so that it does not complain."""
        if self.client is not None:
            await self.client.close()
        if self.scheduler is not None:
            await asyncio.to_thread(self.scheduler.stop)
        await asyncio.to_thread(self.sandbox.stop)

    async def _create_cluster(self, client: Client) -> None:
        for path, objects in self.plan.before_nodes:
            await create_all(client, path, objects)

        def made(count: int) -> None:
            self.screen.state.nodes = count
            if count % 100 == 0:
                self.screen.tick()

        await create_all(client, "/api/v1/nodes", self.plan.nodes, made)

    def _start_scheduler(self) -> KschedProcess:
        arguments = ["run", "--kubeconfig", str(self.sandbox.kubeconfig), "--seed", str(self.settings.seed)]
        return KschedProcess([*arguments, *self.settings.scheduler_flags], self.folder / "scheduler.log")

    async def _until_it_watches(self, server: Server) -> None:
        """Return when the scheduler's watches are open and no more are opened: it knows the cluster then."""
        async with asyncio.timeout(START_SECONDS):
            watchers = 0
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                self._check_children()
                before, watchers = watchers, (await server.get("/sandbox/stats"))["watchers"]
                if watchers and watchers == before:
                    return

    async def _create_pods(self, client: Client, follower: Follower) -> None:
        """Create all pods, and look how far the scheduler is meanwhile."""
        state = self.screen.state
        state.step = "creating pods" if self.scheduler is None else "creating pods and scheduling"

        def made(count: int) -> None:
            state.created = count

        creating = asyncio.create_task(create_all(client, "/api/v1/namespaces/{namespace}/pods", self.plan.pods, made))
        try:
            while not creating.done():
                await asyncio.wait({creating}, timeout=LOOK_SECONDS)
                self._check_children()
                await follower.look(self.scheduler)
            await creating
        finally:
            creating.cancel()

    async def _until_settled(self, server: Server, follower: Follower) -> list[Pending]:
        """Wait until every pod is bound, or pending for a reason that is given; return those that are pending."""
        loop = asyncio.get_running_loop()
        last, changed = -1, loop.time()
        while True:
            self._check_children()
            bound = await follower.look(self.scheduler)
            if bound != last:
                last, changed = bound, loop.time()
            # The list of pending pods is asked for only when it can be the last word.
            elif bound >= self.plan.fitting or self.plan.cannot_fit is None or loop.time() - changed > STALL_SECONDS:
                pending = await server.pending()
                settled = bound + len(pending) == len(self.plan.pods) and all(pod.message for pod in pending)
                if settled or loop.time() - changed > STALL_SECONDS:
                    return pending
            await asyncio.sleep(LOOK_SECONDS)

    async def _report(self, server: Server, follower: Follower, pending: list[Pending]) -> Report:
        assert self.scheduler is not None
        return Report(
            settings={**self.plan.settings, "seed": self.settings.seed, "tls": self.settings.tls},
            pods=len(self.plan.pods),
            timeline=await server.get("/sandbox/timeline"),
            stats=await server.get("/sandbox/stats"),
            audit=await server.get("/sandbox/audit"),
            scheduler=self.scheduler.usage(),
            pending=sorted(pending, key=lambda pod: pod.key),
            cannot_fit=self.plan.cannot_fit,
            utilization=follower.utilization(),
        )

    def _check_children(self) -> None:
        """Say so when the scheduler has ended; a sandbox that has ended is noticed by the next question."""
        if self.scheduler is not None and self.scheduler.exit_code is not None:
            code, said = self.scheduler.exit_code, self.scheduler.last_lines()
            raise KschedError(f"the scheduler ended with code {code}; its last lines:\n{said}")
