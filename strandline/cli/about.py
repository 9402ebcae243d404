"""`strandline settings` and `strandline version`."""

from __future__ import annotations

from strandline.cli import output
from strandline.cli.options import JsonOption


def settings(as_json: JsonOption = False) -> None:
    """Show every setting: its value, where it is from, what it means. Secrets are masked."""
    from dataclasses import asdict

    from strandline.setting_rows import setting_rows

    rows = setting_rows()
    if as_json:
        output.show_json([asdict(row) for row in rows])
        return
    output.table(
        ("setting", "value", "from", "meaning"), [(row.name, row.value, row.origin, row.description) for row in rows]
    )
    output.next_step(f"{rows[0].name}=… strandline …", "or a line in .env; .env.example has them all")


def version(as_json: JsonOption = False) -> None:
    """Show the version of Strandline and of Python."""
    import platform
    from importlib.metadata import version as version_of

    versions = {"strandline": version_of("strandline"), "python": platform.python_version()}
    if as_json:
        output.show_json(versions)
    else:
        output.show(f"Strandline {versions['strandline']} on Python {versions['python']}")
