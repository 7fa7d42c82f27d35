"""Names fit Kubernetes' limits without collisions; reserved keys are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube import field, names


@given(st.text("abc-.", min_size=1, max_size=200), st.text("abc-.", min_size=1, max_size=200))
def test_different_names_stay_different_when_cut(name: str, other: str) -> None:
    """Results are equal only for equal names."""
    assert len(names.fit(name)) <= names.LABEL_MAX
    assert (names.fit(name) == names.fit(other)) == (name == other)


@pytest.mark.parametrize(
    ("key", "type_"),
    [
        ("controller-uid", field.ErrorType.FORBIDDEN),
        ("metacontroller.k8s.io/last-applied-configuration", field.ErrorType.FORBIDDEN),
        ("a/b/c", field.ErrorType.INVALID),
        ("-a", field.ErrorType.INVALID),
        ("x" * 64, field.ErrorType.INVALID),
        ("ü", field.ErrorType.INVALID),
    ],
)
def test_keys_that_are_refused(key: str, type_: field.ErrorType) -> None:
    """Metacontroller's keys are reserved, and the syntax is Kubernetes'."""
    assert type_ in {error.type for error in names.validate_labels({key: "v"}, field.Path("metadata").child("labels"))}


def test_ordinary_labels_pass() -> None:
    """Prefixes, dots and empty values are allowed."""
    given_labels = {"app.kubernetes.io/name": "x", "tier": "", "a.b_c-d": "X.y_Z-1"}
    assert list(names.validate_labels(given_labels, field.Path("metadata").child("labels"))) == []


def test_the_case_of_an_annotations_key_does_not_matter() -> None:
    """Uppercase letters in a prefix are refused for labels only, as in the API server."""
    keys, path = {"Example.COM/Note": "x"}, field.Path("metadata").child("annotations")
    assert list(names.validate_annotation_keys(keys, path)) == []
    assert list(names.validate_labels(keys, path)) != []


@pytest.mark.parametrize(
    ("name", "service"), [("a", True), ("1a", False), ("a.b", False), ("A", False), ("a" * 64, False)]
)
def test_service_names(name: str, service: bool) -> None:
    """A Service's name starts with a letter."""
    assert names.is_dns1035_label(name) is service
