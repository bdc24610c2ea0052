"""A whole file: its version and kind, its plugins' arguments, and what is told when it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.config.gates import FeatureGates
from ksched.config.load import decode, load, parse
from ksched.config.types import Configuration, args_for
from ksched.config.write import configuration_as_written
from ksched.errors import ConfigurationError

GATES = FeatureGates()
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = HEAD + "profiles:\n- pluginConfig:\n  - name: InterPodAffinity\n    args: "
STRICT = "strict decoding error: "
SCHEME = 'in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"'


def test_a_file_that_says_nothing_is_the_default() -> None:
    assert parse(HEAD, GATES) == Configuration.default(GATES)


def test_a_file_of_json() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 4}'
    assert parse(text, GATES).parallelism == 4


def test_arguments_are_defaulted_and_kept_as_written() -> None:
    configuration = parse(ARGS + "{hardPodAffinityWeight: 7}", GATES)
    (profile,) = configuration.profiles
    assert profile.plugin_config[0].name == "InterPodAffinity"
    assert args_for(profile, "InterPodAffinity") == {
        "hardPodAffinityWeight": 7,
        "ignorePreferredTermsOfExistingPods": False,
    }


def test_arguments_of_other_plugins_stay_as_they_are() -> None:
    text = HEAD + "profiles:\n- pluginConfig:\n  - {name: Mine, args: {kind: MineArgs, x: [1, {z: 2}]}}\n"
    (profile,) = parse(text, GATES).profiles
    assert args_for(profile, "Mine") == {"x": [1, {"z": 2}]}


@pytest.mark.parametrize(
    ("profiles", "names"),
    [
        pytest.param("[{}]", ["default-scheduler"], id="a profile that is alone needs no name"),
        pytest.param("[null]", ["default-scheduler"], id="nor does an empty one"),
        pytest.param("[{schedulerName: ''}]", [""], id="but a name that is written is kept"),
        pytest.param("[{schedulerName: a}, {}, null]", ["a", "", ""], id="among several there is no default name"),
    ],
)
def test_names_of_profiles(profiles: str, names: list[str]) -> None:
    configuration = decode(f"{HEAD}profiles: {profiles}\n", GATES)
    assert [profile.scheduler_name for profile in configuration.profiles] == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "Object 'Kind' is missing in ''", id="an empty file"),
        pytest.param("kind: X\n", "Object 'apiVersion' is missing in 'kind: X\n'", id="no version"),
        pytest.param(
            "- a\n",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
            r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }',
            id="a list",
        ),
        pytest.param(
            "kind: [1]\n",
            "couldn't get version/kind; json parse error: "
            "json: cannot unmarshal array into Go struct field .kind of type string",
            id="a kind that is not a text",
        ),
        pytest.param(
            "apiVersion: a/b/c\nkind: X\n", "unexpected GroupVersion string: a/b/c", id="a version with two slashes"
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1beta3"),
            'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3" '
            + SCHEME,
            id="an old version",
        ),
        pytest.param(
            HEAD.replace("KubeScheduler", "Other"),
            'no kind "OtherConfiguration" is registered for version "kubescheduler.config.k8s.io/v1" ' + SCHEME,
            id="another kind",
        ),
        pytest.param(
            HEAD.replace("KubeSchedulerConfiguration", "VolumeBindingArgs"),
            "couldn't decode as KubeSchedulerConfiguration, "
            "got kubescheduler.config.k8s.io/v1, Kind=VolumeBindingArgs: ",
            id="the arguments of a plugin by themselves",
        ),
        pytest.param(
            HEAD + "profiles:\n- scheduler: a\n",
            STRICT + 'unknown field "profiles[0].scheduler"',
            id="an unknown field",
        ),
        pytest.param(
            HEAD + "x: 1\nx: 2\n",
            STRICT + 'yaml: unmarshal errors:\n  line 4: key "x" already set in map, unknown field "x"',
            id="repeated and unknown",
        ),
        pytest.param(
            ARGS + "{a: 1, b: 2}",
            f"{STRICT}decoding .profiles[0].pluginConfig[0]: {STRICT}decoding args for plugin InterPodAffinity: "
            f'{STRICT}unknown field "a", unknown field "b"',
            id="unknown arguments",
        ),
        pytest.param(
            HEAD + "x: 1\n" + ARGS.removeprefix(HEAD) + "{a: 1}",
            f'{STRICT}unknown field "x", decoding .profiles[0].pluginConfig[0]: {STRICT}'
            f'decoding args for plugin InterPodAffinity: {STRICT}unknown field "a"',
            id="unknown fields here and there",
        ),
        pytest.param(
            ARGS + "{hardPodAffinityWeight: x, a: 1}",
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: "
            "json: cannot unmarshal string into Go struct field InterPodAffinityArgs.hardPodAffinityWeight"
            " of type int32",
            id="an argument of the wrong type",
        ),
        pytest.param(
            ARGS + "{kind: NodeAffinityArgs}",
            "decoding .profiles[0].pluginConfig[0]: args for plugin InterPodAffinity were not of type "
            "InterPodAffinityArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io",
            id="the arguments of another plugin",
        ),
        pytest.param(
            HEAD.replace("/v1", "/__internal"),
            "[parallelism: Invalid value: 0: should be an integer value greater than zero, profiles: Required value, "
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0]",
            id="kube-scheduler's internal version has no defaults",
        ),
        pytest.param(
            HEAD.replace("/v1", "/__internal") + "parallelism: 4\n",
            STRICT + 'unknown field "parallelism"',
            id="nor the fields of a file",
        ),
        pytest.param(
            HEAD + "parallelism: 0\n",
            "parallelism: Invalid value: 0: should be an integer value greater than zero",
            id="one invalid value",
        ),
        pytest.param(
            HEAD + "parallelism: 0\npercentageOfNodesToScore: 101\n",
            "[parallelism: Invalid value: 0: should be an integer value greater than zero, "
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]]",
            id="two invalid values",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse(text, GATES)
    assert str(raised.value) == message


FIELDS = """
    addedAffinity apiVersion args bindTimeoutSeconds burst caData clientConnection defaultConstraints disabled
    enabled extenders httpTimeout key kind labelSelector leaderElection leaseDuration managedResources
    matchExpressions matchLabels multiPoint name nodeSelectorTerms operator parallelism pluginConfig plugins
    profiles qps requiredDuringSchedulingIgnoredDuringExecution resources schedulerName score scoringStrategy
    shape tlsConfig utilization values weight
