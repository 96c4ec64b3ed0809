"""Redraft as a text-to-text agent of SimulEval, which loads this file by its path (see ``docs/metrics.md``).

SimulEval cannot retract text.  So the agent writes only the prefix on which two successive captions agree (local
agreement, Liu et al. 2020), without what ``--mask-k`` hides, and the rest at the end of the source.  If a later caption
contradicts the written text, that text stays, and writing continues after the same number of words, or of characters in
languages written without spaces.
"""

from __future__ import annotations

import json
import logging
from argparse import ArgumentParser, Namespace

from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction
from simuleval.utils import entrypoint

from redraft.backends.llamacpp import LlamaOptions
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.style import Style
from redraft.decoding.display import Display
from redraft.decoding.types import common_prefix
from redraft.errors import OptionError
from redraft.translator import Translator
from redraft_bench.eval.delays import join, split

LOGGER = logging.getLogger("redraft.simuleval")


@entrypoint
class RedraftAgent(TextToTextAgent):
    """Translates the whole source read so far after every ``--lag`` words.

    Raises:
        RedraftError: a language, model, method or option is invalid.
    """

    def __init__(self, args: Namespace) -> None:
        if args.lag < 1:
            raise OptionError(f"lag must be a whole number of 1 or more, not {args.lag!r}")
        self._lag, self._language = args.lag, args.to
        self._translator = Translator.open(
            args.model,
            to=[args.to],
            method=args.method,
            options=args.method_options,
            display=Display(mask_k=args.mask_k),
            source="raw",  # SimulEval reveals words that stay
            style=Style(args.source_language),
            engine=LlamaOptions(threads=args.threads),
            draft_model=args.draft_model,
        )
        self._utterance = 0
        super().__init__(args)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        """Add the agent's options to SimulEval's."""
        parser.add_argument("--to", required=True, metavar="LANGUAGE", help="Target language: de, ja, zh-CN, ...")
        parser.add_argument("--from", dest="source_language", default="en", metavar="LANGUAGE")
        parser.add_argument("--model", default="demo", help="As of `redraft translate`.")
        parser.add_argument("--draft-model", help="The small model of methods that draft with one.")
        parser.add_argument("--method", default="ssbd", help="Decoding method; `redraft methods` lists them.")
        parser.add_argument("--method-options", type=json.loads, default={}, help="Such as '{\"beta\": 0.1}'.")
        parser.add_argument("--mask-k", type=int, default=0, help="Tokens hidden at the end of partial captions.")
        parser.add_argument("--lag", type=int, default=3, help="Source words between two translations.")
        parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 adapts them while it runs.")

    def reset(self) -> None:
        """Start a new sentence."""
        super().reset()
        self._utterance += 1
        self._seq = 0
        self._last: list[str] = []
        self._written = 0

    def policy(self) -> Action:
        """Write newly agreed text, or read on."""
        source, finished = self.states.source, self.states.source_finished
        if not finished and len(source) % self._lag:
            return ReadAction()
        self._seq += 1
        shown = self._translate(Update(str(self._utterance), self._seq, " ".join(source), finished))
        agreed = len(shown) if finished else common_prefix(self._last, shown)
        new = shown[self._written : agreed]
        self._last = shown
        self._written += len(new)
        return WriteAction(join(new, self._language), finished) if new or finished else ReadAction()

    def _translate(self, update: Update) -> list[str]:
        """Return the words or characters of the new caption, or of the previous one if there is none."""
        shown = self._last
        for event in self._translator.translate(update):
            if isinstance(event, Caption):
                shown = split(event.text, self._language)
            elif isinstance(event, Failure):
                LOGGER.warning("sentence %s: %s", event.utterance, event.message)
        return shown
