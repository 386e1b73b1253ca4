"""Samples during a training: a held-out beginning, continued every so many steps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.loggers import WandbLogger
from torch import Tensor

from musictx.config.fields import setting_keys
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.generate.continuation import Continuation
from musictx.generate.draw import continue_primers
from musictx.generate.primer import Primer
from musictx.generate.requests import Continue, Length, Sampling
from musictx.model.torch_steps import TorchPlayer
from musictx.music.score import Meter, Score
from musictx.music.write import write_midi
from musictx.terminal import say
from musictx.tokenizers import Tokenizer
from musictx.training.module import LanguageModelTraining
from musictx.viz.piano_roll import piano_roll
from musictx.viz.sound import write_wav

SEED_TOKENS, LENGTH_S, MOST_TOKENS = 128, 10.0, 1000
SAMPLING = Sampling(guard=False)  # no repetition guard: a person should hear when the model goes in circles


def held_out_seed(store: Store) -> Score:
    """The beginning of the first validation piece."""
    ids = store.split("validation")[0]
    n_tokens = min(SEED_TOKENS, max(len(ids) // 2, 1))
    group = store.tokenizer.group
    return store.tokenizer.decode(ids[: -(-n_tokens // group) * group])


@dataclass
class Samples(L.Callback):
    """Writes `folder/step-N.mid`, `.wav` and `.png` every `every` steps, with one random seed, and logs them to wandb.

    Where it fails, it prints the reason, and the training continues.
    """

    folder: Path
    every: int
    store: Store
    tokenizer: Tokenizer  # the store's, with the ids that the objective adds
    random_seed: int

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Tensor, batch_idx: int
    ) -> None:
        stepped = not trainer.fit_loop._should_accumulate()
        if stepped and trainer.global_step % self.every == 0 and trainer.is_global_zero:
            assert isinstance(pl_module, LanguageModelTraining)
            pl_module.model.eval()
            try:
                self._write(trainer, self._draw(pl_module))
            except UserError as error:
                say(f"\nno sample at step {trainer.global_step}: {error.line(setting_keys('train'))}")
            finally:
                pl_module.model.train()

    def _draw(self, training: LanguageModelTraining) -> Continuation:
        seed = held_out_seed(self.store)
        primer = Primer(seed, seed.duration_s, Meter(seed.quarter_s))
        request = Continue(SAMPLING, Length(LENGTH_S), random_seed=self.random_seed, max_tokens=MOST_TOKENS)
        player = TorchPlayer(training.model, str(training.device))
        return continue_primers([primer], player, self.tokenizer, request)[0][0]

    def _write(self, trainer: L.Trainer, music: Continuation) -> None:
        self.folder.mkdir(exist_ok=True)
        midi, wav, png = (self.folder / f"step-{trainer.global_step}.{end}" for end in ("mid", "wav", "png"))
        write_midi(music.score, midi)
        write_wav(music.score, wav)
        piano_roll([(midi.stem, music.score, music.new_from_s)], png)
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                step = {"trainer/global_step": trainer.global_step}
                logger.log_image("sample/roll", [str(png)])
                logger.log_audio("sample/sound", [str(wav)])
                logger.experiment.log(step)
