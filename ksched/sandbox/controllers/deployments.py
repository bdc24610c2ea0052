"""Deployments and replica sets: as many pods as wanted, of the template that is wanted, replaced step by step.

A deployment owns a replica set for each template that it had; a replica set owns pods. The names, labels,
annotations and conditions are Kubernetes', so that `kubectl rollout`, `scale` and `wait` work. The arithmetic
of a rolling update is in `rollout.py`. Left out: adopting pods and replica sets of others, pausing in the
middle of proportional scaling, and `minReadySeconds`.
"""

from __future__ import annotations

import copy
import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

import orjson

from ksched.errors import Refused
from ksched.sandbox.ages import parse_time
from ksched.sandbox.controllers import rollout
from ksched.sandbox.controllers.reconciler import Key, Reconciler
from ksched.sandbox.revisions import Revision
from ksched.sandbox.store import Store

Json = dict[str, Any]

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COPIED: Final = frozenset({REVISION, _DESIRED, _MAXIMUM, _LAST_APPLIED})
_HASH_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH: Final = 10
# Pods made or deleted for one replica set before others, and requests, have their turn.
_BURST: Final = 100


@dataclass(frozen=True, slots=True)
class _Pod:
    """What counting pods needs to know of one."""

    name: str
    active: bool
    ready: bool
    assigned: bool
    created: str

    @property
    def place_in_line(self) -> tuple[bool, bool, str]:
        """Sorts pods by how much they would be missed: those without a node, not ready, and the newest come last."""
        return not self.assigned, not self.ready, self.created


