"""The configuration that a scheduler uses, and how it is shown."""

from __future__ import annotations

import json

import pytest

from ksched.config.gates import FeatureGates
from ksched.config.in_force import in_calling_order, in_force
from ksched.config.load import parse
from ksched.config.types import Configuration, Extender, args_for
from ksched.config.write import configuration_as_written
from ksched.errors import ConfigurationError

GATES = FeatureGates()
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
IGNORING = (
    HEAD + "extenders:\n- managedResources: [{name: example.com/a, ignoredByScheduler: true}, {name: example.com/b}]\n"
)


def test_extenders_that_must_answer_come_first() -> None:
    extenders = tuple(Extender(url_prefix=name, ignorable=name.isupper()) for name in "AbCd")
    assert [extender.url_prefix for extender in in_calling_order(extenders)] == ["b", "d", "A", "C"]


@pytest.mark.parametrize(
    ("written", "timeout"),
    [
        pytest.param("0s", "5s", id="five seconds where none are given"),
        pytest.param("7s", "7s", id="what is given"),
        pytest.param("-1s", "-1s", id="even a negative one"),
    ],
)
def test_timeouts(written: str, timeout: str) -> None:
    configuration = in_force(Configuration(extenders=(Extender(http_timeout=written),)))
    assert configuration.extenders[0].http_timeout == timeout


def test_resources_to_ignore_replace_the_profiles_own() -> None:
    own = "profiles:\n- pluginConfig:\n  - {name: NodeResourcesFit, args: {ignoredResources: [example.com/own]}}\n"
    (profile,) = in_force(parse(IGNORING + own, GATES)).profiles
    assert args_for(profile, "NodeResourcesFit")["ignoredResources"] == ["example.com/a"]


def test_without_resources_to_ignore_the_profiles_own_count() -> None:
    own = "profiles:\n- pluginConfig:\n  - {name: NodeResourcesFit, args: {ignoredResources: [example.com/own]}}\n"
    (profile,) = in_force(parse(HEAD + own, GATES)).profiles
    assert args_for(profile, "NodeResourcesFit")["ignoredResources"] == ["example.com/own"]


def test_resources_to_ignore_need_the_plugin() -> None:
    without = "profiles:\n- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}\n"
    with pytest.raises(ConfigurationError) as raised:
        in_force(parse(IGNORING + without, GATES))
    assert str(raised.value) == "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"


def test_arguments_of_plugins_that_do_not_run_are_not_shown() -> None:
    text = (
        HEAD
        + "profiles:\n- pluginConfig: [{name: VolumeBinding}, {name: Nobody, args: {x: 1}}, {name: ImageLocality}]\n"
    )
    (profile,) = in_force(parse(text, GATES)).profiles
    shown = [config.name for config in profile.plugin_config]
    assert shown == sorted(shown)
    assert "VolumeBinding" in shown
    assert not {"Nobody", "ImageLocality"} & set(shown)


def test_what_is_shown_is_a_file_that_means_the_same() -> None:
    text = (
        HEAD
        + """
parallelism: 3
leaderElection: {leaderElect: false, leaseDuration: 90s}
clientConnection: {qps: 12.5, burst: 33}
delayCacheUntilActive: true
profiles:
- schedulerName: a
  percentageOfNodesToScore: 0
  plugins:
    multiPoint:
      disabled: [{name: '*'}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeAffinity, weight: 4}]
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]
extenders:
- {urlPrefix: 'https://a/', enableHTTPS: true, tlsConfig: {caFile: ca.pem}, managedResources: [{name: example.com/a}]}
"""
    )
    configuration = in_force(parse(text, GATES))
    written = configuration_as_written(configuration)
    assert in_force(parse(json.dumps(written), GATES)) == configuration
    assert written["profiles"][0]["plugins"]["score"] == {}
    assert written["profiles"][0]["percentageOfNodesToScore"] == 0
    assert written["clientConnection"]["qps"] == 12.5
    assert "ignorable" not in written["extenders"][0]


def test_limits_that_are_not_given_are_shown_as_kube_scheduler_shows_them() -> None:
    connection = configuration_as_written(Configuration.default(GATES))["clientConnection"]
    assert (connection["qps"], connection["burst"]) == (50, 100)
