"""Controllers that live in the sandbox's process, so that what people do to the API has its usual effect.

`NodeAgent` stands in for kubelets and the node lifecycle controller, `DeploymentController` for the deployment and
replica set controllers. Both work through the store like any client, and both can be left out: benchmarks do.
"""

from ksched.sandbox.controllers.deployments import DeploymentController
from ksched.sandbox.controllers.node_agent import NodeAgent

__all__ = ["DeploymentController", "NodeAgent"]
