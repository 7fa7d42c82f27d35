"""CEL expressions that select devices: those that the API server refuses, and those that it accepts."""

from __future__ import annotations

import pytest

from app.kserve.celselector import doubt, problem

MAP = 'device.attributes["gpu.nvidia.com"]'
MEMORY = 'device.capacity["gpu.nvidia.com"].memory'
REFUSED = {
    f'{MAP}.architecture = "Hopper"': "= is no operator of CEL; write ==",
    f'{MAP}.architecture == "Hopper" & true': "& is no operator",
    f'{MAP}.architecture == "Hopper" and true': "and has no meaning in CEL; write &&",
    f"{MAP}.a == 1 {MAP}.b == 2": "an operator is missing between 1 and device",
    f"{MAP}.a ==": "a value is missing after ==",
    f"({MAP}.a == 1": ") is missing",
    f"{MAP}.a == 1)": ") closes nothing",
    f'{MAP}.architecture == "Hopper': "a quotation mark is not closed",
    f"{MAP}.architecture == 'Hop\nper'": "a quotation mark is not closed",
    "device.attributes[\u201cgpu.nvidia.com\u201d].architecture == 1": "is no quotation mark of CEL",
    'device.attribute["a.b"].c == 1': "device has no attribute",
    'device.attributes["architecture"] == "Hopper"': '"architecture" must be the domain of a driver',
    '"Hopper" == device.attributes["architecture"]': '"architecture" must be the domain of a driver',
    f"{MEMORY} >= 80": "capacity is a quantity",
    f"80 <= {MEMORY}": "capacity is a quantity",
    f'{MEMORY} == "80Gi"': "capacity is a quantity",
}
ACCEPTED = [
    "true",
    f"{MAP}.type == 'gpu' // a comment: a = b",
    f'{MAP}.productName.matches("^NVIDIA (A100|H100)=")',
    f'{MAP}.cudaComputeCapability.isGreaterThan(semver("9.0.0")) && !(device.driver == "x")',
    f'{MEMORY}.compareTo(quantity("80Gi")) >= 0',
    f'{MEMORY} == quantity("80Gi")',
    f'"architecture" in {MAP} == true',
    f"has({MAP}.x) ? {MAP}.x in [1, -2.5e3] : false",
    f'{MAP}[?"a"].orValue(1) == 0x1F',
    f"cel.bind(dra, {MAP}, dra.a > 1u || dra.b == b'x')",
    f'{MAP}.exists(k, k == r"a\\")',
    f'{MAP}.name == """two "quoted"\nlines"""',
]


@pytest.mark.parametrize("expression", REFUSED)
def test_a_selector_that_kubernetes_refuses_has_a_problem(expression: str) -> None:
    assert REFUSED[expression] in problem(expression)


@pytest.mark.parametrize("expression", ACCEPTED)
def test_a_selector_that_kubernetes_takes_has_none(expression: str) -> None:
    assert problem(expression) == ""
    assert doubt(expression, "gpu.nvidia.com") == ""


def test_a_selector_that_matches_all_or_no_devices_is_doubtful() -> None:
    assert "is the same for every device" in doubt("1 == 1", "gpu.nvidia.com")
    assert 'are under "gpu.nvidia.com"' in doubt('device.attributes["nvidia.com"].a == 1', "gpu.nvidia.com")


@pytest.mark.parametrize("unit", ["(", '"', "device.", 'device.attributes["a"]==', "\\"])
def test_long_expressions_take_no_time(unit: str) -> None:
    problem(unit * 10_000)
