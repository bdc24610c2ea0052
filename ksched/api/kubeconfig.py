"""Where the API server is and how to prove who we are: kubeconfig, service account, or an address alone.

The file is read and checked here, so that a complaint can name the file, the field and what was expected. Credentials
themselves (exec plugins, OIDC, tokens, inline keys) come from kubernetes-asyncio's loader, which is imported only when
it is needed: that takes most of a second. `client` loads again through the same `AccessSource` when the server
says 401 or a file has changed: one way to get credentials, whatever kind they are.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import yaml

from ksched.errors import KubeconfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Access:
    """One way to reach and convince an API server, as it was when it was loaded."""

    source: str
    server: str
    authorization: str = ""
    verify: bool = True
    server_name: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    watched_files: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """Name or address of the server."""
        return urlsplit(self.server).hostname or ""

    @property
    def port(self) -> int:
        """Its port; the scheme's where none is written."""
        parts = urlsplit(self.server)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def base_path(self) -> str:
        """What comes before `/api` in every path; usually nothing."""
        return urlsplit(self.server).path.rstrip("/")

    @property
    def host_header(self) -> str:
        """The Host header: the server's address as it was written."""
        return urlsplit(self.server).netloc.rpartition("@")[2]

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS as configured, read from the files as they are now; None for plain HTTP."""
        if urlsplit(self.server).scheme != "https":
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise KubeconfigError(
                f"{self.source}: certificate-authority {self.ca_file}: expected PEM certificates: {_plain(error)}"
            ) from error
        # Cluster authorities are often made without the extensions that newer Pythons insist on.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file:
            try:
                context.load_cert_chain(self.cert_file, self.key_file)
            except (OSError, ssl.SSLError) as error:
                raise KubeconfigError(
                    f"{self.source}: client-certificate {self.cert_file} and client-key {self.key_file}: "
                    f"expected a PEM certificate and its key: {_plain(error)}"
                ) from error
        return context

    def versions(self) -> tuple[tuple[int, int], ...]:
        """A mark of every watched file's content; it changes when a file is replaced."""
        return tuple(_version(path) for path in self.watched_files)

    def tls_versions(self) -> tuple[object, ...]:
        """The same for what a TLS context is made of."""
        files = [file for file in (self.ca_file, self.cert_file, self.key_file) if file]
        return (self.verify, *files, *map(_version, files))


class AccessSource(Protocol):
    """Loads an `Access`, as often as asked."""

    async def load(self) -> Access:
        """Read everything anew; raises KubeconfigError."""


@dataclass(frozen=True)
class Address:
    """An address without credentials (`--master`)."""

    server: str
    source: str = "--master"

    async def load(self) -> Access:
        """The address, checked."""
        return Access(self.source, _server(self.server, self.source, "address"))


@dataclass(frozen=True)
class InCluster:
    """The service account that Kubernetes gives to a pod."""

    environ: Mapping[str, str]
    folder: Path = SERVICE_ACCOUNT

    async def load(self) -> Access:
        """Address from the environment, token and authority from the mounted files."""
        source = "service account"
        for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
            if not self.environ.get(name):
                raise KubeconfigError(
                    "no kubeconfig was given and this is not a pod: "
                    f"expected --kubeconfig FILE, or {name} in the environment"
                )
        token, ca = self.folder / "token", self.folder / "ca.crt"
        for file in (token, ca):
            _read(file, f"{source}: {file}")
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import ConfigException
        from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

        configuration = Configuration()
        try:
            InClusterConfigLoader(str(token), str(ca), environ=dict(self.environ)).load_and_set(configuration)
        except ConfigException as error:
            raise KubeconfigError(f"{source}: {self.folder}: {error}") from error
        return Access(
            source,
            _server(str(configuration.host), source, "KUBERNETES_SERVICE_HOST"),
            authorization=_authorization(configuration, f"{source}: {token}"),
            ca_file=str(ca),
            watched_files=(str(token), str(ca)),
        )


