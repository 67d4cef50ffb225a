"""Examples are read by feature, over the bounds of row groups, without those that only score labels."""

import dataclasses

import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.pages.examples import Examples
from tests.features.measured import PROVENANCE
from tests.pages.conftest import examples_of


def test_each_feature_has_its_own(files, tokenizer):
    examples = Examples(files.examples, PROVENANCE)
    for feature in [*range(12), 3, 5]:
        found = examples.of(feature)
        wanted = [row for row in examples_of(feature, tokenizer)[:2] if 1 <= feature <= 9]
        assert [(e.kind, e.document, e.activation) for e in found] == [
            (row["kind"], row["document"], row["activation"]) for row in wanted
        ]
        for example, row in zip(found, wanted, strict=True):
            assert dataclasses.asdict(example).items() <= row.items()


def test_other_files_are_refused(files, tmp_path):
    with pytest.raises(UserError, match=r"of pass run-1, but the statistics beside it are of pass other"):
        Examples(files.examples, dataclasses.replace(PROVENANCE, run="other"))
    with pytest.raises(UserError, match=r"gone\.parquet: no such file"):
        Examples(tmp_path / "gone.parquet", PROVENANCE)
    whole = files.examples.read_bytes()
    files.examples.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    with pytest.raises(UserError, match=r"examples\.parquet: damaged or not complete.*calibrate run"):
        Examples(files.examples, PROVENANCE).of(1)
