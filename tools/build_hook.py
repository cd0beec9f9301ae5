"""Build hook: compile the catalogue's TOML files to the one JSON that an installed trainwreck loads."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``trainwreck/catalogue/catalogue.json`` into the wheel. A checkout installed as editable reads the TOML."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self.target_name != "wheel":
            return
        root = Path(self.root) / "src/trainwreck/catalogue"
        spec = importlib.util.spec_from_file_location("catalogue_compile", root / "compile.py")
        assert spec is not None
        assert spec.loader is not None
        compiler = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(compiler)
        target = Path(tempfile.mkdtemp()) / "catalogue.json"
        compiler.write(root, target)
        build_data["force_include"][str(target)] = "trainwreck/catalogue/catalogue.json"
