"""How `check` is told what to say: settings, selection, suppression, baseline, and the fixes that it applies."""
