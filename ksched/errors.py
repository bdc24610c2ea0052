"""Every exception that ksched raises, as one tree.

    KschedError
    ├── ObjectError                 an object from the API server cannot be understood
    │   ├── QuantityError           a resource quantity that Kubernetes would refuse
    │   └── SelectorError           a label or node selector that cannot be parsed
    ├── ConfigurationError          the scheduler's configuration is wrong (with the field's path)
    ├── CacheError                  a change that contradicts what the cache holds
    ├── QueueError                  a pod that comes back is in the scheduling queue already
    ├── PluginError                 a plugin is missing, wrong, or failed
    ├── ClientError                 talking to the API server failed
    │   ├── KubeconfigError         no usable credentials or address
    │   ├── ConnectionFailed        no answer: refused, reset, timed out, or not HTTP
    │   └── ApiError                an answer with an error `Status`
    └── SandboxError                the embedded API server cannot start
        ├── Refused                 a request that the API refuses, as the `Status` that answers it
        ├── PatchError              a patch that cannot be understood or applied
        └── ApplyConflict           a server-side apply that would take another owner's fields

Expected outcomes of scheduling are values (`framework.Status`), not exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class KschedError(Exception):
    """The root of what ksched raises on purpose."""


class ObjectError(KschedError):
    """An object from the API server cannot be understood; the message names the field."""


class QuantityError(ObjectError):
    """A resource quantity that Kubernetes would refuse."""


class SelectorError(ObjectError):
    """A label or node selector that cannot be parsed."""


class ConfigurationError(KschedError):
    """The scheduler's configuration is wrong; the message starts with the field's path."""


class CacheError(KschedError):
    """A change that contradicts what the cache holds."""


class QueueError(KschedError):
    """A pod that comes back to the scheduling queue is there already."""


class PluginError(KschedError):
    """A plugin is missing, does not implement what it is enabled for, or failed."""


class ClientError(KschedError):
    """Talking to the API server failed."""


class KubeconfigError(ClientError):
    """No usable address or credentials; the message names the file and the field."""


class ConnectionFailed(ClientError):
    """No answer: refused, reset, timed out, or not HTTP.

    `sent` tells whether the request may have reached the server: if it may, whether it took effect is not known.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class ApiError(ClientError):
    """The API server answered with an error.

    `code` is the HTTP status, `reason` the machine-readable reason of the `Status` ("Conflict", "NotFound", ...),
    `retry_after_seconds` what the server asked for.
    """

    def __init__(self, code: int, reason: str, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message or f"the server answered {code} {reason}".rstrip())
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class SandboxError(KschedError):
    """The embedded API server cannot start or was asked for something that it does not have."""


class ClusterTooSmall(SandboxError):
    """A made-up cluster has no room for all of its pods."""


class Refused(SandboxError):
    """A request that the embedded API server refuses; it is answered with a `Status` of these fields.

    `causes` are `StatusCause`s (`reason`, `message`, `field`); `details` names the object when the one that raises
    knows it.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        causes: Sequence[Mapping[str, str]] = (),
        *,
        details: Mapping[str, object] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self.details = dict(details or {})
        self.retry_after_seconds = retry_after_seconds


class PatchError(SandboxError):
    """A patch that cannot be understood (`code` 400) or does not apply (422); the message says which part."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


class ApplyConflict(SandboxError):
    """A server-side apply that would take fields which another owner set; `causes` names each field and owner."""

    def __init__(self, causes: Sequence[Mapping[str, str]], message: str) -> None:
        super().__init__(message)
        self.causes = tuple(causes)
        self.message = message
