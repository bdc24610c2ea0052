"""What a new pod, or a pod template, may not be: the mistakes that clients make, in the API server's words.

It runs after the defaults of `pod_defaults.py`. Fields that are not known here are accepted: a real server
validates more, but what it would add no scheduler sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ksched.sandbox.validation import (
    Findings,
    check_labels,
    dns_label_fault,
    label_key_fault,
    quantity,
)

Json = dict[str, Any]

_RESTART_POLICIES: Final = frozenset({"Always", "OnFailure", "Never"})
_PULL_POLICIES: Final = frozenset({"Always", "IfNotPresent", "Never"})
_DNS_POLICIES: Final = frozenset({"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"})
_PROTOCOLS: Final = frozenset({"TCP", "UDP", "SCTP"})
_PREEMPTION_POLICIES: Final = frozenset({"Never", "PreemptLowerPriority"})
_TOLERATION_OPERATORS: Final = frozenset({"Equal", "Exists", "Lt", "Gt"})
_TAINT_EFFECTS: Final = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})
_SELECTOR_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_NODE_OPERATORS: Final = _SELECTOR_OPERATORS | {"Gt", "Lt"}
_UNSATISFIABLE: Final = frozenset({"DoNotSchedule", "ScheduleAnyway"})
_ONE_VALUE: Final = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_pod_spec(findings: Findings, spec: Json, path: str, *, template: bool = False) -> None:
    """Note what is wrong with a pod's spec; `path` is where it stands in its object."""
    containers = spec.get("containers")
    if not containers:
        findings.required(f"{path}.containers")
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        _check_container(findings, container, names, f"{path}.containers[{index}]")
    for index, container in enumerate(spec.get("initContainers") or ()):
        _check_container(findings, container, names, f"{path}.initContainers[{index}]")
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        findings.unsupported(f"{path}.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES)
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        findings.unsupported(f"{path}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES)
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        findings.unsupported(f"{path}.preemptionPolicy", policy, _PREEMPTION_POLICIES)
    if spec.get("nodeSelector"):
        check_labels(findings, spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("tolerations"):
        _check_tolerations(findings, spec["tolerations"], f"{path}.tolerations")
    if spec.get("affinity"):
        _check_affinity(findings, spec["affinity"], f"{path}.affinity")
    if spec.get("topologySpreadConstraints"):
        _check_spread(findings, spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    if spec.get("volumes"):
        _check_volumes(findings, spec["volumes"], f"{path}.volumes")
    if spec.get("resources"):
        _check_resources(findings, spec["resources"], f"{path}.resources")
    if spec.get("schedulingGates"):
        _check_gates(findings, spec, path, template=template)


def _check_container(findings: Findings, container: Json, names: set[str], path: str) -> None:
    get = container.get
    name = get("name")
    if not name:
        findings.required(f"{path}.name")
    elif fault := dns_label_fault(name):
        findings.invalid(f"{path}.name", name, fault)
    elif name in names:
        findings.duplicate(f"{path}.name", name)
    else:
        names.add(name)
    if not get("image"):
        findings.required(f"{path}.image")
    if container["imagePullPolicy"] not in _PULL_POLICIES:
        findings.unsupported(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL_POLICIES)
    if container["resources"]:
        _check_resources(findings, container["resources"], f"{path}.resources")
    if get("ports"):
        _check_ports(findings, container["ports"], f"{path}.ports")


def _check_resources(findings: Findings, resources: Json, path: str) -> None:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            fault = _amount_fault(name, str(amount))
            if fault:
                findings.invalid(f"{path}.{field}[{name}]", str(amount), fault)
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _may_overcommit(name):
                findings.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif limit != request:
            _compare(findings, name, str(request), str(limit), path)
    huge = any(name.startswith("hugepages-") for name in limits)
    if huge and not {"cpu", "memory"} & (requests.keys() | limits.keys()):
        findings.forbidden(path, "HugePages require cpu or memory")


def _compare(findings: Findings, name: str, request: str, limit: str, path: str) -> None:
    order = _order(request, limit)
    if order and not _may_overcommit(name):
        findings.invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
    elif order > 0:
        findings.invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")


@lru_cache(maxsize=1 << 14)
def _order(left: str, right: str) -> int:
    """-1, 0 or 1, as `left` is less than, equal to or more than `right`."""
    return quantity(left, "Pod").compare(quantity(right, "Pod"))


@lru_cache(maxsize=1 << 14)
def _amount_fault(name: str, amount: str) -> str | None:
    parsed = quantity(amount, "Pod")
    if parsed.sign < 0:
        return "must be greater than or equal to 0"
    if not _may_overcommit(name) and parsed.milli_value() % 1000:
        return "must be an integer"
    return None


@lru_cache(maxsize=1 << 10)
def _may_overcommit(name: str) -> bool:
    """Whether requests may be below limits: so for Kubernetes' own resources, except huge pages."""
    prefix, slash, _ = name.partition("/")
    native = not slash or prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io")
    return native and not name.startswith("hugepages-")


def _check_ports(findings: Findings, ports: list[Json], path: str) -> None:
    for index, port in enumerate(ports):
        number = port.get("containerPort")
        if number is None:
            findings.required(f"{path}[{index}].containerPort")
        elif not 1 <= number <= 65535:
            findings.invalid(f"{path}[{index}].containerPort", number, "must be between 1 and 65535, inclusive")
        host_port = port.get("hostPort")
        if host_port and not 1 <= host_port <= 65535:
            findings.invalid(f"{path}[{index}].hostPort", host_port, "must be between 1 and 65535, inclusive")
        if port["protocol"] not in _PROTOCOLS:
            findings.unsupported(f"{path}[{index}].protocol", port["protocol"], _PROTOCOLS)


def _check_tolerations(findings: Findings, tolerations: list[Json], path: str) -> None:
    for index, toleration in enumerate(tolerations):
        key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
        effect = toleration.get("effect")
        where = f"{path}[{index}]"
        if operator not in _TOLERATION_OPERATORS:
            findings.unsupported(f"{where}.operator", operator, _TOLERATION_OPERATORS)
        elif not key and operator != "Exists":
            findings.invalid(
                f"{where}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        elif operator == "Exists" and toleration.get("value"):
            findings.invalid(f"{where}.operator", toleration, "value must be empty when `operator` is 'Exists'")
        if key and (fault := label_key_fault(key)):
            findings.invalid(f"{where}.key", key, fault)
        if effect and effect not in _TAINT_EFFECTS:
            findings.unsupported(f"{where}.effect", effect, _TAINT_EFFECTS)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            findings.invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")


def _check_affinity(findings: Findings, affinity: Json, path: str) -> None:
    node_affinity = affinity.get("nodeAffinity")
    if node_affinity:
        _check_node_affinity(findings, node_affinity, f"{path}.nodeAffinity")
    for which in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(which)
        if rules:
            _check_pod_affinity(findings, rules, f"{path}.{which}")


def _check_node_affinity(findings: Findings, rules: Json, path: str) -> None:
    required = rules.get(_REQUIRED)
    if required is not None:
        terms = required.get("nodeSelectorTerms")
        where = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            findings.required(where, "must have at least one node selector term")
        for index, term in enumerate(terms or ()):
            _check_node_term(findings, term, f"{where}[{index}]")
    for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        _check_weight(findings, weighted, where)
        _check_node_term(findings, weighted["preference"], f"{where}.preference")


def _check_node_term(findings: Findings, term: Json, path: str) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        _check_expression(findings, expression, _NODE_OPERATORS, f"{path}.matchExpressions[{index}]")
    for index, expression in enumerate(term.get("matchFields") or ()):
        where = f"{path}.matchFields[{index}]"
        if expression.get("key") != "metadata.name":
            findings.invalid(f"{where}.key", expression.get("key"), "not a valid field selector key")
        if expression.get("operator") not in {"In", "NotIn"}:
            findings.invalid(f"{where}.operator", expression.get("operator"), "not a valid selector operator")
        elif len(expression.get("values") or ()) != 1:
            findings.required(f"{where}.values", _ONE_VALUE)


def _check_expression(findings: Findings, expression: Json, operators: frozenset[str], path: str) -> None:
    key, operator, values = expression.get("key") or "", expression.get("operator"), expression.get("values") or ()
    if operator not in operators:
        findings.invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif operator in {"In", "NotIn"} and not values:
        findings.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"} and values:
        findings.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in {"Gt", "Lt"} and len(values) != 1:
        findings.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    fault = label_key_fault(key)
    if fault:
        findings.invalid(f"{path}.key", key, fault)


def _check_pod_affinity(findings: Findings, rules: Json, path: str) -> None:
    for index, term in enumerate(rules.get(_REQUIRED) or ()):
        _check_pod_term(findings, term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        _check_weight(findings, weighted, where)
        _check_pod_term(findings, weighted["podAffinityTerm"], f"{where}.podAffinityTerm")


def _check_pod_term(findings: Findings, term: Json, path: str) -> None:
    key = term.get("topologyKey")
    if not key:
        findings.required(f"{path}.topologyKey", "can not be empty")
    elif fault := label_key_fault(key):
        findings.invalid(f"{path}.topologyKey", key, fault)
    for field in ("labelSelector", "namespaceSelector"):
        check_label_selector(findings, term.get(field), f"{path}.{field}")


def _check_weight(findings: Findings, weighted: Json, path: str) -> None:
    weight = weighted.get("weight", 0)
    if not 1 <= weight <= 100:
        findings.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def check_label_selector(findings: Findings, selector: Mapping[str, Any] | None, path: str) -> None:
    """Note what is wrong with a label selector."""
    if not selector:
        return
    check_labels(findings, selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        _check_expression(findings, expression, _SELECTOR_OPERATORS, f"{path}.matchExpressions[{index}]")


def _check_spread(findings: Findings, constraints: list[Json], path: str) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey")
        action = constraint.get("whenUnsatisfiable")
        if skew <= 0:
            findings.invalid(f"{where}.maxSkew", skew, "must be greater than zero")
        if not key:
            findings.required(f"{where}.topologyKey", "can not be empty")
        if action not in _UNSATISFIABLE:
            findings.unsupported(f"{where}.whenUnsatisfiable", action, _UNSATISFIABLE)
        elif key and (key, action) in seen:
            findings.duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        elif key:
            seen.add((key, action))
        minimum = constraint.get("minDomains")
        if minimum is not None and minimum <= 0:
            findings.invalid(f"{where}.minDomains", minimum, "must be greater than zero")
        elif minimum is not None and action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            findings.invalid(f"{where}.minDomains", minimum, why)
        check_label_selector(findings, constraint.get("labelSelector"), f"{where}.labelSelector")


def _check_volumes(findings: Findings, volumes: list[Json], path: str) -> None:
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name")
        if not name:
            findings.required(f"{path}[{index}].name")
        elif fault := dns_label_fault(name):
            findings.invalid(f"{path}[{index}].name", name, fault)
        elif name in names:
            findings.duplicate(f"{path}[{index}].name", name)
        else:
            names.add(name)


def _check_gates(findings: Findings, spec: Json, path: str, *, template: bool) -> None:
    names: set[str] = set()
    for index, gate in enumerate(spec["schedulingGates"]):
        name = gate.get("name") or ""
        fault = label_key_fault(name)
        if fault:
            findings.invalid(f"{path}.schedulingGates[{index}]", name, fault)
        elif name in names:
            findings.duplicate(f"{path}.schedulingGates[{index}]", name)
        names.add(name)
    if spec.get("nodeName") and not template:
        findings.forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")
