"""Reading params.npz: what is right is read exactly, what is wrong is named."""

import contextlib
import zipfile

import numpy as np
import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.sae.formats import load_sae, read_gemma_scope


def test_every_array_is_read_exactly(arrays, write):
    sae = load_sae(write(**arrays), d_model=64)
    assert sae.W_enc.shape == (64, 256)
    assert sae.b_enc.shape == sae.threshold.shape == (256,)
    assert (sae.d_in, sae.d_sae, sae.input_norm) == (64, 256, "none")
    for name in ("W_enc", "b_enc", "threshold"):
        assert np.array_equal(getattr(sae, name), arrays[name])


def test_compressed_file_is_read_too(arrays, tmp_path):
    path = tmp_path / "params.npz"
    np.savez_compressed(path, **arrays)
    assert np.array_equal(read_gemma_scope(path).W_enc, arrays["W_enc"])


def test_decoder_is_not_read(arrays, write, monkeypatch):
    opened: list[str] = []
    read_array = np.lib.format.read_array
    monkeypatch.setattr(
        np.lib.format, "read_array", lambda member, **k: opened.append(member.name) or read_array(member, **k)
    )
    read_gemma_scope(write(**arrays))
    assert sorted(opened) == ["W_enc.npy", "b_enc.npy", "threshold.npy"]


def _without(arrays, *names):
    return {name: array for name, array in arrays.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: _without(a, "threshold"), "no threshold in it; found W_enc, W_dec, b_enc, b_dec"),
        (lambda a: {**a, "W_enc": a["W_enc"].T}, r"W_dec is \[256, 64\], expected \[64, 256\]"),
        (lambda a: {**a, "W_enc": a["W_enc"].T, "W_dec": a["W_dec"].T}, r"b_enc is \[256\], expected \[64\]"),
        (lambda a: {**a, "b_enc": a["b_enc"][None]}, r"b_enc is \[1, 256\], expected \[256\]"),
        (lambda a: {**a, "threshold": a["threshold"][:-1]}, r"threshold is \[255\], expected \[256\]"),
        (lambda a: {**a, "threshold": a["threshold"].astype(np.int32)}, "threshold is int32, expected floating-point"),
        (lambda a: {**a, "b_enc": np.full_like(a["b_enc"], np.nan)}, "not finite"),
        (lambda a: {**a, "W_enc": a["W_enc"].ravel()}, r"W_enc is \[16384\], expected \[d_in, d_sae\]"),
    ],
)
def test_misfits_are_named(arrays, write, change, said):
    path = write(**change(arrays))
    with pytest.raises(UserError, match=said) as raised:
        load_sae(path, d_model=64)
    assert str(path) in str(raised.value)


def test_pickled_objects_are_never_loaded(arrays, write):
    path = write(**{**arrays, "threshold": np.array([print] * 256, dtype=object)})
    with pytest.raises(UserError, match="threshold is object"):
        load_sae(path, d_model=64)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "an HTML or XML page"),
        (b"not an archive at all", "damaged or not complete"),
    ],
)
def test_other_files_are_told_apart(tmp_path, content, said):
    path = tmp_path / "params.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        load_sae(path, d_model=64)


def test_truncated_and_damaged_archives(arrays, write):
    path = write(**arrays)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1000])
    with pytest.raises(UserError, match="damaged or not complete.*download it again"):
        load_sae(path, d_model=64)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_byte_anywhere_in_what_is_read_is_noticed(arrays, tmp_path, save):
    path = tmp_path / "params.npz"
    save(path, **arrays)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("W_enc.npy")
    for at in (*range(30, 180, 3), *range(200, entry.compress_size, 4099)):
        place = entry.header_offset + at
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(UserError):  # any other exception fails the test
            assert np.array_equal(load_sae(path, d_model=64).W_enc, arrays["W_enc"])


def test_absent_file_and_unknown_ending(tmp_path):
    with pytest.raises(UserError, match="no such SAE file"):
        load_sae(tmp_path / "params.npz", d_model=64)
    with pytest.raises(UserError, match=r"unknown SAE format; known endings: \.npz"):
        load_sae(tmp_path / "sae.pt", d_model=64)


def test_other_models_sae_is_refused(arrays, write):
    with pytest.raises(UserError, match="reads vectors of 64, but the model's residual stream has 2304"):
        load_sae(write(**arrays), d_model=2304)


def test_scalar_norm_needs_a_scalar(arrays, write):
    with pytest.raises(UserError, match="carries no scalar"):
        load_sae(write(**arrays), d_model=64, input_norm="scalar")
