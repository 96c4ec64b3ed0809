"""The three places where the plug-in wraps vLLM's code.

- Requests are validated where vLLM validates its own sampling parameters, in the process that serves HTTP.
- A new model runner is passed to its proposer, since vLLM gives proposers no requests.
- Its two samplers raise the logits of drafted tokens directly after the other logits processors.  At that point, the
log-probabilities that a request asks for have already been computed or are taken from a copy.
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
    """Wrap vLLM's classes; once per process."""
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
    """Let a model runner's samplers raise drafted tokens."""
    sampler, rejection_sampler = runner.sampler, runner.rejection_sampler
    sampled, verified = sampler.apply_logits_processors, rejection_sampler.apply_logits_processors

    def lift_sampled(logits: Any, sampling_metadata: Any, predict_bonus_token: bool) -> Any:
        """Handle one row per request: its only one, or the one after the last scheduled token."""
        logits = sampled(logits, sampling_metadata, predict_bonus_token)
        last = [
            Judged(place, tokens[count], draft.margin(done + count), ends)
            for place, done, count, tokens, draft, ends in _drafted(runner)
            if len(tokens) > count
        ]
        lift(logits, last)
        return logits

    def lift_verified(logits: Any, sampling_metadata: Any, metadata: Any) -> Any:
        """Handle a row for each scheduled token."""
        logits = verified(logits, sampling_metadata, metadata)
        starts = list(accumulate(metadata.num_draft_tokens, initial=0))
        lift(
            logits,
            [
                Judged(starts[place] + number, token, draft.margin(done + number), ends)
                for place, done, count, tokens, draft, ends in _drafted(runner)
                for number, token in enumerate(tokens[:count])
            ],
        )
        return logits

    sampler.apply_logits_processors = lift_sampled
    rejection_sampler.apply_logits_processors = lift_verified
    # vLLM pads all requests with wrong drafts once one of them is this close to the maximum length; the proposer
    # handles this correctly.
    runner.effective_drafter_max_model_len += runner.num_spec_tokens


def _drafted(runner: Any) -> Iterator[tuple[int, int, int, list[int], Draft, set[int]]]:
    """Yield the requests of a step that still follow their drafts.

    Yields:
        Its index in the batch; the length of its output; the number of tokens scheduled after it; the drafted token of
        each row that follows the draft; the draft; the ids that end the output.
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
        yield place, len(request.output_token_ids), len(scheduled), tokens, draft, params.all_stop_token_ids
