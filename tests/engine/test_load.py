"""Loading a pair: what must not be served with it."""

import dataclasses

import pytest

from neuroscope_jax.config import load_preset
from neuroscope_jax.engine.load import load
from neuroscope_jax.features.label_details import LabelDetail, LabelDetails, save_labels
from neuroscope_jax.features.labels import labels_path
from neuroscope_jax.features.width import width_of
from neuroscope_jax.identity import identify
from neuroscope_jax.models.hub import model_folder, sae_file

DEMO = load_preset("demo")


@pytest.mark.parametrize(("of", "said"), [("model_sha256", "another model"), ("sae_sha256", "another SAE")])
def test_labels_of_another_pair_are_not_served(tmp_path, monkeypatch, caplog, of, said):
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    folder, sae = model_folder(DEMO.model_id), sae_file(DEMO.sae_repo, DEMO.sae_path)
    width = width_of(DEMO)
    details = LabelDetails(
        source="autointerp",
        pair=dataclasses.replace(identify(DEMO, folder, sae, width), **{of: "0" * 64}),
        neuronpedia_model_id=DEMO.neuronpedia_model_id,
        neuronpedia_sae_id=DEMO.neuronpedia_sae_id,
        width=width,
        made="2030-01-01T00:00:00+00:00",
        version="1",
        labeler=None,
        prompt_version=None,
        run=None,
        control=None,
        features={0: LabelDetail("zero", "labelled")},
    )
    save_labels(labels_path(DEMO, "autointerp"), details)
    loaded = load(DEMO)
    loaded.engine.close()
    assert said in caplog.text
    assert loaded.labels.source == "bundled"
