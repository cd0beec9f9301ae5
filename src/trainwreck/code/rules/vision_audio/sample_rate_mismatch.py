"""Sound is read at another rate than the model expects.

What: a processor or feature extractor is told ``sampling_rate=16000``, and the sound comes from ``librosa.load``
without ``sr`` (which resamples to 22050) or with another ``sr``, or the rate that ``torchaudio.load`` or
``soundfile.read`` gives is never used.
Why it matters: speech is too slow or too fast for the model: the error rate rises, and nothing says so.
When it is fine: where the files are known to have the rate, or are resampled elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import only, option, source
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.sampled import other_rate
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import librosa
from transformers import AutoProcessor
processor = AutoProcessor.from_pretrained("openai/whisper-small")
wave, _ = librosa.load("a.wav")  # expect
inputs = processor(wave, sampling_rate=16000, return_tensors="pt")
""",
    """
import librosa
RATE = 16_000
def features(path, extractor):
    audio, sr = librosa.load(path, sr=44100)  # expect
    return extractor(audio, sampling_rate=RATE)
""",
    """
import torchaudio
def load(path, processor):
    speech, rate = torchaudio.load(path)  # expect
    return processor(speech.squeeze().numpy(), sampling_rate=16000).input_values
""",
)
GOOD = """
import librosa, torchaudio
def a(path, processor):
    wave, _ = librosa.load(path, sr=16000)
    return processor(wave, sampling_rate=16000)
def b(path, processor):
    wave, rate = torchaudio.load(path)
    return processor(wave, sampling_rate=rate)
def c(path, processor):
    wave, rate = torchaudio.load(path)
    assert rate == 16000
    return processor(wave, sampling_rate=16000)
def d(path):
    wave, _ = librosa.load(path)
    return wave
def e(path, processor, rate):
    wave, _ = librosa.load(path, sr=rate)
    return processor(wave, sampling_rate=16000)
"""
LIBROSA_DEFAULT = 22050
RESAMPLES = pattern(r"[Rr]esample|resampy|cast_column|set_format|sox|ffmpeg")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), other_rate)


def _written(project: Project) -> Iterator[Evidence]:
    if RESAMPLES.search(source(project)):
        return
    for walked in project.walked.values():
        for node, scope in walked.calls:
            call = Call(node, scope)
            said = call.argument("sampling_rate")
            given = node.args[0] if node.args else None
            if project.called(call).startswith("librosa.feature."):
                said, given = call.argument("sr"), call.argument("y")
            wanted = only(project, (said, scope)) if said is not None else None
            if not isinstance(wanted, int) or given is None:
                continue
            for step in back(project, given, scope):
                if isinstance(step.node, ast.Call):
                    text = _other_rate(project, Call(step.node, step.scope), wanted)
                    if text is not None:
                        yield sighting(__name__, Call(step.node, step.scope), text, proof=[call])
                        break


def _other_rate(project: Project, load: Call, wanted: int) -> str | None:
    full = project.called(load)
    if full == "librosa.load":
        rate = only(project, option(project, load, "sr", 1))
        if rate is None and option(project, load, "sr", 1) is None:
            rate = LIBROSA_DEFAULT
        if isinstance(rate, int) and rate != wanted:
            return f"the sound has {rate} samples a second here, and what takes it is told {wanted}"
    as_filed = full == "librosa.load" and isinstance(load.argument("sr"), ast.Constant)
    if full in ("torchaudio.load", "soundfile.read") or (as_filed and written(load.argument("sr")) == "None"):
        name = _rate_name(project, load)
        if name is not None and _unread(project, load, name):
            return (
                f"the sound has the rate of its file here, which nothing looks at, and what takes it is told {wanted}"
            )
    return None


def _rate_name(project: Project, load: Call) -> str | None:
    """The name that the rate is bound to."""
    statement = project.statement(load.node, load.scope)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is load.node else None
    if isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[1], ast.Name):
        return target.elts[1].id
    return None


def _unread(project: Project, load: Call, name: str) -> bool:
    return not any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(load.scope.node)
    )