class DeploymentController(Reconciler):
    """Keeps deployments and replica sets at what their specs say."""

    kinds = ("Deployment", "ReplicaSet", "Pod")

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        # By the owner's uid: its pods, and its replica sets.
        self._pods: dict[str, dict[str, Revision]] = defaultdict(dict)
        self._replica_sets: dict[str, dict[str, Revision]] = defaultdict(dict)
        self._seen: dict[str, tuple[int, _Pod]] = {}
        self._replica_set_names: dict[str, Key] = {}
        self._deployment_names: dict[str, Key] = {}

    def observe(self, revision: Revision, *, deleted: bool) -> None:
        """Look at what changed and at what owns it."""
        key = (revision.kind, revision.namespace, revision.name)
        if revision.kind == "Pod":
            self._observe_dependent(revision, self._pods, self._replica_set_names, deleted=deleted)
            if deleted:
                self._seen.pop(revision.uid, None)
        elif revision.kind == "ReplicaSet":
            self._observe_owner(revision.uid, key, self._replica_set_names, deleted=deleted)
            self._observe_dependent(revision, self._replica_sets, self._deployment_names, deleted=deleted)
        else:
            self._observe_owner(revision.uid, key, self._deployment_names, deleted=deleted)

    def _observe_owner(self, uid: str, key: Key, names: dict[str, Key], *, deleted: bool) -> None:
        if deleted:
            names.pop(uid, None)
        else:
            names[uid] = key
            self.enqueue(key)

    def _observe_dependent(
        self, revision: Revision, dependents: dict[str, dict[str, Revision]], names: dict[str, Key], *, deleted: bool
    ) -> None:
        for uid in revision.owners:
            if deleted:
                dependents[uid].pop(revision.uid, None)
                if not dependents[uid]:
                    del dependents[uid]
            else:
                dependents[uid][revision.uid] = revision
            if uid in names:
                self.enqueue(names[uid])

    def reconcile(self, key: Key) -> None:
        """Bring one deployment or replica set a step closer to its spec."""
        kind, namespace, name = key
        obj = self.store.get(kind, namespace, name)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        if kind == "ReplicaSet":
            self._reconcile_replica_set(key, obj)
        else:
            self._reconcile_deployment(key, obj)

    # ---- replica sets

    def _reconcile_replica_set(self, key: Key, replica_set: Json) -> None:
        active = [pod for pod in self._pods_of(replica_set) if pod.active]
        missing = replica_set["spec"]["replicas"] - len(active)
        failure = None
        if missing > 0:
            failure = self._create_pods(replica_set, min(missing, _BURST))
        elif missing < 0:
            active.sort(key=lambda pod: pod.place_in_line)
            for pod in active[missing:][-_BURST:]:
                self._delete("Pod", key[1], pod.name)
        self._write_replica_set_status(replica_set, failure)
        if failure is not None:
            raise failure
        if abs(missing) > _BURST:
            self.enqueue(key)

    def _create_pods(self, replica_set: Json, count: int) -> Refused | None:
        """Create pods from the template; the refusal of the first that is not accepted, if any."""
        metadata, template = replica_set["metadata"], replica_set["spec"]["template"]
        owner = _owner_reference("ReplicaSet", replica_set)
        for _ in range(count):
            pod_metadata = copy.deepcopy(template.get("metadata") or {})
            pod_metadata |= {
                "generateName": f"{metadata['name']}-",
                "namespace": metadata["namespace"],
                "ownerReferences": [owner],
            }
            try:
                self.store.create("Pod", {"metadata": pod_metadata, "spec": copy.deepcopy(template["spec"])})
            except Refused as refused:
                return refused
        return None

    def _pods_of(self, replica_set: Json) -> list[_Pod]:
        return [self._view(revision) for revision in self._pods.get(replica_set["metadata"]["uid"], {}).values()]

    def _view(self, revision: Revision) -> _Pod:
        """What there is to know of a pod, worked out once for each of its versions."""
        version, view = self._seen.get(revision.uid, (0, None))
        if view is None or version != revision.version:
            view = _view_of(revision)
            self._seen[revision.uid] = (revision.version, view)
        return view

    def _write_replica_set_status(self, replica_set: Json, failure: Refused | None) -> None:
        active = [pod for pod in self._pods_of(replica_set) if pod.active]
        ready = sum(pod.ready for pod in active)
        status: Json = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "observedGeneration": replica_set["metadata"]["generation"],
        }
        if ready:
            status |= {"readyReplicas": ready, "availableReplicas": ready}
        if failure is not None:
            # Kept as it was first seen: the text names the pod, whose name is another one each time.
            condition = {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": str(failure),
                "lastTransitionTime": self.clock.stamp(),
            }
            status["conditions"] = [_condition(replica_set, "ReplicaFailure") or condition]
        if status != (replica_set.get("status") or {}):
            self.store.update_status("ReplicaSet", {**replica_set, "status": status})

    # ---- deployments

    def _reconcile_deployment(self, key: Key, deployment: Json) -> None:
        replica_sets = [
            revision.decode() for revision in self._replica_sets.get(deployment["metadata"]["uid"], {}).values()
        ]
        replica_sets.sort(key=_revision)
        current = next((each for each in replica_sets if _same_template(each, deployment)), None)
        if current is None and not deployment["spec"].get("paused"):
            current = self._create_replica_set(deployment, replica_sets)
            replica_sets.append(current)
        elif current is not None:
            current = self._refresh_revision(deployment, current, replica_sets)
        old = [
            each for each in replica_sets if current is None or each["metadata"]["uid"] != current["metadata"]["uid"]
        ]
        self._scale(deployment, current, old)
        self._forget_history(deployment, old)
        self._write_deployment_status(key, deployment, current, old)

    def _create_replica_set(self, deployment: Json, replica_sets: list[Json]) -> Json:
        metadata, spec = deployment["metadata"], deployment["spec"]
        digest = _template_hash(spec["template"])
        template = copy.deepcopy(spec["template"])
        labels = {**(template.get("metadata") or {}).get("labels", {}), HASH_LABEL: digest}
        template.setdefault("metadata", {})["labels"] = labels
        selector = copy.deepcopy(spec["selector"])
        selector["matchLabels"] = {**selector.get("matchLabels", {}), HASH_LABEL: digest}
        return self.store.create(
            "ReplicaSet",
            {
                "metadata": {
                    "name": f"{metadata['name']}-{digest}",
                    "namespace": metadata["namespace"],
                    "labels": labels,
                    "annotations": _annotations(deployment, _next_revision(replica_sets)),
                    "ownerReferences": [_owner_reference("Deployment", deployment)],
                },
                "spec": {"replicas": 0, "selector": selector, "template": template},
            },
        )

    def _refresh_revision(self, deployment: Json, current: Json, replica_sets: list[Json]) -> Json:
        """Give a template that came back (a rollback) the newest revision, and hand annotations down."""
        newest = max(replica_sets, key=_revision)
        number = _revision(current) if newest is current else _next_revision(replica_sets)
        annotations = {**(current["metadata"].get("annotations") or {}), **_annotations(deployment, number)}
        if annotations == current["metadata"].get("annotations"):
            return current
        current["metadata"]["annotations"] = annotations
        return self.store.update("ReplicaSet", current)

    def _scale(self, deployment: Json, current: Json | None, old: list[Json]) -> None:
        """Set the sizes of all replica sets for the next step of the rollout."""
        limits = rollout.limits(deployment["spec"])
        sizes = rollout.next_sizes(
            limits,
            None if current is None else _size(current),
            [_size(each) for each in old],
            recreate=deployment["spec"]["strategy"]["type"] == "Recreate",
            paused=bool(deployment["spec"].get("paused")),
            old_pods=sum(len(self._pods_of(each)) for each in old),
        )
        for replica_set, size in zip([*old, *([] if current is None else [current])], sizes, strict=True):
            if replica_set["spec"]["replicas"] != size:
                replica_set["spec"]["replicas"] = size
                # The update answers with a new version: whoever writes this replica set next needs that one.
                replica_set.update(self.store.update("ReplicaSet", copy.deepcopy(replica_set)))

    def _forget_history(self, deployment: Json, old: list[Json]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        empty = [
            each for each in old if each["spec"]["replicas"] == 0 and not (each.get("status") or {}).get("replicas")
        ]
        for replica_set in empty[: max(len(empty) - limit, 0)]:
            self._delete("ReplicaSet", replica_set["metadata"]["namespace"], replica_set["metadata"]["name"])

    def _write_deployment_status(self, key: Key, deployment: Json, current: Json | None, old: list[Json]) -> None:
        wanted = deployment["spec"]["replicas"]
        everything = [*old, *([] if current is None else [current])]
        counts = {
            "replicas": _total(everything, "replicas"),
            "updatedReplicas": 0 if current is None else _total([current], "replicas"),
            "readyReplicas": _total(everything, "readyReplicas"),
            "availableReplicas": _total(everything, "availableReplicas"),
        }
        planned = sum(each["spec"]["replicas"] for each in everything)
        counts["unavailableReplicas"] = max(planned - counts["availableReplicas"], 0)
        status: Json = {field: count for field, count in counts.items() if count}
        status["observedGeneration"] = deployment["metadata"]["generation"]
        status["conditions"] = self._deployment_conditions(key, deployment, counts, wanted, current)
        annotations = deployment["metadata"].get("annotations") or {}
        revision = annotations.get(REVISION) if current is None else str(_revision(current))
        if status == deployment.get("status") and revision == annotations.get(REVISION):
            return
        if revision is not None:
            # Through the status: as in Kubernetes, the revision is not a new generation of the deployment.
            deployment["metadata"]["annotations"] = {**annotations, REVISION: revision}
        self.store.update_status("Deployment", {**deployment, "status": status})

    def _deployment_conditions(
        self, key: Key, deployment: Json, counts: dict[str, int], wanted: int, current: Json | None
    ) -> list[Json]:
        minimum = wanted - rollout.limits(deployment["spec"]).unavailable
        available = counts["availableReplicas"] >= minimum
        conditions = [
            self._condition(
                deployment,
                "Available",
                "True" if available else "False",
                "MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable",
                f"Deployment {'has' if available else 'does not have'} minimum availability.",
            )
        ]
        done = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted
        name = current["metadata"]["name"] if current is not None else ""
        progress = _condition(deployment, "Progressing")
        if done:
            reason, message = "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.'
            state = "True"
        elif self._is_late(key, deployment, counts, progress):
            reason, message = "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.'
            state = "False"
        else:
            reason, message, state = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', "True"
        moved = _progress(counts) != _progress(deployment.get("status") or {})
        conditions.append(self._condition(deployment, "Progressing", state, reason, message, moved=moved))
        return conditions

    def _is_late(self, key: Key, deployment: Json, counts: dict[str, int], progress: Json) -> bool:
        """Whether a rollout has not moved for longer than its deadline; if not, look again when it would be."""
        status = deployment.get("status") or {}
        if status.get("observedGeneration") != deployment["metadata"]["generation"]:
            return False
        if _progress(counts) != _progress(status):
            return False
        if progress.get("reason") == "ProgressDeadlineExceeded":
            return True
        since = parse_time(progress.get("lastUpdateTime") or "")
        if since is None:
            return False
        left = deployment["spec"]["progressDeadlineSeconds"] - (self.clock.now() - since).total_seconds()
        if left > 0:
            self.enqueue_after(key, left + 1)
        return bool(left <= 0)

    def _condition(
        self, deployment: Json, name: str, state: str, reason: str, message: str, *, moved: bool = False
    ) -> Json:
        """A condition with its times: the transition's moves with the status, the update's with anything."""
        present = _condition(deployment, name)
        now = self.clock.stamp()
        unchanged = (present.get("status"), present.get("reason"), present.get("message")) == (state, reason, message)
        return {
            "type": name,
            "status": state,
            "reason": reason,
            "message": message,
            "lastUpdateTime": present["lastUpdateTime"] if unchanged and not moved else now,
            "lastTransitionTime": present["lastTransitionTime"] if present.get("status") == state else now,
        }

    def _delete(self, kind: str, namespace: str, name: str) -> None:
        try:
            self.store.delete(kind, namespace, name)
        except Refused as refused:
            if refused.code != 404:
                raise


def _view_of(revision: Revision) -> _Pod:
    node_name, phase = revision.fields[0], revision.fields[2]
    active = phase not in {"Succeeded", "Failed"} and b'"deletionTimestamp":' not in revision.raw
    obj = revision.decode() if active else {}
    ready = phase == "Running" and _condition(obj, "Ready").get("status") == "True"
    return _Pod(revision.name, active, ready, bool(node_name), (obj.get("metadata") or {}).get("creationTimestamp", ""))


def _condition(obj: Json, name: str) -> Json:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == name), {})


