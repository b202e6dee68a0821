"""Forms and files from the browser, written to the disk as they come, under names of our own."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from evenhand.errors import DataError, UsageError
from evenhand.intake.file_sets import ARROW, PARQUET, TEXT, suffix_of
from evenhand.results import printable

TABLES = (*TEXT, ".csv.gz", ".tsv.gz", *PARQUET, *ARROW, ".xlsx")
MODELS = (".skops", ".onnx")
_PICKLES = (".pkl", ".pickle", ".joblib")
_MOST_TEXT = 4 * 2**20  # bytes of all fields that are no files
_MOST_PARTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that came from the browser."""

    path: Path  # where it is held
    name: str  # what it is called where it came from


@dataclass(slots=True)
class Form:
    """What was filled in."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, Upload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return what was typed into a field, nothing where it is not there."""
        return self.fields.get(name, [""])[-1].strip()


async def receive(stream: AsyncIterator[bytes], headers: Mapping[str, str], folder: Path, limit: int) -> Form:
    """Read a form; its files go into a folder while they come.

    Parameters
    ----------
    stream : async iterator of bytes
        The request's body.
    headers : mapping
        The request's headers.
    folder : Path
        A private folder for the files.
    limit : int
        Most bytes of the whole form.

    Returns
    -------
    Form

    Raises
    ------
    DataError, UsageError
        One sentence on what is not allowed; nothing of the form is kept then.
    """
    kind, options = parse_options_header(headers.get("content-type"))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise UsageError("The browser sent a form of an unknown kind. Go back and try again.")
    parts = _Parts(folder)
    parser = MultipartParser(options[b"boundary"], parts.callbacks())
    problem: DataError | UsageError | None = _too_large(headers, folder, limit)
    seen = 0
    async for chunk in stream:
        # A browser shows an answer only when it could send all: what is refused is read to its end and thrown away.
        seen += len(chunk)
        if problem is None and seen > limit:
            problem = _over(limit)
        if problem is None:
            try:
                parser.write(chunk)
            except (DataError, UsageError) as error:
                problem = error
            except FormParserError:
                problem = UsageError("The form was not whole. Go back and try again.")
            except OSError as error:
                problem = DataError(f"The file could not be stored: {error.strerror or error}.")
        if seen > 2 * max(limit, _MOST_TEXT) + 2**30:
            break
    if problem is None and not parts.ended:
        problem = UsageError("The form was not whole: the upload was broken off. Try again.")
    if problem is not None:
        parts.discard()
        raise problem
    return parts.form


def _too_large(headers: Mapping[str, str], folder: Path, limit: int) -> DataError | None:
    """Say before anything is stored that a form is too large, or the disk too full."""
    said = headers.get("content-length", "")
    size = int(said) if said.isdecimal() else 0
    if size > limit:
        return _over(limit)
    free = shutil.disk_usage(folder).free
    if size > free:
        return DataError(
            f"The file has about {_size(size)} and the disk has room for {_size(free)}. Make room, or name the file's "
            "path on this machine instead: then it is read where it is."
        )
    return None


def _over(limit: int) -> DataError:
    return DataError(
        f"The file is larger than {_size(limit)}, the most that is taken as an upload. Name its path on this machine "
        "instead: then it is read where it is. Or start the app with a larger `--limit`."
    )


def _size(number: int) -> str:
    """Write a number of bytes for people."""
    return f"{number / 2**30:.3g} GB" if number >= 2**30 else f"{number / 2**20:.3g} MB"


def check_name(name: str, allowed: tuple[str, ...]) -> str:
    """Return the extension of a file, or say that it is none that is read.

    Parameters
    ----------
    name : str
        The file's name.
    allowed : tuple of str
        Extensions.

    Returns
    -------
    str

    Examples
    --------
    >>> check_name("Decisions.CSV", TABLES), check_name("a.csv.gz", TABLES)
    ('.csv', '.csv.gz')
    """
    suffix = Path(name.lower()).suffix
    if suffix in _PICKLES:
        raise UsageError(
            f"`{name}` is a pickle: loading it runs whatever code its maker put in. Save the model as a `.skops` or "
            "`.onnx` file."
        )
    if suffix == ".gz":
        suffix = f"{suffix_of(Path(name))}.gz"
    if suffix not in allowed:
        raise UsageError(f"`{name}` has the extension `{suffix}`; allowed are {', '.join(allowed)}.")
    return suffix


class _Parts:
    """The parts of a form, while they come."""

    def __init__(self, folder: Path) -> None:
        self.form = Form()
        self.ended = False
        self._folder = folder
        self._header = b""
        self._value = b""
        self._disposition = b""
        self._name = ""
        self._text: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._texts = self._count = 0

    def callbacks(self) -> Any:
        """Return what the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._all,
        }

    def discard(self) -> None:
        """Remove what has been stored."""
        if self._file is not None:
            self._file.close()
        for upload in self.form.files.values():
            upload.path.unlink(missing_ok=True)

    def _begin(self) -> None:
        self._count += 1
        if self._count > _MOST_PARTS:
            raise UsageError(f"The form has more than {_MOST_PARTS:,} fields.")
        self._disposition, self._text, self._file = b"", [], None

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if options.get(b"filename"):
            self._open(options[b"filename"].decode("utf-8", "replace"))

    def _open(self, said: str) -> None:
        """Begin a file under a name of our own; of the stranger's name only the extension is used."""
        name = printable(re.split(r"[/\\]", said)[-1])[:200]
        suffix = check_name(name, MODELS if self._name == "model" else TABLES)
        path = self._folder / f"{secrets.token_hex(16)}{suffix}"
        self.form.files[self._name] = Upload(path=path, name=name)
        self._file = path.open("xb")
        path.chmod(0o600)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._texts += end - start
        if self._texts > _MOST_TEXT:
            raise UsageError("The form holds more text than can be meant.")
        self._text.append(data[start:end])

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        else:
            text = b"".join(self._text).decode("utf-8", "replace")
            self.form.fields.setdefault(self._name, []).append(text)

    def _all(self) -> None:
        self.ended = True