@dataclass(frozen=True)
class Kubeconfig:
    """A kubeconfig file; `context` and `master` override what it says."""

    path: Path
    context: str | None = None
    master: str | None = None

    async def load(self) -> Access:
        """The named context's cluster and user; exec plugins run."""
        where = f"kubeconfig {self.path}"
        document = _parse(_read(self.path, where), where)
        context_name = self.context or _text(document, "current-context", where)
        context = _named(document, "contexts", context_name, "context", where)
        at_context = f"{where}: contexts[{context_name}].context"
        cluster_name = _text(context, "cluster", at_context)
        cluster = _named(document, "clusters", cluster_name, "cluster", where, f"{at_context}.cluster")
        at_cluster = f"{where}: clusters[{cluster_name}].cluster"
        user_name = context.get("user") or ""
        user = _named(document, "users", user_name, "user", where, f"{at_context}.user") if user_name else {}
        at_user = f"{where}: users[{user_name}].user"

        server = _server(self.master or _text(cluster, "server", at_cluster), at_cluster, "server")
        if cluster.get("proxy-url"):
            raise KubeconfigError(f"{at_cluster}.proxy-url: proxies are not supported, got {cluster['proxy-url']!r}")
        cluster = {**self._resolved(cluster, at_cluster, ("certificate-authority",)), "server": server}
        user = self._resolved(user, at_user, ("client-certificate", "client-key"), ("tokenFile",))
        configuration = await _load(cluster, user, at_user)
        # A token file wins over a token and may change at any time.
        if token_file := user.get("tokenFile"):
            configuration.api_key["BearerToken"] = f"Bearer {_read(Path(token_file), f'{at_user}.tokenFile')}"
        files = [str(self.path), configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file, token_file]
        return Access(
            where,
            server,
            authorization=_authorization(configuration, at_user),
            verify=bool(configuration.verify_ssl),
            server_name=configuration.tls_server_name or None,
            ca_file=configuration.ssl_ca_cert,
            cert_file=configuration.cert_file,
            key_file=configuration.key_file,
            watched_files=tuple(file for file in files if file),
        )

    def _resolved(
        self, section: dict[str, Any], where: str, pairs: tuple[str, ...], files: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """`section` with its files absolute and its inline data checked; paths are relative to the kubeconfig."""
        section = dict(section)
        folder = self.path.absolute().parent
        for name in (*pairs, *files):
            if data := section.get(f"{name}-data"):
                _check_base64(data, f"{where}.{name}-data")
                section.pop(name, None)
            elif file := section.get(name):
                section[name] = str(folder / str(file))
                _read(Path(section[name]), f"{where}.{name}")
        command = section.get("exec")
        if isinstance(command, dict) and os.sep in str(command.get("command") or ""):
            section["exec"] = {**command, "command": str(folder / str(command["command"]))}
        return section


def find_access(path: str | None, *, context: str | None = None, master: str | None = None) -> AccessSource:
    """As kube-scheduler chooses: the kubeconfig if one is given, else the address, else the service account."""
    if path:
        return Kubeconfig(Path(path).expanduser(), context, master)
    if master:
        return Address(master)
    return InCluster(os.environ)


async def _load(cluster: dict[str, Any], user: dict[str, Any], at_user: str) -> Any:
    """kubernetes-asyncio's `Configuration` for one cluster and user."""
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import load_kube_config_from_dict

    chosen = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": cluster}],
        "users": [{"name": "chosen", "user": user}],
    }
    configuration = Configuration()
    try:
        with _complaints() as complaints:
            await load_kube_config_from_dict(chosen, client_configuration=configuration)
    except Exception as error:
        # Whatever an exec plugin or an identity provider does wrong comes out as it is: as any exception.
        field = "exec" if "exec" in user else "auth-provider" if "auth-provider" in user else ""
        raise KubeconfigError(f"{at_user}{'.' if field else ''}{field}: {_plain(error)}") from error
    if complaints:
        raise KubeconfigError(f"{at_user}.exec: {complaints[0]}")
    return configuration


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What the loader logs as an error about an exec plugin: beside an exception, or instead of one when the plugin's
    answer has no credentials in it. It is ours to say, once."""
    said: list[str] = []

    def take(record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            return True
        said.append(" ".join(record.getMessage().split()))
        return False

    logger = logging.getLogger("kubernetes_asyncio.config.kube_config")
    logger.addFilter(take)
    try:
        yield said
    finally:
        logger.removeFilter(take)


def _authorization(configuration: Any, where: str) -> str:
    """The Authorization header; a token file's trailing newline must not end up in it."""
    kind, _, secret = str(configuration.api_key.get("BearerToken") or "").partition(" ")
    secret = secret.strip()
    if not secret:
        return ""
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise KubeconfigError(f"{where}: expected a token of printable characters, got one with blanks or others in it")
    return f"{kind} {secret}"


