"""The kubeconfig that points clients at a sandbox."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import yaml

from ksched.errors import SandboxError
from ksched.sandbox.certificates import Certificates

_NAME = "ksched-sandbox"


def write(path: Path, url: str, *, certificates: Certificates | None = None, token: str | None = None) -> None:
    """Write a kubeconfig for `url` at `path`, readable by its owner alone; it replaces what was there in one step."""
    cluster: dict[str, Any] = {"server": url}
    user: dict[str, Any] = {}
    if certificates is not None:
        certificate, key = certificates.client
        cluster["certificate-authority-data"] = _encoded(certificates.authority)
        user["client-certificate-data"] = _encoded(certificate)
        user["client-key-data"] = _encoded(key)
    if token is not None:
        user["token"] = token
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        "current-context": _NAME,
    }
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            yaml.safe_dump(document, file, sort_keys=False)
        partial.replace(path)
    except OSError as error:
        raise SandboxError(f"kubeconfig {path}: cannot be written: {error.strerror}") from error


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
