"""The flags that say which model and which SAE a command is about."""

import dataclasses

from neuroscope_jax.config import DType, InputNorm, NeuroscopeConfig

_DEFAULTS = NeuroscopeConfig()
# What help shows where a flag's own default is that the preset decides.
SHOWN_DEFAULTS = {
    "model": _DEFAULTS.model_id,
    "sae": _DEFAULTS.sae_repo,
    "sae_layer": _DEFAULTS.target_layer,
    "sae_width": "16k",
    "sae_path": _DEFAULTS.sae_path,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairFlags:
    """A model and an SAE.

    Args:
        config: a preset (demo, gemma-2-2b-it, gemma-2-9b-it) or a .toml file with NeuroscopeConfig's fields
        model: hub id or local folder of a checkpoint in Hugging Face layout
        sae: hub id or local folder of an SAE release
        sae_layer: block whose output the SAE reads, counted from 0; chooses the SAE together with the width
        sae_width: number of features, as the release writes it (16k, 65k, ...)
        sae_path: SAE file within the release, instead of layer and width
        sae_local_path: SAE file on this machine, instead of a release
    """

    config: str | None = None
    model: str | None = None
    sae: str | None = None
    sae_layer: int | None = None
    sae_width: str | None = None
    sae_path: str | None = None
    sae_local_path: str | None = None

    def resolved(self, **more: str | float | None) -> NeuroscopeConfig:
        """The config that these and `more` flags mean. Raises UserError. Brings JAX in."""
        from neuroscope_jax import pairs

        return pairs.from_flags({n: value for n, value in (vars(self) | more).items() if value is not None})


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkFlags:
    """How a model and its SAE run.

    Args:
        sae_input_norm: how the residual is scaled before the SAE; auto takes what the release was trained for
        platform: auto, cpu, gpu or tpu; auto prefers CUDA, then TPU, then CPU
        device: the same as --platform
        dtype: of the weights; auto takes float32 on CPU where it fits in memory, else bfloat16
    """

    sae_input_norm: InputNorm | None = None
    platform: str | None = None
    device: str | None = None
    dtype: DType | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PassFlags(PairFlags):
    """A pair of which there may be a finished corpus pass.

    Args:
        calibration_path: statistics file of a finished pass, instead of the one in the cache folder
    """

    calibration_path: str | None = None