"""
NAMES = st.sampled_from(FIELDS.split())
PLUGINS = st.sampled_from(["NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "VolumeBinding", "Mine"])
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | NAMES | PLUGINS | st.sampled_from(["5s", "*", "", "a b"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=30
)


def shown_after_reading(value: object) -> dict[str, Any] | None:
    """The configuration that `value` is, as it is written; None if it is refused with a message."""
    try:
        return configuration_as_written(parse(json.dumps(value), GATES))
    except ConfigurationError as error:
        return None if str(error) else {}


@given(st.dictionaries(NAMES, VALUES), st.lists(st.fixed_dictionaries({"name": PLUGINS, "args": VALUES}), max_size=3))
def test_whatever_a_file_holds_is_refused_with_a_message_or_reads_as_it_is_shown(
    top: dict[str, Any], plugin_config: list[dict[str, Any]]
) -> None:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    shown = shown_after_reading({"profiles": [{"pluginConfig": plugin_config}], **top, **head})
    assert shown is None or shown_after_reading(shown) == shown


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "podMaxBackoffSeconds: 30\n")
    assert load(path, GATES).pod_max_backoff_seconds == 30


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path / "nowhere.yaml", GATES)
    assert str(raised.value) == f"open {tmp_path}/nowhere.yaml: no such file or directory"


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigurationError) as raised:
        load(path, GATES)
    assert str(raised.value) == f"{path}: expected UTF-8 text, got byte 0xff at 3"
