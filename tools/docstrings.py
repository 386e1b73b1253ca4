"""What is wrong in the docstrings of musictx, read from its files without running them: `make docs` and a test ask.

Every module needs a docstring, and so does all that `import musictx` gives, in one line, then sections. In any
docstring, what stands in backticks and looks like a name, a setting or a file is there: a parameter, a word of the code
below, a name of the package.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import musictx
from musictx.cli import COMMANDS

QUOTED = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*(?:\(\))?")
SETTING = re.compile(r"((?:\w+\.)*\w+)=\S*")
FILE = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:py|ipynb|md|yaml|toml)")
MADE = re.compile(r"[\w-]+\.(?:ckpt|csv|json|mid|png|pt|safetensors|wav)")  # files that commands write
PROSE = re.compile(r"\b(Raises|Shapes|Units|Source)\b(?!:$)", re.MULTILINE)
ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Interrupt|Exit)\b")
YAML = {"null", "true", "false"}
ERRORS = musictx.PLACES["UserError"]  # the module of all that a person can cause
Words = frozenset[str]
Node = ast.Module | ast.ClassDef | ast.FunctionDef


def mistakes(root: Path) -> list[str]:
    """A line for each, with its place."""
    sources = {module_name(file, root): file.read_text("utf-8") for file in sorted((root / "musictx").rglob("*.py"))}
    modules = {name: ast.parse(source) for name, source in sources.items()}
    nodes = [node for tree in modules.values() for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    fields = {"key", *(name for node in classes for name in given(node))}  # key=value is what all settings look like
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    files = {part for name in modules for part in name.split(".")}
    ours = files.union(*({*given(tree), *constants(tree)} for tree in modules.values()))
    ours -= parameters  # they are there where they are taken, or where the code speaks of them
    ours |= {*YAML, *dir(builtins), *musictx.PLACES}
    ours |= {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    found = [f"{name}: no docstring" for name, tree in modules.items() if not ast.get_docstring(tree)]
    found += door(modules, sources)
    for name, tree in modules.items():
        for node, where, text, nearby in documented(tree, name):
            known = ours | nearby | (fields if inherits(node) else files if isinstance(node, ast.Module) else set())
            words = [" ".join(word.split()) for word in QUOTED.findall(text)]
            absent = [word for word in words if not is_there(word, known, fields, modules, root)]
            found += [f"{where}: `{word}` is not there" for word in absent]
            found += [f"{where}: a backtick stands alone"] * (text.count("`") % 2)
            found += [f"{where}: there is no {error}" for error in ERROR.findall(text) if error not in known]
    return found


def module_name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def given(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The names of a module or a class: functions, classes and what they give, variables, settings."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for each in targets for name in ast.walk(each) if isinstance(name, ast.Name))


def constants(tree: ast.Module) -> Iterator[str]:
    """The words of a module's tables: names of models, seeds, encodings, commands."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield from words_of(node)


def inherits(node: Node) -> bool:
    return isinstance(node, ast.ClassDef) and bool(node.bases)


def documented(tree: Node, where: str, outer: Words = frozenset()) -> Iterator[tuple[Node, str, str, Words]]:
    """Whatever has a docstring: its name in full, the text, and the words of its code, for a method of its class's."""
    text = ast.get_docstring(tree)
    own = frozenset(words_of(tree)) if isinstance(tree, ast.ClassDef) or (text and "`" in text) else frozenset()
    if text:
        yield tree, where, text, outer | own
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from documented(node, f"{where}.{node.name}", own if isinstance(tree, ast.ClassDef) else frozenset())


def words_of(tree: ast.AST) -> Iterator[str]:
    """Names, parameters, attributes, and texts that could be names."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.arg(arg=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word) | ast.alias(name=word):
                yield word
            case ast.Constant(value=str(word)) if word.isidentifier():
                yield word


def is_there(word: str, known: set[str], fields: set[str], modules: Mapping[str, ast.Module], root: Path) -> bool:
    """A field of a class, or a setting, is known by its class, or by the = behind it."""
    if word.startswith("musictx."):
        module, _, last = word.removesuffix("()").rpartition(".")
        names = {*given(modules[module]), *(musictx.PLACES if module == "musictx" else ())} if module in modules else ()
        return word in modules or last in names
    if word.startswith("musictx "):
        return word.split()[1] in {"--help", "--version", "KEY=VALUE", *(name.split()[0] for name in COMMANDS)}
    if FILE.fullmatch(word):
        return (root / word).is_file() or any((root / "musictx").rglob(word))
    if setting := SETTING.fullmatch(word):
        return setting[1].rpartition(".")[2] in known | fields
    if NAME.fullmatch(word) and not MADE.fullmatch(word):
        first, *others = word.removesuffix("()").split(".")
        return first in (known | fields if others else known) and {*others} <= known | fields
    return True  # no name: a line of code, a pattern, a chord


def door(modules: Mapping[str, ast.Module], sources: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with what `import musictx` gives, and with the errors."""
    doors = {(module, name) for name, module in musictx.PLACES.items()}
    kinds = ast.ClassDef | ast.FunctionDef
    doors |= {(ERRORS, node.name) for node in modules[ERRORS].body if isinstance(node, kinds)}
    for module, name in sorted(doors):
        (node,) = [node for node in modules[module].body if isinstance(node, kinds) and node.name == name]
        yield from below(node, f"{module}.{name}", sources[module].splitlines())


def below(node: ast.ClassDef | ast.FunctionDef, where: str, lines: list[str]) -> Iterator[str]:
    """A docstring is one line, then more if need be, then sections; a field has a comment."""
    text = ast.get_docstring(node) or ""
    if not text:
        yield f"{where}: no docstring"
    if "\n" in text.partition("\n\n")[0]:
        yield f"{where}: say it in one line, and the rest after an empty one"
    if prose := PROSE.search(text):
        yield f"{where}: write {prose[1]} as a section, '{prose[1]}:' and indented lines"
    for each in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            yield from below(each, f"{where}.{each.name}", lines)
        if isinstance(each, ast.AnnAssign) and not comment(each, lines):
            yield f"{where}.{ast.unparse(each.target)}: no comment behind it"


def comment(field: ast.AnnAssign, lines: list[str]) -> str:
    """What stands behind a field of a class, which is its docstring."""
    assert field.end_lineno is not None, "it has been parsed"
    line = lines[field.end_lineno - 1].encode()
    return line[field.end_col_offset :].decode().partition("#")[2].strip()
