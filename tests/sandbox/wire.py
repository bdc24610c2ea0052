"""A plain HTTP client for the sandbox's tests: the standard library's, so that it shares nothing with the server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

Object = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

TIMEOUT_SECONDS = 10


class Answer:
    """One answer: its code, headers and body."""

    def __init__(self, code: int, headers: http.client.HTTPMessage, raw: bytes) -> None:
        self.code = code
        self.headers = headers
        self.raw = raw

    @property
    def body(self) -> Object:
        """The body as an object."""
        decoded: Object = json.loads(self.raw)
        return decoded


class Stream:
    """An open watch, read event by event."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection = connection
        self.response = response

    def __iter__(self) -> Iterator[Object]:
        for line in self.response:
            yield json.loads(line)

    def next(self) -> Object:
        """The next event; fails the test when none comes in time."""
        line = self.response.readline()
        assert line, "the stream has ended"
        event: Object = json.loads(line)
        return event

    def take(self, count: int) -> list[Object]:
        """The next `count` events."""
        return [self.next() for _ in range(count)]

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class Client:
    """Requests to one server, over one kept connection."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self.address = url.removeprefix("http://")
        self.headers = headers or {}
        self.connection = self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, timeout=TIMEOUT_SECONDS)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = JSON,
        accept: str = JSON,
        **parameters: object,
    ) -> Answer:
        """Send one request; `parameters` go into the query."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Accept": accept, **self.headers}
        if data is not None:
            headers["Content-Type"] = media
        self.connection.request(method, _with_query(path, parameters), data, headers)
        response = self.connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def get(self, path: str, **parameters: object) -> Object:
        """GET that must succeed."""
        return self._succeed(self.request("GET", path, **parameters))

    def post(self, path: str, body: Any, **parameters: object) -> Object:
        """POST that must succeed."""
        return self._succeed(self.request("POST", path, body, **parameters))

    def put(self, path: str, body: Any, **parameters: object) -> Object:
        """PUT that must succeed."""
        return self._succeed(self.request("PUT", path, body, **parameters))

    def patch(self, path: str, body: Any, media: str = MERGE, **parameters: object) -> Object:
        """PATCH that must succeed."""
        return self._succeed(self.request("PATCH", path, body, media=media, **parameters))

    def delete(self, path: str, body: Any = None, **parameters: object) -> Object:
        """DELETE that must succeed."""
        return self._succeed(self.request("DELETE", path, body, **parameters))

    def refused(self, method: str, path: str, body: Any = None, **parameters: Any) -> tuple[int, str, str]:
        """Code, reason and message of a request that must be refused with a `Status`."""
        answer = self.request(method, path, body, **parameters)
        status = answer.body
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
        assert status["code"] == answer.code
        return answer.code, status["reason"], status["message"]

    def watch(self, path: str, *, accept: str = JSON, **parameters: object) -> Stream:
        """Open a watch."""
        connection = self._connect()
        query = _with_query(path, {"watch": "true", **parameters})
        connection.request("GET", query, headers={"Accept": accept, **self.headers})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        return Stream(connection, response)

    def close(self) -> None:
        self.connection.close()

    @staticmethod
    def _succeed(answer: Answer) -> Object:
        assert 200 <= answer.code < 300, answer.raw
        return answer.body


def _with_query(path: str, parameters: dict[str, object]) -> str:
    return f"{path}?{urlencode(parameters)}" if parameters else path


def pod(name: str, **metadata: Any) -> Object:
    """A pod of one container that asks for a little."""
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [container]},
    }


def node(name: str, **metadata: Any) -> Object:
    """A node of four processors."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def binding(name: str, node_name: str, uid: str = "") -> Object:
    """A binding of a pod to a node."""
    metadata = {"name": name, "namespace": "default"} | ({"uid": uid} if uid else {})
    target = {"kind": "Node", "name": node_name}
    return {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": target}


PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
