"""The table of language models, which takes hours to measure: what it prints at the end."""

from __future__ import annotations

from redraft_bench.eval.columns import COLUMNS
from redraft_bench.eval.limit import SHARES
from redraft_bench.pages.checks import LANGUAGE_MODEL
from redraft_bench.scripts.language_model import SHOWN


def test_printed_columns_exist() -> None:
    assert set(SHOWN) <= set(COLUMNS)


def test_page_shows_the_shares_of_a_row() -> None:
    row = dict(zip(SHARES, (0.2, 0.3, 0.5), strict=True))
    assert LANGUAGE_MODEL["text / draft / tokens"](row) == "20% / 30% / 50%"
