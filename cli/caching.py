"""`irc cache`: what is in the disk cache of compiled programs, and emptying it."""

from __future__ import annotations

import time
from pathlib import Path

import click

from . import options

FOLDER = click.option(
    "--dir", "folder", type=click.Path(path_type=Path), default=None, help="The cache's folder (default: see path)."
)


@click.group("cache")
def command() -> None:
    """The disk cache of compiled programs, which `irc run --cache` and `irc.compile(cache=True)` fill.

    It is in $IRC_CACHE_DIR, or else where the system has its caches.
    """


@command.command("path")
@FOLDER
@options.JSON
def path(folder: Path | None, as_json: bool) -> None:
    """Print the folder, whether it exists or not."""
    from ..runtime.disk_cache import default_path

    where = folder or default_path()
    if as_json:
        options.print_json({"path": str(where), "exists": where.is_dir()})
    else:
        click.echo(str(where))


@command.command("list")
@FOLDER
@options.JSON
def listing(folder: Path | None, as_json: bool) -> None:
    """List the programs, the one used last first."""
    from ..runtime.disk_cache import DiskCache

    entries = sorted(DiskCache(folder).entries(), key=lambda e: (-e.used, e.key))
    if as_json:
        rows = [{"key": e.key, "bytes": e.nbytes, "used": e.used, "about": dict(e.about)} for e in entries]
        options.print_json({"programs": rows})
        return
    for e in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used))
        about = ", ".join(f"{k} {v}" for k, v in e.about.items())
        click.echo(f"{e.key[:12]}  {size_text(e.nbytes):>9}  {used}  {about}")
    if not entries:
        click.echo("the cache is empty")


@command.command("size")
@FOLDER
@options.JSON
def size(folder: Path | None, as_json: bool) -> None:
    """How many programs there are and what they take."""
    from ..runtime.disk_cache import DiskCache

    cache = DiskCache(folder)
    sizes = [e.nbytes for e in cache.entries()]
    if as_json:
        options.print_json({"programs": len(sizes), "bytes": sum(sizes), "limit": cache.limit})
    else:
        click.echo(f"{_programs(len(sizes))}, {size_text(sum(sizes))} of at most {size_text(cache.limit)}")


@command.command("clear")
@FOLDER
@options.JSON
def clear(folder: Path | None, as_json: bool) -> None:
    """Remove all programs without asking.  A folder that is no cache of irc is left alone."""
    from ..runtime.disk_cache import DiskCache

    cache = DiskCache(folder)
    count, nbytes = cache.clear()
    if as_json:
        options.print_json({"removed": count, "bytes": nbytes})
    else:
        click.echo(f"removed {_programs(count)}, {size_text(nbytes)}")


def _programs(count: int) -> str:
    return f"{count} program{'' if count == 1 else 's'}"


def size_text(nbytes: int) -> str:
    """Bytes as people write them: 812 B, 3.4 MB."""
    if nbytes < 1000:
        return f"{nbytes} B"
    size, unit = float(nbytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.95:
            break
        size, unit = size / 1000, larger
    return f"{size:.1f} {unit}"
