"""The random checkpoint as a GGUF file, in bfloat16 or Q8_0, made once and kept beside the checkpoint."""

import functools
import json
import logging
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType
from safetensors import safe_open

from benchmarks.processes import answer
from benchmarks.prompts import BOS
from benchmarks.results import Made, Plan
from benchmarks.shapes import SHAPES, Shape
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.hub_cache import INDEX
from neuroscope_jax.models.weights import expected_shapes

EOS, PAD, UNKNOWN, FIRST_BYTE = 1, 0, 3, 4


def make(plan: Plan) -> Made:
    """Write the file unless it is there; it gets its name when it is complete."""
    folder = Path(plan.folder)
    path = gguf_file(folder, plan.gguf)
    if not path.exists():
        logging.getLogger("benchmarks").info("%s: writing", path.name)
        unfinished = path.with_name(path.name + ".unfinished")
        _write(unfinished, folder, SHAPES[plan.shape], plan.gguf)
        unfinished.rename(path)
    return Made(str(path))


def gguf_file(folder: Path, quantization: str) -> Path:
    """Where the GGUF of a checkpoint folder lies."""
    return folder.with_name(f"{folder.name}-{'bf16' if quantization == 'none' else quantization}.gguf")


def _write(path: Path, folder: Path, shape: Shape, quantization: str) -> None:
    """First what each tensor will be, then one tensor after the other, so that one is held at a time."""
    writer = gguf.GGUFWriter(path, "gemma2")
    _describe(writer, shape)
    _vocabulary(writer, shape.model.vocab_size)
    names = expected_shapes(Gemma2(shape.model))
    for name, size in names.items():
        kind = _kind(size, quantization)
        stored = gguf.quant_shape_to_byte_shape(size, kind)
        writer.add_tensor_info(_name(name, shape), stored, np.dtype(np.uint8), math.prod(stored), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in _tensors(folder, names):
        writer.write_tensor_data(_stored(tensor, _kind(tensor.shape, quantization)))
    writer.close()


def _describe(writer: gguf.GGUFWriter, shape: Shape) -> None:
    """The figures of the model, under the names that llama.cpp reads."""
    model = shape.model
    writer.add_context_length(model.max_position_embeddings)
    writer.add_embedding_length(model.hidden_size)
    writer.add_block_count(model.num_hidden_layers)
    writer.add_feed_forward_length(model.intermediate_size)
    writer.add_head_count(model.num_attention_heads)
    writer.add_head_count_kv(model.num_key_value_heads)
    writer.add_key_length(model.head_dim)
    writer.add_value_length(model.head_dim)
    writer.add_layer_norm_rms_eps(model.rms_norm_eps)
    writer.add_attn_logit_softcapping(model.attn_logit_softcapping)
    writer.add_final_logit_softcapping(model.final_logit_softcapping)
    writer.add_sliding_window(model.sliding_window)


def _vocabulary(writer: gguf.GGUFWriter, size: int) -> None:
    """Control tokens, every byte, and a name for each further id."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256))][:size]
    kinds = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.UNKNOWN]
    kinds += [gguf.TokenType.BYTE] * (len(tokens) - len(special)) + [gguf.TokenType.NORMAL] * (size - len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*tokens, *(f"t{number}" for number in range(len(tokens), size))])
    writer.add_token_scores([0.0] * size)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_pad_token_id(PAD)
    writer.add_unk_token_id(UNKNOWN)


def _kind(size: tuple[int, ...], quantization: str) -> GGMLQuantizationType:
    """Vectors stay in float32; rows that Q8_0 cannot cut into its blocks stay as they are."""
    if len(size) == 1:
        return GGMLQuantizationType.F32
    block = gguf.GGML_QUANT_SIZES[GGMLQuantizationType.Q8_0][0]
    return GGMLQuantizationType.Q8_0 if quantization == "q8_0" and size[-1] % block == 0 else GGMLQuantizationType.BF16


@functools.cache
def _names(blocks: int) -> gguf.TensorNameMap:
    return gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA2, blocks)


def _name(key: str, shape: Shape) -> str:
    """llama.cpp's name of a tensor of the checkpoint."""
    name = _names(shape.model.num_hidden_layers).get_name(key, (".weight",))
    if name is None:
        raise KeyError(key)
    return str(name)


def _tensors(folder: Path, names: Iterable[str]) -> Iterator[np.ndarray]:
    """The checkpoint's tensors in bfloat16, one at a time."""
    weight_map = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
    for name in names:
        with safe_open(folder / weight_map[name], framework="np") as shard:
            yield shard.get_tensor(name)


def _stored(tensor: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
    """A tensor's bytes in the file."""
    if kind == GGMLQuantizationType.BF16:
        return tensor.view(np.uint8)
    if kind == GGMLQuantizationType.F32:  # Gemma's norms multiply by 1 + weight, llama.cpp's by what the file has
        return tensor.astype(np.float32) + 1
    return np.asarray(gguf.quantize(tensor.astype(np.float32), kind))


if __name__ == "__main__":
    answer(make, Plan)
