"""Strict decoding: what is complained about, what ends the reading, and Go's words for it."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.config.args import NodeAffinityArgs, NodeResourcesFitArgs, PodTopologySpreadArgs, ResourceSpec
from ksched.config.decode import decode_struct
from ksched.config.document import read_document
from ksched.config.types import Configuration, Extender, ExtenderTLSConfig, LeaderElectionConfiguration, Plugin
from ksched.errors import ConfigurationError


def test_what_is_absent_or_null_has_its_default() -> None:
    value, complaints = decode_struct({"parallelism": None, "leaderElection": {"leaderElect": False}}, Configuration)
    assert value == Configuration(leader_election=LeaderElectionConfiguration(leader_elect=False))
    assert complaints == []


def test_kind_and_version_belong_to_the_outermost_object() -> None:
    assert decode_struct({"kind": "X", "apiVersion": "y"}, Configuration)[1] == []
    assert decode_struct({"leaderElection": {"kind": "X"}}, Configuration)[1] == ['unknown field "leaderElection.kind"']


def test_null_in_a_list_is_an_empty_object() -> None:
    value, _ = decode_struct({"profiles": [{"plugins": {"score": {"enabled": [None]}}}]}, Configuration)
    assert value.profiles[0].plugins.score.enabled == (Plugin(),)


def test_durations_are_written_as_go_writes_them() -> None:
    value, _ = decode_struct({"leaseDuration": "90s"}, LeaderElectionConfiguration)
    assert value.lease_duration == "1m30s"


def test_objects_of_the_api_are_decoded_as_strictly() -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}], "matchLabels": {}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    value, complaints = decode_struct({"addedAffinity": required}, NodeAffinityArgs)
    assert value.added_affinity is not None
    assert value.added_affinity.required is not None
    assert value.added_affinity.required.node_selector_terms[0].match_expressions[0].values == ["b"]
    path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchLabels"
    assert complaints == [f'unknown field "{path}"']


def test_every_unknown_and_repeated_field_is_complained_about() -> None:
    value = read_document(
        '{"x": 1, "urlPrefix": "a", "urlPrefix": "b", "tlsConfig": {"y": 1, "keyFile": "k", "keyFile": "l"}}'
    )
    decoded, complaints = decode_struct(value.value, Extender)
    assert decoded == Extender(url_prefix="b", tls_config=ExtenderTLSConfig(key_file="l"))
    assert complaints == [
        'duplicate field "urlPrefix"',
        'unknown field "x"',
        'duplicate field "tlsConfig.keyFile"',
        'unknown field "tlsConfig.y"',
    ]


INTO = "into Go struct field"


@pytest.mark.parametrize(
    ("value", "into", "message"),
    [
        pytest.param(
            {"parallelism": "4"},
            Configuration,
            f"json: cannot unmarshal string {INTO} KubeSchedulerConfiguration.parallelism of type int32",
            id="text for a number",
        ),
        pytest.param(
            {"parallelism": 2**31},
            Configuration,
            f"json: cannot unmarshal number 2147483648 {INTO} KubeSchedulerConfiguration.parallelism of type int32",
            id="a number that is too large",
        ),
        pytest.param(
            {"podMaxBackoffSeconds": 2.5},
            Configuration,
            f"json: cannot unmarshal number 2.5 {INTO} KubeSchedulerConfiguration.podMaxBackoffSeconds of type int64",
            id="a fraction for an integer",
        ),
        pytest.param(
            {"enableProfiling": 1},
            Configuration,
            f"json: cannot unmarshal number {INTO}"
            " KubeSchedulerConfiguration.DebuggingConfiguration.enableProfiling of type bool",
            id="a number for a boolean, in a field of an embedded struct",
        ),
        pytest.param(
            {"leaderElection": []},
            Configuration,
            f"json: cannot unmarshal array {INTO} KubeSchedulerConfiguration.leaderElection"
            " of type v1alpha1.LeaderElectionConfiguration",
            id="a list for an object",
        ),
        pytest.param(
            {"profiles": {}},
            Configuration,
            f"json: cannot unmarshal object {INTO} KubeSchedulerConfiguration.profiles"
            " of type []v1.KubeSchedulerProfile",
            id="an object for a list",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"score": {"enabled": [{"weight": True}]}}}]},
            Configuration,
            f"json: cannot unmarshal bool {INTO} Plugin.profiles.plugins.score.enabled.weight of type int32",
            id="the innermost struct and the whole path are named, without positions",
        ),
        pytest.param(
            {"clientConnection": {"qps": 1e39}},
            Configuration,
            f"json: cannot unmarshal number 1e+39 {INTO} ClientConnectionConfiguration.clientConnection.qps"
            " of type float32",
            id="a number that no 32-bit float holds",
        ),
        pytest.param(
            {"ignoredResources": [1]},
            NodeResourcesFitArgs,
            f"json: cannot unmarshal number {INTO} NodeResourcesFitArgs.ignoredResources of type string",
            id="a number in a list of texts",
        ),
        pytest.param(
            {"defaultConstraints": [{"labelSelector": {"matchLabels": {"a": 1}}}]},
            PodTopologySpreadArgs,
            f"json: cannot unmarshal number {INTO} LabelSelector.defaultConstraints.labelSelector.matchLabels"
            " of type string",
            id="a number in a map of texts",
        ),
        pytest.param(
            {"defaultConstraints": [{"labelSelector": {"matchLabels": 1}}]},
            PodTopologySpreadArgs,
            f"json: cannot unmarshal number {INTO} LabelSelector.defaultConstraints.labelSelector.matchLabels"
            " of type map[string]string",
            id="a number for a map",
        ),
        pytest.param(
            {"httpTimeout": 5},
            Extender,
            f"json: cannot unmarshal number {INTO} Extender.httpTimeout of type string",
            id="a number for a duration",
        ),
        pytest.param(
            {"httpTimeout": "5"}, Extender, 'time: missing unit in duration "5"', id="a duration without a unit"
        ),
        pytest.param(
            {"caData": "a!"}, ExtenderTLSConfig, "illegal base64 data at input byte 1", id="bytes that are not base64"
        ),
        pytest.param(
            {"caData": 5},
            ExtenderTLSConfig,
            f"json: cannot unmarshal number {INTO} ExtenderTLSConfig.caData of type []uint8",
            id="a number for bytes",
        ),
        pytest.param(
            {"name": 1, "weight": "x", "z": 1},
            ResourceSpec,
            f"json: cannot unmarshal number {INTO} ResourceSpec.name of type string",
            id="of several mistakes the first wrong type is told, and no complaint",
        ),
    ],
)
def test_wrong_types(value: dict[str, Any], into: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        decode_struct(value, into)
    assert str(raised.value) == message


def test_a_number_of_json_is_told_as_it_was_written() -> None:
    with pytest.raises(ConfigurationError, match=r"cannot unmarshal number 2\.0 into"):
        decode_struct(read_document('{"parallelism": 2.0}').value, Configuration)
