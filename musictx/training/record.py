"""What a run was made by, in `run.json`: the code, the libraries, the device, the data."""

import json
import platform
import subprocess
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex

import torch

from musictx.data.store import Store
from musictx.files import replacing

RECORD = "run.json"
LIBRARIES = ("musictx", "torch", "lightning", "numpy")


@dataclass(frozen=True)
class Record:
    git_commit: str | None  # null: not run from a checkout; "+" at its end: with changes
    versions: dict[str, str]
    device: str
    store: str  # hash of the tokens that are learnt and validated
    wandb_id: str


def make_record(store: Store, accelerator: str) -> Record:
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    device = torch.cuda.get_device_name() if accelerator == "cuda" else "cpu"
    return Record(git_commit(), versions, device, store_hash(store), token_hex(4))


def write_record(folder: Path, record: Record) -> None:
    with replacing(folder / RECORD) as partial:
        partial.write_text(json.dumps(asdict(record), indent=1))


def read_record(folder: Path) -> Record:
    return Record(**json.loads((folder / RECORD).read_text(encoding="utf-8")))


def store_hash(store: Store) -> str:
    """Of the ids themselves, not of what the manifest says of them."""
    digest = sha256(store.manifest.vocab_fingerprint.encode())
    for name in ("train", "validation"):
        split = store.split(name)
        digest.update(split.offsets.tobytes())
        digest.update(split.ids.data)
    return digest.hexdigest()[:16]


def git_commit() -> str | None:
    """The commit of the checkout that this package lies in."""
    package = Path(__file__).parent

    def git(*args: str) -> str:
        done = subprocess.run(["git", "-C", str(package), *args], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        if not git("ls-files", str(Path(__file__))):  # installed somewhere below another project
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
