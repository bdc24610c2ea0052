"""Replay of the small rules: quantities, selectors, tolerations, host ports, requests and back-off.

Every file holds inputs and what kube-scheduler's own packages made of them. Objects come from the vectors as the API
server would send them and go through the real decoder; what a case expects is compared field by field. Our errors may
say more than Kubernetes' do: they must begin with its words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ksched.api.decode import ObjectDecoder
from ksched.errors import QuantityError, SelectorError
from ksched.model.node import Node, Taint
from ksched.model.pod import Pod, PreferredSchedulingTerm
from ksched.model.ports import DEFAULT_PROTOCOL, EVERY_ADDRESS, conflicts, host_ports
from ksched.model.quantity import Quantity, millis, parse_quantity, read_quantity, units
from ksched.model.requests import (
    NON_ZERO_DEFAULTS,
    RequestRules,
    ResourceAmounts,
    counted_requests,
    fit_requests,
    pod_limits,
    pod_requests,
    requested,
    to_count,
    to_fit,
)
from ksched.model.selectors import (
    first_untolerated,
    label_selector,
    preferred_terms,
    required_node_affinity,
    strict_node_selector,
    tolerates,
)
from ksched.queue.backoff import duration, expiry
from tests.conformance.tally import Tally

Case = Mapping[str, Any]
Answers = dict[str, Any]

_MILLISECOND = 10**6
_SECOND = 10**9


def expected_answers(case: Case) -> Answers:
    """What a case expects, as the vectors have it."""
    answers: Answers = case["expected"]
    return answers


class Unit(NamedTuple):
    """A file: what it is about, how ksched answers one of its cases, and what the case expects in the same form."""

    subject: str
    answers: Callable[[Case], Answers]
    expected: Callable[[Case], Answers] = expected_answers


def replay(path: Path) -> dict[str, Any]:
    """How many of the cases in the file at `path` come out exactly, and the first that do not."""
    unit = UNITS[path.stem]
    tally = Tally(f"units/{path.name}", unit.subject)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        case = json.loads(line)
        tally.compare(f"line {number}", _differences(unit.expected(case), unit.answers(case)))
    return tally.result()


def _differences(expected: Answers, got: Answers) -> Iterator[dict[str, Any]]:
    for what in sorted({*expected, *got}):
        if expected.get(what) != got.get(what) or (what in expected) != (what in got):
            yield {"what": what, "expected": expected.get(what), "got": got.get(what)}


def quantity(case: Case) -> Answers:
    """Parsing, both spellings and all readings of one text."""
    text = case["input"]
    try:
        parsed = parse_quantity(text)
    except QuantityError as error:
        return {"ok": False, "error": _beginning(str(error), case), **_as_json(text)}
    return {
        "ok": True,
        "string": str(parsed),
        "canonical": parsed.canonical(),
        "format": parsed.format,
        "value": parsed.value(),
        "milliValue": parsed.milli_value(),
        "asInt64": parsed.as_int64(),
        "sign": parsed.sign,
        "isZero": parsed.is_zero,
        "resource": {
            "milliCPU": millis(text),
            "memory": units(text),
            "ephemeralStorage": units(text),
            "pods": units(text),
            "scalar": {"example.com/gpu": units(text), "hugepages-2Mi": units(text)},
        },
    }


def _as_json(text: str) -> Answers:
    """The text in an object, around which blanks are allowed, where that makes it readable."""
    try:
        return {"jsonOk": True, "jsonCanonical": read_quantity(text).canonical()}
    except QuantityError:
        return {}


def quantity_operations(case: Case) -> Answers:
    """Comparison, sum and difference of two texts."""
    left, right = parse_quantity(case["input"]), parse_quantity(case["other"])
    total, difference = left + right, left - right
    return {
        "ok": True,
        "cmp": left.compare(right),
        "equal": left == right,
        "sum": str(total),
        "sumValue": total.value(),
        "sumMilli": total.milli_value(),
        "diff": str(difference),
        "diffValue": difference.value(),
    }


def selector(case: Case) -> Answers:
    """A label selector asked about labels, or a node selector asked about a node."""
    return _label_selector(case) if case["kind"] == "label" else _node_selector(case)


def _label_selector(case: Case) -> Answers:
    term = {"topologyKey": "zone", "labelSelector": case.get("labelSelector")}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    affinity = _pod({"affinity": {"podAffinity": required}}).spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    try:
        compiled = label_selector(affinity.pod_affinity.required[0].label_selector)
    except SelectorError as error:
        return {"error": str(error)}
    return {"match": compiled.matches(case["labels"]), "empty": compiled.empty, "string": str(compiled)}


def _node_selector(case: Case) -> Answers:
    labels, name = case["labels"], case["nodeName"]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": case.get("nodeSelector")}
    pod = _pod({"nodeSelector": case.get("podNodeSelector"), "affinity": {"nodeAffinity": required}})
    compiled = required_node_affinity(pod)
    answers: Answers = {"requiredMatch": compiled.matches(labels, name)}
    if (error := compiled.error(labels, name)) is not None:
        answers["requiredError"] = error
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return answers
    try:
        answers["newNodeSelectorMatch"] = strict_node_selector(affinity.required).matches(labels, name)
    except SelectorError as refused:
        answers["newNodeSelectorError"] = str(refused)
    terms = affinity.required.node_selector_terms
    weighted = [
        PreferredSchedulingTerm(weight, term) for weight, term in zip(range(10, 10**6, 10), terms, strict=False)
    ]
    try:
        answers["preferredScore"] = preferred_terms(weighted).score(labels, name)
    except SelectorError as refused:
        answers["preferredError"] = str(refused)
    return answers


def toleration(case: Case) -> Answers:
    """One toleration and taint, or lists of both, with and without numeric operators."""
    alone = "taint" in case
    tolerations = _pod({"tolerations": [case["toleration"]] if alone else case["tolerations"]}).spec.tolerations
    taints = _taints([case["taint"]] if alone else case["taints"])
    answers: Answers = {}
    for name, comparison_operators in (("gateOff", False), ("gateOn", True)):
        if alone:
            answers[name] = tolerates(tolerations[0], taints[0], comparison_operators)
        else:
            found = first_untolerated(taints, tolerations, comparison_operators)
            answers[name] = None if found is None else msgspec.to_builtins(found)
    return answers


def ports(case: Case) -> Answers:
    """The host ports that one pod wants, next to another that has its own."""
    used = set(host_ports(_decoded_pod(case["existing"])))
    wanted = [(port, conflicts(port, used)) for port in host_ports(_decoded_pod(case["wanted"]))]
    return {
        "conflict": any(taken for _, taken in wanted),
        "usedPorts": len(used),
        "wantedHostPorts": [(*port, taken) for port, taken in wanted],
    }


def ports_expected(case: Case) -> Answers:
    """The expectation, with the defaults of addresses and protocols that the vectors leave as they were written."""
    wanted = [
        (port["ip"] or EVERY_ADDRESS, port["protocol"] or DEFAULT_PROTOCOL, port["port"], port["conflict"])
        for port in case["expected"]["wantedHostPorts"]
    ]
    return {**case["expected"], "wantedHostPorts": wanted}


def requests(case: Case) -> Answers:
    """A pod's requests and limits in all the forms that the scheduler uses."""
    pod = _decoded_pod(case["pod"])
    rules = _rules(case.get("featureGates") or {})
    plain = to_count(rules)
    with_defaults = msgspec.structs.replace(plain, defaults=NON_ZERO_DEFAULTS)
    counted = counted_requests(pod, rules)
    non_zero, requests = requested(pod, with_defaults), requested(pod, plain)
    return {
        "podRequestsFromSpec": _spelled(pod_requests(pod, to_fit(rules))),
        "podRequestsWithStatus": _spelled(pod_requests(pod, plain)),
        "podRequestsNonMissing": _spelled(pod_requests(pod, with_defaults)),
        "podLimits": _spelled(pod_limits(pod, plain)),
        "fitPreFilter": _resource(fit_requests(pod, rules)),
        "podInfo": {
            "resource": _resource(counted.amounts),
            "nonZeroMilliCPU": counted.non_zero_milli_cpu,
            "nonZeroMemory": counted.non_zero_memory,
        },
        "scoreRequest": {
            name: [non_zero.get(name, 0), requests.get(name, 0)] for name in case["expected"]["scoreRequest"]
        },
    }


