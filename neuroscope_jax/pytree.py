"""The base of every value that goes into or comes out of a jit."""

from flax import struct


class PyTree(struct.PyTreeNode):
    """A frozen dataclass that JAX sees through; fields marked `pytree_node=False` are static."""

    # JAX also builds it from shapes, tracers and None, so the tests' shape check must not look at the fields.
    __no_type_check__ = True
