"""Claims on rows: recorded ones hold, and swapped labels are noticed."""

from __future__ import annotations

import json
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import pytest

from redraft_bench.eval.figures import Row
from tools.claims import broken, verdicts
from tools.claims.verdicts import ALWAYS, CLAIMS

#: Figures of short runs; beta, ssbd, cold, jacobi: 8 segments, peers: 4, mask, redraft: 150.
RECORDED_FILE = Path(__file__).parent / "measure" / "bench" / "recorded.jsonl"
RECORDED = [json.loads(line) for line in RECORDED_FILE.read_text(encoding="utf-8").splitlines()]
TABLES = {
    f"{bench}-{language}": list(rows)
    for (bench, language), rows in groupby(RECORDED, key=lambda row: (row["bench"], row["target_language"]))
}
LABEL = ("method", "options", "mask")
#: What a method's counts are; times are not among them.
COUNTS = (
    *("target_passes", "output_tokens", "draft_passes", "draft_acceptance", "output_acceptance"),
    *("mean_acceptance_length", "ne_output", "ne_display", "same_as_ar"),
)

#: Pairs of rows that nothing known beforehand ranks: two exact ways of one kind, two libraries, masks of different
#: units, neighbours on a diagonal of BiLD's thresholds, and a guard that hardly ever matters.
UNRANKED = {
    ("pld", "gs-jacobi start=previous"),
    ("gs-jacobi block=3", "gs-jacobi block=3 start=source"),
    ("llama-cpp-python", "transformers"),
    ("llama-cpp-python-lookup", "transformers-lookup"),
    ("ssbd beta=0.2 5 tokens", "ssbd beta=0.2 3 words"),
    ("bild fallback=0.5 rollback=5", "bild fallback=0.7 rollback=10"),
    ("aasd", "aasd end_guard=on"),
}


def guesses(title: str) -> tuple[str, frozenset[str]]:
    """The method of a line of `redraft`, and the guesses that are off."""
    method, *options = title.split()
    return method, frozenset(option for option in options if option.endswith("=off"))


def unranked(first: str, second: str) -> bool:
    """Whether nothing known beforehand ranks two rows."""
    if (first, second) in UNRANKED:
        return True
    if "redraft" not in first + second or "beta=0 " in first + second:
        return False
    if "cost=measured" in first + second:  # what pays depends on the machine; nothing at all is SSBD
        return "ar" not in (first, second)
    (one, some), (other, others) = guesses(first), guesses(second)
    return not (some < others or others < some) if one == other else some != others


def name(row: dict[str, Any]) -> str:
    return " ".join(row[field] for field in LABEL if row[field])


def changed(table: str, title: str, **figures: Any) -> list[str]:
    """What is broken if one recorded row had other figures."""
    rows = [{**row, **figures} if name(row) == title else row for row in TABLES[table]]
    assert rows != TABLES[table]
    return broken(rows)


@pytest.mark.parametrize("table", TABLES)
def test_recorded_rows_are_as_claimed(table: str) -> None:
    assert broken(TABLES[table]) == []
    assert verdicts(TABLES[table])


def test_every_claim_finds_rows_to_compare() -> None:
    tried = {verdict.claim for rows in TABLES.values() for verdict in verdicts(rows)}
    assert {claim.text for claims in (ALWAYS, *CLAIMS.values()) for claim in claims} <= tried


@pytest.mark.parametrize("table", TABLES)
def test_swapped_labels_are_noticed(table: str) -> None:
    rows, unnoticed, pairs = TABLES[table], set(), 0
    for i, j in combinations(range(len(rows)), 2):
        if all(rows[i].get(field) == rows[j].get(field) for field in COUNTS):
            continue
        pairs += 1
        swapped = [dict(row) for row in rows]
        for field in LABEL:
            swapped[i][field], swapped[j][field] = rows[j][field], rows[i][field]
        if not broken(swapped):
            unnoticed.add((name(rows[i]), name(rows[j])))
    assert {pair for pair in unnoticed if not unranked(*pair)} == set()
    assert pairs > 20


def test_a_sentence_names_place_rows_and_values() -> None:
    assert changed("beta-de", "ssbd beta=0.3", draft_acceptance=0.5) == [
        "beta on flores200.devtest into de: A/D of ssbd beta=0.2 is 0.886, but should be no higher than 0.5, that of "
        "ssbd beta=0.3"
    ]
    assert changed("mask-de", "ssbd beta=0.2 3 tokens", target_passes=1)[0].endswith(
        "passes of ssbd beta=0.2 is 9570, but should be exactly 1, that of ssbd beta=0.2, hides 3 tokens"
    )


@pytest.mark.parametrize(
    ("table", "title", "figures", "words"),
    [
        ("beta-de", "ar", {"speedup": 1.01}, "speed-up of ar is 1.01, but should be 1 or more and 1 or less"),
        ("beta-de", "ar", {"draft_acceptance": 0.0}, "A/D of ar is 0.0, but should be absent"),
        ("beta-de", "cd", {"limit_distance": 0.9}, "should be 0.95 or more"),
        ("beta-de", "cd", {"target_passes": 490}, "passes of ssbd beta=1 is 489, but should be exactly 490"),
        ("beta-de", "ssbd beta=0.5", {"ne_output": 0.03}, "NE of ssbd beta=0.5 is 0.03, but should be 0.02 or less"),
        ("beta-de", "ssbd beta=0.2", {"target_passes": 2719}, "but should be below 2719, that of ar"),
        ("cold-de", "pld", {"draft_passes": 3}, "small model's passes of pld is 3, but should be absent"),
        ("cold-de", "pld", {"same_as_ar": 3}, "as ar of pld is 3, but should be 4 or more"),
        ("cold-de", "bild fallback=0.6 rollback=2", {"draft_passes": None}, "should be given"),
        ("peers-de", "local-agreement", {"ne_display": 0.5}, "NE shown of local-agreement is 0.5"),
        ("peers-de", "llama-cpp-python-lookup", {"target_passes": 10**6}, "that of llama-cpp-python"),
    ],
)
def test_each_kind_of_claim_can_fail(table: str, title: str, figures: dict[str, Any], words: str) -> None:

    assert any(words in sentence for sentence in changed(table, title, **figures))


def test_exact_kernels_leave_no_room_for_rounding() -> None:
    rows = [{**row, "signature": "redraft:0|exact:True|lag:0"} for row in TABLES["cold-de"]]
    assert any("as ar of aasd verification=exact is 7, but should be 8 or more" in each for each in broken(rows))
    assert broken([{**row, "same_as_ar": row["segments"]} for row in rows]) == []


def test_k_words_are_compared_with_k_tokens_in_languages_with_spaces_only() -> None:
    rows = [{**row, "ne_display": 0.2} if row["mask"] == "3 words" else row for row in TABLES["mask-de"]]
    assert any("hides 3 words is 0.2, but should be no higher than" in each for each in broken(rows))
    assert broken([{**row, "target_language": "ja"} for row in rows]) == []


def test_what_was_not_measured_is_not_compared() -> None:
    assert verdicts([]) == []
    assert broken([]) == []
    row: Row = {"bench": "beta", "data": "x", "target_language": "de", "method": "ssbd", "options": "beta=0.2"}
    assert verdicts([row]) == []
    assert verdicts([{**row, "bench": "a bench of one's own"}]) == []


def test_rows_of_several_benches_are_told_apart() -> None:
    assert broken(RECORDED[::-1]) == []
