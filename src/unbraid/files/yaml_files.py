"""YAML as people write it, read safely: nothing in it is executed, and nothing grows beyond what stands there."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from unbraid.files.json_records import check_size

LARGEST_YAML = 1_000_000  # characters, which take a second to read


def read_text(path: Path) -> str:
    """The text of a YAML file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is a folder, or not text.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; a YAML file was expected")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8") from None


def parse_yaml(text: str, where: str, *, tags: bool = False) -> Any:
    """What a YAML text holds; `where` is its file, for errors.

    With `tags` what has a tag of some program, such as !!python/tuple, is read as if it had none.

    Raises:
        ValueError: not YAML, a key given twice, nested too deeply, or too large; one line.
    """
    if len(text) > LARGEST_YAML:
        raise ValueError(f"{where}: {len(text):,} characters; a YAML file has {LARGEST_YAML:,} at most")
    try:
        content = yaml.load(text, _Untagged if tags else _Loader)  # noqa: S506 (both are SafeLoaders)
        check_size(content)
    except RecursionError:
        raise ValueError(f"{where}: it is nested too deeply") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{where} is not readable as YAML: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return content


def written(content: Mapping[str, Any]) -> str:
    """YAML that `parse_yaml` reads back as this content."""
    return yaml.dump(dict(content), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-4 is a number and a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            name = self.construct_object(key)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name} is given twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


class _Untagged(_Loader):
    """Reads what has the tag of a program as the mapping, list or text that stands there."""

    def construct_untagged(self, _: str, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self.construct_mapping(node, deep=True)
        return self.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


_Untagged.add_multi_constructor("", _Untagged.construct_untagged)


class _Dumper(yaml.SafeDumper):
    """Puts into quotes what _Loader would take for something else than text."""


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )
