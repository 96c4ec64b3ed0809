"""Write a trained decoder as a transformers folder (``Qwen3ForCausalLM``), with tokenizer and prompt format.

    python -m redraft_train.recipe.export_hf MODEL FOLDER

MODEL is demo, demo-tiny or a GGUF of the recipe.  The folder runs on the hf backend; quantised weights become 32-bit
floats.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tokenizers import Tokenizer, processors
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from redraft.captions.metadata import (
    FINAL_MARK_KEY,
    OWN_SCRIPT_KEY,
    PROMPT_KEY,
    SOURCE_LANGUAGES_KEY,
    TARGET_LANGUAGES_KEY,
)
from redraft.errors import ModelError
from redraft_train.recipe.model import EPSILON, ROPE_BASE, Decoder
from redraft_train.recipe.restart import model_file, open_gguf, read_model, read_tokenizer
from redraft_train.recipe.tokenizer import BOS, EOS, PAD

#: Name of a layer's part here -> name in Qwen3.
_LAYER_TENSORS = {
    "attention_norm": "input_layernorm",
    "query_norm": "self_attn.q_norm",
    "key_norm": "self_attn.k_norm",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
_FACTS = (PROMPT_KEY, SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY, FINAL_MARK_KEY, OWN_SCRIPT_KEY)


def gguf_to_hf(path: Path, folder: Path) -> None:
    """Convert a GGUF made by `recipe.export` to a transformers folder.

    Raises:
        ModelError: the file cannot be read, or was not made by the recipe.
    """
    fields = open_gguf(path).fields
    facts = {key: str(fields[key].contents()) for key in _FACTS if key in fields}
    write_hf(read_model(path), read_tokenizer(path), folder, facts, int(fields["qwen3.context_length"].contents()))


def write_hf(model: Decoder, tokenizer: Tokenizer, folder: Path, facts: Mapping[str, str], context: int) -> None:
    """Write model and tokenizer in 32-bit floats.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        folder: where to write.
        facts: metadata under keys that start with ``redraft.``: prompt format and languages.
        context: maximum number of ids of prompt and output.
    """
    vocabulary, shape = tokenizer.get_vocab(), model.shape
    config = Qwen3Config(
        num_hidden_layers=shape.layers,
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.head,
        intermediate_size=shape.feed_forward,
        vocab_size=shape.vocabulary,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        rms_norm_eps=EPSILON,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        bos_token_id=vocabulary[BOS],
        eos_token_id=vocabulary[EOS],
        pad_token_id=vocabulary[PAD],
        redraft={key.removeprefix("redraft."): value for key, value in facts.items()},
    )
    written = Qwen3ForCausalLM(config)
    written.load_state_dict(dict(_tensors(model)))
    written.save_pretrained(folder)
    _with_start(tokenizer).save_pretrained(folder)


def _with_start(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Return the tokenizer for transformers, which adds the start token as llama.cpp does."""
    copied = Tokenizer.from_str(tokenizer.to_str())
    start = (BOS, copied.token_to_id(BOS))
    copied.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[start])
    return PreTrainedTokenizerFast(tokenizer_object=copied, bos_token=BOS, eos_token=EOS, pad_token=PAD)


def _tensors(model: Decoder) -> Iterator[tuple[str, Tensor]]:
    yield "model.embed_tokens.weight", model.embedding.weight
    yield "lm_head.weight", model.embedding.weight
    yield "model.norm.weight", model.norm.weight
    for index, layer in enumerate(model.layers):
        for ours, theirs in _LAYER_TENSORS.items():
            yield f"model.layers.{index}.{theirs}.weight", getattr(layer, ours).weight


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m redraft_train.recipe.export_hf MODEL FOLDER")
    try:
        gguf_to_hf(model_file(sys.argv[1]), Path(sys.argv[2]))
    except ModelError as error:
        sys.exit(f"Error: {error}")
