"""The house plan, held by tests: who may import whom, what the core may name, what lies at the top."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from importlib.metadata import distribution, entry_points, packages_distributions
from pathlib import Path

import logmfu_parsers
import pytest

import logmfu

ROOT = Path(__file__).parent.parent
CORE = Path(logmfu.__file__).parent
PARSERS = Path(logmfu_parsers.__file__).parent

LAYERS = (
    ("errors",),
    ("records", "values", "schema", "stamps"),
    ("stretch",),
    ("source",),
    ("envelopes",),
    ("parsing",),
    ("failures", "registry", "testing"),
    ("tables",),
    ("bulk",),
    ("reading",),
    ("hardware", "masking", "identities"),
    ("flops",),
    ("report",),
    ("excerpts", "redaction"),
    ("analysis",),
    ("render",),
    ("postmortem", "tickets"),
    ("cli",),
    ("__main__",),
)
"""From left to right: a module imports only from its left, or from its own package."""
PARSER_LAYERS = ("errors", "records", "values", "schema", "stretch", "parsing", "testing")
"""What a built-in parser may use of the core: no source, no table, no analysis."""
BACKWARDS = frozenset({("report", "render")})
"""``report.to_html()`` and the like import their renderer when called; the only arrow that points left."""

TOP = frozenset(
    [
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "logmfu",
        "parsers",
        "fixtures",
        "tests",
        "docs",
        "benchmarks",
        ".ci",
        ".gitignore",
        ".gitattributes",
    ]
)

FRAMEWORKS = re.compile(
    "megatron|deepspeed|neox|bigscience|torchtitan|nemo|nanogpt|hugging|fairseq|maxtext", re.I
)
NAMED_AFTER_PROGRAMS = "flops"
"""Ways of counting FLOPs are named after the program that published them; they read no log."""

NEWER = ("compression",)
"""Modules of the standard library of later Pythons."""
COMPANIONS = ("markupsafe", "urllib3")
"""They come with Jinja and Requests, and are their types."""
HEAVY = ("pandas", "numpy", "matplotlib", "jinja2", "scipy")


def parsed(path: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def modules(package: Path) -> dict[str, Path]:
    """Modules of a package, by dotted name."""
    parts = {path: path.relative_to(package.parent).with_suffix("").parts for path in package.rglob("*.py")}
    return {".".join(name).removesuffix(".__init__"): path for path, name in parts.items()}


CORE_MODULES = {name: parsed(path) for name, path in modules(CORE).items()}
PARSER_MODULES = {name: parsed(path) for name, path in modules(PARSERS).items()}


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Full names of what import statements bring in."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(name: str) -> str:
    """``logmfu.render.html`` is in the layer ``render``."""
    return name.split(".")[1]


def of_core(name: str) -> bool:
    """Whether a name is in a layer of the core; the public names of ``logmfu`` itself are in none."""
    return name.startswith("logmfu.") and layer(name) not in {*logmfu.__all__}


def test_every_module_has_a_layer():
    """A new module is put into the list, or this fails; a name in the list has a module."""
    there = {layer(module) for module in CORE_MODULES if module != "logmfu"}
    listed = [name for group in LAYERS for name in group]
    assert sorted(listed) == sorted(there)


def offenders(
    modules: Mapping[str, ast.Module], wrong: Callable[[str, ast.Module], Iterable[str]]
) -> dict[str, list[str]]:
    """Modules that do something wrong, with what."""
    found = {module: sorted(wrong(module, tree)) for module, tree in modules.items()}
    return {module: names for module, names in found.items() if names}


def test_core_imports_only_from_its_left():
    """Also inside functions and for type annotations."""
    place = {name: number for number, group in enumerate(LAYERS) for name in group}

    def to_the_right(module: str, tree: ast.Module) -> Iterator[str]:
        own = layer(module) if module != "logmfu" else "cli"
        for name in imported(ast.walk(tree)):
            if not of_core(name) or layer(name) == own or (own, layer(name)) in BACKWARDS:
                continue
            if place[layer(name)] >= place[own]:
                yield name

    assert not offenders(CORE_MODULES, to_the_right)


def test_modules_do_not_import_each_other_in_a_circle():
    """Imports at the top of modules form no circle, inside packages neither."""
    graph = {
        module: {
            name if name in CORE_MODULES else name.rpartition(".")[0]
            for name in imported(iter(tree.body))
            if of_core(name)
        }
        for module, tree in CORE_MODULES.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) >= len(CORE_MODULES)


def test_core_does_not_import_parsers():
    """Parsers come in through entry points, the built-in ones too."""

    def parsers(module: str, tree: ast.Module) -> Iterator[str]:
        return (name for name in imported(ast.walk(tree)) if name.startswith("logmfu_parsers"))

    assert not offenders(CORE_MODULES, parsers)


def test_core_names_no_framework_in_code():
    """No identifier is named after a framework, and no string is a parser's name; prose may give examples."""
    parsers = {point.name for point in entry_points(group="logmfu.parsers")}

    def named(module: str, tree: ast.Module) -> Iterator[str]:
        if module.startswith(f"logmfu.{NAMED_AFTER_PROGRAMS}"):
            return
        nodes = list(ast.walk(tree))
        yield from (name for name in identifiers(nodes) if FRAMEWORKS.search(name))
        yield from (
            node.value for node in nodes if isinstance(node, ast.Constant) and node.value in parsers
        )

    assert not offenders(CORE_MODULES, named)


