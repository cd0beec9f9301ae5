"""Shell completion: the script that click makes for a shell. Nothing is installed; the user decides where it goes."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


def script(command: click.Command, shell: str) -> str:
    """The completion script of ``command`` for ``shell``, with how to switch it on as a comment."""
    kind = get_completion_class(shell)
    assert kind is not None
    name = "trainwreck"
    maker = kind(command, {}, name, "_TRAINWRECK_COMPLETE")
    how = {
        "bash": f'# eval "$({name} completion bash)" in ~/.bashrc',
        "zsh": f'# eval "$({name} completion zsh)" in ~/.zshrc, after compinit',
        "fish": f"# {name} completion fish > ~/.config/fish/completions/{name}.fish",
    }
    # click asks bash for its version to refuse old ones; the template alone needs no shell.
    return f"{how[shell]}\n{maker.source_template % maker.source_vars()}"
