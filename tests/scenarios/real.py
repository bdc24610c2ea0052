"""A real etcd and kube-apiserver, from a folder of binaries as envtest has them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.scenarios.api import Api, Refusal

ASSETS = "KUBEBUILDER_ASSETS"
TOKEN = "scenario-tests"


def missing() -> str:
    """Why no real control plane can be started; empty if one can."""
    folder = os.environ.get(ASSETS)
    if not folder:
        return f"{ASSETS} names no folder with etcd and kube-apiserver"
    absent = [name for name in ("etcd", "kube-apiserver") if not (Path(folder) / name).is_file()]
    return f"{ASSETS}={folder} has no {' and no '.join(absent)}" if absent else ""


class RealControlPlane:
    """Both processes, ready when the server says so."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.kubeconfig = directory / "kubeconfig"

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()

    def _start(self) -> None:
        folder = Path(os.environ[ASSETS])
        client, peer, port = _free_port(), _free_port(), _free_port()
        etcd = f"http://127.0.0.1:{client}"
        self._run(
            folder / "etcd",
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        self._write_credentials(port)
        self._run(
            folder / "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self._directory / 'certs'}",
            f"--token-auth-file={self._directory / 'tokens.csv'}",
            "--authorization-mode=AlwaysAllow",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://scenario-tests",
            f"--service-account-key-file={self._directory / 'accounts.pem'}",
            f"--service-account-signing-key-file={self._directory / 'accounts.pem'}",
            # Nobody makes service accounts here, and no kubelet would take the taint off a new node.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds",
        )
        self._wait_until_ready()

    def _write_credentials(self, port: int) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self._directory / "accounts.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
        )
        (self._directory / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        # The server signs its own certificate, so there is no authority to name before it has started.
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self._certificate)}
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "real", "cluster": cluster}],
                    "users": [{"name": "admin", "user": {"token": TOKEN}}],
                    "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
                    "current-context": "real",
                }
            )
        )

    @property
    def _certificate(self) -> Path:
        return self._directory / "certs" / "apiserver.crt"

    def _run(self, *command: object) -> None:
        name = Path(str(command[0])).name
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes.append(subprocess.Popen([str(word) for word in command], stdout=log, stderr=log))

    def _wait_until_ready(self, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for process in self._processes:
                if process.poll() is not None:
                    raise RuntimeError(f"{process.args!r} ended with {process.returncode}; see {self._directory}")
            if self._certificate.exists() and self._is_ready():
                return
            time.sleep(0.2)
        raise RuntimeError(f"the API server was not ready within {seconds:g} s; see {self._directory}")

    def _is_ready(self) -> bool:
        api = Api(self.kubeconfig)
        try:
            api.call("GET", "/api/v1/namespaces/default")
        except (OSError, Refusal):
            return False
        finally:
            api.close()
        return True

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
