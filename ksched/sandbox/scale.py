"""The scale subresource: replicas of a workload as an autoscaling/v1 `Scale`."""

from __future__ import annotations

from typing import Any

from ksched.errors import PatchError
from ksched.sandbox import status
from ksched.sandbox.patches import json_patch, merge_patch, strategic_merge
from ksched.sandbox.resources import Resource
from ksched.sandbox.revisions import Object
from ksched.sandbox.verbs import PatchRequest, part


def of(resource: Resource, obj: Object) -> Object:
    """The scale of a workload."""
    metadata, spec, state = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {"replicas": state.get("replicas", 0), "selector": _selector(resource, spec.get("selector") or {})},
    }


def applied(resource: Resource, obj: Object, wanted: Object) -> Object:
    """The workload with the replicas of a `Scale`; a resourceVersion in the scale is a precondition."""
    replicas = part(wanted, "spec").get("replicas", 0)
    name = obj["metadata"]["name"]
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise status.invalid(resource, name, "spec.replicas", why)
    version = part(wanted, "metadata").get("resourceVersion")
    if version and version != obj["metadata"]["resourceVersion"]:
        raise status.modified(resource, name)
    obj.setdefault("spec", {})["replicas"] = replicas
    return obj


def patched(present: Object, patch: PatchRequest) -> Object:
    """A `Scale` with a patch applied to it."""
    try:
        match patch.media_type:
            case "application/json-patch+json":
                return json_patch(present, patch.body)
            case "application/merge-patch+json":
                return merge_patch(present, patch.body)
            case _:
                return strategic_merge(present, patch.body, "Scale")
    except PatchError as error:
        raise status.as_refusal(error) from error
    except (AttributeError, KeyError, TypeError) as error:
        raise status.bad_request(f"a field of the patch has another type than in the API: {error}") from error


def _selector(resource: Resource, selector: dict[str, Any]) -> str:
    """A selector as text, as the autoscaler reads it."""
    if resource.kind == "ReplicationController":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        text = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        terms.append(text.get(expression["operator"], f"!{key}"))
    return ",".join(terms)
