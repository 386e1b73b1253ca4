"""make release: sdist and wheel of what is committed, checked, installed each in an empty environment and tried there.

They lie in dist/ when all is well, and nowhere when it is not. Nothing is uploaded.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping
from email.parser import BytesParser
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
LICENCES = ("LICENSE", "LICENSE-piano-weights")
WHEEL_SAYS = ("METADATA", "WHEEL", "RECORD", "entry_points.txt")


def main() -> None:
    refuse_uncommitted(ROOT)
    with TemporaryDirectory(prefix="musictx-release-") as name:
        folder = Path(name)
        sources, built = folder / "sources", folder / "dist"
        export(sources)
        version = tomllib.loads((sources / "pyproject.toml").read_text())["project"]["version"]
        run(sys.executable, "-m", "build", "--outdir", built, sources)  # the wheel out of the sdist
        sdist, wheel = built / f"musictx-{version}.tar.gz", built / f"musictx-{version}-py3-none-any.whl"
        refuse(f"{built.name} of version {version}", {path.name for path in built.iterdir()}, {sdist.name, wheel.name})
        check_sdist(sdist, sources)
        check_wheel(wheel, sources)
        run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
        for file in (wheel, sdist):
            print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB; {smoke(file, version, folder)}", flush=True)
        put(built, ROOT / "dist")
    if re.search(rf"^## {re.escape(version)}, unreleased", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        print(f"CHANGELOG.md calls {version} unreleased: give it a date, commit, and make release again to upload it")


def put(built: Path, dist: Path) -> None:
    """Both files in place of the last ones, whole or not at all."""
    partial = dist.parent / "build" / "dist"  # beside it, as a rename wants
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(built, partial)
    shutil.rmtree(dist, ignore_errors=True)
    partial.rename(dist)


def run(*words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """What a program prints. Raises SystemExit with all that it said where it fails."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, cwd=cwd, env=env)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}error: {' '.join(map(str, words))} has failed, as told above")
    return done.stdout


def refuse_uncommitted(root: Path) -> None:
    """Raises SystemExit where the files are not those of the commit: nobody could build the same again."""
    if changed := run("git", "-C", root, "status", "--porcelain").splitlines():
        raise SystemExit(f"error: {len(changed)} files are not as committed ({changed[0].strip()} …): commit or stash")


def export(to: Path) -> None:
    """The files of the commit, and no others."""
    to.mkdir()
    archive = to.with_suffix(".tar")
    run("git", "-C", ROOT, "archive", "--output", archive, "HEAD")
    with tarfile.open(archive) as tar:
        tar.extractall(to, filter="data")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; no bytecode."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def check_sdist(sdist: Path, sources: Path) -> None:
    """Raises SystemExit unless it holds the sources and what is said of them, file by file."""
    top = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as tar:
        files = {member.name: tar.extractfile(member) for member in tar.getmembers() if member.isfile()}
        found = {name: file.read() for name, file in files.items() if file is not None}
    wanted = {f"{top}/{name}": data for name, data in contents(sources).items()}
    compare(sdist.name, found, wanted, [f"{top}/PKG-INFO"])
    check_metadata(sdist.name, found[f"{top}/PKG-INFO"])


def check_wheel(wheel: Path, sources: Path) -> None:
    """Raises SystemExit unless it holds the package with its bundles, conf/ inside it, both licences, and no more."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    said = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    wanted = {f"musictx/{name}": data for name, data in contents(sources / "musictx").items()}
    wanted |= {f"musictx/conf/{name}": data for name, data in contents(sources / "conf").items()}
    wanted |= {f"{said}/licenses/{name}": (sources / name).read_bytes() for name in LICENCES}
    compare(wheel.name, found, wanted, [f"{said}/{name}" for name in WHEEL_SAYS])
    check_metadata(wheel.name, found[f"{said}/METADATA"])


def check_metadata(name: str, text: bytes) -> None:
    """Raises SystemExit unless it is told as the file's name has it, under both licences."""
    said = BytesParser().parsebytes(text)
    if said["Version"] != name.removesuffix(".tar.gz").split("-")[1]:
        raise SystemExit(f"error: {name} calls itself version {said['Version']}")
    refuse(f"{name}, its licence files", said.get_all("License-File", []), LICENCES)


def compare(name: str, found: Mapping[str, bytes], wanted: Mapping[str, bytes], told: Iterable[str]) -> None:
    """Raises SystemExit for a file that is missing, too many or another than in the sources; `told` are made anew."""
    refuse(name, found, {*wanted, *told})
    if other := sorted(file for file in wanted if found[file] != wanted[file]):
        raise SystemExit(f"error: {name}: {', '.join(other[:5])} differ from the sources")


def refuse(name: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    """Raises SystemExit unless both are the same names."""
    missing, stray = sorted({*wanted} - {*found}), sorted({*found} - {*wanted})
    for what, files in (("lacks", missing), ("should not hold", stray)):
        if files:
            raise SystemExit(f"error: {name} {what} {', '.join(files[:5])}")


def smoke(file: Path, version: str, folder: Path) -> str:
    """Installs it in an empty environment, outside of the checkout, and continues a seed there. Raises SystemExit."""
    env, away = (folder / f"{kind}-{file.suffix[1:]}" for kind in ("env", "away"))
    away.mkdir()
    run(sys.executable, "-m", "venv", env)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def alone(program: str, *words: str | Path) -> str:
        return run(env / "bin" / program, *words, cwd=away, env=clean)

    quiet = ("--quiet", "--disable-pip-version-check")
    alone("python", "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", file)
    alone("python", "-m", "pip", "check")

    def musictx(*words: str) -> str:
        return alone("musictx", *words)

    if (told := musictx("--version")) != f"musictx {version}\n":
        raise SystemExit(f"error: {file.name} calls itself {told.strip()} when it is installed")
    musictx("--help")
    musictx("generate", "seed_midi=elise", "out=made", "length_seconds=2")
    seed, made = (json.loads(musictx("inspect", f"midi={midi}", "json=true")) for midi in ("elise", "made/elise-1.mid"))
    if not Path(seed["file"]).is_relative_to(env):
        raise SystemExit(f"error: {file.name} is not what was tried: {seed['file']}")
    if not seed["seconds"] < made["seconds"] < seed["seconds"] + 4:
        raise SystemExit(f"error: {file.name} made {made['seconds']} s of music out of {seed['seconds']} s")
    shutil.rmtree(env)
    return f"installed, continued {seed['seconds']:.2f} s of music to {made['seconds']:.2f} s"


if __name__ == "__main__":
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    main()
