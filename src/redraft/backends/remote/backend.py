"""A model on a server as a backend: what is served, its tokenizer, which is read here, and its requests.

The server keeps the cache.  A draft costs a request whatever its length.  Without a draft, the server is asked for
several greedy tokens, and later requests of the decoding loop are answered from its response as long as they follow it:
ten passes become one request, with the same rows.

A server that verifies drafts itself (vLLM with the plug-in) receives the rule's bias towards each token, accepts what
the rule would, and continues: an update is one request.  The rule still judges every row locally, so a bias that
differs from the rule's costs requests, never correctness.

Prompts are made on this machine with the model's own tokenizer, as for transformers models, so that a transcript cannot
insert control tokens; the server receives ids.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from redraft.backends.hf.facts import described, loaded, source_of
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.options import RemoteOptions
from redraft.backends.remote.address import Address
from redraft.backends.remote.client import RemoteClient
from redraft.backends.remote.dialect import RemoteDialect, Sglang, Vllm, check_ids, served
from redraft.backends.remote.rows import RemoteRow, RemoteRows, RowLine
from redraft.backends.slots import Facts, Slotted
from redraft.decoding.backend import Capability
from redraft.decoding.types import Rows, Score
from redraft.errors import CapabilityError, ModelError

#: Number of best tokens requested by default, enough for margins, and where a few are barred.
FEW = 4


class RemoteBackend(Slotted[RowLine]):
    """Implements `redraft.decoding.backend.Backend`; several may share a client."""

    capabilities = frozenset({Capability.BATCHES})

    def __init__(self, dialect: RemoteDialect, options: RemoteOptions) -> None:
        super().__init__(dialect.model, options, lambda _slot: RowLine())
        self.dialect, self.client = dialect, dialect.client
        self._few = min(FEW, self.vocabulary_size)
        self._rejected = False
        self._senders = ThreadPoolExecutor(options.slots, thread_name_prefix="redraft-remote")

    def close_slot(self, slot: int) -> None:
        """Release a slot; the server drops its cache by itself."""
        self._slots.pop(slot).close()

    def settle(self, slot: int) -> None:
        """End a slot's request if the server still answers it."""
        self._slots[slot].close()

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Return the rows of every request; requests that must be sent are sent concurrently.

        Raises:
            CapabilityError: a draft is a tree, or rows of the prompt are requested.
            ContextOverflow: a request exceeds the context length.
            ModelError: the server does not answer properly.
        """
        for _slot, score in requests:
            self._check(score)
        if len(requests) == 1:
            return [self._answer(*requests[0])]
        answers = [self._senders.submit(self._answer, slot, score) for slot, score in requests]
        wait(answers)  # for all, also if one fails: a slot that still waits for a response cannot be asked again
        return [each.result() for each in answers]

    def curve(self) -> None:
        """Return None: a guess interrupts a response, and a request costs far more than a further token of one."""

    def close(self) -> None:
        """Close the connections."""
        for line in self._slots.values():
            line.close()
        self._senders.shutdown()
        self.client.close()

    def _check(self, score: Score) -> None:
        for asked, what in ((not score.draft.is_chain, "draft trees"), (score.prompt_rows > 1, "rows of the prompt")):
            if asked:
                raise CapabilityError(f"a model on a server has no {what}; choose a method without them")
        self._check_length(len(score.prefix) + len(score.draft))

    def _answer(self, slot: int, score: Score) -> Rows:
        try:
            rows = self._slots[slot].answer(score) or self._asked(slot, score)
        except ModelError:
            self._slots[slot].close()
            self._slots[slot] = RowLine()
            raise
        return RemoteRows(rows, self.vocabulary_size, partial(self._again, slot, score))

    def _again(self, slot: int, score: Score, k: int) -> tuple[RemoteRow, ...]:
        """Return all rows with at least ``k`` best tokens; with 0, those of rejected tokens are missing."""
        # A method that needs them once will need them again; a server that verifies drafts itself does not return them.
        # What a line lacks that was requested for another draft, or other biases, may only have been rejected then.
        self._rejected = self._rejected or (not k and self._slots[slot].score is score)
        return self._asked(slot, score, k)

    def _asked(self, slot: int, score: Score, k: int = 0) -> tuple[RemoteRow, ...]:
        """Request rows with at least the ``k`` best tokens; the rest of the response is kept."""
        self._few = k = max(self._few, k)  # a method that needs more once will need them again
        self._slots[slot].close()
        self._slots[slot] = RowLine()  # if this fails, the next request starts a new line
        if score.draft and (self._rejected or score.biases is None or not self.dialect.verifies):
            line = RowLine(score, self.dialect.verify(score, k))
        else:
            count = min(len(score.draft) + self.options.ahead, self.context_length - len(score.prefix) + 1)
            line = RowLine(score, steps=self.dialect.continued(score, count, k))
        self._slots[slot] = line
        return line.answer(score)


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
    dialect = Vllm if address.engine == "vllm" else Sglang
    with ExitStack() as opened:
        clients = [RemoteClient(address.engine, address.server, key, options) for _ in range(count)]
        for client in clients:
            opened.callback(client.close)
        model = _described(*served(clients[0], address.model), address.tokenizer)
        check_ids(clients[0], model)
        # Ids from different parts of the vocabulary, which no model would generate in this order.
        unlikely = [model.vocabulary_size // part for part in (2, 7, 3, 5, 11, 4)]
        unlikely = [token for token in unlikely if token not in model.end_tokens]
        verifies = options.plugin and dialect(clients[0], model).probe(unlikely)
        opened.pop_all()
    log.info("%s at %s verifies drafts %s", address.engine, address.server, "itself" if verifies else "over HTTP")
    return [RemoteBackend(dialect(client, model, verifies), options) for client in clients]


def _described(model: str, files: str, context_length: int, tokenizer_at: str) -> Facts:
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
    return described(model, config, generation, tokenizer, int(config.get_text_config().vocab_size), context_length)
