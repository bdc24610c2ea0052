"""What a sandbox with a data directory knows after it was stopped, or killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksched.errors import SandboxError
from ksched.sandbox.journal import FileJournal
from ksched.sandbox.revisions import Object, Revisions


def config_map(name: str, step: str) -> Object:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-of-{name}"}, "data": {"step": step}}


def opened(directory: Path) -> Revisions:
    revisions = Revisions()
    FileJournal.open(directory, revisions)
    return revisions


def close(revisions: Revisions) -> None:
    assert isinstance(revisions.journal, FileJournal)
    revisions.journal.close()


def state(revisions: Revisions) -> dict[str, bytes]:
    return {revision.name: revision.raw for shelf in revisions.shelves.values() for revision in shelf}


def write_some(revisions: Revisions) -> None:
    for name in ("a", "b", "c"):
        revisions.put("ConfigMap", config_map(name, "first"))
    revisions.put("ConfigMap", config_map("a", "second"))
    shelf = revisions.shelves["ConfigMap"]
    revision = shelf.get("ns", "b")
    assert revision is not None
    revisions.remove(revision)
    revisions.flush()


def test_what_was_flushed_is_known_after_a_crash(tmp_path: Path) -> None:
    before = opened(tmp_path)
    write_some(before)
    close(before)  # nothing else is written: the process might as well have died
    after = opened(tmp_path)
    assert state(after) == state(before)
    assert after.version == before.version
    close(after)


def test_a_clean_stop_leaves_a_snapshot_and_an_empty_journal(tmp_path: Path) -> None:
    before = opened(tmp_path)
    write_some(before)
    assert isinstance(before.journal, FileJournal)
    before.journal.compact(before)
    close(before)
    assert (tmp_path / "journal.jsonl").stat().st_size == 0
    after = opened(tmp_path)
    assert (state(after), after.version) == (state(before), before.version)
    close(after)


def test_the_version_survives_although_the_newest_object_is_gone(tmp_path: Path) -> None:
    before = opened(tmp_path)
    before.remove(before.put("ConfigMap", config_map("a", "only")))
    before.flush()
    version = before.version
    close(before)
    for _ in range(2):  # once from the journal, once from the snapshot that the first restart wrote
        after = opened(tmp_path)
        assert after.version == version
        close(after)


def test_a_version_that_rose_without_a_change_is_never_given_again(tmp_path: Path) -> None:
    before = opened(tmp_path)
    before.put("ConfigMap", config_map("a", "first"))
    before.forget_history()
    before.flush()
    close(before)
    after = opened(tmp_path)
    assert after.version == before.version
    close(after)


def test_a_line_that_was_being_written_is_dropped(tmp_path: Path) -> None:
    before = opened(tmp_path)
    write_some(before)
    close(before)
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'["ADDED","ConfigMap",{"metadata":{"name":"half')
    after = opened(tmp_path)
    assert state(after) == state(before)
    after.put("ConfigMap", config_map("d", "after"))
    after.flush()
    close(after)
    again = opened(tmp_path)
    assert "d" in state(again)
    close(again)


def test_dependents_are_known_again(tmp_path: Path) -> None:
    before = opened(tmp_path)
    owned = config_map("owned", "first")
    owned["metadata"]["ownerReferences"] = [{"uid": "owner"}]
    before.put("ConfigMap", owned)
    before.flush()
    close(before)
    after = opened(tmp_path)
    assert list(after.dependents["owner"]) == [("ConfigMap", "ns", "owned")]
    close(after)


@pytest.mark.parametrize("line", [b"nonsense\n", b'["ADDED","Gadget",{"metadata":{"resourceVersion":"5"}}]\n'])
def test_a_journal_that_is_none_is_refused_with_its_place(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "journal.jsonl").write_bytes(line)
    with pytest.raises(SandboxError, match=r"journal\.jsonl:1: "):
        opened(tmp_path)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match=r"data directory .*file"):
        FileJournal(tmp_path / "file")
