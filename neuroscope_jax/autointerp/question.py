"""One question to the labelling model and its answer, whatever the question is about."""

import dataclasses
import hashlib
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Question:
    """What one call asks; `schema` is the JSON schema of an object whose properties are all required."""

    feature: int
    system: str
    prompt: str
    schema: dict[str, Any]
    max_tokens: int
    part: str = "label"  # or "score:3", "control:0": which of a feature's questions, for messages; not in the key

    def key(self, model: str) -> str:
        """SHA-256, in hex, of all that decides the answer: equal questions are paid for once."""
        parts = [model, self.system, self.prompt, self.schema, self.max_tokens]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came of a question: the fields asked for, or the reason why there are none."""

    key: str
    feature: int
    part: str
    fields: dict[str, Any] | None  # holds every property of the schema, of its type
    failure: str | None  # "refusal", "cut off", "not JSON", "wrong keys: …", "timeout", "400 …"; None where fields are
    input_tokens: int
    output_tokens: int
    date: str  # UTC, ISO 8601
