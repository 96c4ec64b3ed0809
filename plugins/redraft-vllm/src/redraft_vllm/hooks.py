"""Where the plug-in touches vLLM: three places, each wrapped around what is there.

- Requests are checked where vLLM checks its own sampling parameters, in the process that answers HTTP.
- A new model runner is made known to its proposer, since vLLM tells proposers nothing about requests.
- Its two samplers lift drafted tokens right after the other processors of logits. At that point the log-probabilities
  that a request asks for are those of the model's own logits already or are taken from a copy of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from itertools import accumulate
from typing import Any

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from redraft_vllm.drafts import BIAS, DRAFT, Draft, problem
from redraft_vllm.rule import Judged, lift

PROPOSER = "redraft_vllm.proposer.DraftProposer"


def install() -> None:
    """Wrap vLLM's classes; once for a process."""
    SamplingParams.verify = _verifying(SamplingParams.verify)
    GPUModelRunner.__init__ = _attaching(GPUModelRunner.__init__)


def _verifying(verify: Callable[..., None]) -> Callable[..., None]:
    @wraps(verify)
    def checked(self: Any, model_config: Any, speculative_config: Any, *others: Any, **named: Any) -> None:
        verify(self, model_config, speculative_config, *others, **named)
        carried = {DRAFT, BIAS} & set(self.extra_args or ())
        if carried and getattr(speculative_config, "model", None) != PROPOSER:
            raise VLLMValidationError(
                f"{DRAFT} needs a server with --speculative-config and the model {PROPOSER}", parameter=DRAFT
            )
        if refusal := problem(self.extra_args, model_config.get_vocab_size()):
            raise VLLMValidationError(refusal, parameter=BIAS if refusal.startswith(BIAS) else DRAFT)

    return checked


def _attaching(build: Callable[..., None]) -> Callable[..., None]:
    @wraps(build)
    def built(self: Any, *others: Any, **named: Any) -> None:
        build(self, *others, **named)
        # Imported late, since it checks that vLLM has been prepared.
        from redraft_vllm.proposer import DraftProposer

        proposer = getattr(self, "drafter", None)
        if isinstance(proposer, DraftProposer):
            proposer.attach(self)
            attach(self)

    return built


def attach(runner: Any) -> None:
    """Let a model runner's samplers lift drafted tokens."""
    sampler, rejection_sampler = runner.sampler, runner.rejection_sampler
    sampled, verified = sampler.apply_logits_processors, rejection_sampler.apply_logits_processors

    def lift_sampled(logits: Any, sampling_metadata: Any, predict_bonus_token: bool) -> Any:
        """One row for each request: its only one, or that behind the last scheduled token."""
        logits = sampled(logits, sampling_metadata, predict_bonus_token)
        last = [
            Judged(place, tokens[count], draft.margin, ends)
            for place, count, tokens, draft, ends in _drafted(runner)
            if len(tokens) > count
        ]
        lift(logits, last)
        return logits

    def lift_verified(logits: Any, sampling_metadata: Any, metadata: Any) -> Any:
        """A row for each scheduled token."""
        logits = verified(logits, sampling_metadata, metadata)
        starts = list(accumulate(metadata.num_draft_tokens, initial=0))
        lift(
            logits,
            [
                Judged(starts[place] + number, token, draft.margin, ends)
                for place, count, tokens, draft, ends in _drafted(runner)
                for number, token in enumerate(tokens[:count])
            ],
        )
        return logits

    sampler.apply_logits_processors = lift_sampled
    rejection_sampler.apply_logits_processors = lift_verified
    # vLLM pads all requests with wrong drafts once one of them is this close to the longest; the proposer knows better.
    runner.effective_drafter_max_model_len += runner.num_spec_tokens


def _drafted(runner: Any) -> Iterator[tuple[int, int, list[int], Draft, set[int]]]:
    """The requests of a step that are still on their drafts.

    Yields:
        Its place in the batch, how many tokens are scheduled behind its output, the drafted token of each of its rows
        as far as they follow the draft, the draft, and the ids that end its output.
    """
    batch = runner.input_batch
    for place, request_id in enumerate(batch.req_ids):
        request = runner.requests[request_id]
        params = request.sampling_params
        draft = Draft.of(params and params.extra_args)
        if draft is None or params.temperature != 0:
            continue
        scheduled = batch.spec_token_ids[place]
        tokens = draft.judged(request.output_token_ids, scheduled)
        yield place, len(scheduled), tokens, draft, params.all_stop_token_ids
