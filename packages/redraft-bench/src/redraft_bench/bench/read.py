"""Read the results of runs: rows of figures and the data of plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redraft.captions.languages import parse_language
from redraft.errors import InputError
from redraft.models import SHIPPED
from redraft_bench.bench.tables import TABLES
from redraft_bench.eval.columns import COLUMNS
from redraft_bench.eval.figures import Row

ENDING = ".rows.jsonl"

#: Order of languages, as in the papers' tables; other languages follow.
LANGUAGES = ("de", "zh", "ja")

#: Display names of the test sets.
SETS = {
    "flores200.devtest": "Flores-200 devtest",
    "acl6060.dev": "ACL 60/60 dev",
    "acl6060.talks": "ACL 60/60 talks",
    "acl": "ACL 60/60, recognised by Moonshine",
    "acl-noise": "ACL 60/60 in noise, recognised by Moonshine",
    "acl-second": "ACL 60/60 in a second voice, recognised by Moonshine",
    "acl-whisper": "ACL 60/60 in a second voice, recognised by Whisper",
    "dickens": "a reading of Dickens, recognised by Moonshine",
    "mexpresso": "mExpresso",
    "recogniser": "ACL 60/60, recognised by KIT's recogniser",
    "spoken": "what people say",
    "talk": "the demo talk",
    "talk-whisper": "the demo talk, recognised by Whisper",
    "tasks": "questions, summaries and code",
    "tatoeba": "Tatoeba, recognised by Moonshine",
    "tatoeba2021": "Tatoeba 2021",
}


@dataclass(frozen=True, slots=True)
class Result:
    """The results of one table on one data set into one language.

    Attributes:
        bench: name of the table (`redraft_bench.bench.tables`), or of a load test.
        language: BCP 47 tag of the target language.
        trials: title of a row -> p95 of the caption lag in ms for each number of talks tried.
    """

    bench: str
    data: str
    language: str
    rows: tuple[Row, ...]
    signatures: tuple[str, ...] = ()
    trials: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Data set and language in words, the latter for translations, and the model if it is not a built-in one."""
        to = f", to {self.language_name}" if self.data != "tasks" else ""
        by = f", by {self.other_model}" if self.other_model else ""
        return f"{self.data_name}{to}{by}"

    @property
    def data_name(self) -> str:
        """Data set in words."""
        return SETS.get(self.data, self.data)

    @property
    def other_model(self) -> str:
        """File name of the model if it is not a built-in one."""
        file = self.facts.get("model", "").partition("@")[0]
        return "" if file in ("", *SHIPPED.values()) else Path(file).stem

    @property
    def language_name(self) -> str:
        """English name of the target language; several for live talks, separated by commas."""
        return " and ".join(parse_language(each).name for each in self.language.split(","))

    @property
    def facts(self) -> dict[str, str]:
        """The fields of the first signature by name."""
        first = self.signatures[0] if self.signatures else ""
        return {name: value for name, _, value in (part.partition(":") for part in first.split("|"))}


def read_results(folder: Path) -> list[Result]:
    """Read the results in all ``.rows.jsonl`` files of a folder, in the order of the tables.

    Raises:
        InputError: a line is not an object, lacks a field or has text instead of a number, or a file has rows of two
            runs.
    """
    found = [read_result(path) for path in sorted(folder.glob(f"*{ENDING}"))]
    benches = [*TABLES]

    def place(result: Result) -> tuple[object, ...]:
        bench = benches.index(result.bench) if result.bench in benches else len(benches)
        language = LANGUAGES.index(result.language) if result.language in LANGUAGES else len(LANGUAGES)
        return bench, result.bench, result.data, result.other_model, language, result.language

    return sorted(found, key=place)


def read_result(path: Path) -> Result:
    """Read one ``.rows.jsonl`` file; raises as `read_results`."""
    rows: list[Row] = []
    trials: dict[str, list[tuple[float, float]]] = {}
    keys: dict[tuple[str, str, str], None] = {}
    signatures: dict[str, None] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            keys[fields["bench"], fields["data"], fields["target_language"]] = None
            if "method" in fields:
                rows.append(_checked(fields))
            else:
                # If nothing was answered, there is no lag.
                trials = {
                    title: [(float(talks), float(lag)) for talks, lag in pairs if lag is not None]
                    for title, pairs in (fields.get("trials") or {}).items()
                }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}, line {number}: this is not a row of a bench: {error!r}") from None
        if fields.get("signature"):
            signatures[str(fields["signature"])] = None
    if len(keys) != 1:
        raise InputError(f"{path} must hold the rows of one bench, data set and language, not of {len(keys)}")
    (key,) = keys
    return Result(*key, tuple(rows), tuple(signatures), trials)


def _checked(fields: dict[str, Any]) -> Row:
    for name, value in fields.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (value is None or number or isinstance(value, str | bool)):
            raise ValueError(f"{name} must be a string, a number, true, false or null, not {value!r}")
        column = COLUMNS.get(name)
        if column and value is not None and bool(column.form) != number:
            raise ValueError(f"{name} must be {'a number' if column.form else 'text'} or null, not {value!r}")
    return fields


def options(row: Row) -> dict[str, str]:
    """Return the options of a row by name."""
    return {name: value for name, _, value in (each.partition("=") for each in str(row.get("options") or "").split())}
