"""Load weights, configuration or tokenizer from a folder or the hub with transformers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers.utils import logging

from redraft.errors import MissingExtra, ModelError, first_sentence, install
from redraft.models.hub import hub_host

#: Ending of files whose weights transformers turns into floats.
GGUF = ".gguf"
#: Valid names of models on the hub.
_HUB_NAME = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


def source_of(name: str) -> dict[str, Any]:
    """Return where to load a model from: a folder, a GGUF file, the hub, or its local cache if it does not respond.

    Raises:
        MissingExtra: the name is a GGUF file, and the library that reads it is not installed.
    """
    if _is_folder(name):
        return {"pretrained_model_name_or_path": name}
    if name.lower().endswith(GGUF):
        if find_spec("gguf") is None:
            raise MissingExtra(f"transformers reads {name!r} with the gguf extra: {install('gguf')}")
        return {"pretrained_model_name_or_path": str(Path(name).parent), "gguf_file": Path(name).name}
    repository, _, revision = name.partition("@")
    pinned = {"revision": revision} if revision else {}
    return {"pretrained_model_name_or_path": repository, "local_files_only": hub_host() is not None, **pinned}


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # too long for a file name
        return False


def loaded(kind: Any, name: str, source: dict[str, Any], **options: Any) -> Any:
    """Load an object with a class of transformers.

    Args:
        kind: the class, such as ``AutoTokenizer``.
        name: name of the model in error messages.
        source: arguments of its ``from_pretrained`` from `source_of`.
        options: further arguments.

    Raises:
        ModelError: the model does not exist or is broken, or is not cached and there is no network.
    """
    where = dict(source)
    place = where.pop("pretrained_model_name_or_path")  # the classes use different names for this argument
    try:
        with quiet(local="local_files_only" not in source):
            return kind.from_pretrained(place, **where, **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        if source.get("local_files_only") and _HUB_NAME.fullmatch(place):
            raise ModelError(
                f"model {name!r} has not been downloaded before and there is no network: name a folder"
            ) from error
        raise ModelError(f"model {name!r} cannot be loaded with transformers: {first_sentence(error)}") from error


@contextmanager
def quiet(*, local: bool) -> Iterator[None]:
    """Hide progress bars for reading from a folder or writing; downloads keep theirs."""
    silenced = local and logging.is_progress_bar_enabled()
    if silenced:
        logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # Marian's tokenizer works without it, but does not normalise punctuation.
            warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
            yield
    finally:
        if silenced:
            logging.enable_progress_bar()