def identifiers(nodes: list[ast.AST]) -> Iterator[str]:
    """Names a module gives or uses."""
    for node in nodes:
        for attribute in ("id", "attr", "name", "asname", "arg", "module"):
            value = getattr(node, attribute, None)
            if isinstance(value, str):
                yield value


def test_parser_sees_no_table():
    """A built-in parser knows lines and records; pandas, sources and analysis are not its business."""

    def beyond(module: str, tree: ast.Module) -> Iterator[str]:
        for name in imported(ast.walk(tree)):
            first = name.split(".")[0]
            if (first == "logmfu" and layer(name) not in PARSER_LAYERS) or first not in {
                "logmfu",
                "logmfu_parsers",
                "regex",
                *sys.stdlib_module_names,
            }:
                yield name

    assert not offenders(PARSER_MODULES, beyond)


def test_click_is_not_imported():
    """Typer carries its own Click; there is no other."""

    def click(module: str, tree: ast.Module) -> Iterator[str]:
        return (name for name in imported(ast.walk(tree)) if name.split(".")[0] == "click")

    assert not offenders({**CORE_MODULES, **PARSER_MODULES}, click)


def test_what_is_imported_is_asked_for():
    """Every package the code imports is a dependency, or an extra that a person can install."""
    asked = {
        plain(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
        for requirement in distribution("logmfu").requires or ()
    }
    known = {"logmfu", "logmfu_parsers", *sys.stdlib_module_names, *NEWER, *COMPANIONS}
    providers = packages_distributions()

    def unasked(module: str, tree: ast.Module) -> Iterator[str]:
        for name in {name.split(".")[0] for name in imported(ast.walk(tree))} - known:
            if not {plain(one) for one in providers.get(name, [name])} & asked:
                yield name

    assert not offenders({**CORE_MODULES, **PARSER_MODULES}, unasked)


def plain(name: str) -> str:
    """A distribution's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_help_is_light():
    """``logmfu --help`` loads nothing heavy."""
    code = (
        "import sys\n"
        "from logmfu.cli.app import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "print('loaded:', *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    loaded = {name.split(".")[0] for name in done.stdout.rpartition("loaded:")[2].split()}
    assert not loaded & set(HEAVY)
    assert "typer" in loaded


def files() -> list[str]:
    """Files of the checkout that are kept, or would be by the next commit."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        pytest.skip("not a checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def test_nothing_else_lies_at_the_top():
    """The top level is a table of contents."""
    assert {name.split("/")[0] for name in files()} <= TOP


def test_no_file_names_the_place_it_was_made_in():
    """Nothing points at folders outside the repository, but for the one place where real logs may lie."""
    outside = re.compile(rb"/work/|\bshared/")
    allowed = {".ci/run", "tests/test_house.py"}
    names = [name for name in files() if name not in allowed]
    assert not [name for name in names if outside.search((ROOT / name).read_bytes())]
