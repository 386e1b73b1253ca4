"""What playing live can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig
from musictx.sampling.settings import Sampling
from musictx.setting import setting
from musictx.tokenizers.rules import Rules


@dataclass
class JamConfig:
    """musictx jam: continue what a person plays, whenever they pause."""

    bundle: str | None = setting(
        None,
        "piano, chorale, or a performance or chorale model that `musictx train` made; null: piano, unless a file plays "
        "itself that is four voices on a grid",
    )
    input: str = setting(
        MISSING,
        "the player: a MIDI port by its name or a part of it, or a MIDI file that plays itself; elise, gymnopedie, "
        "chorale",
    )
    output: str = setting(MISSING, "where the replies sound: a MIDI port, or a MIDI file for the whole session")
    record: str | None = setting(None, "a MIDI file for the whole session, where the replies go to a port; null: none")
    virtual: bool = setting(False, "make the ports of these names, for other programs to connect to")
    realtime: bool | None = setting(
        None, "false: a clock that jumps, for files; null: true unless both input and output are files"
    )
    pause_s: float = setting(0.6, "so long without a key held: the phrase is over")
    phrase_s: float = setting(0.0, "shorter phrases are not answered yet: what comes next belongs to them")
    reply_seconds: float | None = setting(8.0, "length of a reply; null: as long as the phrase")
    bpm: float | None = setting(None, "quarters a minute of a chorale model's grid; null: the file's, or 100")
    channel: int = setting(1, "of the replies, 1 to 16")
    window: int | None = setting(None, "tokens that the model looks back; null: its own")
    seed: int = setting(0, "of the random numbers")
    overwrite: bool = setting(False, "take the place of files that are there")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it pays")
    threads: int = setting(
        1, "of the processor, for the model: a second one helps large models alone, and waits on a busy core"
    )
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=lambda: Rules(max_silence_s=1.0, max_note_s=8.0))
    attention: AttentionConfig = field(default_factory=AttentionConfig)
