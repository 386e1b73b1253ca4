"""What `musictx accompany` can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig
from musictx.sampling.settings import Sampling, Settings
from musictx.setting import setting
from musictx.tokenizers.rules import Rules

ASKED = Settings()


@dataclass
class AccompanyConfig:
    """musictx accompany: alto, tenor and bass for a melody, or the rest of a song; the melody is kept as it is."""

    bundle: str = setting(
        "harmoniser", "the model: harmoniser, a file that `musictx train objective=conditional` made, or a run's folder"
    )
    melody: str = setting(MISSING, "a MIDI file with one line of notes")
    out: str = setting(MISSING, "a folder for the melody with its voices")
    line: str = setting("only", "only: music of one line; highest: of more than one, the highest notes are the melody")
    transpose: int = setting(0, "the model hears the melody so many semitones higher; what is written is moved back")
    variations: int = setting(1, "accompaniments of the melody")
    rows_at_once: int = setting(ASKED.rows_at_once, "drawn together; those of songs are drawn one by one")
    seed: int = setting(ASKED.seed, "of the random numbers: the same one gives the same music")
    wav: bool = setting(False, "the sound of each accompaniment too")
    png: bool = setting(False, "a picture of melody and voices too")
    overwrite: bool = setting(False, "take the place of files that are there")
    device: str = setting(ASKED.device, "cpu or cuda")
    weights: str = setting(
        "auto", "float32, bfloat16 or int8, on a CPU the fastest for one row; auto: int8 where it pays"
    )
    sampler: Sampling = field(default_factory=lambda: Sampling(guard=False))
    rules: Rules = field(default_factory=lambda: Rules(voice_order=True, voice_ranges=True, no_parallels=True))
    attention: AttentionConfig = field(default_factory=AttentionConfig)
