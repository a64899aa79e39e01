"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..ir.plugins import Broken

F = TypeVar("F", bound=Callable[..., Any])

MODEL = click.argument("model", type=click.Path(path_type=Path))


def target_option(default: str | None = "xla", *, multiple: bool = False) -> Callable[[F], F]:
    """`--target`: a name, or name{option=value}."""
    return click.option(
        "--target",
        "-t",
        default=None if multiple else default,
        multiple=multiple,
        show_default=not multiple and default is not None,
        help="Target, with options in braces: xla, 'mlx{device=cpu}', onnx, reference.",
    )


def input_options(function: F) -> F:
    """`--input`, `--shape`, `--dim`, `--seed`: where the inputs of a run come from."""
    for option in (
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of random inputs."),
        click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dim, for random inputs."),
        click.option("--shape", "shapes", multiple=True, metavar="NAME=1x3x320x320", help="Shape of a random input."),
        click.option(
            "--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Take an input from a .npy file."
        ),
    ):
        function = option(function)
    return function


JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
POLICY = click.option(
    "--shapes",
    "policy",
    type=click.Choice(["exact", "bucket"]),
    default=None,
    help="A program for each shape (exact, the default), or for sizes rounded up to powers of two (bucket).",
)
ENTRY = click.option("--entry", default=None, help="Function to use (default: main, or the only public one).")


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`name=value` texts as a dict; the last `=` separates, since input names may hold one."""
    out: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise click.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint=option)
        out[name] = value
    return out


def shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """`name=1x3x320x320` texts as shapes; `name=scalar` is rank 0."""
    out: dict[str, tuple[int, ...]] = {}
    for name, value in pairs(texts, "--shape").items():
        try:
            out[name] = () if value == "scalar" else tuple(int(p) for p in value.split("x"))
        except ValueError:
            raise click.BadParameter(f"expected sizes like 1x3x320x320, got {value!r}", param_hint="--shape") from None
        if any(s < 0 for s in out[name]):
            raise click.BadParameter(f"sizes must not be negative, got {value!r}", param_hint="--shape")
    return out


def dims(texts: Iterable[str]) -> dict[str, list[int]]:
    """`name=1,8` texts as lists of sizes."""
    out: dict[str, list[int]] = {}
    for name, value in pairs(texts, "--dim").items():
        try:
            out[name] = [int(p) for p in value.split(",")]
        except ValueError:
            raise click.BadParameter(f"expected a size like 8 or 1,8, got {value!r}", param_hint="--dim") from None
        if any(s < 0 for s in out[name]):
            raise click.BadParameter(f"sizes must not be negative, got {value!r}", param_hint="--dim")
    return out


def one_size(texts: Iterable[str]) -> dict[str, int]:
    """`--dim` where one run needs one size each."""
    out = {}
    for name, values in dims(texts).items():
        if len(values) != 1:
            raise click.BadParameter(f"{name} must have one size here, got {values}", param_hint="--dim")
        out[name] = values[0]
    return out


def broken_rows(broken: Iterable[Broken]) -> list[dict[str, str]]:
    """Plug-ins that cannot be used, for JSON."""
    return [{**dataclasses.asdict(b.plugin), "reason": b.reason} for b in broken]


def print_broken(broken: Iterable[Broken]) -> None:
    """Plug-ins that cannot be used, as the last lines of a listing."""
    for b in broken:
        click.echo(f"{b.plugin.name}  [broken: {b.plugin}]\n    {b.reason}")


def print_json(value: Any) -> None:
    """One JSON object, keys in the order given."""
    click.echo(json.dumps(value, indent=2))
