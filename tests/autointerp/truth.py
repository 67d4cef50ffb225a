"""A judge that knows the truth: it runs the demo pair on the texts that it is shown."""

import re
from collections.abc import Callable

import jax
import numpy as np

from neuroscope_jax.autointerp.quoting import NEWLINE
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.step import local_mesh, residual_after
from neuroscope_jax.models.chat import ChatTokenizer

LONGEST = 40  # tokens of a sequence, when it is encoded again


def truthful(config: NeuroscopeConfig, tokenizer: ChatTokenizer) -> Callable[[str], dict[str, bool]]:
    """From the prompt of a question about "topic 12" to its answer."""
    model, params, sae = setup.find(config).load(local_mesh())
    activations = jax.jit(lambda ids: sae.encode(residual_after(model, params, ids)))
    control = list(tokenizer.control_ids)

    def judge(prompt: str) -> dict[str, bool]:
        feature = int(re.search(r"Name: topic (\d+)\n", prompt)[1])
        texts = dict(line.split(": ", 1) for line in prompt.splitlines() if re.match(r"s\d+: ", line))
        rows = [[tokenizer.bos_id, *tokenizer.encode_documents([t.replace(NEWLINE, "\n")])[0]] for t in texts.values()]
        ids = np.full((10, LONGEST), tokenizer.bos_id, np.int32)
        for row, found in zip(ids, rows, strict=False):
            row[: len(found)] = found
        fires = np.any((np.asarray(activations(ids))[:, :, feature] > 0) & ~np.isin(ids, control), axis=1)
        return dict(zip(texts, map(bool, fires), strict=False))

    return judge
