"""Open a model on a server: find out what it serves, and read the model's tokenizer and configuration locally.

Prompts are made on this machine with the model's own tokenizer, as for transformers models, so that a transcript cannot
insert control tokens; the server receives ids.
"""

from __future__ import annotations

import logging

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from redraft.backends.hf.facts import end_tokens, loaded, metadata, pad_token, source_of
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.options import RemoteOptions
from redraft.backends.remote.address import Address
from redraft.backends.remote.backend import RemoteBackend
from redraft.backends.remote.client import RemoteClient
from redraft.backends.remote.dialect import RemoteModel, Sglang, Vllm, check_ids, served
from redraft.errors import CapabilityError, ModelError

log = logging.getLogger(__name__)


def open_remote(address: Address, options: RemoteOptions, key: str = "", count: int = 1) -> list[RemoteBackend]:
    """Connect to a model on a server, once or several times.

    Args:
        key: the server's API key; empty for none.
        count: number of backends, each with its own connections.

    Raises:
        ModelError: the server cannot be reached or refuses, does not serve the model, or there is no tokenizer.
        CapabilityError: the model is an encoder-decoder.
    """
    clients = [RemoteClient(address.engine, address.server, key, options) for _ in range(count)]
    dialect = Vllm if address.engine == "vllm" else Sglang
    try:
        model = _described(*served(clients[0], address.model), address.tokenizer)
        check_ids(clients[0], model)
        # Ids from different parts of the vocabulary, which no model would generate in this order.
        unlikely = [model.vocabulary_size // part for part in (2, 7, 3, 5, 11, 4)]
        unlikely = [token for token in unlikely if token not in model.end_tokens]
        verifies = options.plugin and dialect(clients[0], model).probe(unlikely)
    except BaseException:
        for client in clients:
            client.close()
        raise
    backends = [RemoteBackend(dialect(client, model), options) for client in clients]
    for each in backends:
        each.dialect.verifies = verifies
    log.info("%s at %s verifies drafts %s", address.engine, address.server, "itself" if verifies else "over HTTP")
    return backends


def _described(model: str, files: str, context_length: int, tokenizer_at: str) -> RemoteModel:
    """Read the model's description from its files: at the address's tokenizer, or where the server has them."""
    name = tokenizer_at or files
    source = source_of(name)
    try:
        config = loaded(AutoConfig, name, source)
        tokenizer = HfTokenizer(loaded(AutoTokenizer, name, source))
    except ModelError as error:
        raise ModelError(
            f"{error}; the tokenizer of model {model!r} is needed here, so put its folder or its name on the hub "
            "after a # in the address"
        ) from error
    if config.is_encoder_decoder:
        raise CapabilityError(f"model {model!r} is an encoder-decoder, which a remote model cannot be")
    try:
        generation = loaded(GenerationConfig, name, source)
    except ModelError:  # not every model has a file for these settings
        generation = GenerationConfig.from_model_config(config)
    ends, size = end_tokens(generation, tokenizer), int(config.get_text_config().vocab_size)
    facts = dict(metadata(config, tokenizer, model.rpartition("/")[2]))
    return RemoteModel(model, tokenizer, context_length, ends, pad_token(config, tokenizer, ends, size), size, facts)
