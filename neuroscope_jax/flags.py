"""Flags as a person types them: checked against a command's signature before Fire sees them, converted by annotation.

Fire alone would guess types (`1e5` becomes a number, `{a}` a set), turn a flag without value into True and take a
mistyped flag for something else; so every flag reaches it as one `--name=value`, and values stay text until the
command's own annotations convert them.
"""

import difflib
import inspect
import math
import re
import shlex
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar

import fire
from fire import docstrings

from neuroscope_jax.errors import UserError

Command = Callable[..., Any]
Commands = Mapping[str, "Command | Commands"]
F = TypeVar("F", bound=Command)


class UsageError(UserError):
    """A mistake on the command line. Exit status 2."""


def command(**shown_defaults: object) -> Callable[[F], F]:
    """Mark a function as a command: its values are converted by its annotations.

    `shown_defaults` are what the help shows where the signature's own default is None.
    """

    def decorate(function: F) -> F:
        converters = {name: _converter(name, kind) for name, kind in _kinds(function).items()}
        function.shown_defaults = shown_defaults  # type: ignore[attr-defined]
        fire.decorators.SetParseFn(str)(function)  # of the words that `*parameter` takes
        return typing.cast(F, fire.decorators.SetParseFns(**converters)(function))

    return decorate


def find(commands: Commands, argv: list[str]) -> tuple[list[str], Command | Commands, list[str]]:
    """Walk into `commands` by leading words: the words walked, what they lead to, and the rest.

    Raises UsageError for a word that leads nowhere.
    """
    words: list[str] = []
    node: Command | Commands = commands
    while isinstance(node, Mapping) and len(words) < len(argv) and not argv[len(words)].startswith("-"):
        word = argv[len(words)]
        if word not in node:
            place = " ".join(["a command", *(["of", *words] if words else [])])
            raise UsageError(f"{word!r} is not {place}; {_nearest(word, list(node), 'there are: ')}")
        words.append(word)
        node = node[word]
    return words, node, argv[len(words) :]


def wants_help(argv: list[str]) -> bool:
    """True where -h or --help is anywhere among the arguments."""
    return "-h" in argv or "--help" in argv


def checked(function: Command, argv: list[str]) -> list[str]:
    """The arguments as `--name=value`, one a parameter, before them the words that `*parameter` takes.

    Raises UsageError naming the flag and the nearest one.
    """
    parameters = inspect.signature(function).parameters
    free = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    values: dict[str, str] = {}
    words: list[str] = []
    for name, value in _pairs(argv, function):
        name = name or next((p for p in free if p not in values), "")
        if not name and many:
            words.append(value)
            continue
        if not name:
            raise UsageError(f"unexpected argument {value!r}; options are given as --name value")
        if name in values:
            raise UsageError(f"{flag(name)} is given twice")
        values[name] = value
    for parameter in parameters.values():
        given = words if parameter.kind is parameter.VAR_POSITIONAL else parameter.name in values
        if parameter.default is parameter.empty and not given:
            raise UsageError(_missing(function, parameter))
    return [*words, *(f"--{name}={value}" for name, value in values.items())]


def typed(given: Mapping[str, object]) -> str:
    """Flags and values as a shell takes them, but for those that are None."""
    return " ".join(f"{flag(name)} {shlex.quote(str(value))}" for name, value in given.items() if value is not None)


def _missing(function: Command, parameter: inspect.Parameter) -> str:
    """With the example that the parameter's help gives as "as in EXAMPLE", if it does."""
    if parameter.kind is not parameter.KEYWORD_ONLY:
        return f"{parameter.name.upper()} is missing; see --help"
    typed = flag(parameter.name)
    described = {a.name: a.description for a in docstrings.parse(inspect.getdoc(function)).args or []}
    example = re.search(r"\bas in (\S+)", described.get(parameter.name) or "")
    return f"{typed} is missing, as in {typed} {example[1]}" if example else f"{typed} is missing; see --help"


def flag(name: str) -> str:
    """The flag of a parameter, as typed: sae_path to --sae-path."""
    return "--" + name.replace("_", "-")


