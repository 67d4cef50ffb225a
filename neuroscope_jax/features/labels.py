"""Labels: feature index → words. Auto-interp labels first, then Neuronpedia's, then bundled ones, then the number."""

import dataclasses
import logging
from pathlib import Path

import msgspec

from neuroscope_jax.config import NeuroscopeConfig, cache_folder
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.hub import DEMO, DEMO_FOLDER

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Labels:
    """The labels of one SAE; a feature without one is called by its number."""

    sae_id: str
    width: int
    source: str  # autointerp, neuronpedia, bundled or numeric
    texts: dict[int, str]

    def text(self, index: int) -> str:
        """The label of a feature, or feature_4521."""
        return self.texts.get(index) or f"feature_{index}"

    def all(self) -> dict[str, str]:
        """Every feature's label under its index as a string."""
        return {str(index): self.text(index) for index in range(self.width)}


def load_labels(config: NeuroscopeConfig, width: int) -> Labels:
    """The best labels there are for the config's SAE. Raises UserError for a file that cannot be its labels."""
    for source, file in _sources(config):
        if file.is_file():
            texts = read_labels(file, width)
            logger.info("labels: %d of %d features from %s (%s)", len(texts), width, file, source)
            return Labels(config.sae_id, width, source, texts)
    logger.info("labels: none found for %s; features are shown by number", config.sae_id)
    return Labels(config.sae_id, width, "numeric", {})


def read_labels(file: Path, width: int) -> dict[int, str]:
    """Read a JSON object from feature index to label. Raises UserError where it is no such thing or does not fit."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=dict[int, str])
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{file}: not a JSON object from feature index to label: {error}") from error
    outside = [index for index in found if not 0 <= index < width]
    if outside:
        raise UserError(f"{file}: labels feature {outside[0]}, but this SAE has {width} features, 0 to {width - 1}")
    return {index: text.strip() for index, text in found.items() if text.strip()}


def _sources(config: NeuroscopeConfig) -> list[tuple[str, Path]]:
    folder = cache_folder() / "labels"
    pair = f"{config.neuronpedia_model_id}_{config.neuronpedia_sae_id}"
    sources: list[tuple[str, Path]] = [
        ("autointerp", folder / f"{pair}_autointerp.json"),
        ("neuronpedia", folder / f"{pair}_neuronpedia.json"),
    ]
    if config.sae_repo == DEMO and config.sae_local_path is None:
        sources.append(("bundled", DEMO_FOLDER / "labels.json"))
    return sources