def backoff(case: Case) -> Answers:
    """The length of a back-off and when it ends, in nanoseconds as upstream has them."""
    wait = duration(case["count"], case["initialMs"] * _MILLISECOND, case["maxMs"] * _MILLISECOND)
    answers: Answers = {"durationMs": wait // _MILLISECOND}
    if "timestamp" in case:
        start = _nanoseconds(case["timestamp"])
        answers["expiresRounded"] = _timestamp(expiry(start, wait, _SECOND))
        answers["expiresUnrounded"] = _timestamp(expiry(start, wait, None))
    return answers


UNITS = {
    "quantity": Unit("resource quantities: parsing, spelling, rounding and overflow", quantity),
    "quantity-ops": Unit("resource quantities: comparison, sum and difference", quantity_operations),
    "selectors": Unit("label selectors and node selectors, with their errors", selector),
    "tolerations": Unit("taints and tolerations", toleration),
    "ports": Unit("host ports", ports, ports_expected),
    "podrequests": Unit("requests and limits of pods", requests),
    "backoff": Unit("back-off of pods that could not be scheduled", backoff),
}


_pods = ObjectDecoder("Pod", Pod)
_nodes = ObjectDecoder("Node", Node)


def _decoded_pod(written: Mapping[str, Any]) -> Pod:
    return _pods.object(json.dumps(written).encode())


def _pod(spec: Mapping[str, Any]) -> Pod:
    return _decoded_pod({"metadata": {"name": "case", "namespace": "default"}, "spec": spec})


def _taints(taints: list[Mapping[str, Any]]) -> list[Taint]:
    written = {"metadata": {"name": "case"}, "spec": {"taints": taints}}
    return _nodes.object(json.dumps(written).encode()).spec.taints


def _beginning(message: str, case: Case) -> str:
    """Kubernetes' words, if `message` begins with them."""
    words = case["expected"].get("error", "")
    return words if words and message.startswith(words) else message


def _rules(gates: Mapping[str, bool]) -> RequestRules:
    return RequestRules(
        pod_level_resources=gates.get("PodLevelResources", True),
        in_place_resize=gates.get("InPlacePodVerticalScaling", True),
        in_place_pod_level_resize=gates.get("InPlacePodLevelResourcesVerticalScaling", True),
    )


def _spelled(quantities: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in quantities.items()}


def _resource(amounts: ResourceAmounts) -> dict[str, Any]:
    """The amounts as the vectors have them; `pods` is never requested."""
    return {
        "milliCPU": amounts.milli_cpu,
        "memory": amounts.memory,
        "ephemeralStorage": amounts.ephemeral_storage,
        "pods": 0,
        "scalar": amounts.scalars,
    }


def _nanoseconds(timestamp: str) -> int:
    whole, _, fraction = timestamp.removesuffix("Z").partition(".")
    seconds = datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()
    return int(seconds) * _SECOND + int(fraction.ljust(9, "0"))


def _timestamp(nanoseconds: int) -> str:
    seconds, fraction = divmod(nanoseconds, _SECOND)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{fraction:09d}".rstrip("0").rstrip(".") + "Z"
