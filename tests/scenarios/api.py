"""What a test asks of an API server, in plain HTTP: the judge shares no code with the client that it judges."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import yaml

Object = dict[str, Any]
T = TypeVar("T")

STRATEGIC = "application/strategic-merge-patch+json"


class Refusal(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, body: bytes) -> None:
        super().__init__(f"{code}: {body[:400].decode(errors='replace')}")
        self.code = code


class Api:
    """An API server, found by its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        written = yaml.safe_load(kubeconfig.read_text())
        cluster, user = written["clusters"][0]["cluster"], written["users"][0].get("user") or {}
        self._address = urlsplit(cluster["server"])
        self._headers = {"Accept": "application/json"}
        if user.get("token"):
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._tls = _tls(cluster, user) if self._address.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None

    def call(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        """The decoded answer; raises Refusal, or ConnectionError when a second try on a new connection fails too."""
        raw = None if body is None else json.dumps(body)
        headers = {**self._headers, "Content-Type": content_type}
        for attempt in (1, 2):
            try:
                connection = self._connect()
                connection.request(method, path, raw, headers)
                answer = connection.getresponse()
                content = answer.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if attempt == 2:
                    raise ConnectionError(f"{method} {path}: {error}") from error
        if answer.status >= 400:
            raise Refusal(answer.status, content)
        decoded: Object = json.loads(content)
        return decoded

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._address.hostname or "", self._address.port
            if self._tls is None:
                self._connection = http.client.HTTPConnection(host, port, timeout=20)
            else:
                self._connection = http.client.HTTPSConnection(host, port, timeout=20, context=self._tls)
        return self._connection

    # -- objects

    def create(self, made: Object) -> Object:
        """Create an object."""
        return self.call("POST", path_of(made, named=False), made)

    def delete(self, made: Object) -> None:
        """Delete an object at once, without grace; one that is gone is no error."""
        try:
            self.call("DELETE", path_of(made), {"gracePeriodSeconds": 0})
        except Refusal as refusal:
            if refusal.code != 404:
                raise

    def patch(self, made: Object, patch: Object) -> Object:
        """Change an object (strategic merge)."""
        return self.call("PATCH", path_of(made), patch, STRATEGIC)

    def get(self, made: Object) -> Object:
        """An object as it is now."""
        return self.call("GET", path_of(made))

    def pods(self, namespace: str = "default") -> dict[str, Object]:
        """The pods of a namespace, by name."""
        return _by_name(self.call("GET", f"/api/v1/namespaces/{namespace}/pods"))

    def nodes(self) -> dict[str, Object]:
        """All nodes, by name."""
        return _by_name(self.call("GET", "/api/v1/nodes"))

    def events_of(self, pod: Object) -> list[Object]:
        """The events about a pod, as it is or was."""
        found = self.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
        return [event for event in found if event["regarding"]["uid"] == pod["metadata"]["uid"]]

    # -- what is bound where

    def placements(self) -> dict[str, str]:
        """Pod name: node name, of the pods that have one."""
        return {name: pod["spec"]["nodeName"] for name, pod in self.pods().items() if pod["spec"].get("nodeName")}


def eventually(says: Callable[[], T], seconds: float = 15.0, what: str = "") -> T:
    """Ask again and again until the answer is true, and return it."""
    end = time.monotonic() + seconds
    while True:
        answer = says()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what or says}")
        time.sleep(0.03)


def path_of(made: Object, *, named: bool = True) -> str:
    """Where an object of the kinds used here lives."""
    kind, metadata = made["kind"], made["metadata"]
    prefix, plural = _PLACES[kind]
    namespace = f"/namespaces/{metadata.get('namespace', 'default')}" if kind in ("Pod", "Service") else ""
    return f"{prefix}{namespace}/{plural}" + (f"/{metadata['name']}" if named else "")


_PLACES = {
    "Pod": ("/api/v1", "pods"),
    "Node": ("/api/v1", "nodes"),
    "Service": ("/api/v1", "services"),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses"),
    "Event": ("/apis/events.k8s.io/v1", "events"),
}


def _by_name(listed: Object) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in listed["items"]}


def _tls(cluster: Object, user: Object) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"),
        cadata=None if authority is None else base64.b64decode(authority).decode(),
    )
    if user.get("client-certificate-data"):
        with tempfile.NamedTemporaryFile(suffix=".pem") as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]))
            pair.write(b"\n" + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
    return context
