"""The columns of the parquet files, as Arrow schemas."""

from typing import Any


def examples() -> Any:
    """One example a row."""
    import pyarrow as pa

    whole, text = pa.int32(), pa.string()
    return pa.schema(
        [
            pa.field("feature", whole, nullable=False),
            pa.field("kind", pa.dictionary(pa.int8(), text), nullable=False),  # top, random or held_out
            ("rank", pa.int16()),
            ("quantile", pa.float32()),  # among the drawn firings, 0 weakest; null for top
            ("activation", pa.float32()),
            ("document", whole),  # its number in the corpus
            ("sample", whole),  # which stretch of the document
            ("offset", whole),  # of the token in its document, BOS not counted
            ("ids", pa.list_(whole)),  # at most 12 tokens before, the token, at most 12 after
            ("at", pa.int8()),  # of the token in `ids`
            ("cut_before", pa.bool_()),  # the sample begins within the context
            ("cut_after", pa.bool_()),
            ("before", text),  # as text; null for held_out
            ("token", text),
            ("after", text),
        ]
    )


def windows() -> Any:
    """One window of the pool a row."""
    import pyarrow as pa

    return pa.schema(
        [
            ("document", pa.int32()),
            ("offset", pa.int32()),  # of the window's first token
            ("ids", pa.list_(pa.int32())),
            # Feature e fires somewhere in the window where bit e % 8 of byte e // 8 is set.
            ("fired", pa.binary()),
        ]
    )


def passages() -> Any:
    """One sample a row, by rising (document, sample): those that examples lie in."""
    import pyarrow as pa

    return pa.schema(
        [
            ("document", pa.int32()),
            ("sample", pa.int32()),
            ("ids", pa.list_(pa.int32())),  # all its tokens, BOS not among them
        ]
    )


def shading() -> Any:
    """One top or random example a row, by rising feature; `examples` has the same (feature, document, offset)."""
    import pyarrow as pa

    return pa.schema(
        [
            ("feature", pa.int32()),
            ("document", pa.int32()),
            ("offset", pa.int32()),
            ("activations", pa.list_(pa.float32())),  # of the feature at each token of the example's `ids`
        ]
    )
