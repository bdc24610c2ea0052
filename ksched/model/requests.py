"""What a pod asks for: its requests and limits, all containers taken together.

Kubernetes adds up a pod's containers in one function with many options, and asks it differently in different places.
`RequestOptions` are those options; `to_fit`, `to_count`, `TO_SCORE` and `to_balance` name the places. What the
resource plugins and the cache's accounting calculate with comes from `fit_requests`, `counted_requests` and
`requested`; `pod_requests` and `pod_limits` give quantities, exact and with their spelling.

Amounts are added as exact billionths (`quantity.nanos`) and rounded once, so that two containers of 0.4m cpu take 1m
and not 2m. A pod with a negative or enormous amount is added up again with `Quantity`, because then the result
depends on how Kubernetes' own arithmetic overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from ksched.errors import QuantityError
from ksched.model.objects import QuantityText, ResourceList
from ksched.model.pod import Container, ContainerStatus, Pod
from ksched.model.quantity import (
    PLAIN_MAX,
    Quantity,
    milli_of_nanos,
    millis,
    nanos,
    read_quantity,
    units,
    units_of_nanos,
)
from ksched.model.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepage, is_scalar

NON_ZERO_DEFAULTS: Final[Mapping[str, QuantityText]] = {CPU: "100m", MEMORY: 200 * 1024 * 1024}
"""What a container without requests counts as in scores, so that such pods are spread too."""

_ALWAYS: Final = "Always"

Amount = TypeVar("Amount", int, Quantity)


class RequestRules(Struct, frozen=True):
    """The feature gates that decide how requests are added up, with their defaults in Kubernetes 1.36."""

    pod_level_resources: bool = True
    in_place_resize: bool = True
    in_place_pod_level_resize: bool = True


class RequestOptions(Struct, frozen=True):
    """Which of the amounts that a pod carries count.

    With `use_status` a container counts with the largest of what it asks for, was allocated and has; with `pod_level`
    requests of the whole pod replace the sum over its containers, and with `pod_level_resize` these too follow the
    status. `defaults` stand in where a container says nothing.
    """

    use_status: bool = False
    pod_level: bool = True
    pod_level_resize: bool = False
    defaults: Mapping[str, QuantityText] = {}


class ResourceAmounts(Struct, frozen=True):
    """Amounts as the scheduler calculates with them: thousandths of a CPU, bytes, units of the other resources."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: dict[str, int] = {}


class CountedRequests(Struct, frozen=True):
    """What a pod takes from its node; the non-zero amounts, with `NON_ZERO_DEFAULTS`, are those of the scores."""

    amounts: ResourceAmounts
    non_zero_milli_cpu: int
    non_zero_memory: int


TO_SCORE: Final = RequestOptions(pod_level=False, defaults=NON_ZERO_DEFAULTS)
"""How NodeResourcesFit scores a waiting pod: never by pod-level resources, which upstream's scorer is not told of."""


def to_fit(rules: RequestRules) -> RequestOptions:
    """How NodeResourcesFit filters for a waiting pod: as it is written, whatever its status says."""
    return RequestOptions(pod_level=rules.pod_level_resources)


def to_count(rules: RequestRules) -> RequestOptions:
    """How a pod counts on its node."""
    return RequestOptions(
        use_status=rules.in_place_resize,
        pod_level=rules.pod_level_resources,
        pod_level_resize=rules.in_place_pod_level_resize,
    )


to_balance = to_count
"""How NodeResourcesBalancedAllocation takes a waiting pod: as it would count on a node."""


def fit_requests(pod: Pod, rules: RequestRules) -> ResourceAmounts:
    """What a node must have free for `pod`; nothing is negative."""
    needs = requested(pod, to_fit(rules))
    return _amounts({name: max(0, amount) for name, amount in needs.items()})


def counted_requests(pod: Pod, rules: RequestRules) -> CountedRequests:
    """What `pod` takes from the node that it is on."""
    options = to_count(rules)
    taken = requested(pod, options)
    defaults = _missing_defaults(pod, options, taken)
    if defaults:
        non_zero = requested(
            pod, RequestOptions(options.use_status, options.pod_level, options.pod_level_resize, defaults)
        )
    else:
        non_zero = taken
    return CountedRequests(_amounts(taken), non_zero.get(CPU, 0), non_zero.get(MEMORY, 0))


def requested(pod: Pod, options: RequestOptions) -> dict[str, int]:
    """What `pod` asks for of every resource that it names, cpu in thousandths and all else in units, rounded up.

    Raises QuantityError with the field's path for a quantity that Kubernetes would refuse.
    """
    try:
        if (only := _only_container(pod, options)) is not None:
            return {name: millis(written) if name == CPU else units(written) for name, written in only.items()}
        exact = _total_requests(pod, options, nanos)
        if not exact or max(exact.values()) <= PLAIN_MAX:
            return {name: milli_of_nanos(n) if name == CPU else units_of_nanos(n) for name, n in exact.items()}
        total = _total_requests(pod, options, read_quantity)
    except QuantityError as error:
        raise _located(pod, error) from error
    return {name: total[name].milli_value() if name == CPU else total[name].value() for name in total}


