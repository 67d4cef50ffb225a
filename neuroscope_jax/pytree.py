"""The base of every value that goes into or comes out of a jit."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from flax import struct

Tree = TypeVar("Tree")


class PyTree(struct.PyTreeNode):
    """A frozen dataclass that JAX sees through; fields marked `pytree_node=False` are static."""

    # JAX also builds it from shapes, tracers and None, so the tests' shape check must not look at the fields.
    __no_type_check__ = True


def tree_map(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """`jax.tree.map`, whose result is a tree like the first."""
    mapped: Tree = jax.tree.map(function, tree, *others)
    return mapped
