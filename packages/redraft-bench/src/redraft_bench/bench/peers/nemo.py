"""NeMo's policy for streaming translation by language models, on Redraft's backend: a forced prefix, everything shown.

NVIDIA NeMo 2.7, `nemo.collections.asr.inference.nmt.llm_translator`: the longest common prefix of two successive
translations, in whole words, is appended to the next prompt, so later translations start with it.  Unlike
LocalAgreement, the rest of the translation is shown too.  With ``waitk``, a translation that agrees with the one before
on too little advances: as soon as the prefix has more than ``waitk`` words less than the source, that many words of the
translation are forced.  So it is no wait-k of Ma et al. (2019), which never translates further than k words behind.
Words are separated by white space there, so a text in Chinese or Japanese counts as one.
"""

from __future__ import annotations

from redraft.captions.events import Failure, Update
from redraft.captions.stabilise import whole_words
from redraft.decoding.method import Option
from redraft_bench.bench.peers.engine import Generated
from redraft_bench.bench.peers.local_agreement import LocalAgreement
from redraft_bench.bench.peers.retranslate import Task
from redraft_bench.eval.record import Step

WAITK = Option("waitk", 0, 0, 100, "most words that the forced prefix may lack; 0 turns this off", whole=True)


class Nemo(LocalAgreement):
    """Forces the prefix on which two successive translations agree, and shows all of the translation.

    Args:
        waitk: most words that the forced prefix may have less than the source, within `WAITK`.

    Raises:
        OptionError: ``waitk`` is out of range.
        CapabilityError: the backend has no free slot.
    """

    def __init__(self, task: Task, waitk: int = 0) -> None:
        self._waitk = int(WAITK.check(waitk))
        super().__init__(task, 2)
        self._source_words = 0

    def _translate(self, update: Update) -> tuple[Step, list[Failure]]:
        self._source_words = len(update.text.split())
        return super()._translate(update)

    def _decode(self, prompt: tuple[int, ...], limit: int) -> Generated:
        answer = super()._decode(prompt, limit)
        wanted = self._source_words - self._waitk
        if self._waitk and self._words(len(self._committed), answer.tokens) < wanted:
            lengths = range(len(self._committed), len(answer.tokens) + 1)
            enough = (length for length in lengths if self._words(length, answer.tokens) >= wanted)
            pieces = [self.task.backend.token_bytes(token) for token in answer.tokens]
            whole = (length for length in enough if whole_words(pieces, length) == length)
            self._committed = answer.tokens[: next(whole, len(answer.tokens))]
        return answer

    def _words(self, length: int, tokens: tuple[int, ...]) -> int:
        return len(b"".join(map(self.task.backend.token_bytes, tokens[:length])).split())

    def _unstable(self) -> int:
        return 0
