"""Small chat templates of our own, each with one trait of the real ones."""

from __future__ import annotations

WITH_SYSTEM = """{{ bos_token }}{% for m in messages %}
    {% if m.role not in ["system", "user", "assistant"] %}{{ raise_exception("role") }}{% endif %}
<|{{ m.role }}|>{{ m.content | trim }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
RAISES_ON_SYSTEM = """{% for m in messages %}{% if m.role == "system" %}{{ raise_exception("no system") }}{% endif %}
{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("roles must take turns") }}{% endif %}
[{{ "model" if m.role == "assistant" else m.role }}]
{{ m.content | trim }}[end]
{% endfor %}{% if add_generation_prompt %}[model]
{% endif %}"""
DROPS_SYSTEM = """{% for m in messages %}{% if m.role == "system" %}{% continue %}{% endif %}
{{ m.role | upper }}: {{ m.content }}{{ eos_token if m.role == "assistant" else " " }}{% endfor %}
{% if add_generation_prompt %}ASSISTANT:{% endif %}"""
THINKS = """{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>
{{- "<think></think>" if enable_thinking is defined and not enable_thinking else "<think>" }}{% endif %}"""
