"""`redraft bench compare`: which captions differ, their scores, and what cannot be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.errors import InputError
from redraft_bench.bench.compare import comparisons, printed

ONE = ("--to", "de", "--model", "demo-tiny", "--engine", "threads=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of two lines over four pairs."""
    from click.testing import CliRunner

    from redraft.cli.main import cli

    root = tmp_path_factory.mktemp("compared")
    pairs = {
        "I have a dog that looked at me.": "Ich habe einen Hund, der mich angesehen hat.",
        "She plays the piano in the evening.": "Sie spielt abends Klavier.",
        "We live in a small house by the sea.": "Wir wohnen in einem kleinen Haus am Meer.",
        "He has two cats.": "Er hat zwei Katzen.",
    }
    data = root / "pairs.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in pairs.items()), encoding="utf-8")
    command = ["bench", "run", "quality", "--data", str(data), *ONE, "--out", str(root / "out")]
    done = CliRunner().invoke(cli, [*command, "--line", "ar", "--line", "ssbd beta=0.49"])
    assert done.exit_code == 0, done.output
    return root / "out"


def test_compared(folder: Path) -> None:
    [found] = comparisons(folder, "ar", "ssbd beta=0.49")
    assert len(found.pairs) == 4 and found.language == "de" and found.name.startswith("quality-pairs")
    assert {each.utterance for each in found.different} == {
        each.utterance for each in found.pairs if each.first != each.second
    }
    scores = found.scores()
    assert scores.keys() == {"bleu", "chrf"}
    one, other, interval = scores["chrf"]
    assert 0 < one <= 100 and 0 < other <= 100 and interval.low <= other - one <= interval.high
    [back] = comparisons(folder, "ssbd beta=0.49", "ar")
    assert back.scores()["chrf"][:2] == (other, one)
    assert [each.gain for each in found.different] == [-each.gain for each in back.different]


def test_printed(folder: Path) -> None:
    [found] = comparisons(folder, "ar", "ssbd beta=0.49")
    text = printed(found, 0)
    assert text.startswith(f"{found.name}: {len(found.different)} of 4 final captions differ\n  BLEU ")
    assert text.count("\n\n") == len(found.different)
    assert all(each.second in text for each in found.different)
    if len(found.different) > 1:
        assert printed(found, 1).endswith(f"{len(found.different) - 1} more: --limit 0 lists all")


def test_same_line_differs_nowhere(folder: Path) -> None:
    [found] = comparisons(folder, "ar", "ar")
    assert found.different == [] and found.rows() == []
    assert all(interval == (0.0, 0.0) for _, _, interval in found.scores().values())


def test_lines_that_are_not_there(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has both 'ar' and 'pld'; its lines: ar, ssbd beta=0.49"):
        comparisons(folder, "ar", "pld")
    with pytest.raises(InputError, match="it has no runs"):
        comparisons(tmp_path, "ar", "pld")
