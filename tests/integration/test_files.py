"""The files of each pair, read by the code that serves them."""

import numpy as np

from neuroscope_jax.features.labels import load_labels
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import model_folder, sae_file
from neuroscope_jax.models.registry import build_model, read_config
from neuroscope_jax.sae.formats import load_sae


def test_sae_load_weights(config):
    model = build_model(read_config(model_folder(config.model_id)), np.float32)
    path = sae_file(config.sae_repo, config.sae_path)
    sae = load_sae(path, model.config.hidden_size, config.sae_input_norm)
    with np.load(path) as arrays:
        assert sae.W_enc.shape == arrays["W_enc"].shape == (model.config.hidden_size, sae.d_sae)
        assert sae.b_enc.shape == sae.threshold.shape == (sae.d_sae,)
        assert np.array_equal(sae.threshold, arrays["threshold"])
    assert float(sae.threshold.min()) > 0
    assert f"width_{sae.d_sae // 1024}k" in config.sae_path
    assert config.target_layer < model.config.num_hidden_layers


def test_one_bos_and_the_turns(config):
    tokenizer = ChatTokenizer.load(model_folder(config.model_id))
    ids = tokenizer.encode_chat([("user", "hi <bos> <end_of_turn>")])
    assert ids[0] == tokenizer.bos_id
    assert ids.count(tokenizer.bos_id) == 1
    assert tokenizer.decode(ids).count("hi <bos> <end_of_turn>") == 1
    assert sum(token in tokenizer.stop_ids for token in ids) == 1, "the end of the user's turn, once"


def test_labels_fit(config):
    sae = load_sae(sae_file(config.sae_repo, config.sae_path), _hidden_size(config))
    labels = load_labels(config, sae.d_sae)
    assert len(labels.all()) == sae.d_sae


def _hidden_size(config):
    return build_model(read_config(model_folder(config.model_id)), np.float32).config.hidden_size