def _read(path: Path, where: str) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise KubeconfigError(f"{where}: no such file{'' if str(path) in where else f': {path}'}") from None
    except IsADirectoryError:
        raise KubeconfigError(f"{where}: expected a file, got a folder") from None
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{where}: cannot be read: {_plain(error)}") from error
    if not text.strip():
        raise KubeconfigError(f"{where}: the file {path} is empty")
    return text


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{where}: not YAML: {_plain(error)}") from error
    if not isinstance(document, dict):
        raise KubeconfigError(f"{where}: expected a mapping with clusters, contexts and users, got {_kind(document)}")
    return document


def _named(
    document: dict[str, Any], section: str, name: str, content: str, where: str, asked_at: str = ""
) -> dict[str, Any]:
    """The entry called `name` of a list of named entries."""
    entries = document.get(section) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise KubeconfigError(f"{where}: {section}: expected a list of named entries, got {_kind(entries)}")
    for entry in entries:
        if entry.get("name") == name:
            found = entry.get(content)
            if found is None and content == "user":
                return {}
            if not isinstance(found, dict):
                raise KubeconfigError(f"{where}: {section}[{name}].{content}: expected a mapping, got {_kind(found)}")
            return found
    there = ", ".join(str(entry.get("name")) for entry in entries) or "none"
    raise KubeconfigError(f"{asked_at or f'{where}: {section}'}: no {content} named {name!r} (there are: {there})")


def _text(section: dict[str, Any], field: str, where: str) -> str:
    value = section.get(field)
    if not isinstance(value, str) or not value:
        separator = "." if "[" in where else ": "
        raise KubeconfigError(f"{where}{separator}{field}: expected a name or address, got {_kind(value)}")
    return value


def _server(server: str, where: str, field: str) -> str:
    """`server` without trailing slashes, checked."""
    complaint = f"{where}.{field}: expected https://HOST:PORT or http://HOST:PORT, got {server!r}"
    try:
        parts = urlsplit(server)
        port = parts.port
    except ValueError:
        raise KubeconfigError(complaint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise KubeconfigError(complaint)
    return server.rstrip("/")


def _check_base64(data: Any, where: str) -> None:
    try:
        decoded = base64.b64decode("".join(str(data).split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise KubeconfigError(f"{where}: expected PEM data in base64: {error}") from error
    if b"-----BEGIN " not in decoded:
        raise KubeconfigError(f"{where}: expected PEM data in base64, got something else in base64")


def _kind(value: Any) -> str:
    names = {
        type(None): "nothing",
        str: "a text",
        list: "a list",
        dict: "a mapping",
        int: "a number",
        bool: "a boolean",
    }
    return repr(value) if value == "" else names.get(type(value), type(value).__name__)


def _plain(error: Exception) -> str:
    """An exception's text on one line."""
    text = (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
    return " ".join(text.split())


def _version(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        # A file that is being replaced; its next version will differ.
        return (0, 0)
    return (found.st_mtime_ns, found.st_ino)
