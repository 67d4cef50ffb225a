"""The text a client gets over HTTP is what transformers' generate writes: the whole way, on the demo pair."""

import pytest
import torch
import transformers

from neuroscope_jax.models.hub import model_folder
from tests.running_server import running

PROMPTS = [
    "What is the capital of France?",
    "Hello, how are you?",
    "Tell me a story about a cat.",
    "Write a short story about a dog.",
    "What is 3 plus 4?",
    "Explain quantum gravity, please: 🌍 你好",
]
NEW_TOKENS = 64


@pytest.fixture(scope="module")
def written_by_hf() -> list[str]:
    folder = model_folder("demo")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.Gemma2ForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    texts = []
    for prompt in PROMPTS:
        chat = [{"role": "user", "content": prompt}]
        ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        written = model.generate(**ids, do_sample=False, max_new_tokens=NEW_TOKENS)
        texts.append(tokenizer.decode(written[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))
    return texts


def test_greedy_text_over_http_equals_generate(written_by_hf, tmp_path):
    with running("demo", tmp_path) as server:
        written = [server.chat(prompt, max_tokens=NEW_TOKENS) for prompt in PROMPTS]
    assert [answer.choices[0].message.content for answer in written] == written_by_hf
    assert max(answer.usage.completion_tokens for answer in written) == NEW_TOKENS, "no answer is long enough to tell"
