"""Voices around a melody at the page."""

from dataclasses import replace

from musictx.errors import UserError
from musictx.generate.accompanying import Accompanied, accompany_melody, ready
from musictx.generate.melodies import nearest_within, take_melody
from musictx.generate.open_player import Accompanying
from musictx.generate.requests import Accompany
from musictx.music.grid import VOICES
from musictx.music.melody import together, top_line
from musictx.tokenizers.rules import VOICE_RANGES
from musictx.web.advice import possible
from musictx.web.draw import Turn, check_most, led, went_by
from musictx.web.session import PageMusic

HOW_CLOSE_MELODY = "how close to the melody"  # the name of its slider


def voices_request(
    chords: str, temperature: float, seed_guidance: float, variations: int, key: str, voices: str
) -> Accompany:
    """The request of a person who presses Accompany. Raises ConfigError."""
    sampling = replace(Accompany().sampling, temperature=temperature, seed_guidance=seed_guidance)
    return Accompany(sampling, voices=voices, control=led(chords, key), variations=variations)


def harmonise(
    music: PageMusic, request: Accompany, harmoniser: Accompanying, turn: Turn
) -> tuple[tuple[Accompanied, ...], str]:
    """The accompaniments, and remarks on the melody. Raises UserError for an impossible one, and where the time is
    over: half an accompaniment is none."""
    check_most("variations", request.variations, turn.limits.variations)
    score, meter, _, project = music.reading(in_beats=True)
    melody = top_line(score) if len(together(score)) else score
    sung = VOICE_RANGES[VOICES.index(request.voices[0])]
    transpose = nearest_within(melody.pitch, *sung) or 0
    request = replace(request, transpose=transpose, random_seed=turn.random_seed)
    request = ready(request, harmoniser.tokenizer, harmoniser.header, "the model here")
    line = take_melody(score, "The melody", request, harmoniser.tokenizer, meter, music.name)
    remarks = [*line.remarks]
    if transpose:
        remarks.append(f"The model hears it {abs(transpose)} semitones {'higher' if transpose > 0 else 'lower'}")
    line = line._replace(project=project)
    whole_s = line.score.duration_s

    def watch(done: int, of: int) -> None:
        if turn.over:
            raise UserError(f"{went_by(turn.limits)} before the voices were whole", "give a shorter melody")
        turn.report(done / of * whole_s, whole_s)

    made = accompany_melody(line, harmoniser.player, harmoniser.tokenizer, request, watch)
    return tuple(made), " ".join(f"{possible(each)}." for each in remarks)
