"""Where the server is and who we are; what is wrong is said with file, field and expectation."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ksched.api.kubeconfig import Access, Address, InCluster, Kubeconfig, find_access
from ksched.errors import KubeconfigError
from tests.api.certificates import Authority


def document(**changes: Any) -> dict[str, Any]:
    """A kubeconfig; a change to `cluster`, `user` or `context` is merged in, another replaces."""
    parts: dict[str, Any] = {"cluster": {"server": "https://10.0.0.1:6443"}, "user": {}, "context": {}}
    for name in parts:
        parts[name].update(changes.pop(name, {}))
    made = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **parts["context"]}}],
        "clusters": [{"name": "c", "cluster": parts["cluster"]}],
        "users": [{"name": "u", "user": parts["user"]}],
    }
    return {**made, **changes}


def written(folder: Path, content: Any) -> Path:
    path = folder / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def load(source: Any) -> Access:
    return asyncio.run(source.load())


def without(path: str) -> dict[str, Any]:
    made = document()
    here: Any = made
    *parents, last = path.split("/")
    for parent in parents:
        here = here[int(parent) if parent.isdigit() else parent]
    del here[last]
    return made


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("{oops", "not YAML: ", id="not YAML"),
        pytest.param("", "the file FILE is empty", id="empty"),
        pytest.param("[1]", "expected a mapping with clusters, contexts and users, got a list", id="a list"),
        pytest.param(
            without("current-context"), "current-context: expected a name or address, got nothing", id="no context"
        ),
        pytest.param(
            document(**{"current-context": "there"}),
            "contexts: no context named 'there' (there are: here)",
            id="unknown context",
        ),
        pytest.param(document(contexts={}), "contexts: no context named 'here' (there are: none)", id="no contexts"),
        pytest.param(
            document(contexts="x"), "contexts: expected a list of named entries, got a text", id="contexts is a text"
        ),
        pytest.param(
            document(contexts=[{"name": "here"}]),
            "contexts[here].context: expected a mapping, got nothing",
            id="hollow",
        ),
        pytest.param(
            document(context={"cluster": "d"}),
            "contexts[here].context.cluster: no cluster named 'd' (there are: c)",
            id="unknown cluster",
        ),
        pytest.param(
            document(context={"user": "v"}),
            "contexts[here].context.user: no user named 'v' (there are: u)",
            id="unknown user",
        ),
        pytest.param(
            without("clusters/0/cluster/server"),
            "clusters[c].cluster.server: expected a name or address, got nothing",
            id="no server",
        ),
        pytest.param(
            document(cluster={"server": "10.0.0.1:6443"}),
            "clusters[c].cluster.server: expected https://HOST:PORT or http://HOST:PORT, got '10.0.0.1:6443'",
            id="a server without a scheme",
        ),
        pytest.param(
            document(cluster={"server": "https://h:99999"}),
            "clusters[c].cluster.server: expected https",
            id="a bad port",
        ),
        pytest.param(
            document(cluster={"certificate-authority-data": "!!!"}),
            "clusters[c].cluster.certificate-authority-data: expected PEM data in base64: ",
            id="a bad certificate",
        ),
        pytest.param(
            document(user={"client-certificate-data": base64.b64encode(b"junk").decode()}),
            "users[u].user.client-certificate-data: expected PEM data in base64, got something else",
            id="junk for a certificate",
        ),
        pytest.param(
            document(cluster={"certificate-authority": "missing.crt"}),
            "clusters[c].cluster.certificate-authority: no such file",
            id="no CA",
        ),
        pytest.param(
            document(cluster={"proxy-url": "http://p"}), "clusters[c].cluster.proxy-url: proxies are not", id="a proxy"
        ),
        pytest.param(
            document(user={"token": "a b"}), "users[u].user: expected a token of printable characters", id="a bad token"
        ),
        pytest.param(
            document(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent"}}),
            "users[u].user.exec: No such file",
            id="no exec plugin",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: Any, complaint: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(KubeconfigError) as refused:
        load(Kubeconfig(path))
    message = str(refused.value)
    assert message.startswith(f"kubeconfig {path}: ")
    assert complaint.replace("FILE", str(path)) in message
    assert "\n" not in message


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"^kubeconfig .*/none: no such file$"):
        load(Kubeconfig(tmp_path / "none"))
    with pytest.raises(KubeconfigError, match="expected a file, got a folder"):
        load(Kubeconfig(tmp_path))


def test_a_token_and_the_address(tmp_path: Path) -> None:
    path = written(tmp_path, document(user={"token": "secret\n"}, cluster={"tls-server-name": "kubernetes"}))
    access = load(Kubeconfig(path))
    assert (access.host, access.port, access.authorization) == ("10.0.0.1", 6443, "Bearer secret")
    assert (access.server_name, access.verify, access.base_path) == ("kubernetes", True, "")


def test_a_user_is_not_needed(tmp_path: Path) -> None:
    made = document(cluster={"server": "https://h/k8s/clusters/one/"})
    del made["contexts"][0]["context"]["user"], made["users"]
    access = load(Kubeconfig(written(tmp_path, made)))
    assert (access.port, access.base_path, access.authorization) == (443, "/k8s/clusters/one", "")


def test_files_are_found_beside_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path / "pki")
    authority.sign("me")
    (tmp_path / "token").write_text("from-file\n")
    path = written(
        tmp_path,
        document(
            cluster={"certificate-authority": "pki/ca.crt"},
            user={
                "client-certificate": "pki/me.crt",
                "client-key": "pki/me.key",
                "tokenFile": "token",
                "token": "inline",
            },
        ),
    )
    monkeypatch.chdir("/")
    access = load(Kubeconfig(path))
    assert access.ca_file == str(authority.ca)
    assert access.cert_file == str(tmp_path / "pki/me.crt")
    assert access.authorization == "Bearer from-file"
    assert access.ssl_context() is not None
    before = access.versions(), access.tls_versions()
    authority.sign("me")
    assert access.versions() != before[0]
    assert access.tls_versions() != before[1]


def test_inline_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.sign("me")
    inline = {
        name: base64.b64encode(file.read_bytes()).decode()
        for name, file in (("ca", authority.ca), ("c", certificate), ("k", key))
    }
    made = document(
        cluster={"certificate-authority-data": inline["ca"]},
        user={"client-certificate-data": inline["c"], "client-key-data": inline["k"]},
    )
    assert load(Kubeconfig(written(tmp_path, made))).ssl_context() is not None


def test_a_key_of_another_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    certificate, _ = authority.sign("me")
    _, key = authority.sign("other")
    made = document(user={"client-certificate": str(certificate), "client-key": str(key)})
    access = load(Kubeconfig(written(tmp_path, made)))
    with pytest.raises(KubeconfigError, match="expected a PEM certificate and its key"):
        access.ssl_context()


def test_an_exec_plugin_beside_the_kubeconfig(tmp_path: Path) -> None:
    plugin = tmp_path / "bin" / "login"
    plugin.parent.mkdir()
    version = "client.authentication.k8s.io/v1"
    credential = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": "t1"}})
    plugin.write_text(f"#!/bin/sh\necho '{credential}'\n")
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./bin/login"}}
    assert load(Kubeconfig(written(tmp_path, document(user=user)))).authorization == "Bearer t1"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        pytest.param("hello", "exec: failed to decode process output", id="no JSON"),
        pytest.param(
            '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {}}',
            "exec: missing token or clientCertificateData",
            id="no credentials in it",
        ),
    ],
)
def test_an_exec_plugin_with_an_odd_answer_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: str, complaint: str
) -> None:
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "echo", "args": [answer]},
    }
    with pytest.raises(KubeconfigError, match=complaint):
        load(Kubeconfig(written(tmp_path, document(user=user))))
    assert caplog.records == []


def test_an_address_overrides_the_cluster(tmp_path: Path) -> None:
    path = written(tmp_path, document(user={"token": "t"}))
    access = load(find_access(str(path), master="http://127.0.0.1:8080/"))
    assert (access.server, access.authorization, access.ssl_context()) == ("http://127.0.0.1:8080", "Bearer t", None)
    assert load(find_access(None, master="http://[::1]:8080")).host == "::1"
    with pytest.raises(KubeconfigError, match=r"--master.address: expected https://HOST:PORT"):
        load(Address("localhost:8080"))


def test_in_a_pod(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    source = InCluster(environ, tmp_path)
    with pytest.raises(KubeconfigError, match=r"service account: .*/token: no such file"):
        load(source)
    Authority(tmp_path)
    (tmp_path / "token").write_text("one\n")
    assert load(source).authorization == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert load(source).authorization == "Bearer two"


def test_not_in_a_pod() -> None:
    with pytest.raises(
        KubeconfigError, match="no kubeconfig was given and this is not a pod: expected --kubeconfig FILE"
    ):
        load(InCluster({}))
