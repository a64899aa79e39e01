"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..ir.plugins import Broken

if TYPE_CHECKING:
    from ..runtime.executable import Executable

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


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What the options of `input_options` say; `make` gives the arrays."""

    texts: tuple[str, ...]
    archive: Path | None
    shape_texts: tuple[str, ...]
    dim_texts: tuple[str, ...]
    seed: int

    def with_sizes(self, sizes: Mapping[str, int]) -> Inputs:
        """The same, with sizes of more dims; one that --dim gives already is an error."""
        for name in one_size(self.dim_texts):
            if name in sizes:
                raise click.UsageError(f"{name} has sizes by --dim and by --sizes; give one of them")
        return dataclasses.replace(self, dim_texts=(*self.dim_texts, *(f"{n}={v}" for n, v in sizes.items())))

    def make(self, executable: Executable) -> list[Any]:
        """One array for each input of an executable, from files or random; see `runtime.feeds.make_inputs`."""
        from ..runtime.feeds import make_inputs, read_archive, read_array

        arrays = {} if self.archive is None else read_archive(self.archive)
        arrays.update({n: read_array(Path(p)) for n, p in pairs(self.texts, "--input").items()})
        return make_inputs(executable, arrays, shapes(self.shape_texts), one_size(self.dim_texts), self.seed)


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--input`, `--inputs`, `--shape`, `--dim`, `--seed`: where the inputs of a run come from, as `inputs: Inputs`."""

    @functools.wraps(function)
    def command(
        input_texts: tuple[str, ...],
        archive: Path | None,
        shapes: tuple[str, ...],
        dims: tuple[str, ...],
        seed: int,
        **others: Any,
    ) -> Any:
        return function(inputs=Inputs(input_texts, archive, shapes, dims, seed), **others)

    wrapped: Callable[..., Any] = command
    for option in (
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of random inputs."),
        click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dim, for random inputs."),
        click.option("--shape", "shapes", multiple=True, metavar="NAME=1x3x320x320", help="Shape of a random input."),
        click.option(
            "--inputs",
            "archive",
            type=click.Path(path_type=Path),
            metavar="FILE.npz",
            help="Take inputs from an .npz archive, by name; --input comes before it.",
        ),
        click.option(
            "--input", "input_texts", multiple=True, metavar="NAME=FILE.npy", help="Take an input from a .npy file."
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


def tolerance_options(function: F) -> F:
    """`--rtol`, `--atol`: how far an output may be from what it should be."""
    for option in (
        click.option("--atol", default=1e-6, show_default=True, help="Error allowed besides."),
        click.option(
            "--rtol",
            default=1e-4,
            show_default=True,
            help="Error allowed, relative to the output's greatest magnitude.",
        ),
    ):
        function = option(function)
    return function


AGAINST = click.option(
    "--against",
    type=click.Path(path_type=Path),
    default=None,
    help="Judge by this .onnx (ONNX Runtime) or .ir (reference).",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
POLICY = click.option(
    "--shapes",
    "policy",
    type=click.Choice(["exact", "bucket"]),
    default=None,
    help="A program for each shape (exact, the default), or for sizes rounded up to powers of two (bucket).",
)
CACHE = click.option("--cache", is_flag=True, help="Keep compiled programs in the disk cache; see `irc cache`.")
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


def dims(texts: Iterable[str], option: str = "--dim") -> dict[str, list[int]]:
    """`name=1,8` texts as lists of sizes."""
    out: dict[str, list[int]] = {}
    for name, value in pairs(texts, option).items():
        try:
            out[name] = [int(p) for p in value.split(",")]
        except ValueError:
            raise click.BadParameter(f"expected a size like 8 or 1,8, got {value!r}", param_hint=option) from None
        if any(s < 0 for s in out[name]):
            raise click.BadParameter(f"sizes must not be negative, got {value!r}", param_hint=option)
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
