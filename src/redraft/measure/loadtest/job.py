"""What both load tests have in common: the server that is tested, what is said to it, and what is left of a run."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redraft.backends.load import on_transformers, resolve
from redraft.decoding.method import Value
from redraft.measure.bench.read import ENDING
from redraft.measure.eval.contender import Contender
from redraft.measure.eval.figures import Row
from redraft.measure.eval.signature import signature
from redraft.measure.loadtest.process import serving
from redraft.measure.loadtest.script import Script

#: What tells a row of a file from all others.
_KEY = ("method", "options", "admission", "talks", "seconds")


@dataclass(frozen=True, slots=True)
class Job:
    """A load test.

    Attributes:
        bench: its name, ``load`` or ``capacity``.
        script: what is said.
        languages: target languages.
        options: those of the methods that were set.
        server: address of a server that runs already; empty to start one.
        model, threads, settings: of a server that is started.
        folder: for rows and logs.
        seed: of the plans.
        facts: further ones for the signature.
    """

    bench: str
    script: Script
    languages: tuple[str, ...]
    options: Mapping[str, Value] = field(default_factory=dict)
    server: str = ""
    model: str = "demo"
    threads: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path("redraft-bench")
    seed: int = 0
    facts: Mapping[str, object] = field(default_factory=dict)

    def labels(self, method: str) -> Row:
        """The fields of a row that say what was measured."""
        chosen = Contender(method, "", tuple(self.options.items())).settings
        settings = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return {
            "bench": self.bench,
            "data": self.script.stream.name,
            "target_language": ",".join(self.languages),
            "method": method,
            "options": f"{chosen} {settings}".strip(),
        }

    @asynccontextmanager
    async def serving(self, method: str, **settings: str) -> AsyncIterator[str]:
        """A server for one method while the block lasts: gives its address.

        Args:
            settings: further ones, of a server that is started.

        Raises:
            ServerError: as of `redraft.measure.loadtest.process.serving`.
        """
        if self.server:
            yield self.server
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        chosen = {"model": self.model, "methods": json.dumps([method]), "threads": str(self.threads), **settings}
        async with serving({**chosen, **self.settings}, self.folder / f"{self.bench}-{method}.log") as address:
            yield address

    @property
    def signature(self) -> str:
        """What makes the rows reproducible.  Of a server that was not started here the model is not known."""
        model = "unknown" if self.server else self.model
        path = Path(model) if self.server or on_transformers(model) else resolve(model)
        stream = self.script.stream
        return signature(
            path,
            stream.name,
            stream.hash,
            self.seed,
            ne="words,pooled",
            rate=self.script.rate,
            threads="unknown" if self.server else self.threads or "default",
            **self.facts,
        )

    @property
    def path(self) -> Path:
        """The file of the rows."""
        stem = f"{self.bench}-{self.script.stream.name}-{'-'.join(self.languages)}"
        return self.folder / (re.sub(r"[^\w.-]+", "-", stem) + ENDING)

    def write(self, row: Row, key: Sequence[str] = _KEY, **more: Any) -> None:
        """Add a row to the file, in the place of the one that was measured before under the same conditions.

        Args:
            row: with `labels`.
            key: its fields that say what the conditions are.
            more: mappings by title, of which the file keeps one object that is no row.
        """
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        known = [json.loads(line) for line in lines]
        kept = [each for each in known if "method" in each and [each.get(k) for k in key] != [row.get(k) for k in key]]
        rest: Mapping[str, Any] = next((each for each in known if "method" not in each), {})
        written: list[Mapping[str, Any]] = [*kept, {**row, "signature": self.signature}]
        if more:
            named = {name: row[name] for name in ("bench", "data", "target_language")}
            written.append({**named, **{name: {**rest.get(name, {}), **value} for name, value in more.items()}})
        self.folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in written)
        self.path.write_text(text, encoding="utf-8", newline="\n")
