"""Reading params.npz: what is right is read exactly, what is wrong is named."""

import contextlib
import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.sae import formats
from neuroscope_jax.sae.formats import decoder_rows, load_sae, read_gemma_scope


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
        (lambda a: {**a, "W_enc": a["W_enc"].T}, r"W_enc is \[256, 64\], expected \[64, 256\] .* transposed"),
        (lambda a: {**a, "W_enc": a["W_enc"].T, "W_dec": a["W_dec"].T}, r"W_enc is \[256, 64\], expected \[64, 256\]"),
        (lambda a: {**a, "b_enc": a["b_enc"][None]}, r"b_enc is \[1, 256\], expected one dimension"),
        (lambda a: {**a, "threshold": a["threshold"][:-1]}, r"threshold is \[255\], expected \[256\]"),
        (lambda a: {**a, "threshold": a["threshold"].astype(np.int32)}, "threshold is int32, expected floating-point"),
        (lambda a: {**a, "b_enc": np.full_like(a["b_enc"], np.nan)}, "not finite"),
        (lambda a: {**a, "W_enc": a["W_enc"].ravel()}, r"W_enc is \[16384\], expected \[64, 256\]"),
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


def test_a_header_that_claims_more_than_there_is(tmp_path):
    """Nothing of that size is asked of memory."""
    path = tmp_path / "params.npz"
    shapes = {
        "W_enc": (8, 4 * 10**9),
        "W_dec": (4 * 10**9, 8),
        "b_enc": (4 * 10**9,),
        "threshold": (4 * 10**9,),
        "b_dec": (8,),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in shapes.items():
            with archive.open(f"{name}.npy", "w") as member:
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, header)
    with pytest.raises(UserError, match="damaged or not complete"):
        load_sae(path, 8)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "params.npz")
    with pytest.raises(UserError, match="a pipe or a device, expected a Gemma Scope"):
        load_sae(tmp_path / "params.npz", 8)


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


SHUFFLED = [200, 3, 255, 0, 3]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("piece", [300, 70_000, 1 << 22])  # bytes: less than a row, some rows, all of them
def test_decoder_rows_are_those_asked_for(arrays, tmp_path, monkeypatch, save, order, piece):
    monkeypatch.setattr(formats, "PIECE", piece)
    W_dec = np.random.default_rng(1).standard_normal((256, 64)).astype(np.float32)
    save(tmp_path / "params.npz", **{**arrays, "W_dec": np.asarray(W_dec, order=order)})
    found = decoder_rows(tmp_path / "params.npz", SHUFFLED)
    assert found.dtype == np.float32
    assert np.array_equal(found, W_dec[SHUFFLED])
    assert decoder_rows(tmp_path / "params.npz", []).shape == (0, 64)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_decoder_rows_are_float32_whatever_the_file_has(arrays, write, dtype):
    W_dec = arrays["W_dec"].astype(dtype)
    found = decoder_rows(write(**{**arrays, "W_dec": W_dec}), SHUFFLED)
    assert found.dtype == np.float32
    assert np.array_equal(found, W_dec[SHUFFLED].astype(np.float32))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_decoder_is_never_held_whole(tmp_path, save, order):
    d_in, d_sae = 512, 32_768
    matrix = np.zeros((d_sae, d_in), np.float32, order=order)
    matrix[SHUFFLED] = 1
    ones = {
        name: np.ones(shape, np.float32) for name, shape in (("b_enc", d_sae), ("b_dec", d_in), ("threshold", d_sae))
    }
    save(tmp_path / "params.npz", W_enc=np.zeros((d_in, d_sae), np.float16), W_dec=matrix, **ones)
    size = matrix.nbytes
    del matrix
    tracemalloc.start()  # NumPy and zipfile tell it what they take
    try:
        assert decoder_rows(tmp_path / "params.npz", SHUFFLED).all()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * formats.PIECE < size / 3


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_decoder_rows_that_are_not_finite_are_refused(arrays, write, value):
    W_dec = arrays["W_dec"].astype(np.float64)
    W_dec[7, 5] = value
    path = write(**{**arrays, "W_dec": W_dec})
    with pytest.raises(UserError, match="W_dec holds values that are not finite"):
        decoder_rows(path, [6, 7])
    assert np.isfinite(decoder_rows(path, [6, 8])).all()


def test_decoder_rows_that_are_not_there_are_told(arrays, write):
    path = write(**arrays)
    for feature in (256, -1):
        with pytest.raises(UserError, match=f"no feature {feature} in it; it has features 0 to 255"):
            decoder_rows(path, [0, feature])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_byte_of_the_decoder_is_noticed(arrays, tmp_path, save):
    path = tmp_path / "params.npz"
    save(path, **arrays)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("W_dec.npy")
    for at in range(200, entry.compress_size, 4099):
        place = entry.header_offset + at
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(UserError, match="damaged or not complete"):
            decoder_rows(path, SHUFFLED)


def test_a_decoder_shorter_or_longer_than_its_header_says_is_noticed(arrays, write):
    path = write(**{name: array for name, array in arrays.items() if name != "W_dec"})
    for content in (arrays["W_dec"].tobytes()[:-4], arrays["W_dec"].tobytes() + b"1234"):
        with zipfile.ZipFile(path) as archive:
            kept = {name: archive.read(name) for name in archive.namelist() if name != "W_dec.npy"}
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(arrays["W_dec"]))
        with zipfile.ZipFile(path, "w") as archive:
            for name, member in {**kept, "W_dec.npy": header.getvalue() + content}.items():
                archive.writestr(name, member)
        with pytest.raises(UserError, match="damaged or not complete"):
            decoder_rows(path, [0])
