"""Opens a model on a server: asks what it serves, and reads the model's tokenizer and configuration here.

Prompts are made on this machine, by the tokenizer of the model itself and by the same rules as for models of
transformers, so that a transcript cannot write control tokens; the server is sent ids.
"""

from __future__ import annotations

import logging

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from redraft.backends.hf.facts import end_tokens, metadata, pad_token
from redraft.backends.hf.files import loaded, source_of
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.remote.address import Address, RemoteOptions
from redraft.backends.remote.backend import RemoteBackend, RemoteModel, check_ids
from redraft.backends.remote.client import RemoteClient
from redraft.backends.remote.dialect import RemoteDialect, Served
from redraft.backends.remote.sglang import Sglang
from redraft.backends.remote.vllm import Vllm
from redraft.errors import CapabilityError, ModelError

log = logging.getLogger(__name__)


def open_remote(address: Address, options: RemoteOptions, key: str = "", count: int = 1) -> list[RemoteBackend]:
    """Connect to a model on a server, one or several times.

    Args:
        address: where it is.
        options: of each backend.
        key: API key of the server; empty for none.
        count: backends, each with connections of its own.

    Raises:
        ModelError: the server cannot be reached or refuses, it does not serve the model, or there is no tokenizer.
        CapabilityError: the model is an encoder-decoder.
    """
    clients = [RemoteClient(address.engine, address.server, key, options) for _ in range(count)]
    dialects = [_dialect(address.engine, client) for client in clients]
    try:
        model = _described(dialects[0].served(address.model), address)
        check_ids(model, dialects[0])
        verifies = options.plugin and dialects[0].probe(model.name, _unlikely(model))
    except BaseException:
        for client in clients:
            client.close()
        raise
    for dialect in dialects:
        dialect.verifies = verifies
    log.info("%s at %s verifies drafts %s", address.engine, address.server, "itself" if verifies else "over HTTP")
    return [RemoteBackend(dialect, client, model, options) for dialect, client in zip(dialects, clients, strict=True)]


def _unlikely(model: RemoteModel) -> list[int]:
    """Ids of several places of the vocabulary, one after another: no model chooses them."""
    size = model.vocabulary_size
    return [token for token in (size // part for part in (2, 7, 3, 5, 11, 4)) if token not in model.end_tokens]


def _dialect(engine: str, client: RemoteClient) -> RemoteDialect:
    return Vllm(client) if engine == "vllm" else Sglang(client)


def _described(served: Served, address: Address) -> RemoteModel:
    """The model by its own files: where the address says, or where the server has them."""
    name = address.tokenizer or served.files
    source = source_of(name)
    try:
        config = loaded(AutoConfig, name, source)
        tokenizer = HfTokenizer(loaded(AutoTokenizer, name, source))
    except ModelError as error:
        raise ModelError(
            f"{error}; the tokenizer of model {served.name!r} is needed here, so put its folder or its name on the hub "
            "behind a # in the address"
        ) from error
    if config.is_encoder_decoder:
        raise CapabilityError(f"model {served.name!r} is an encoder-decoder, which a remote model cannot be")
    try:
        generation = loaded(GenerationConfig, name, source)
    except ModelError:  # not every model has a file of its own for these settings
        generation = GenerationConfig.from_model_config(config)
    ends, size = end_tokens(generation, tokenizer), int(config.get_text_config().vocab_size)
    facts = dict(metadata(config, tokenizer, served.name.rpartition("/")[2]))
    return RemoteModel(
        served.name, tokenizer, served.context_length, ends, pad_token(config, tokenizer, ends, size), size, facts
    )
