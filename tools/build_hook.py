"""Build hook: what an installed trainwreck loads as one file each: the catalogue, and the words that rules need."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``catalogue/catalogue.tsv`` and ``code/rules.json`` into the wheel. An editable checkout does without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self.target_name != "wheel":
            return
        root = Path(self.root) / "src/trainwreck/catalogue"
        spec = importlib.util.spec_from_file_location("catalogue_compile", root / "compile.py")
        assert spec is not None
        assert spec.loader is not None
        compiler = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(compiler)
        target = Path(tempfile.mkdtemp()) / "catalogue.tsv"
        compiler.write(root, target)
        build_data["force_include"][str(target)] = "trainwreck/catalogue/catalogue.tsv"
        sys.path.insert(0, str(Path(self.root) / "src"))
        from trainwreck.code.triggers import index

        words = target.with_name("rules.json")
        words.write_text(json.dumps(index(Path(self.root) / "src/trainwreck/code")), encoding="utf-8")
        build_data["force_include"][str(words)] = "trainwreck/code/rules.json"
