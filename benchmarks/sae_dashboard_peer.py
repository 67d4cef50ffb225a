"""The same pass by SAEDashboard's own runner, on TransformerLens with the same weights, SAE and tokens.

It makes what its pages show for a lot of features at a time, running the model again for each lot. One lot of its usual
size is measured, which is generous: a pass over all features takes as many of them as there are lots.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sae_dashboard.sae_vis_data import SaeVisConfig
from sae_dashboard.sae_vis_runner import SaeVisRunner
from sae_lens import HookedSAETransformer
from sae_lens.saes.jumprelu_sae import JumpReLUSAE, JumpReLUSAEConfig
from transformer_lens.config.hooked_transformer_config import HookedTransformerConfig
from transformer_lens.pretrained.weight_conversions import convert_gemma_weights
from transformers import Gemma2Config, Gemma2ForCausalLM

from benchmarks.corpus_results import Passed, PassPlan, PeerPass
from benchmarks.memory import forget_peak, peak_bytes
from benchmarks.processes import answer
from benchmarks.stopwatch import timed

LOT = 256  # features, the runner's own
ROWS = 16  # of a batch of tokens, as for delphi


def measure(plan: PassPlan) -> PeerPass:
    """Both passes of one dtype, the first of which warms up the second."""
    torch.set_num_threads(os.cpu_count() or 1)
    ids = torch.from_numpy(np.load(plan.samples)).long()
    work = _work(plan, ids.shape[1])
    passed(work, ids[:ROWS])  # warms up
    return PeerPass(half=passed(work, ids[: len(ids) // 2]), whole=passed(work, ids), features=LOT)


def passed(work: Callable[[torch.Tensor], Any], ids: torch.Tensor) -> Passed:
    """One pass; its firings are those of the lot, BOS among the tokens."""
    forget_peak()
    data, took = timed(lambda: work(ids))
    firings = sum(data.feature_stats.frac_nonzero) * ids.numel()
    return Passed(ids.numel(), took, peak_bytes(), round(firings))


def _work(plan: PassPlan, length: int) -> Callable[[torch.Tensor], Any]:
    """A run of its runner, everything loaded."""
    model, encoder = _model(plan, length), _encoder(plan)
    config = SaeVisConfig(
        hook_point=f"blocks.{plan.layer}.hook_resid_post",
        features=range(LOT),
        minibatch_size_features=LOT,
        minibatch_size_tokens=ROWS,
        dtype=plan.dtype,
    )
    runner = SaeVisRunner(config)
    return lambda ids: runner.run(encoder, model, ids)


def _model(plan: PassPlan, length: int) -> HookedSAETransformer:
    """TransformerLens's form of the checkpoint, in the memory of the one that transformers loads."""
    dtype = getattr(torch, plan.dtype)
    source = Gemma2ForCausalLM.from_pretrained(plan.folder, dtype=dtype, local_files_only=True)
    config = _config(source.config, dtype, length)
    model = HookedSAETransformer(config)
    weights = {name: tensor.to(dtype) for name, tensor in convert_gemma_weights(source, config).items()}
    model.load_state_dict(weights, strict=False, assign=True)
    return model


def _config(source: Gemma2Config, dtype: torch.dtype, length: int) -> HookedTransformerConfig:
    """What TransformerLens says of Gemma 2, with the checkpoint's figures."""
    return HookedTransformerConfig(
        d_model=source.hidden_size,
        d_head=source.head_dim,
        n_heads=source.num_attention_heads,
        n_key_value_heads=source.num_key_value_heads,
        d_mlp=source.intermediate_size,
        n_layers=source.num_hidden_layers,
        n_ctx=length,
        eps=source.rms_norm_eps,
        d_vocab=source.vocab_size,
        act_fn="gelu_pytorch_tanh",
        normalization_type="RMS",
        positional_embedding_type="rotary",
        rotary_dim=source.head_dim,
        window_size=source.sliding_window,
        use_local_attn=True,
        attn_types=["global" if layer % 2 else "local" for layer in range(source.num_hidden_layers)],
        attn_scores_soft_cap=source.attn_logit_softcapping,
        output_logits_soft_cap=source.final_logit_softcapping,
        gated_mlp=True,
        final_rms=True,
        use_normalization_before_and_after=True,
        init_weights=False,
        device="cpu",
        dtype=dtype,
    )


def _encoder(plan: PassPlan) -> JumpReLUSAE:
    """The SAE of a Gemma Scope file."""
    with np.load(Path(plan.sae)) as arrays:
        tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    d_in, d_sae = tensors["W_enc"].shape
    encoder = JumpReLUSAE(JumpReLUSAEConfig(d_in=d_in, d_sae=d_sae, dtype=plan.dtype, apply_b_dec_to_input=False))
    encoder.load_state_dict(tensors)
    return encoder


if __name__ == "__main__":
    answer(measure, PassPlan)
