"""musictx serve: a page in the browser that continues music with a bundle's model."""

from importlib.util import find_spec
from threading import Event

from musictx.app import hydra_app
from musictx.config.web import ServeConfig
from musictx.device import check_device
from musictx.errors import ConfigError, UserError
from musictx.model.weights import for_steps
from musictx.open import bundle_path, open_bundle
from musictx.web.limits import Limits


def serve(config: ServeConfig) -> None:
    limits = check(config)
    device = check_device(config.device)
    bundle = bundle_path(config.bundle)
    if find_spec("gradio") is None:
        raise UserError("the page needs the optional extra web: pip install 'musictx[web]'")
    model, tokenizer, header = open_bundle(bundle, device, config.attention.impl)
    from musictx.web.server import serving  # gradio takes seconds to import

    with serving(
        for_steps(model), tokenizer, f"{bundle.stem}, trained on {header.corpus}", limits, config.host, config.port
    ) as at:
        print(f"{at} continues music until Ctrl-C", flush=True)
        Event().wait()


def check(config: ServeConfig) -> Limits:
    """Raises ConfigError for amounts that no server can keep to."""
    for name in (
        "seconds",
        "length_seconds",
        "variations",
        "upload_mb",
        "file_seconds",
        "memory_mb",
        "at_once",
        "queue",
    ):
        if not 0 < getattr(config, name) < float("inf"):
            raise ConfigError(f"{name}={getattr(config, name)}: give more than 0")
    if not 0 < config.port < 2**16:
        raise ConfigError(f"port={config.port}: give 1 to {2**16 - 1}")
    return Limits(
        length_s=config.length_seconds,
        variations=config.variations,
        seconds=config.seconds,
        upload_bytes=int(config.upload_mb * 2**20),
        file_seconds=config.file_seconds,
        memory_mb=config.memory_mb,
        at_once=config.at_once,
        queue=config.queue,
    )


main = hydra_app("serve", serve)

if __name__ == "__main__":
    main()
