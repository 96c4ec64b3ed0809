"""A small Qwen3 with a tokenizer of its own, drawn at random."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for each in messages %}<|im_start|>{{ each.role }}\n{{ each.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = Path(__file__).read_text(encoding="utf-8")
POSITIONS = 1024


def write_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Byte-level BPE that reads the control tokens of a chat."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=list(CONTROL), show_progress=False
    )
    made.train_from_iterator([TEXT], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=CONTROL[2], pad_token=CONTROL[0])
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return tokenizer


def config_for(tokenizer: PreTrainedTokenizerFast) -> Qwen3Config:
    """The shape of the model."""
    return Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=POSITIONS,
        initializer_range=0.3,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def write_model(folder: Path) -> None:
    """A whole model, 32-bit."""
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config_for(write_tokenizer(folder)))
    with torch.no_grad():  # random models seldom end by themselves
        model.lm_head.weight[model.config.eos_token_id] *= 3.0
    model.save_pretrained(folder)
