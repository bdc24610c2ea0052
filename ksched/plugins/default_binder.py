"""DefaultBinder: the binding goes to the API server as one request."""

from __future__ import annotations

from ksched.errors import ClientError
from ksched.framework import BindPlugin, CycleState, PodInfo, Status


class DefaultBinder(BindPlugin):
    """POST `pods/NAME/binding`."""

    name = "DefaultBinder"

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """None once the API server has the pod on the node."""
        try:
            await self.handle.binder.bind(pod, node_name)
        except ClientError as error:
            return Status.error(str(error))
        return None
