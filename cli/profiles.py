"""`hitproof profile`: the models that ship with hitproof, and new ones from a `config.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DebugOption, Format, FormatOption, OutOption

__all__ = ["profile_app"]

profile_app = typer.Typer(help="Models as lists of cache groups.")


@profile_app.command("list")
def list_profiles(format: FormatOption = Format.text, debug: DebugOption = False) -> int:
    """List the shipped profiles."""
    from hitproof.cli.output import show, table, write_json
    from hitproof.rules.profiles import load_profile, shipped_profiles

    profiles = [load_profile(name) for name in shipped_profiles()]
    rows = [
        {
            "profile": one.name,
            "title": one.title,
            "layers": one.layers,
            "groups": len(one.groups),
            "verified_against_checkpoint": one.verified_against_checkpoint,
        }
        for one in profiles
    ]
    if format is Format.json:
        write_json({"profiles": rows})
    else:
        cells = [(*list(row.values())[:4], "yes" if row["verified_against_checkpoint"] else "no") for row in rows]
        show(table("Shipped profiles", ("profile", "title", "layers", "groups", "verified"), cells))
    return EXIT_GOOD


@profile_app.command("show")
def show_profile(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="A shipped profile's name, or a file.")],
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Show a profile, as YAML or as JSON."""
    from hitproof.cli.output import write_json, write_text
    from hitproof.rules.profiles import dump_profile, load_profile

    found = load_profile(profile)
    if format is Format.json:
        write_json(found.model_dump(mode="json"))
    else:
        write_text(dump_profile(found))
    return EXIT_GOOD


@profile_app.command("from-config")
def from_config(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The config.json of a model.")],
    name: Annotated[str | None, typer.Option("--name", help="The profile's name. (default: the model type)")] = None,
    kv_dtype: Annotated[
        str | None, typer.Option("--kv-dtype", help="Number format of the cache. (default: the model's)")
    ] = None,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Rows as the library that runs the model keeps them, not as they are served."),
    ] = False,
    out: OutOption = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Derive a profile from a model's configuration; what cannot be derived is refused, never guessed."""
    from hitproof.cli.output import write_document, write_json
    from hitproof.rules.from_config import profile_from_config_file
    from hitproof.rules.profiles import dump_profile

    made = profile_from_config_file(config, name=name, kv_dtype=kv_dtype, rows="plain" if plain else "served")
    as_json = format is Format.json
    if as_json and out is None:
        write_json(made.model_dump(mode="json"))
    else:
        write_document(dump_profile(made), out, {"profile": made.name}, as_json=as_json)
    return EXIT_GOOD
