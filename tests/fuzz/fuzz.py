"""Coverage-guided fuzzing by hand: pip install atheris; python tests/fuzz/fuzz.py read CORPUS [-max_total_time=600]

`read`: any bytes give a Score or a MidiError, the same one twice. `decode`: any ids give a Score, whose encoding
decodes to itself. CORPUS is a folder of inputs to begin with and to add to; for `read`, MIDI files.
"""

import sys

import atheris

with atheris.instrument_imports(include=["musictx", "mido"]):
    import numpy as np

    from musictx.errors import MidiError
    from musictx.music.read import read_tracks
    from musictx.music.score import Score
    from musictx.tokenizers import build_tokenizer

TOKENIZERS = [build_tokenizer(name) for name in ("performance", "chorale")]


def read(data: bytes) -> None:
    outcomes: list[Score | str] = []
    for _ in range(2):
        try:
            outcomes.append(read_tracks(bytes(bytearray(data)), "fuzz").merge(drums=True))
        except MidiError as error:
            outcomes.append(error.reason)
    assert outcomes[0] == outcomes[1], outcomes
    if not isinstance(outcomes[0], str):
        score = outcomes[0]
        assert (score.offset_s >= score.onset_s).all()
        assert np.isfinite(score.offset_s).all()


def decode(data: bytes) -> None:
    tokenizer = TOKENIZERS[len(data) % 2]
    ids = np.frombuffer(data[: len(data) // 2 * 2], np.uint16) % tokenizer.vocab.size
    score = tokenizer.decode(ids)
    if tokenizer.name == "performance":
        again = tokenizer.decode(tokenizer.encode(score))
        assert again == score, (ids.tolist(), again, score)
    tokenizer.seconds(ids)
    tokenizer.pitch_range(ids)


if __name__ == "__main__":
    target = {"read": read, "decode": decode}[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
