"""musictx train: fit a model to a token store."""

from musictx.app import hydra_app
from musictx.config.train import TrainConfig
from musictx.training.fit import fit


def train(config: TrainConfig) -> None:
    bundle = fit(config)
    print(f"best model: {bundle}")
    print(f"continue a seed with it: musictx generate bundle={bundle} seed_midi=my.mid")


main = hydra_app("train", train)

if __name__ == "__main__":
    main()
