"""The manifest and the image: what they name exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ksched import __version__
from ksched.cli import cli
from ksched.config import FeatureGates, parse

ROOT = Path(__file__).parents[2]
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "deploy" / "ksched.yaml").read_text()))
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def the(kind: str) -> dict[str, Any]:
    """The one object of a kind."""
    (found,) = (each for each in OBJECTS if each["kind"] == kind)
    return found


def test_the_configuration_is_valid_and_serves_its_own_pods_only() -> None:
    configuration = parse(the("ConfigMap")["data"]["config.yaml"], FeatureGates())
    assert [profile.scheduler_name for profile in configuration.profiles] == ["ksched"]


def test_the_container_is_started_with_flags_that_exist() -> None:
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    name, *flags = container["args"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    with command.make_context(name, list(flags)) as context:
        assert str(context.params["config"]) == "/etc/ksched/config.yaml"


def test_the_rights_are_kube_schedulers() -> None:
    account = the("ServiceAccount")["metadata"]
    bindings = [each for each in OBJECTS if each["kind"] == "ClusterRoleBinding"]
    assert {each["roleRef"]["name"] for each in bindings} == {"system:kube-scheduler", "system:volume-scheduler"}
    for binding in bindings:
        (subject,) = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert the("Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_one_replica_runs_at_a_time() -> None:
    spec = the("Deployment")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["type"] == "Recreate"


def test_the_image_has_the_projects_version() -> None:
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"ksched:{__version__}"


@pytest.mark.parametrize("name", re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M))
def test_the_image_is_built_of_files_that_exist(name: str) -> None:
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    for path in name.split():
        assert (ROOT / path).exists()
        assert f"!{path}" in sent


def test_the_image_runs_without_root() -> None:
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", DOCKERFILE, re.M)
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["runAsNonRoot"] is True
