"""How an extender is trusted and shown who calls: from `tlsConfig` to a TLS context.

kube-scheduler makes this when it starts, so that a wrong certificate stops it before it schedules a pod. The messages
are its own.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ksched.config.types import Extender, ExtenderTLSConfig
from ksched.errors import ConfigurationError

_PEM_BLOCK = re.compile(rb"-----BEGIN [^-]+-----.*?-----END [^-]+-----", re.DOTALL)


def tls_context(extender: Extender) -> ssl.SSLContext | None:
    """The TLS context for calls of `extender`, None if nothing about TLS is written; ConfigurationError if it is wrong.

    With HTTPS and no authority to trust, any certificate is accepted: so does kube-scheduler.
    """
    try:
        return _context(extender.tls_config or ExtenderTLSConfig(), https=extender.enable_https)
    except ConfigurationError as error:
        raise ConfigurationError(f"couldn't build extenders: {error}") from error


def _context(tls: ExtenderTLSConfig, *, https: bool) -> ssl.SSLContext | None:
    trusts_authority = bool(tls.ca_file or tls.ca_data)
    has_certificate = bool((tls.cert_file or tls.cert_data) and (tls.key_file or tls.key_data))
    insecure = tls.insecure or (https and not trusts_authority)
    if not (trusts_authority or has_certificate or insecure or tls.server_name):
        return None
    if trusts_authority and insecure:
        raise ConfigurationError("specifying a root certificates file with the insecure flag is not allowed")
    authority = _material(tls.ca_data, tls.ca_file)
    certificate, key = _material(tls.cert_data, tls.cert_file), _material(tls.key_data, tls.key_file)
    context = ssl.create_default_context()
    if trusts_authority:
        context = _trusting(authority)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if has_certificate:
        _present(context, certificate, key)
    return context


def _material(data: str, path: str) -> bytes:
    """What is written in the configuration itself or, failing that, in the file that it names."""
    if data or not path:
        return base64.b64decode(data)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"open {path}: {(error.strerror or str(error)).lower()}") from error


def _trusting(authority: bytes) -> ssl.SSLContext:
    """A context that trusts the certificates in `authority`, and no others."""
    problem = "unable to load root certificates"
    if _PEM_BLOCK.search(authority) is None:
        raise ConfigurationError(f"{problem}: unable to parse bytes as PEM block")
    try:
        return ssl.create_default_context(cadata=authority.decode("ascii", "replace"))
    except ssl.SSLError as error:
        raise ConfigurationError(f"{problem}: failed to parse certificate: {error}") from error


def _present(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show `certificate` to the extender. Python loads it from a file only; the file lives as long as the loading."""
    with _private_file(certificate + b"\n" + key) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise ConfigurationError(f"tls: expected a certificate and its key in PEM, got: {error}") from error


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)
