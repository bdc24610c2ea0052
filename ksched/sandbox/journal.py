"""What survives a restart: a snapshot of all objects, and a journal of every change since.

Each change is one line, written before any client is told of it, so that a killed sandbox comes back with everything
it ever confirmed. A line that was being written when the process died is dropped: nobody had been answered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from ksched.errors import SandboxError
from ksched.sandbox.resources import STORED_KINDS
from ksched.sandbox.revisions import Change, Revisions

log = logging.getLogger(__name__)


class FileJournal:
    """The journal of one data directory. One process at a time may use it."""

    def __init__(self, directory: Path) -> None:
        self._snapshot = directory / "snapshot.jsonl"
        self._path = directory / "journal.jsonl"
        self._noted: list[bytes] = []
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise SandboxError(f"data directory {directory}: {error.strerror}") from error

    @classmethod
    def open(cls, directory: Path, revisions: Revisions) -> FileJournal:
        """The journal of `directory`, with `revisions` filled from it and further changes noted in it."""
        journal = cls(directory)
        try:
            journal._restore(revisions)
        except SandboxError:
            journal.close()
            raise
        revisions.journal = journal
        return journal

    def note(self, change: Change) -> None:
        """Take down a change."""
        kind = change.kind.encode()
        self._noted.append(b'["%b","%b",%b]\n' % (change.type.encode(), kind, change.revision.raw))

    def note_version(self, version: int) -> None:
        """Take down that the version has risen without a change."""
        self._noted.append(_version_line(version))

    def flush(self) -> None:
        """Write what was noted."""
        if self._noted:
            noted, self._noted = self._noted, []
            self._file.write(b"".join(noted))

    def compact(self, revisions: Revisions) -> None:
        """Write a snapshot of the present, and empty the journal that led to it."""
        self.flush()
        partial = self._snapshot.with_suffix(".partial")
        with partial.open("wb") as file:
            # The version may be ahead of every object's: deletions raise it too.
            file.write(_version_line(revisions.version))
            for kind, shelf in revisions.shelves.items():
                for revision in shelf:
                    file.write(b'["ADDED","%b",%b]\n' % (kind.encode(), revision.raw))
        partial.replace(self._snapshot)
        self._file.truncate(0)

    def close(self) -> None:
        """Close the file; nothing may be noted afterwards."""
        self._file.close()

    def _restore(self, revisions: Revisions) -> None:
        """Fill `revisions` with what the directory holds, and begin a new journal on top of a fresh snapshot."""
        version = revisions.version
        objects: dict[tuple[str, str, str], tuple[str, dict[str, Any]]] = {}
        for type_, kind, obj in self._entries():
            metadata = obj["metadata"]
            version = max(version, int(metadata["resourceVersion"]))
            key = (kind, metadata.get("namespace", ""), metadata.get("name", ""))
            if type_ == "DELETED":
                objects.pop(key, None)
            elif type_ != "VERSION":
                objects[key] = (kind, obj)
        for kind, obj in objects.values():
            revisions.restore(kind, obj)
        revisions.restored(version)
        self.compact(revisions)

    def _entries(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for path in (self._snapshot, self._path):
            if not path.exists():
                continue
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    if not line.endswith(b"\n"):
                        log.warning("%s:%d: dropped a line that was cut off when the sandbox died", path, number)
                        break
                    try:
                        type_, kind, obj = orjson.loads(line)
                    except (orjson.JSONDecodeError, ValueError) as error:
                        raise SandboxError(f"{path}:{number}: not a line of a sandbox's journal: {error}") from error
                    if kind and kind not in STORED_KINDS:
                        raise SandboxError(f"{path}:{number}: unknown kind {kind!r}")
                    yield type_, kind, obj


def _version_line(version: int) -> bytes:
    return b'["VERSION","",{"metadata":{"resourceVersion":"%d"}}]\n' % version
