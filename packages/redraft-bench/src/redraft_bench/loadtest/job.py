"""Shared by both load tests: the server under test, the script, and the result files."""

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
from redraft.signature import signature
from redraft_bench.bench.read import ENDING
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import Row
from redraft_bench.loadtest.process import serving
from redraft_bench.loadtest.script import Script

#: Fields that identify a row in a file.
_KEY = ("method", "options", "admission", "talks", "seconds")


@dataclass(frozen=True, slots=True)
class Job:
    """A load test.

    Attributes:
        bench: ``load`` or ``capacity``.
        languages: target languages.
        options: method options that were set.
        server: URL of a running server; empty to start one.
        model: model of a server that is started.
        engine: options of the engine of a server that is started.
        settings: further settings of a server that is started.
        folder: folder for rows and logs.
        seed: random seed of the plans.
        facts: additional facts for the signature.
    """

    bench: str
    script: Script
    languages: tuple[str, ...]
    options: Mapping[str, Value] = field(default_factory=dict)
    server: str = ""
    model: str = "demo"
    engine: Mapping[str, Value] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path("redraft-bench")
    seed: int = 0
    facts: Mapping[str, object] = field(default_factory=dict)

    def labels(self, method: str) -> Row:
        """Return the fields of a row that describe what was measured."""
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
        """Run a server for one method while the block runs; yield its URL.

        Args:
            method: decoding method.
            settings: further settings of a server that is started.

        Raises:
            ServerError: the server does not start, or does not stop properly.
        """
        if self.server:
            yield self.server
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        chosen = {"model": self.model, "methods": json.dumps([method]), **settings}
        chosen["engine"] = json.dumps(dict(self.engine))
        async with serving({**chosen, **self.settings}, self.folder / f"{self.bench}-{method}.log") as address:
            yield address

    @property
    def signature(self) -> str:
        """Settings and versions that reproduce the rows; the model of a server that was not started here is unknown."""
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
            threads="unknown" if self.server else self.engine.get("threads") or "default",
            **self.facts,
        )

    @property
    def path(self) -> Path:
        """Path of the file of rows."""
        stem = f"{self.bench}-{self.script.stream.name}-{'-'.join(self.languages)}"
        return self.folder / (re.sub(r"[^\w.-]+", "-", stem) + ENDING)

    def write(self, row: Row, key: Sequence[str] = _KEY, **more: Any) -> None:
        """Add a row to the file; it replaces an earlier row measured under the same conditions.

        Args:
            row: the row, including `labels`.
            key: fields that identify the conditions.
            more: mappings by title, stored in the file as one object that is not a row.
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
        part = self.path.with_name(self.path.name + ".part")
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(self.path)  # in one step, since nothing else has the earlier rows
