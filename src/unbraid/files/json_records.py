"""JSON files that describe runs and studies: every field is checked as it is read, for anybody may have made them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from reprlib import Repr
from typing import Annotated, Any, NoReturn, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import PydanticCustomError

from unbraid.files.checksum import KEY, check_content, without_checksum
from unbraid.files.whole_files import read_whole

LARGEST = 1 << 26  # bytes of a file
DEEPEST, MOST_VALUES = 32, 1 << 22  # lists within lists, and what they hold in all
MOST = 2**63 - 1  # what a column of a table can hold
LONGEST = 10_000  # letters of a text

Loc: TypeAlias = tuple[int | str, ...]

Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]
Natural: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
Seconds: TypeAlias = Annotated[FiniteFloat, Field(ge=0)]


def _setting(value: Any) -> Any:
    number = isinstance(value, int) and abs(value) <= MOST or isinstance(value, float) and abs(value) < float("inf")
    if isinstance(value, bool) or not (number or isinstance(value, str) and len(value) <= LONGEST):
        raise PydanticCustomError("setting", "Input should be a finite number or a text")
    return value


Text: TypeAlias = Annotated[str, Field(max_length=LONGEST)]
Setting: TypeAlias = Annotated[Any, AfterValidator(_setting)]


class Record(BaseModel):
    """What a file holds: these keys, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def read_object(path: str | Path, *, checksummed: bool = False, advice: str = "") -> dict[str, Any]:
    """The object in a JSON file without its checksum, which is right if it has one; with `checksummed` it must have.

    `advice`, such as "; delete it", ends the error.

    Raises:
        ValueError: there is none: no such file, no JSON, not an object, too large, too deep, or not as it was written.
    """
    try:
        whole = read_whole(path, LARGEST)
        check_content(whole, must=checksummed)
        content = json.loads(whole.decode("utf-8"), parse_constant=_no_number)
        if not isinstance(content, dict):
            raise ValueError("it holds no object")
        if len(whole) > MOST_VALUES or whole.count(b"[") + whole.count(b"{") > DEEPEST:
            check_size(content)
        return without_checksum(content) if KEY in content else content
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({_REASONS.get(type(error), error)}){advice}") from None


_REASONS = {RecursionError: "it is nested too deeply", FileNotFoundError: "it is missing"}


def check_record(record: type[BaseModel], content: Mapping[str, Any], path: str | Path, advice: str = "") -> None:
    """Raises ValueError, one line with the file and the key, where the content is not such a record."""
    try:
        record.model_validate(content)
    except ValidationError as error:
        raise ValueError(f"{path}: {explain(error)}{advice}") from None


def read_record(
    path: str | Path, record: type[BaseModel], *, checksummed: bool = False, advice: str = ""
) -> dict[str, Any]:
    """The object in a JSON file that holds such a record; `checksummed` and `advice` as for `read_object`.

    Raises:
        ValueError: as `read_object` and `check_record`.
    """
    content = read_object(path, checksummed=checksummed, advice=advice)
    check_record(record, content, path, advice)
    return content


def explain(error: ValidationError, hint: Callable[[Loc], str] = lambda _: "") -> str:
    """The first fault as `families[1].betta: unknown; did you mean beta?`.

    `hint` gives what follows "unknown", of the place of a key that is not known.
    """
    faults = error.errors()
    outer = _cleaned(faults[0]["loc"])
    # Of a value that may be one thing or a list, the branch that came furthest knows what is wrong.
    first = max(
        (one for one in faults if _cleaned(one["loc"])[: len(outer)] == outer),
        key=lambda one: len(_cleaned(one["loc"])),
    )
    path = key_path(_cleaned(first["loc"]))
    if first["type"] == "extra_forbidden":
        path = key_path((*_cleaned(first["loc"][:-1]), _quoted(first["loc"][-1])))
        fault = f"unknown{hint(first['loc'])}"
    elif first["type"] == "missing":
        fault = "is missing"
    else:
        value = "" if isinstance(first["input"], dict | list) else f"; got {_SHORT.repr(first['input'])}"
        same = [one for one in faults if _cleaned(one["loc"]) == _cleaned(first["loc"])]
        if any(one["type"] == "too_short" and one.get("ctx", {}).get("min_length") == 1 for one in same):
            fault = "is empty; it needs at least one"  # whatever else might stand there instead
        elif first["type"] in ("too_short", "too_long"):
            context = first.get("ctx", {})
            bound = "needs at least" if "min_length" in context else "takes at most"
            limit = context.get("min_length", context.get("max_length"))
            fault = f"{bound} {limit} entries; has {context.get('actual_length')}"
        else:
            fault = _plainly(_either([one["msg"] for one in same])) + value
    more = len({key_path(_cleaned(one["loc"])) for one in faults} - {path, key_path(outer)})
    return f"{path}: {fault}" + (f" (and {more} more)" if more else "")


def key_path(keys: Loc) -> str:
    """`families[1].beta` of ("families", 1, "beta")."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".") or "the whole"


def _either(messages: Sequence[str]) -> str:
    """What any of the branches of a union would take: "Input should be 'all' or a valid list"."""
    begun = "Input should be "
    alternatives = [message.removeprefix(begun) for message in messages[1:] if message.startswith(begun)]
    return " or ".join(dict.fromkeys([messages[0], *alternatives])) if messages[0].startswith(begun) else messages[0]


def _plainly(message: str) -> str:
    return re.sub(r"valid dictionary( or instance of \w+)?", "mapping", message[0].lower() + message[1:])


def _quoted(key: int | str) -> int | str:
    """A key that is no plain word, so that it can be told from the path before it."""
    return key if isinstance(key, int) or re.fullmatch(r"\w{1,100}", key) else repr(key[:100])


def _cleaned(loc: Loc) -> Loc:
    # pydantic adds the branch of a union that it tried, such as "list[constrained-int]" or "literal['all']".
    return tuple(key for key in loc if isinstance(key, int) or re.fullmatch(r"\w{1,100}", key) and key not in _BRANCHES)


_BRANCHES = {"int", "float", "str", "bool", "constrained", "list"}

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def check_size(content: Any) -> None:
    """Raises ValueError where lists and mappings are nested too deeply, or hold too much; within themselves, too."""
    level, count = [content], 0
    for _ in range(DEEPEST):
        holding = [
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list)
        ]
        count += sum(map(len, holding))
        if count > MOST_VALUES:
            raise ValueError("it holds too much")
        level = [value for values in holding for value in values]
    if level:
        raise ValueError("it is nested too deeply")
