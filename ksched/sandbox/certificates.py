"""Certificates for a sandbox that speaks HTTPS: an authority, the server's certificate, and a client's.

They are made with the `openssl` command, because the run-time dependencies include nothing that can sign, and nearly
every machine and base image has it; where it is absent the error says so. Keys are P-256: signing them takes
milliseconds.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ksched.errors import SandboxError

_DAYS = "3650"
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where the files of one authority are."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The authority's certificate, which clients trust."""
        return self.directory / "ca.crt"

    @property
    def server(self) -> tuple[Path, Path]:
        """The server's certificate and key."""
        return self.directory / "server.crt", self.directory / "server.key"

    @property
    def client(self) -> tuple[Path, Path]:
        """An administrator's certificate and key."""
        return self.directory / "client.crt", self.directory / "client.key"

    def server_context(self) -> ssl.SSLContext:
        """TLS for the server: clients may show a certificate of the authority, and need not."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate, key = self.server
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(self.authority)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context


def ensure(directory: Path, host: str) -> Certificates:
    """The certificates in `directory`, made if they are not there yet; raises `SandboxError` if they cannot be."""
    made = Certificates(directory)
    if all(path.exists() for path in (made.authority, *made.server, *made.client)):
        return made
    openssl = shutil.which("openssl")
    if openssl is None:
        raise SandboxError("TLS needs the openssl command to make certificates, and it is not on PATH")
    directory.mkdir(parents=True, exist_ok=True)
    with _private_files():
        _make(openssl, made, host)
    return made


def _make(openssl: str, made: Certificates, host: str) -> None:
    authority_key = made.directory / "ca.key"
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", _DAYS)
    _run(
        openssl,
        *("req", "-x509", *key, "-keyout", authority_key, "-out", made.authority),
        *("-subj", "/CN=ksched-sandbox-ca"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
    )
    signed = ("-CA", made.authority, "-CAkey", authority_key)
    names = {"DNS:localhost", "IP:127.0.0.1", _alternative_name(host)}
    server, server_key = made.server
    _run(
        openssl,
        *("req", "-x509", *key, *signed, "-keyout", server_key, "-out", server, "-subj", "/CN=kube-apiserver"),
        *("-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth"),
        *("-addext", "subjectAltName=" + ",".join(sorted(names))),
    )
    client, client_key = made.client
    _run(
        openssl,
        *("req", "-x509", *key, *signed, "-keyout", client_key, "-out", client),
        *("-subj", "/O=system:masters/CN=kubernetes-admin"),
        *("-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=clientAuth"),
    )


def _alternative_name(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _run(*command: str | Path) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"openssl could not be run: {error}") from error
    if done.returncode:
        raise SandboxError(f"openssl {command[1]} failed: {done.stderr.strip()}")


@contextmanager
def _private_files() -> Iterator[None]:
    """While it lasts, new files are readable by their owner alone: openssl writes keys with the process's umask."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
