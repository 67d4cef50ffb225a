"""The programs that this project is measured beside: what each needs, and how it is measured."""

import dataclasses
import importlib.util
from typing import Literal

import msgspec

from benchmarks.processes import measure
from benchmarks.results import Made, Peer, Plan


@dataclasses.dataclass(frozen=True)
class PeerProgram:
    """One column of a report."""

    module: str  # of this package, run in a process of its own
    dtype: Literal["float32", "bfloat16"]
    imports: tuple[str, ...]
    install: str
    platforms: tuple[str, ...] = ("cpu",)
    quantization: Literal["none", "q8_0"] = "none"
    file: str = ""  # the module that makes its file of the checkpoint, where it needs another one

    def missing(self, platform: str) -> str:
        """Why it cannot be measured here; empty where it can."""
        if absent := [name for name in self.imports if importlib.util.find_spec(name) is None]:
            return f"{' and '.join(absent)} {'are' if absent[1:] else 'is'} not installed; {self.install}"
        allowed = " and ".join(self.platforms)
        return "" if platform in self.platforms else f"the peer runs on {allowed} only"

    def measured(self, plan: Plan) -> Peer:
        """What its process says. Raises MeasurementFailed."""
        mine = msgspec.structs.replace(plan, dtype=self.dtype, gguf=self.quantization)
        if self.file:
            measure(self.file, mine, Made)
        return measure(self.module, mine, Peer)


DTYPES: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")

TORCH = ("torch", "transformers")
BENCH = "pip install -e '.[bench]'"
LLAMA = f"{BENCH} && pip install llama-cpp-python, which is built from source and needs a C++ compiler and CMake"

PEERS = {
    "torch-float32": PeerProgram("torch_peer", "float32", TORCH, BENCH, ("cpu", "gpu")),
    "torch-bfloat16": PeerProgram("torch_peer", "bfloat16", TORCH, BENCH, ("cpu", "gpu")),
    "saklas-float32": PeerProgram("saklas_peer", "float32", (*TORCH, "saklas"), BENCH),
    "saklas-bfloat16": PeerProgram("saklas_peer", "bfloat16", (*TORCH, "saklas"), BENCH),
    "llama-bf16": PeerProgram("llama_peer", "bfloat16", ("llama_cpp", "gguf"), LLAMA, file="gguf_model"),
    "llama-q8_0": PeerProgram(
        "llama_peer", "bfloat16", ("llama_cpp", "gguf"), LLAMA, quantization="q8_0", file="gguf_model"
    ),
}

DELPHI = f"{BENCH} && pip install --no-deps eai-delphi"
# Its own requirements name a transformers, jaxtyping, datasets and safetensors older than this project can use.
DASHBOARD = f"{BENCH} && pip install --no-deps sae-dashboard"

CORPUS_PEERS = {
    f"delphi-{dtype}": PeerProgram("delphi_peer", dtype, (*TORCH, "delphi"), DELPHI, ("cpu", "gpu")) for dtype in DTYPES
} | {
    f"saedashboard-{dtype}": PeerProgram("sae_dashboard_peer", dtype, (*TORCH, "sae_lens", "sae_dashboard"), DASHBOARD)
    for dtype in DTYPES
}
