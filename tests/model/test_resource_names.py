"""Resource names: the class of a resource follows from how its name is written."""

from __future__ import annotations

import pytest

from ksched.model.resource_names import is_device_resource, is_extended, is_hugepage, is_native, is_scalar


@pytest.mark.parametrize(
    ("name", "native", "extended", "scalar"),
    [
        pytest.param("cpu", True, False, False, id="cpu has a field of its own"),
        pytest.param("storage", True, False, False, id="a name without a domain is native and not counted"),
        pytest.param("example.com/gpu", False, True, True, id="a vendor's resource is extended"),
        pytest.param("kubernetes.io/thing", True, False, True, id="Kubernetes' own domain is native but counted"),
        pytest.param("x.kubernetes.io/thing", True, False, True, id="so is a part of that domain"),
        pytest.param("hugepages-2Mi", True, False, True, id="huge pages are counted"),
        pytest.param("attachable-volumes-csi-x", True, False, True, id="volume limits are counted"),
        pytest.param("requests.example.com/gpu", False, False, False, id="a quota's name is no resource"),
        pytest.param("Example.com/gpu", False, False, False, id="a domain has no capitals"),
        pytest.param("a/b/c", False, False, False, id="one slash only"),
        pytest.param("example.com/", False, False, False, id="a name after the slash"),
        pytest.param(f"{'a' * 244}/x", False, True, True, id="the domain may be as long as its quota's name allows"),
        pytest.param(f"{'a' * 245}/x", False, False, False, id="and no longer"),
        pytest.param(f"example.com/{'x' * 64}", False, False, False, id="the name has at most 63 bytes"),
    ],
)
def test_classes(name: str, native: bool, extended: bool, scalar: bool) -> None:
    assert (is_native(name), is_extended(name), is_scalar(name)) == (native, extended, scalar)


def test_huge_pages_go_by_their_prefix() -> None:
    assert is_hugepage("hugepages-1Gi")
    assert not is_hugepage("hugepage-1Gi")


def test_devices_may_serve_extended_resources_and_their_classes() -> None:
    assert is_device_resource("example.com/gpu")
    assert is_device_resource("deviceclass.resource.kubernetes.io/gpu")
    assert not is_device_resource("hugepages-2Mi")
