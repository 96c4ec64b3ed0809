"""The proposer for ``--speculative-config``: proposes the rest of each request's draft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vllm.v1.sample.rejection_sampler import MAX_SPEC_LEN

from redraft_vllm import is_installed
from redraft_vllm.drafts import Draft


class DraftProposer:
    """A speculative proposer for vLLM's model runner V1.

    It is stateless: the proposal follows from the request and its output so far.  So a draft longer than
    ``num_speculative_tokens`` is verified in several steps, and a preempted request continues as before.

    Args:
        vllm_config: the engine's configuration.

    Raises:
        RuntimeError: the engine is not supported; the message is one sentence.
    """

    def __init__(self, vllm_config: Any) -> None:
        if refusal := problem(vllm_config):
            raise RuntimeError(refusal)
        self.most = int(vllm_config.speculative_config.num_speculative_tokens)
        self._longest = int(vllm_config.model_config.max_model_len)
        self._runner: Any = None

    def attach(self, runner: Any) -> None:
        """Receive the runner to which this proposer belongs, once it is built (`redraft_vllm.hooks`)."""
        self._runner = runner

    def load_model(self, *_: Any, **__: Any) -> None:
        """Do nothing: there is no model to load."""

    def propose(
        self, sampled_token_ids: Sequence[Sequence[int]], num_tokens_no_spec: Any, token_ids_cpu: Any, **_: Any
    ) -> list[list[int]]:
        """Return the (requests,) tokens to verify next.

        Args:
            sampled_token_ids: (requests,) tokens that the step has added to each output; empty while a prompt is read.
            num_tokens_no_spec: (requests,) lengths of prompt and output.
            token_ids_cpu: (requests, longest) their ids.
        """
        proposals: list[list[int]] = [[] for _ in sampled_token_ids]
        for place, request_id in enumerate(self._runner.input_batch.req_ids[: len(proposals)]):
            request = self._runner.requests[request_id]
            draft = Draft.of(request.sampling_params and request.sampling_params.extra_args)
            if draft is None or not sampled_token_ids[place]:
                continue
            # A step yields one token more than it accepts.
            room = self._longest - int(num_tokens_no_spec[place]) - 1
            wanted = (request.sampling_params.max_tokens or room + 1) - len(request.output_token_ids) - 1
            proposals[place] = draft.rest(request.output_token_ids, min(self.most, room, wanted))
        return proposals


def problem(config: Any) -> str:
    """Return why an engine is not supported, in one sentence; empty if it is."""
    speculative = config.speculative_config
    if not is_installed():
        return (
            "redraft-vllm has not prepared this vLLM: see its warning in the log, or add redraft to VLLM_PLUGINS, "
            "if that is set"
        )
    if config.use_v2_model_runner:
        return "redraft-vllm works with model runner V1 only: set VLLM_USE_V2_MODEL_RUNNER=0"
    if config.scheduler_config.async_scheduling:
        return "redraft-vllm does not work with asynchronous scheduling: pass --no-async-scheduling"
    if not 1 <= speculative.num_speculative_tokens <= MAX_SPEC_LEN:
        return f"num_speculative_tokens must be from 1 to {MAX_SPEC_LEN}, not {speculative.num_speculative_tokens}"
    if speculative.rejection_sample_method != "standard":
        return f"rejection_sample_method must be standard, not {speculative.rejection_sample_method}"
    if config.model_config.logprobs_mode != "raw_logprobs":
        return f"logprobs_mode must be raw_logprobs, not {config.model_config.logprobs_mode}"
    return ""
