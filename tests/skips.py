"""Skipped tests: a summary of what they need, and an option that runs just these once it is there."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

#: Key in pytest's cache: node ids of tests, and of whole files, that have not run since they were skipped.
KEY = "redraft/skipped"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--skipped", action="store_true", help="run only what was skipped and has not run since")


def pytest_configure(config: pytest.Config) -> None:
    """With the option, choose tests by what earlier runs have left in the cache."""
    if config.getoption("--skipped"):
        assert config.cache is not None
        config.pluginmanager.register(Chosen(config.rootpath, config.cache.get(KEY, [])))


class Chosen:
    """Runs the tests with some node ids, of which those without ``::`` are files."""

    def __init__(self, root: Path, ids: list[str]) -> None:
        self._root, self._ids = root, set(ids)
        self._files = {each.partition("::")[0] for each in ids}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Import no other files, which would take longer than some of the tests."""
        other = collection_path.relative_to(self._root).as_posix() not in self._files
        return (collection_path.suffix == ".py" and other) or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect all others."""
        chosen: list[pytest.Item] = []
        others: list[pytest.Item] = []
        for item in items:
            mine = not self._ids.isdisjoint((item.nodeid, item.nodeid.partition("::")[0]))
            (chosen if mine else others).append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = chosen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how much was skipped for which reason, and keep the node ids for later runs."""
    reports = terminalreporter.stats.get("skipped", [])
    if config.pluginmanager.hasplugin("cacheprovider") and config.cache is not None:
        ran = {each.nodeid for kind in ("passed", "failed", "error") for each in terminalreporter.stats.get(kind, [])}
        ran |= {each.partition("::")[0] for each in ran}
        before = set(config.cache.get(KEY, []))
        config.cache.set(KEY, sorted(before - ran | {each.nodeid for each in reports}))
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        _path, _line, reason = report.longrepr
        kind = "test" if isinstance(report, pytest.TestReport) else "file"
        reasons[reason.removeprefix("Skipped: ")][kind] += 1
    if reasons:
        terminalreporter.section("skipped")
    for reason, counts in sorted(reasons.items(), key=lambda each: -each[1].total()):
        numbers = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in sorted(counts.items()))
        terminalreporter.write_line(f"{numbers:>20}  {reason}")
