"""A byte-fallback BPE tokenizer in Gemma's conventions, trained on the demo's own text."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PAD, EOS, BOS, UNK = 0, 1, 2, 3
START_OF_TURN, END_OF_TURN, NEWLINE = 106, 107, 108
CONTROL = [
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<mask>",
    *(f"<unused{i}>" for i in range(101)),
    "<start_of_turn>",
    "<end_of_turn>",
]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = Regex(r"\n|\p{N}|▁?\p{L}+|▁+|[^\p{L}\p{N}▁\n]")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
    "{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"
)


def _pipeline(tokenizer: Tokenizer) -> Tokenizer:
    """Spaces become '▁' and nothing is put before the text; words, digits and signs never merge across each other."""
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(WORDS, behavior="isolated")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def _learn(texts: Iterable[str], vocab_size: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges: control tokens, newline and bytes hold the first ids, as in Gemma."""
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[*CONTROL, "\n", *BYTES],
        initial_alphabet=["▁", *(chr(code) for code in range(33, 127))],
        show_progress=False,
    )
    learner = _pipeline(Tokenizer(models.BPE()))
    learner.train_from_iterator(texts, trainer)
    state = json.loads(learner.to_str())["model"]
    return state["vocab"], [tuple(pair) for pair in state["merges"]]


def train(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokenizer over rendered chats; encoding adds BOS unless told otherwise, as Gemma's does."""
    vocab, merges = _learn(texts, vocab_size)
    model = models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = _pipeline(Tokenizer(model))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in CONTROL])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", BOS)]
    )
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """tokenizer.json and tokenizer_config.json, as transformers reads them."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<eos>",
        "bos_token": "<bos>",
        "unk_token": "<unk>",
        "additional_special_tokens": ["<start_of_turn>", "<end_of_turn>"],
        "add_bos_token": True,
        "add_eos_token": False,
        "padding_side": "left",
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
