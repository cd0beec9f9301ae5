"""What turns waves into features: is it set alike where a network is trained and where it is asked?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import evaluated, feeding
from trainwreck.code.rehearsal.questions.places import once, parting
from trainwreck.code.rehearsal.questions.settings import settings_differ
from trainwreck.code.rehearsal.questions.splits import sides
from trainwreck.code.scopes import FunctionNode

SETTINGS: dict[str, tuple[tuple[str, int | None], ...]] = {
    "torch.stft": (("n_fft", 1), ("hop_length", 2), ("win_length", 3), ("center", 5)),
    "librosa.stft": (("n_fft", None), ("hop_length", None), ("win_length", None)),
    "librosa.feature.melspectrogram": tuple(
        (name, None) for name in "sr n_fft hop_length win_length n_mels fmin fmax power htk norm".split()
    ),
    "librosa.feature.mfcc": tuple((name, None) for name in "sr n_mfcc n_fft hop_length n_mels fmin fmax".split()),
    "scipy.signal.stft": (("fs", 1), ("window", 2), ("nperseg", 3), ("noverlap", 4)),
    "scipy.signal.spectrogram": (("fs", 1), ("window", 2), ("nperseg", 3), ("noverlap", 4)),
    "torchaudio.transforms.Spectrogram": (("n_fft", 0), ("win_length", 1), ("hop_length", 2), ("power", None)),
    "torchaudio.transforms.MelSpectrogram": (
        ("sample_rate", 0), ("n_fft", 1), ("win_length", 2), ("hop_length", 3), ("f_min", 4), ("f_max", 5),
        ("n_mels", None), ("power", None), ("norm", None), ("mel_scale", None),
    ),
    "torchaudio.transforms.MFCC": (("sample_rate", 0), ("n_mfcc", 1), ("log_mels", None)),
}  # fmt: skip
"""Transforms of waves with the settings that decide what their numbers mean: name and position."""
SPECTRA = frozenset(["stft", "rfft", "fft", "rfft2", "spectrogram", "melspectrogram", "mfcc", "periodogram", "cqt"])
MAX_NEAR = 3000
NEAR_SPECTRUM = 300


def other_features(run: Rehearsing) -> Iterator[Answer]:
    """A network that was trained on features is given such with other settings."""
    both = sides(run)
    learned = [(n, s) for n in both.train_nodes.values() if (s := settings_of(n)) is not None]
    heard = [n for n in both.train_nodes.values() if hears(n)]
    if not heard:
        return
    used = feeding(run)
    for event, given in evaluated(run):
        if not is_module(event.subject) or not any(id(p) in used for p in run.parameters(event.subject)[0]):
            continue
        known = near(given, MAX_NEAR)
        for node in known:
            asked = settings_of(node) if id(node) not in both.train_nodes else None
            if asked is None:
                continue
            alike = [(n, s) for n, s in learned if s[0] == asked[0]]
            changed = [_changed(s[1], asked[1]) for _, s in alike]
            if not changed or not all(changed):
                continue
            first, names = alike[0][0], ", ".join(sorted(changed[0]))
            text = f"these features are made with another {names} than those that the network is trained on"
            place = _place(run, node, first, [asked[1][n] for n in sorted(changed[0])])
            if place is not None:
                yield Answer(place, text, tuple(p for p in (first.place, event.place) if p is not None))
                return
        if (found := _other_constants(run, known, both.train_nodes)) is not None:
            yield found
            return


def hears(node: Node) -> bool:
    return node.op in SPECTRA or settings_of(node) is not None


def _other_constants(run: Rehearsing, known: list[Node], learned: dict[int, Node]) -> Answer | None:
    """What is made of a spectrogram by the line that makes it for the training, with another constant."""
    taught: dict[int, list[Node]] = {}
    for node in learned.values():
        if node.place is not None:
            taught.setdefault(id(node.place[0]), []).append(node)
    fronts = {id(n.place[1]) for n in known if n.place is not None and hears(n)}
    for node in known:
        mine = taught.get(id(node.place[0]), []) if node.place is not None and id(node) not in learned else []
        mine = [n for n in mine if n.op == node.op]
        if not mine or node.place is None:
            continue
        if id(node.place[1]) not in fronts and not any(hears(n) for n in near(node, NEAR_SPECTRUM)):
            continue
        apart = [next(settings_differ(node, other), None) for other in mine]
        if not all(apart) or not apart[0]:
            continue
        asked, _, here, there = apart[0]
        place = parting(node, mine[0]) if isinstance(asked, int | float) else None
        if place is None or (place[0] is node.place[0] if node.place else True):
            place = parting(here, there) or node.place
        written = once(run, asked) if isinstance(asked, int | float) else None
        if written is not None and not _default(written):
            place = written
        if place is not None:
            text = "these features are made with another constant than those that the network is trained on"
            return Answer(place, text, tuple(p for p in (node.place, mine[0].place) if p is not None))
    return None


def _default(place: Place) -> bool:
    """True for the default of a parameter: the call that leaves it out decides."""
    function = place[1].node
    args = function.args if isinstance(function, FunctionNode) else None
    return args is not None and any(place[0] is d for d in (*args.defaults, *args.kw_defaults))


def settings_of(node: Node) -> tuple[str, dict[str, Value]] | None:
    """(name of the transform, its settings)."""
    owner = node.owner if node.op == "call" or node.op == "forward" else None
    if isinstance(owner, Obj) and owner.kind in SETTINGS:
        return owner.kind, {name: owner.get(name, at) for name, at in SETTINGS[owner.kind]}
    if node.full in SETTINGS:
        return node.full, {name: node.get(name, at) for name, at in SETTINGS[node.full]}
    if node.op == "stft" and not node.full:
        return "torch.stft", {name: node.get(name, at) for name, at in SETTINGS["torch.stft"]}
    return None


def _changed(one: dict[str, Value], other: dict[str, Value]) -> set[str]:
    """The settings that surely differ: both written, and not the same."""
    found = {
        name
        for name, value in one.items()
        if isinstance(value, int | float | str) and isinstance(other[name], int | float | str) and value != other[name]
    }
    return set() if found & RATES and _in_proportion(found, one, other) else found


RATES = frozenset(["sample_rate", "sr", "fs"])
SPANS = frozenset(["n_fft", "hop_length", "win_length", "nperseg", "noverlap"])


def _in_proportion(changed: set[str], one: dict[str, Value], other: dict[str, Value]) -> bool:
    """True for windows of the same duration at another rate."""
    ratios = []
    for name in changed:
        mine, its = one[name], other[name]
        if name in RATES | SPANS and isinstance(mine, int | float) and isinstance(its, int | float) and its:
            ratios.append(mine / its)
    spans = {n for n in SPANS & one.keys() if isinstance(one[n], int)}
    return changed <= RATES | SPANS and spans <= changed and max(ratios) <= min(ratios) * ROUNDED


ROUNDED = 1.05
"""Windows are whole numbers: their durations differ by the rounding."""


def _place(run: Rehearsing, node: Node, first: Node, values: list[Value]) -> Place | None:
    """Where one of the values is written, the transform is made, or the way to it leaves that of the training."""
    for value in values:
        if isinstance(value, int | float) and (found := once(run, value)) is not None:
            return found
    if isinstance(node.owner, Obj) and node.owner.place is not None and node.owner is not first.owner:
        return node.owner.place
    return parting(node, first) or node.place
