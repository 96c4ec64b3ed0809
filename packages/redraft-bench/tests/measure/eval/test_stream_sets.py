"""Test sets and the streams that reveal them word by word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redraft.captions.events import Update
from redraft.errors import InputError, OptionError
from redraft_bench.bench.data import are_pairs, open_stream, reveals
from redraft_bench.eval.sets import SETS, TestSet, data_folder, lag_stream, load_set, read_pairs


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small set; one text has a line separator in it."""
    folder = tmp_path / "test"
    folder.mkdir()
    (folder / "mexpresso.en.txt").write_text("one two three four\nfive\nsix\u2028seven\n", "utf-8")
    (folder / "mexpresso.de.txt").write_text("eins zwei drei vier\nfünf\nsechs sieben\n", "utf-8")
    (folder / "mexpresso.zh.txt").write_text("一\n", "utf-8")
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path))
    return tmp_path


def test_set_is_loaded(data: Path) -> None:
    assert data_folder() == data
    whole = load_set("mexpresso", "de")
    assert whole.sources == ("one two three four", "five", "six\u2028seven")
    assert whole.references == ("eins zwei drei vier", "fünf", "sechs sieben")
    assert load_set("mexpresso", "German") == whole == load_set("mexpresso", "de-AT", limit=9)
    assert load_set("mexpresso", "de", limit=1).sources == whole.sources[:1]
    assert load_set("mexpresso", "de", limit=1, least_words=4).references == whole.references[:1]
    assert load_set("mexpresso", "de", least_words=5).sources == ()
    assert len({whole.hash, load_set("mexpresso", "de", 1).hash, load_set("mexpresso", "de", 2).hash}) == 3


def test_set_that_cannot_be_loaded(data: Path) -> None:
    with pytest.raises(OptionError, match="test set must be one of flores200.devtest, .*, not 'flores'"):
        load_set("flores", "de")
    with pytest.raises(InputError, match=r"mexpresso.ja.txt does not exist: set REDRAFT_DATA"):
        load_set("mexpresso", "ja")
    with pytest.raises(InputError, match="mexpresso must have as many lines in en as in zh"):
        load_set("mexpresso", "zh")
    with pytest.raises(OptionError, match="target language 'nonsense' is not known"):
        load_set("mexpresso", "nonsense")
    with pytest.raises(OptionError, match="limit must be a whole number of 0 or more, not -1"):
        load_set("mexpresso", "de", -1)
    with pytest.raises(OptionError, match="least_words must be a whole number of 0 or more, not 1.5"):
        load_set("mexpresso", "de", least_words=1.5)  # type: ignore[arg-type]


def test_stream_of_set(data: Path) -> None:
    stream = lag_stream(load_set("mexpresso", "de", 2), "de-AT", 3)
    assert stream.name == "mexpresso"
    assert stream.updates == (
        Update("0", 0, "one two three"),
        Update("0", 1, "one two three four", True),
        Update("1", 0, "five", True),
    )
    assert [segment.references for segment in stream.segments] == [{"de": "eins zwei drei vier"}, {"de": "fünf"}]


def test_lag_0_gives_every_source_whole(data: Path) -> None:
    test = load_set("mexpresso", "de", 2)
    stream = lag_stream(test, "de", 0)
    assert stream.updates == (Update("0", 0, "one two three four", True), Update("1", 0, "five", True))
    assert len({lag_stream(test, "de", lag).hash for lag in (0, 1, 2)}) == 3


def test_set_in_the_other_direction(data: Path) -> None:
    there, back = load_set("mexpresso", "de"), load_set("mexpresso", "en", source="de")
    assert (back.sources, back.references) == (there.references, there.sources)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("my.tsv", "Guten Tag.\tBonjour.\nein\u2028Satz mit vier\tune phrase\n"),
        (
            "my.jsonl",
            '{"source": "Guten Tag.", "reference": "Bonjour."}\n'
            '{"source": "ein\\u2028Satz mit vier", "reference": "une phrase", "id": 3}',
        ),
    ],
)
def test_file_of_pairs(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert are_pairs(str(path)) and reveals(str(path))
    stream = open_stream(str(path), "fr", lag=3, source="de")
    assert [each.source for each in stream.segments] == ["Guten Tag.", "ein Satz mit vier"]
    assert [len(each.updates) for each in stream.segments] == [1, 2]
    assert stream.segments[1].references == {"fr": "une phrase"}
    assert len(open_stream(str(path), "fr", limit=1, least_words=3).segments) == 1


@pytest.mark.parametrize("suffix", ["tsv", "jsonl"])
def test_pairs_as_people_save_them(tmp_path: Path, suffix: str) -> None:
    """A mark of the byte order, Windows line ends, empty lines, quotation marks, a line without reference."""
    rows = [("a b", "c"), ('"d" e', '"f"'), ("g", None), ("h", "")]
    if suffix == "jsonl":
        lines = [json.dumps({"source": source, "reference": reference}) for source, reference in rows]
    else:
        lines = ["\t".join(each for each in row if each is not None) for row in rows]
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(["", *lines, ""]).encode())
    assert are_pairs(str(path))
    found = read_pairs(path)
    assert [*zip(found.sources, found.references, strict=True)] == [(a, b or "") for a, b in rows]
    assert [each.references for each in lag_stream(found, "fr").segments] == [{"fr": "c"}, {"fr": '"f"'}, {}, {}]


@pytest.mark.parametrize("line", ["\tb", "a\tb\tc", '{"source": ""}', '{"source": 1, "reference": "b"}', "["])
def test_line_that_is_no_pair(tmp_path: Path, line: str) -> None:
    path = tmp_path / ("x.jsonl" if line[0] in "{[" else "x.tsv")
    good = '{"source": "a", "reference": "b"}' if path.suffix == ".jsonl" else "a\tb"
    path.write_text(f"{good}\n{line}\n", "utf-8")
    with pytest.raises(InputError, match="line 2"):
        read_pairs(path)


def test_stream_that_cannot_be_made() -> None:
    test = TestSet("t", ("a",), ("b",))
    with pytest.raises(OptionError, match="lag must be a whole number of 0 or more, not -1"):
        lag_stream(test, "de", -1)
    with pytest.raises(InputError, match="a stream must have at least one segment"):
        lag_stream(TestSet("t", (), ()), "de", 3)


def test_source_without_words_is_update_without_text() -> None:
    assert lag_stream(TestSet("t", (" ",), ("b",)), "de", 3).updates == (Update("0", 0, "", True),)


@pytest.mark.parametrize(
    ("name", "to", "segments"),
    [
        ("flores200.devtest", "ja", 1012),
        ("acl6060.dev", "zh", 468),
        ("mexpresso", "de", 1537),
        ("wmt20chat.test", "de", 2100),
        ("tatoeba2021", "zh", 3571),
    ],
)
def test_sets_are_whole(name: str, to: str, segments: int, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(data_dir))
    assert len(load_set(name, to).sources) == segments
    assert name in SETS
