"""saklas with its local SAE and its live read-outs, on the same weights, SAE and prompts.

Its local SAEs are ReLU encoders in the model's dtype. The thresholds are all alike here, so that ReLU behind a bias
lowered by the threshold fires for the same features. It reads out its usual eight features a token.
"""

import functools
import os
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from saklas import SaklasSession, SamplingConfig
from saklas.io.sae_artifacts import save_local_sae
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from benchmarks.checkpoint import sae_file
from benchmarks.memory import peak_bytes
from benchmarks.peer_figures import figures
from benchmarks.processes import answer
from benchmarks.results import Peer, Plan
from benchmarks.shapes import SHAPES
from benchmarks.torch_peer import load

NAME = "benchmark"


def generate(session: SaklasSession, ids: tuple[int, ...], tokens: int) -> tuple[list[int], list[float]]:
    """Greedy tokens with their features, and when each was there. Raises RuntimeError where one came without."""
    began = time.perf_counter()
    chosen: list[int] = []
    arrivals: list[float] = []
    sampling = SamplingConfig(temperature=0.0, max_tokens=tokens)
    for event in session.generate_stream(_words(ids), sampling=sampling, stateless=True, raw=True):
        arrivals.append(time.perf_counter() - began)
        chosen.append(event.token_id)
        if "sae" not in (event.measurements or {}).get("instruments", {}):
            raise RuntimeError(f"saklas read no features at token {len(chosen)}: {event.measurements}")
    return chosen, arrivals


def measure(plan: Plan) -> Peer:
    """Everything about one dtype."""
    torch.set_num_threads(os.cpu_count() or 1)
    shape = SHAPES[plan.shape]
    began = time.perf_counter()
    session = SaklasSession(load(plan, "cpu"), _tokenizer(shape.model.vocab_size), probes=[])
    _publish(session.model_id, plan, shape.layer)
    session.load_sae(f"local:{NAME}")
    session.sae.set_live(True)
    loaded = time.perf_counter()
    return figures(plan, loaded - began, functools.partial(generate, session), peak_bytes)


def _publish(model_id: str, plan: Plan, layer: int) -> None:
    """Put the SAE where saklas keeps those it has trained itself; what it asks of their training is made up."""
    with np.load(sae_file(Path(plan.folder))) as arrays:
        tensors = {name: torch.from_numpy(arrays[name]) for name in ("W_enc", "W_dec", "b_enc", "b_dec")}
        tensors["b_enc"] = tensors["b_enc"] - torch.from_numpy(arrays["threshold"])
    save_local_sae(
        model_id,
        NAME,
        tensors,
        model_fingerprint=None,
        model_source_fingerprint=None,
        layer=layer,
        corpus_spec="random",
        corpus_sha256="0" * 64,
        tokens_trained=1,
        seq_len=1,
        batch_size=1,
        learning_rate=0.0,
        l1_coefficient=0.0,
        dead_feature_threshold=0.0,
    )


def _words(ids: tuple[int, ...]) -> str:
    return " ".join(f"t{number}" for number in ids)


def _tokenizer(size: int) -> PreTrainedTokenizerFast:
    """A word for each id."""
    tokenizer = Tokenizer(WordLevel({f"t{number}": number for number in range(size)}, unk_token="t3"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    fast: Any = PreTrainedTokenizerFast  # its constructor is not annotated
    return cast(PreTrainedTokenizerFast, fast(tokenizer_object=tokenizer))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["SAKLAS_HOME"] = home
        answer(measure, Plan)
