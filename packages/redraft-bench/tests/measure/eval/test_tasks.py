"""Tasks other than translation: their file, their scores, and a run of the set that ships."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from redraft.errors import InputError, MissingExtra
from redraft_bench.bench.data import TASK_SET, open_stream, tasks_of
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import TableLine
from redraft_bench.eval.record import PassRecord, Record, Step
from redraft_bench.eval.tasks import SCORES, TextTask, efficiency, f1, read_tasks, require_scores, scores


def test_set_that_ships() -> None:
    tasks = tasks_of("tasks")
    assert {*Counter(task.kind for task in tasks.values())} == {*SCORES}
    assert [segment.utterance for segment in open_stream("tasks", "de").segments] == [*tasks]
    assert Counter(task.kind for task in tasks_of("tasks", 1).values()) == dict.fromkeys(SCORES, 1)
    assert any("\n" in task.prompt for task in read_tasks(TASK_SET).values())


@pytest.mark.parametrize("line", ["{", '{"task": "poem", "prompt": "a", "reference": "b"}', '{"task": "code"}'])
def test_line_that_is_no_task(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"task": "code", "prompt": "a", "reference": "b"}) + "\n" + line + "\n")
    with pytest.raises(InputError, match="line 2"):
        read_tasks(path)


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("The miller, Jakob Renn.", "the miller Jakob Renn", 100),
        ("Jakob", "the miller Jakob Renn", 50),
        ("nobody", "Jakob", 0),
        ("", "Jakob", 0),
    ],
)
def test_f1(text: str, reference: str, expected: float) -> None:
    assert f1(text, reference) == pytest.approx(expected)


@pytest.mark.parametrize(("kind", "module"), [("summary", "rouge_score"), ("code", "rapidfuzz")])
def test_what_scores_is_needed_before_anything_is_decoded(
    monkeypatch: pytest.MonkeyPatch, kind: str, module: str
) -> None:
    monkeypatch.setattr("redraft_bench.eval.tasks.find_spec", lambda name: None)
    require_scores([TextTask("question", "1 + 1?", "2")])
    with pytest.raises(MissingExtra, match=rf"'{kind}' needs {module}: pip install .*\[tasks\]"):
        require_scores([TextTask(kind, "write", "text")])


def test_scores_by_kind() -> None:
    tasks = [TextTask("question", "?", "five"), TextTask("summary", "?", "a b c d"), TextTask("code", "?", "x = 1")]
    assert scores(["five", "a b c d", "```\nx = 1\ny = 2"], tasks) == {
        "f1": 100,
        "rouge_l": 100,
        "edit_similarity": 100,
    }
    assert scores(["five"], tasks[:1]) == {"f1": 100}


def written(method: str, *texts: tuple[int, int, float]) -> TableLine:
    """A line of texts: tokens, tokens that the first pass accepts, and seconds, of which the first pass takes one."""
    records = []
    for place, (tokens, accepted, seconds) in enumerate(texts):
        passes = [PassRecord(0, 9, accepted, accepted, accepted), *[PassRecord(9, 1, 0, 0, 0)] * (tokens - accepted)]
        head = 0, "s", True, None, 9, tuple(range(tokens)), "t", "", True, seconds, seconds
        records.append(Record(place, "u", method, (Step(*head, tuple(passes), first_seconds=1.0),)))
    return TableLine(Contender(method, "de"), records)


def test_efficiency_by_kind_leaves_first_pass_out() -> None:
    tasks = [TextTask("question", "?", "a"), TextTask("code", "?", "b"), TextTask("question", "?", "c")]
    plain, drafted = efficiency(
        [written("ar", (5, 0, 5.0), (9, 0, 3.0), (5, 0, 5.0)), written("pld", (5, 3, 1.5), (9, 4, 2.0), (5, 1, 2.5))],
        tasks,
    )
    assert plain == {
        **{"acceptance_length_question": 1.0, "later_speed_question": 1.0, "later_speedup_question": 1.0},
        **{"acceptance_length_code": 1.0, "later_speed_code": 4.0, "later_speedup_code": 1.0},
    }
    # Questions: 12 tokens with their ends in 8 passes; 1 + 3 tokens after the first passes, in 0.5 + 1.5 seconds.
    assert drafted["acceptance_length_question"] == round(12 / 8, 3)
    assert (drafted["later_speed_question"], drafted["later_speedup_question"]) == (2.0, 2.0)
    assert (drafted["later_speed_code"], drafted["later_speedup_code"]) == (4.0, 1.0)
