"""How an extender is trusted: what makes a context, and what stops the scheduler."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ksched.config.extender_tls import tls_context
from ksched.config.types import Extender, ExtenderTLSConfig
from ksched.errors import ConfigurationError


class Pair(NamedTuple):
    """A self-signed certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


@pytest.fixture(scope="module")
def pair() -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "extender")])
    now = datetime(2020, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=36500))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Pair(
        builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def https(**fields: str | bool) -> Extender:
    return Extender(enable_https=True, tls_config=ExtenderTLSConfig(**fields))  # type: ignore[arg-type]


def test_without_https_and_tls_there_is_no_context() -> None:
    assert tls_context(Extender()) is None
    assert tls_context(Extender(tls_config=ExtenderTLSConfig())) is None


def test_https_without_an_authority_accepts_any_certificate() -> None:
    context = tls_context(Extender(enable_https=True))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_server_name_alone_asks_for_a_certificate_of_the_systems_authorities() -> None:
    context = tls_context(Extender(tls_config=ExtenderTLSConfig(server_name="a")))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_only_the_given_authority_is_trusted(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(pair.certificate)
    for extender in (https(ca_data=text(pair.certificate)), https(ca_file=str(tmp_path / "ca.pem"))):
        context = tls_context(extender)
        assert context is not None
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.cert_store_stats()["x509_ca"] == 1


def test_a_certificate_of_ones_own_is_loaded(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(pair.key)
    extender = https(cert_data=text(pair.certificate), key_file=str(tmp_path / "key.pem"))
    assert tls_context(extender) is not None


@pytest.mark.parametrize(
    ("extender", "message"),
    [
        pytest.param(
            https(insecure=True, ca_data=text(b"x")),
            "specifying a root certificates file with the insecure flag is not allowed",
            id="an authority that would not be asked",
        ),
        pytest.param(
            https(ca_data=text(b"x")),
            "unable to load root certificates: unable to parse bytes as PEM block",
            id="an authority that is not PEM",
        ),
        pytest.param(
            https(ca_file="does-not-exist.pem"),
            "open does-not-exist.pem: no such file or directory",
            id="a file that is not there",
        ),
    ],
)
def test_what_stops_the_scheduler(extender: Extender, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        tls_context(extender)
    assert str(raised.value) == f"couldn't build extenders: {message}"


def test_broken_certificates_stop_the_scheduler(pair: Pair) -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    with pytest.raises(ConfigurationError, match="unable to load root certificates: failed to parse certificate: "):
        tls_context(https(ca_data=text(broken)))
    with pytest.raises(ConfigurationError, match="expected a certificate and its key in PEM, got: "):
        tls_context(https(cert_data=text(broken), key_data=text(pair.key)))