def _owner_reference(kind: str, owner: Json) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _template_hash(template: Json) -> str:
    """A short name for a template: equal for equal templates."""
    number = int.from_bytes(hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()[:8], "big")
    letters = []
    for _ in range(_HASH_LENGTH):
        number, index = divmod(number, len(_HASH_LETTERS))
        letters.append(_HASH_LETTERS[index])
    return "".join(letters)


def _same_template(replica_set: Json, deployment: Json) -> bool:
    template = copy.deepcopy(replica_set["spec"]["template"])
    labels = template.get("metadata", {}).get("labels", {})
    labels.pop(HASH_LABEL, None)
    wanted = deployment["spec"]["template"]
    mine = {**template, "metadata": {**template.get("metadata", {}), "labels": labels}}
    theirs = {**wanted, "metadata": {"labels": {}, **wanted.get("metadata", {})}}
    return bool(mine == theirs)


def _annotations(deployment: Json, revision: int) -> dict[str, str]:
    """What a deployment's current replica set is annotated with."""
    own = deployment["metadata"].get("annotations") or {}
    limits = rollout.limits(deployment["spec"])
    return {
        **{key: value for key, value in own.items() if key not in _NOT_COPIED},
        REVISION: str(revision),
        _DESIRED: str(limits.replicas),
        _MAXIMUM: str(limits.replicas + limits.surge),
    }


def _revision(replica_set: Json) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _next_revision(replica_sets: list[Json]) -> int:
    return max((_revision(each) for each in replica_sets), default=0) + 1


def _size(replica_set: Json) -> rollout.Size:
    available = (replica_set.get("status") or {}).get("availableReplicas", 0)
    return rollout.Size(replica_set["spec"]["replicas"], available)


def _total(replica_sets: list[Json], field: str) -> int:
    return sum((each.get("status") or {}).get(field, 0) for each in replica_sets)


def _progress(status: Json) -> tuple[int, ...]:
    """The counts whose change means that a rollout moves."""
    return tuple(
        status.get(field, 0) for field in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    )
