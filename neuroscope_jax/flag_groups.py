"""Flags that several commands share, declared once: a dataclass among a command's parameters stands for its fields."""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def expanded(function: F) -> F:
    """A command with one flag for each field of the dataclasses among the function's parameters, in their place.

    The fields' help is in their dataclass's docstring, under Args like that of other flags.
    """
    hints = typing.get_type_hints(function)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    own = inspect.signature(function).parameters.values()
    parameters = [
        flag
        for p in own
        for flag in (_flags_of(groups[p.name]) if p.name in groups else [p.replace(annotation=hints[p.name])])
    ]

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        made = {name: kind(**_taken(given, kind)) for name, kind in groups.items()}
        return function(**made, **given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": hints.get("return", Any)}
    command.__doc__ = "\n".join([inspect.getdoc(function) or "", *(line for g in groups.values() for line in _args(g))])
    return typing.cast(F, command)


def _flags_of(group: Any) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=typing.cast(type, field.type)
        )
        for field in dataclasses.fields(group)
    ]


def _taken(given: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Those of the given flags that are fields of `kind`, taken out of the others."""
    return {field.name: given.pop(field.name) for field in dataclasses.fields(kind) if field.name in given}


def _args(kind: Any) -> Iterator[str]:
    """The lines under Args of a dataclass and of those it extends."""
    for base in reversed(kind.__mro__):
        if "__doc__" in vars(base) and dataclasses.is_dataclass(base):
            yield from inspect.cleandoc(base.__doc__ or "").partition("Args:\n")[2].splitlines()
