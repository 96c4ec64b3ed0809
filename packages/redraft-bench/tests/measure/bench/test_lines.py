"""Lines of tables: products of values, settings of methods and of all methods, plug-ins, and what is refused."""

from __future__ import annotations

import pytest

from redraft.errors import OptionError
from redraft_bench.bench.lines import contenders
from redraft_bench.eval.contender import Contender


def test_commas_are_a_product() -> None:
    found = contenders(["ssbd beta=0,0.2 mask_k=0,3 plain=0,1"], "de")
    assert {each.options for each in found} == {
        (("beta", beta), ("mask_k", mask), ("plain", plain))
        for beta in (0, 0.2)
        for mask, plain in ((0, 0), (3, 0), (3, 1))
    }, "what is the same for a reader is a line once"


def test_settings_of_any_method() -> None:
    line = "ar threads=2 batch=8 lines=1.5"
    assert contenders([line], "ja") == [Contender("ar", "ja", lines=1.5, threads=2, batch=8)]
    names = [each.name for each in contenders(["ar threads=1,2 batch=1,4"], "ja")]
    assert len({*names}) == 4


def test_draft_model_is_that_of_the_command_or_of_the_line() -> None:
    assert [each.small for each in contenders(["bild", "bild small=b", "ar"], "de", "a")] == ["a", "b", ""]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nosuch", "'nosuch'"),
        ("ssbd beta", "'beta'"),
        ("ssbd beta=", "'beta='"),
        ("ssbd beta=0,,1", "NAME=VALUE"),
        ("ssbd beta=2", "beta"),
        ("ssbd gamma=1", "gamma"),
        ("ssbd beta=0 beta=1", "twice"),
        ("ssbd mask_k=many", "mask_k must be"),
        ("ssbd plain=maybe", "plain must be 0 or 1"),
        ("ssbd threads=many", "threads=many"),
        ("", "''"),
    ],
)
def test_refusals(line: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        contenders([line], "de")
