"""``redraft plan``: its tables and lines, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.cli.main import cli
from redraft.errors import RedraftError
from redraft.measure.plan.costs import LinearCost, write_costs

H200 = ("--sessions", "1000", "--targets", "3", "--model", "tower-2b", "--gpu", "h200")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["plan", *arguments])
    if isinstance(result.exception, RedraftError):
        raise result.exception
    return result.exit_code, result.output


def lines(*arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(*arguments, "--json")[1].splitlines()]


@pytest.fixture
def costs(tmp_path: Path) -> str:
    path = tmp_path / "costs.json"
    write_costs(path, LinearCost(0.0001, 0.0017, 0.0008, {"ar": 0.0001, "ssbd": 0.0001}, "made up"))
    return str(path)


def test_it_is_a_command() -> None:
    assert "plan" in cli.list_commands(None)  # type: ignore[arg-type]


def test_an_estimate_is_called_one() -> None:
    status, text = run(*H200)
    assert status == 0
    assert "An estimate from a data sheet: nothing was measured on this hardware." in text
    assert "data sheet of NVIDIA H200 SXM" in text
    found = [each for each in lines(*H200) if each["kind"] == "method"]
    assert [each["method"] for each in found] == ["ar", "ssbd", "redraft"]
    assert all(each["estimated"] and each["possible"] for each in found)


def test_processors_get_an_answer_too(costs: str) -> None:
    status, text = run("--sessions", "100", "--costs", costs, "--cores", "8", "--method", "ssbd")
    assert status == 0
    assert "cores" in text and "machines" in text and "estimate" not in text
    assert "given in costs.json: made up" in text


def test_viewers_need_replicas() -> None:
    (with_viewers,) = lines(*H200, "--viewers", "1000000", "--method", "ssbd")[:1]
    assert with_viewers["viewer_replicas"] == 106


def test_what_cannot_be_done_is_said_with_status_1() -> None:
    status, text = run("--sessions", "5", "--model", "tower-9b", "--cpu", "epyc-9654", "--method", "ar")
    assert status == 1
    assert "not possible" in text
    assert "updates of one session cannot be answered within 1 s" in text


def test_the_simulation_is_shown_beside_the_formula(costs: str) -> None:
    pytest.importorskip("simpy")
    arguments = ("--sessions", "4", "--targets", "3", "--costs", costs, "--method", "ssbd", "--deadline", "0.5")
    (check,) = (each for each in lines(*arguments, "--simulate") if each["kind"] == "check")
    assert abs(float(str(check["difference"]))) <= 0.15
    assert "simulation" in run(*arguments, "--simulate")[1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--gpu", "abacus"), "hardware must be one of t4,"),
        (("--model", "abacus"), "model must be one of tiny,"),
        (("--method", "abacus"), "method must be one of ar, ssbd, redraft, which were recorded, not 'abacus'"),
        (("--model", "tower-2b"), "is a shape without weights, which cannot be measured here"),
        (("--gpu", "h200", "--measure"), "--measure is for this machine"),
        (("--gpu", "h200", "--cores", "4"), "--cores is for machines without GPU"),
        (("--overhead", "4"), "--overhead is for an estimate"),
        (("--format", "F16"), "--format is for the shapes"),
        (("--viewer-cost", "4"), "--viewer-cost is for --viewers"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(RedraftError, match=reason):
        run("--sessions", "5", *arguments)