def _pairs(argv: list[str], function: Command) -> Iterator[tuple[str, str]]:
    """(parameter, value) of each flag; the parameter is empty for a bare word."""
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    switches = [name for name, kind in _kinds(function).items() if kind is bool]
    words = iter(argv)
    for word in words:
        if not word.startswith("-") or word == "-":
            yield "", word
            continue
        typed, has_value, value = word.partition("=")
        name = typed[2:].replace("-", "_") if typed.startswith("--") else ""
        if name not in known:
            raise UsageError(f"unknown flag {typed}; {_nearest(typed, [flag(k) for k in known], 'flags: ')}")
        if not has_value and name in switches:
            value = "true"
        elif not has_value:
            value = next(words, "--")
            if value.startswith("--"):
                raise UsageError(f"{typed} needs a value, as in {typed}=VALUE")
        yield name, value


def _nearest(typed: str, known: list[str], otherwise: str) -> str:
    near = difflib.get_close_matches(typed, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else otherwise + ", ".join(known)


def _kinds(function: Command) -> dict[str, Any]:
    """The annotation of each parameter, without `| None`."""
    kinds = {k: v for k, v in typing.get_type_hints(function).items() if k != "return"}
    for name, kind in kinds.items():
        if type(None) in typing.get_args(kind):
            (kinds[name],) = (k for k in typing.get_args(kind) if k is not type(None))
    return kinds


def _converter(name: str, kind: Any) -> Callable[[str], object]:
    if kind is int:
        return lambda text: _matching(name, text, r"[+-]?\d+", int, "a whole number")
    if kind is float:
        return lambda text: _matching(name, text, r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", float, "a number")
    if kind is bool:
        return lambda text: _matching(name, text, "true|false", lambda text: text == "true", "true or false")
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        return lambda text: _matching(name, text, "|".join(choices), str, "one of " + ", ".join(choices))
    return lambda text: _matching(name, text, r".+", str, "a value that is not empty")


def _matching(name: str, text: str, pattern: str, convert: Callable[[str], object], expected: str) -> object:
    if not re.fullmatch(pattern, text, re.ASCII | re.DOTALL):
        raise UsageError(f"{flag(name)} {text!r}: expected {expected}")
    try:
        value = convert(text)
    except ValueError:  # a number of more digits than Python takes
        value = math.inf
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{flag(name)}: expected {expected} of reasonable size")
    return value


def help_text(program: str, words: list[str], node: "Command | Commands") -> str:
    """Plain help of a command or of a group of them."""
    name = " ".join([program, *words])
    if isinstance(node, Mapping):
        leaves = list(_leaves(node))
        width = max(len(path) for path, _ in leaves) + 2
        lines = [f"  {path:<{width}}{_summary(leaf)}" for path, leaf in leaves]
        return "\n".join([f"usage: {name} COMMAND …", "", *lines, "", f"{name} COMMAND --help says more."])
    info = docstrings.parse(inspect.getdoc(node))
    described = {a.name: " ".join(a.description.split()) for a in info.args or []}
    parameters = inspect.signature(node).parameters.values()
    places = "".join(f" {_place(p)}" for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL))
    lines = [_flag_line(node, p, described.get(p.name, "")) for p in parameters]
    body = [info.summary or "", *(["", info.description] if info.description else [])]
    return "\n".join([f"usage: {name}{places} [--flag value …]", "", *body, "", *lines]).rstrip()


def _leaves(node: Commands, prefix: str = "") -> Iterator[tuple[str, Command]]:
    for word, child in node.items():
        if isinstance(child, Mapping):
            yield from _leaves(child, f"{prefix}{word} ")
        else:
            yield f"{prefix}{word}", child


def _summary(function: Command) -> str:
    return docstrings.parse(inspect.getdoc(function)).summary or ""


def _place(parameter: inspect.Parameter) -> str:
    return parameter.name.upper() + (" …" if parameter.kind is parameter.VAR_POSITIONAL else "")


def _flag_line(function: Command, parameter: inspect.Parameter, description: str) -> str:
    kind = _kinds(function)[parameter.name]
    choices = "|".join(typing.get_args(kind))
    value = f" {choices}" if choices else {int: " N", float: " X", bool: ""}.get(kind, " TEXT")
    default = parameter.default
    if default is None:
        default = getattr(function, "shown_defaults", {}).get(parameter.name)
    shown = "" if default in (None, False, parameter.empty) else f" [{default}]"
    if parameter.kind is not parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
        return f"  {_place(parameter)}\n        {description}"
    return f"  {flag(parameter.name)}{value}\n        {description}{shown}"
