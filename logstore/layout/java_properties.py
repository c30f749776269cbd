r"""Java properties, as `java.util.Properties.load(InputStream)` reads them: ISO-8859-1 with \uXXXX escapes.

- A line ends with \n, \r or \r\n. Blank lines, and lines whose first visible character is # or !, are comments.
- A line that ends with an odd number of backslashes continues in the next line, whose leading blanks are dropped.
- The key ends before the first = : or blank without a backslash before it. Blanks around one = or : are dropped;
  blanks at the end of the value stay.
- \t \n \r \f and \uXXXX are control and Unicode characters; any other character after a backslash is itself.
- The last of several values of a key counts.

>>> parse_properties(b"# no\nnode.id=1\ncluster.id : a\\u0062c\\\n   d \nempty\n")
{'node.id': '1', 'cluster.id': 'abcd ', 'empty': ''}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import CheckpointFormatError

_BLANKS = " \t\f"
_LINE_END = re.compile("\r\n|\n|\r")
_KEY = re.compile(r"(?:[^\\=: \t\f]+|\\.)*+", re.DOTALL)  # without ways back, of 100 bytes a character
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.|$)", re.DOTALL)
_CONTROL_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED_CHARACTERS = {
    **{character: f"\\{name}" for name, character in _CONTROL_CHARACTERS.items()},
    **{character: f"\\{character}" for character in "\\=:#!"},
}


def parse_properties(data: bytes) -> dict[str, str]:
    r"""Return the properties in `data`, the whole file.

    Raises:
        CheckpointFormatError: a \u without four hex digits (`IllegalArgumentException`).
    """
    properties = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        key = _KEY.match(line)
        key_end = key.end() if key else 0
        separator = _SEPARATOR.match(line, key_end)
        value_start = separator.end() if separator else key_end
        properties[_unescaped(line[:key_end])] = _unescaped(line[value_start:])
    return properties


def escaped_value(text: str) -> str:
    r"""Return a value as `Properties.store` writes it behind its key and the =.

    >>> print(escaped_value(" a=b\n" + chr(233)))
    \ a\=b\n\u00E9
    """
    escaped = "".join(map(_escaped, text))
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped(character: str) -> str:
    if character in _ESCAPED_CHARACTERS:
        return _ESCAPED_CHARACTERS[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")  # Java escapes each half of a surrogate pair
    return "".join(f"\\u{units[index : index + 2].hex().upper()}" for index in range(0, len(units), 2))


def _logical_lines(text: str) -> Iterator[str]:
    natural_lines = _LINE_END.split(text)
    if not natural_lines[-1]:
        natural_lines.pop()
    logical_line = ""
    for index, natural_line in enumerate(natural_lines):
        line = natural_line.lstrip(_BLANKS)
        if not logical_line and line[:1] in ("", "#", "!"):
            continue
        backslash_count = len(line) - len(line.rstrip("\\"))  # an even number is escaped backslashes
        if backslash_count % 2:
            line = line[:-1]
            if index + 1 < len(natural_lines):
                logical_line += line
                continue
        yield logical_line + line
        logical_line = ""


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    units = _ESCAPE.sub(_unescape, text).encode("utf-16", "surrogatepass")  # joins escaped halves of a surrogate pair
    return units.decode("utf-16", "surrogatepass")


def _unescape(escape: re.Match[str]) -> str:
    character = escape[1]
    if len(character) == 5:
        return chr(int(character[1:], 16))
    if character == "u":
        raise CheckpointFormatError("Malformed \\uxxxx encoding.", java_class="java.lang.IllegalArgumentException")
    return _CONTROL_CHARACTERS.get(character, character)
