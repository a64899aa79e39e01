"""`irc`: the group of commands, and what each kind of failure exits with.

0 fine, 1 the model or the input is at fault, 2 usage, 3 a defect of irc.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click

from ..ir.errors import IrcError, did_you_mean
from ..ir.plugins import PluginWarning

COMMANDS = {
    "import": "importing",
    "compile": "compiling",
    "run": "running",
    "verify": "verifying",
    "bench": "benching",
    "check": "checking",
    "opt": "optimizing",
    "print": "printing",
    "view": "viewing",
    "diff": "diffing",
    "bisect": "bisecting",
    "reduce": "reducing",
    "explain": "explain",
    "targets": "targets",
    "passes": "passes",
    "ops": "ops",
    "cache": "caching",
}
"""Command to the module that holds it; a module is imported when its command is looked up."""


class Commands(click.Group):
    """Looks commands up by name, lazily, and suggests a near one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            raise click.UsageError(f"no command is called {name!r}{did_you_mean(name, COMMANDS)}", ctx)
        command: click.Command = importlib.import_module(f".{COMMANDS[name]}", __package__).command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="irc-compiler", prog_name="irc")
def cli() -> None:
    """irc compiles trained models: ONNX in, one typed graph IR, XLA and MLX out."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script; exits with the codes named at the top of this file."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _plugin_warnings():
            result = cli.main(words, prog_name="irc", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("aborted", err=True)
        return 1
    except IrcError as error:
        click.echo(_error_text(error), err=True)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        click.echo(f"error: {error.filename or 'file'}: {error.strerror or error}", err=True)
        return 1
    except Exception as error:
        click.echo(_defect(words, error), err=True)
        return 3
    return result if isinstance(result, int) else 0


@contextlib.contextmanager
def _plugin_warnings() -> Iterator[None]:
    """Say on stderr which plug-ins are left out; other warnings go their way."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PluginWarning)
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, PluginWarning):
                click.echo(f"warning: {message}", err=True)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _error_text(error: IrcError) -> str:
    text = str(error)
    return text if "error[" in text or "error:" in text else f"error: {text}"


def _defect(words: list[str], error: Exception) -> str:
    """Save what is needed to repeat the failure; the text that tells where."""
    with tempfile.NamedTemporaryFile("w", prefix="irc-defect-", suffix=".txt", delete=False) as file:
        file.write(f"irc {' '.join(words)}\n\n")
        file.write("".join(traceback.format_exception(error)))
    name = type(error).__name__
    what = f"error: a defect of irc: {name}: {error}"
    return f"{what}\nPlease report it with {Path(file.name)}, which holds the command and the trace."


if __name__ == "__main__":
    main()
