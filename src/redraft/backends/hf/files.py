"""Reads parts of a model from a folder or the hub by transformers: weights, configuration or tokenizer."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers.utils import logging

from redraft.errors import ModelError, first_sentence
from redraft.models.hub import hub_host

#: What the hub takes for the name of a model.
_HUB_NAME = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


def source_of(name: str) -> dict[str, Any]:
    """Where a model is loaded from: a folder, or the hub, or what was fetched before if the hub does not answer."""
    if _is_folder(name):
        return {"pretrained_model_name_or_path": name}
    repository, _, revision = name.partition("@")
    pinned = {"revision": revision} if revision else {}
    return {"pretrained_model_name_or_path": repository, "local_files_only": hub_host() is not None, **pinned}


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # the name is too long for a file
        return False


def loaded(kind: Any, name: str, source: dict[str, Any], **options: Any) -> Any:
    """What a class of transformers reads from a source (`source_of`).

    Args:
        kind: the class, such as ``AutoTokenizer``.
        name: what messages call the model.
        source, options: arguments of its ``from_pretrained``.

    Raises:
        ModelError: there is none there, it is broken, or it was not fetched before and there is no network.
    """
    where = dict(source)
    place = where.pop("pretrained_model_name_or_path")  # the classes disagree on what it is called
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
    """No progress bar for what is read from a folder, or written; a download keeps its own."""
    silenced = local and logging.is_progress_bar_enabled()
    if silenced:
        logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # Marian's tokenizer does without; punctuation is then read as it stands.
            warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
            yield
    finally:
        if silenced:
            logging.enable_progress_bar()