def pod_requests(pod: Pod, options: RequestOptions) -> dict[str, Quantity]:
    """The same as quantities, in the format that Kubernetes would write them in."""
    try:
        return _total_requests(pod, options, read_quantity)
    except QuantityError as error:
        raise _located(pod, error) from error


def balance_requests(pod: Pod, rules: RequestRules, resources: Sequence[str]) -> dict[str, int]:
    """What NodeResourcesBalancedAllocation takes a waiting pod for, resource by resource, in the order in which they
    are configured.

    Upstream adds the pod up once per resource, after NodeResourcesFit has done so once, and a pod-level quantity that
    Kubernetes holds as a decimal (2.9Gi) is shared with the pod: each time the overhead is added to it in place, so it
    is one more overhead larger for every resource before. The scores show it.
    """
    asked = requested(pod, to_balance(rules))
    found = {name: asked.get(name, 0) for name in resources}
    if (
        not pod.spec.overhead
        or not rules.pod_level_resources
        or pod.spec.resources is None
        or pod.status.resources is not None
    ):
        return found
    for position, name in enumerate(resources):
        written = pod.spec.resources.requests.get(name)
        if (
            written is not None
            and name in pod.spec.overhead
            and _is_pod_level(name)
            and not read_quantity(written).compact
        ):
            amount = read_quantity(written)
            for _ in range(position + 2):
                amount += read_quantity(pod.spec.overhead[name])
            found[name] = amount.milli_value() if name == CPU else amount.value()
    return found


def pod_limits(pod: Pod, options: RequestOptions) -> dict[str, Quantity]:
    """The limits of `pod`, added up as its requests are. Overhead is added only to resources that have a limit."""
    try:
        return _total_limits(pod, options)
    except QuantityError as error:
        raise _located(pod, error) from error


def _amounts(by_name: dict[str, int]) -> ResourceAmounts:
    return ResourceAmounts(
        milli_cpu=by_name.get(CPU, 0),
        memory=by_name.get(MEMORY, 0),
        ephemeral_storage=by_name.get(EPHEMERAL_STORAGE, 0),
        scalars={name: amount for name, amount in by_name.items() if is_scalar(name)},
    )


def _missing_defaults(pod: Pod, options: RequestOptions, taken: dict[str, int]) -> Mapping[str, QuantityText]:
    """The defaults with which `pod` must be added up again for its non-zero requests."""
    if options.pod_level and _has_pod_level_requests(pod):
        return {name: default for name, default in NON_ZERO_DEFAULTS.items() if name not in taken}
    if options.use_status and _resize_is_infeasible(pod):
        return NON_ZERO_DEFAULTS
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        requests = container.resources.requests
        if CPU not in requests or MEMORY not in requests:
            return NON_ZERO_DEFAULTS
    return {}


def _only_container(pod: Pod, options: RequestOptions) -> Mapping[str, QuantityText] | None:
    """The requests of a pod that has nothing but one container, as most have: there is nothing to add."""
    spec = pod.spec
    if len(spec.containers) != 1 or spec.init_containers or spec.overhead:
        return None
    if (options.pod_level and spec.resources is not None) or (options.use_status and pod.status.container_statuses):
        return None
    requests = spec.containers[0].resources.requests
    return {**options.defaults, **requests} if options.defaults else requests


def _total_requests(pod: Pod, options: RequestOptions, read: Callable[[QuantityText], Amount]) -> dict[str, Amount]:
    statuses = _statuses(pod) if options.use_status else {}
    infeasible = options.use_status and _resize_is_infeasible(pod)

    def requests_of(container: Container, restarts: bool) -> dict[str, Amount]:
        requests = _read(container.resources.requests, read)
        status = statuses.get(container.name) if restarts else None
        if status is not None and status.resources is not None:
            requests = _effective(
                requests, _read(status.resources.requests, read), _read(status.allocated_resources, read), infeasible
            )
        for name, default in options.defaults.items():
            if name not in requests:
                requests[name] = read(default)
        return requests

    total = _total_of_containers(pod, requests_of)
    if options.pod_level and pod.spec.resources is not None and _has_pod_level_requests(pod):
        requests = _read(pod.spec.resources.requests, read)
        status = pod.status.resources
        if options.use_status and options.pod_level_resize and status is not None:
            allocated = _read(pod.status.allocated_resources, read)
            requests = _effective(requests, _read(status.requests, read), allocated, infeasible)
        total.update(_pod_level(requests))
    _add(total, _read(pod.spec.overhead, read))
    return total


