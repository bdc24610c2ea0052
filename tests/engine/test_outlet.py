"""The way out: what became of a binding is told once, and a lost one is looked for until it is found."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from ksched.api.client import Outcome
from ksched.api.http1 import Response
from ksched.api.writes import BindOutcome, BindResult, WriteOutcome, WriteResult
from ksched.cache.cluster import Cluster
from ksched.engine import outlet
from ksched.engine.outlet import Outlet
from ksched.errors import ApiError, ClientError, ConnectionFailed
from ksched.testing import pod
from tests.engine.world import on_a_loop

ONE = pod("one")


class Server:
    """A client and its writes in one: binds end as told, looks are answered as told."""

    def __init__(self, binds: list[BindResult], looks: list[Outcome]) -> None:
        self.binds = binds
        self.looks = looks
        self.status = WriteResult(WriteOutcome.DONE)

    def bind(self, namespace: str, name: str, uid: str, node: str, done: Callable[[BindResult], None]) -> None:
        done(self.binds.pop(0))

    def send(self, method: str, path: str, *, on_done: Callable[[Outcome], None], **options: Any) -> None:
        assert (method, path) == ("GET", "/api/v1/namespaces/default/pods/one")
        on_done(self.looks.pop(0))

    def patch_pod_status(
        self, namespace: str, name: str, uid: str, patch: dict[str, Any], done: Callable[[WriteResult], None]
    ) -> None:
        done(self.status)


def shown(body: Any, code: int = 200) -> Response:
    return Response(code, b"HTTP/1.1 200 OK\r\n\r\n", json.dumps(body).encode())


LOST = BindResult(BindOutcome.LOST, ConnectionFailed("no answer"))
BOUND = BindResult(BindOutcome.BOUND)
GONE = {"kind": "Status", "status": "Failure", "reason": "NotFound", "message": 'pods "one" not found', "code": 404}


@pytest.mark.parametrize(
    ("binds", "looks", "told"),
    [
        pytest.param([BOUND], [], None, id="bound"),
        pytest.param(
            [BindResult(BindOutcome.CONFLICT, ApiError(409, "Conflict", "already assigned"))],
            [],
            "already assigned",
            id="refused, with the server's words",
        ),
        pytest.param([LOST], [shown(ONE.on("node").to_dict())], None, id="lost, and found on its node"),
        pytest.param(
            [LOST],
            [ConnectionFailed("still away"), shown({}, 503), shown(ONE.on("node").to_dict())],
            None,
            id="lost, and found when the server is back",
        ),
        pytest.param([LOST, BOUND], [shown(ONE.to_dict())], None, id="lost before it took effect: bound once more"),
        pytest.param(
            [LOST],
            [shown(ONE.on("other").to_dict())],
            "default/one is on node other already",
            id="lost to another node",
        ),
        pytest.param([LOST], [shown(GONE, 404)], 'pods "one" not found', id="lost, and the pod is gone"),
        pytest.param(
            [LOST],
            [shown(ONE.uid("another").to_dict())],
            "default/one is another pod now: uid another, expected uid-default-one",
            id="lost, and another pod has the name",
        ),
    ],
)
def test_what_became_of_a_binding_is_told_once(
    monkeypatch: pytest.MonkeyPatch, binds: list[BindResult], looks: list[Outcome], told: str | None
) -> None:
    monkeypatch.setattr(outlet, "LOST_SECONDS", 0.001)
    server = Server(binds.copy(), looks.copy())
    answers: list[ClientError | None] = []

    @on_a_loop
    async def _() -> None:
        out = Outlet(server, server, None)  # type: ignore[arg-type]
        info = Cluster(max_nodes=64).shapes.info(ONE.build())
        out.bind(info, "node", answers.append)
        for _ in range(100):
            await asyncio.sleep(0.001)
            if answers:
                break

    assert [None if answer is None else str(answer) for answer in answers] == [told]
    assert not server.binds
    assert not server.looks


@pytest.mark.parametrize(
    ("result", "said"),
    [
        pytest.param(WriteResult(WriteOutcome.DONE), False, id="a status that was written"),
        pytest.param(WriteResult(WriteOutcome.NOT_FOUND), False, id="of a pod that is gone"),
        pytest.param(WriteResult(WriteOutcome.REFUSED, ClientError("no")), True, id="that the server refused"),
    ],
)
def test_the_log_says_which_status_was_not_written(
    caplog: pytest.LogCaptureFixture, result: WriteResult, said: bool
) -> None:
    server = Server([], [])
    server.status = result

    @on_a_loop
    async def _() -> None:
        out = Outlet(server, server, None)  # type: ignore[arg-type]
        with caplog.at_level(logging.WARNING, "ksched.outlet"):
            out.status(ONE.build(), {"status": {}})

    assert ("default/one" in caplog.text) is said
