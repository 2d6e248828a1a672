"""How a command fails: errors told like a compiler's or as JSON, and the exit code of each."""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from dataclasses import dataclass

from hitproof.cli.output import clean, plain_data, write_line
from hitproof.spec.errors import HitproofError, UsageError

__all__ = ["Asked", "EXIT_BAD_INPUT", "EXIT_FAILED", "EXIT_GOOD", "EXIT_INTERNAL", "EXIT_UNKNOWN", "report_error"]

EXIT_GOOD = 0
EXIT_FAILED = 1
EXIT_UNKNOWN = 2
EXIT_BAD_INPUT = 3
EXIT_INTERNAL = 4
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Asked:
    """What stands on the command line, as far as it says how errors are to be told.

    Args:
        command: The command's name; empty where none is named.
        format: How the result was to be told.
        reports: Formats and files that were to be written besides, as they stand there.
    """

    command: str = ""
    format: str = "text"
    reports: tuple[str, ...] = ()
    debug: bool = False


def report_error(error: BaseException, asked: Asked) -> int:
    """Tell what went wrong and return the exit code.

    Bad input and bad usage are one compiler-like message. What nobody foresaw is one line, and with `debug`
    the traceback too. As JSON the error goes to stdout, where the result would have been; as a format for pipelines
    too, and what people read goes to stderr beside it. Reports to files tell it as well.
    """
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        write_line(sys.stderr, "hitproof: interrupted")
        return EXIT_INTERRUPTED
    known = _as_hitproof_error(error)
    if asked.debug and known is None:
        write_line(sys.stderr, "".join(traceback.format_exception(error)).rstrip("\n"))
    if known is not None:
        data, text, code = known.as_dict(), _compiler_like(known), EXIT_BAD_INPUT
    else:
        data, text, code = _internal(error), _internal_line(error, debug=asked.debug), EXIT_INTERNAL
    if asked.format == "json":
        write_line(sys.stdout, json.dumps({"error": plain_data(data)}, indent=2))
    else:
        write_line(sys.stderr, clean(text))
    if asked.reports or asked.format not in ("text", "json"):
        _tell_pipeline(data, asked)
    return code


def _tell_pipeline(data: dict[str, object], asked: Asked) -> None:
    """The error in the formats of the answer that does not come; one that cannot be written is left out."""
    from hitproof.cli.formats import failed, wishes, write_report

    document = failed(data, asked.command)
    with contextlib.suppress(HitproofError):
        write_report(document, asked.format)
    for wish in asked.reports:
        with contextlib.suppress(HitproofError):
            write_report(document, "text", wishes([wish]))


def _as_hitproof_error(error: BaseException) -> HitproofError | None:
    if isinstance(error, HitproofError):
        return error
    # Typer's own usage errors: their class moved between versions, their method did not.
    tell = getattr(error, "format_message", None)
    if tell is None:
        return None
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "hitproof")
    return UsageError(str(tell()) or "what is asked for?", hint=f"see `{command} --help`")


def _compiler_like(error: HitproofError) -> str:
    place = "hitproof" if error.where.file == "<memory>" and not error.where.line else str(error.where)
    lines = [f"{place}: {error.message}"]
    for label in ("rule", "got", "expected", "hint"):
        value = getattr(error, label)
        if value is not None:
            lines.append(f"  {label + ':':<10}{value}")
    return "\n".join(lines)


def _internal(error: BaseException) -> dict[str, object]:
    return {"code": "internal", "message": f"{type(error).__name__}: {error}"}


def _internal_line(error: BaseException, *, debug: bool) -> str:
    first = (str(error).splitlines() or [""])[0][:300]
    advice = "" if debug else "; --debug shows where"
    return f"hitproof: internal error: {type(error).__name__}: {first}{advice}"