def _total_limits(pod: Pod, options: RequestOptions) -> dict[str, Quantity]:
    statuses = _statuses(pod) if options.use_status else {}
    infeasible = options.use_status and _resize_is_infeasible(pod)

    def limits_of(container: Container, restarts: bool) -> dict[str, Quantity]:
        limits = _read(container.resources.limits, read_quantity)
        status = statuses.get(container.name) if restarts else None
        if status is not None and status.resources is not None:
            limits = _effective(limits, _read(status.resources.limits, read_quantity), {}, infeasible)
        return limits

    total = _total_of_containers(pod, limits_of)
    if options.pod_level and pod.spec.resources is not None:
        total.update(_pod_level(_read(pod.spec.resources.limits, read_quantity)))
    _add(total, {name: read_quantity(pod.spec.overhead[name]) for name in total if name in pod.spec.overhead})
    return total


def _total_of_containers(pod: Pod, amounts_of: Callable[[Container, bool], dict[str, Amount]]) -> dict[str, Amount]:
    """What is needed at once: all containers and sidecars, or an init container and the sidecars before it."""
    total: dict[str, Amount] = {}
    for container in pod.spec.containers:
        _add(total, amounts_of(container, True))
    sidecars: dict[str, Amount] = {}
    starting: dict[str, Amount] = {}
    for container in pod.spec.init_containers:
        restarts = container.restart_policy == _ALWAYS
        amounts = amounts_of(container, restarts)
        if restarts:
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            _add(amounts, sidecars)
        _raise(starting, amounts)
    _raise(total, starting)
    return total


def _pod_level(amounts: dict[str, Amount]) -> dict[str, Amount]:
    """Those that may be given for a pod as a whole."""
    return {name: amount for name, amount in amounts.items() if _is_pod_level(name)}


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or is_hugepage(name)


def _has_pod_level_requests(pod: Pod) -> bool:
    return pod.spec.resources is not None and any(map(_is_pod_level, pod.spec.resources.requests))


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _resize_is_infeasible(pod: Pod) -> bool:
    """Whether the node has refused a resize for good, so that what was asked for does not count."""
    pending = next((condition for condition in pod.status.conditions if condition.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _effective(
    spec: dict[str, Amount], actual: dict[str, Amount], allocated: dict[str, Amount], infeasible: bool
) -> dict[str, Amount]:
    """The largest of what is asked for, in effect and allocated; an infeasible resize does not count."""
    largest = {} if infeasible else dict(spec)
    _raise(largest, actual)
    _raise(largest, allocated)
    return largest


def _read(resources: Mapping[str, QuantityText], read: Callable[[QuantityText], Amount]) -> dict[str, Amount]:
    return {name: read(written) for name, written in resources.items()}


def _add(total: dict[str, Amount], amounts: Mapping[str, Amount]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: dict[str, Amount], amounts: Mapping[str, Amount]) -> None:
    """Make `total` at least `amounts`."""
    for name, amount in amounts.items():
        if name not in total:
            total[name] = amount
        elif amount > total[name]:
            total[name] = _compared(amount, total[name])


def _compared(amount: Amount, other: Amount) -> Amount:
    """`amount` as upstream has it after comparing: a decimal if the other is one, which shows when it overflows."""
    if isinstance(amount, Quantity) and isinstance(other, Quantity) and not other.compact:
        return amount.as_decimal()
    return amount


def _located(pod: Pod, error: QuantityError) -> QuantityError:
    """`error` with the path of the first quantity of `pod` that cannot be read."""
    for path, resources in _resource_lists(pod):
        for name, written in resources.items():
            try:
                read_quantity(written)
            except QuantityError as cause:
                return QuantityError(f"{path}[{name}]: {cause}")
    return error


def negative_quantity(pod: Pod) -> QuantityError:
    """The complaint about a pod that asks for less than nothing, with the path of the first such quantity."""
    for path, resources in _resource_lists(pod):
        for name, written in resources.items():
            if read_quantity(written).sign < 0:
                return QuantityError(f"{path}[{name}]: expected 0 or more, got {written!r}")
    return QuantityError("requests: expected 0 or more, got less in sum")


def _resource_lists(pod: Pod) -> Iterator[tuple[str, ResourceList]]:
    """All resource lists of `pod` with their paths; containers go by their names."""
    spec, status = pod.spec, pod.status
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for container in containers:
            yield f"spec.{kind}[{container.name}].resources.requests", container.resources.requests
            yield f"spec.{kind}[{container.name}].resources.limits", container.resources.limits
    if spec.resources is not None:
        yield "spec.resources.requests", spec.resources.requests
        yield "spec.resources.limits", spec.resources.limits
    yield "spec.overhead", spec.overhead
    for kind, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for container_status in statuses:
            yield f"status.{kind}[{container_status.name}].allocatedResources", container_status.allocated_resources
            if container_status.resources is not None:
                yield f"status.{kind}[{container_status.name}].resources.requests", container_status.resources.requests
                yield f"status.{kind}[{container_status.name}].resources.limits", container_status.resources.limits
    yield "status.allocatedResources", status.allocated_resources
    if status.resources is not None:
        yield "status.resources.requests", status.resources.requests
        yield "status.resources.limits", status.resources.limits
