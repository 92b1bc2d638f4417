"""C++ as far as this folder needs it: scopes by their braces, and what is declared in them.

It is not a parser of C++. It relies on code that clang-format has laid out and compilers accept.
"""

import re
from dataclasses import dataclass, field

_NOT_CODE = re.compile(
    r"""(?<!\w)\d(?:'?[\w.])*"""  # a number goes first: the ' in 10'000 begins no character
    r"""|//[^\n]*|/\*.*?\*/"""
    r"""|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""", re.DOTALL | re.MULTILINE)
_BRACKET = re.compile(r"[{}();]")
_ANGLES = re.compile(r"<[^<>;{}]*>")
_ROUND = re.compile(r"\([^()]*\)")
_CURLY = re.compile(r"\{[^{}]*\}")
_LABEL = re.compile(r"^\s*(?:public|protected|private)\s*:")
_ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)|__attribute__\s*\(\(.*?\)\)"
                        r"|\bGUARDED_BY\s*\([^()]*\)")
_INITIALISERS = re.compile(r"\(\)[\w\s]*:(?!:)")
_CLASS = re.compile(r"\b(class|struct|union)\s+(?:[A-Z_]+\s+)?([A-Za-z_][\w:]*)[^;]*$")
_FORWARDS = re.compile(r"\s*(?:return )?\w+_(?:\.|->)\w+\([^;]*\);\s*$")
_ENUM = re.compile(r"\benum\b(?:\s+(?:class|struct))?\s*(\w*)")
_NO_MEMBER = re.compile(
    r"^(?:static|using|friend|typedef|template|enum|class|struct|union|constexpr static)\b")

_NO_DECLARATION = re.compile(
    r"(?:using|namespace|friend|static_assert|class|struct|enum|extern template)\b")


def without_comments(text):
    """The text without comments, literals and preprocessor lines; each line stays where it is."""
    def blank(match):
        found = match.group()
        if found[0].isdigit():
            return found
        newlines = "\n" * found.count("\n")
        return '""' + newlines if found[0] in "\"'R" else " " + newlines
    return _NOT_CODE.sub(blank, text)


def stripped(text, pattern, instead=""):
    """Without what the pattern matches, from the innermost to the outermost."""
    while True:
        shorter = pattern.sub(instead, text)
        if shorter == text:
            return text
        text = shorter


def without_arguments(text):
    """With () in the place of each pair of parentheses and what is in it."""
    return stripped(text, _ROUND, "\0").replace("\0", "()")


@dataclass
class Scope:
    kind: str  # namespace, class, function, enum, or init: the braces of a value
    name: str
    line: int
    head: str = ""
    brackets: int = 0  # parentheses that are open around it
    members: list = field(default_factory=list)
    methods: int = 0  # without those that are defaulted or deleted
    forwards: int = 0  # of these, those whose body is a call of a method of a member
    begins: int = 0  # where its braces open


@dataclass
class Function:
    name: str
    first: int
    last: int


@dataclass
class Declared:
    """What a namespace declares."""

    kind: str  # type, function or value
    name: str
    namespace: tuple


class Parsed:
    """Functions, classes with their data members, and declarations at the level of a namespace."""

    def __init__(self, code):
        self.functions = []
        self.classes = []  # Scope
        self.declared = []
        self._scopes = [Scope("namespace", "", 0)]
        self._round = 0
        self._code = code
        self._walk(code)

    def _walk(self, code):
        start, line, seen = 0, 1, 0
        for match in _BRACKET.finditer(code):
            at, sign = match.start(), match.group()
            line += code.count("\n", seen, at)
            seen = at
            inner = self._scopes[-1].kind in ("function", "enum")
            if sign in "()":
                self._round += 1 if sign == "(" else -1
            elif sign == "{":
                start = self._open(code[start:at], line, at, start, inner)
            elif sign == "}":
                start = self._close(line, at, start)
            elif not inner and self._round == 0 and self._scopes[-1].kind != "init":
                self._statement(code[start:at])
                start = at + 1

    def _open(self, head, line, at, start, inner):
        kind, name = ("init", "") if inner or self._round else kind_of(head)
        self._scopes.append(Scope(kind, name, line, head, self._round, begins=at + 1))
        self._round = 0
        if kind == "class" or (kind == "enum" and name):
            self._declare("type", name)
        elif kind == "function":
            self._declare("function", name)
            if self._scopes[-2].kind == "class":
                self._scopes[-2].methods += 1
        return start if kind == "init" else at + 1

    def _close(self, line, at, start):
        if len(self._scopes) == 1:
            return start
        scope = self._scopes.pop()
        self._round = scope.brackets
        if scope.kind == "function":
            self.functions.append(Function(scope.name, scope.line, line))
            if self._scopes[-1].kind == "class" and _FORWARDS.match(self._code[scope.begins:at]):
                self._scopes[-1].forwards += 1
        if scope.kind == "class":
            self.classes.append(scope)
        return start if scope.kind == "init" else at + 1

    def _declare(self, kind, name):
        outer = self._scopes[:-1] if self._scopes[-1].name == name else self._scopes
        if all(scope.kind == "namespace" for scope in outer) and name:
            path = tuple(part for scope in outer for part in scope.name.split("::") if part)
            self.declared.append(Declared(kind, name, path))

    def _statement(self, text):
        text = " ".join(_ATTRIBUTE.sub(" ", text).split())
        text = _LABEL.sub("", text).strip()
        scope = self._scopes[-1]
        if scope.kind == "class":
            scope.members += data_members(text)
            scope.methods += declares_method(text)
        elif scope.kind == "namespace":
            found = declaration_of(text)
            if found:
                self._declare(*found)


def kind_of(head):
    """What the braces after `head` hold, and its name."""
    head = _ATTRIBUTE.sub(" ", _LABEL.sub("", head)).strip()
    plain = stripped(head, _ANGLES)
    if re.match(r"(inline )?namespace\b", plain):
        return "namespace", plain.split("namespace")[1].strip()
    if plain.startswith('extern ""') and "(" not in plain:
        return "namespace", ""
    bare = without_arguments(plain)
    if _ENUM.match(bare):
        return "enum", _ENUM.match(bare).group(1)
    if _CLASS.search(bare) and "(" not in bare and "=" not in bare:
        return "class", _CLASS.search(bare).group(2)
    if "(" not in bare or ("=" in bare and "operator" not in bare):
        return "init", ""
    if _INITIALISERS.search(bare) and re.search(r"[\w>]$", bare):
        return "init", ""  # of a member, in a constructor's list
    return "function", function_name(bare)


def function_name(bare):
    found = re.search(r"([\w:~]+)\s*\(", bare)
    return found.group(1) if found and "operator" not in bare else ""


def data_members(statement):
    """The names of the data members that a statement of a class declares."""
    plain = without_arguments(stripped(stripped(statement, _CURLY), _ANGLES))
    if "operator" in plain or _NO_MEMBER.match(plain):
        return []
    declarators = [re.split(r"=|(?<!:):(?!:)", part)[0].strip() for part in plain.split(",")]
    if any("(" in one for one in declarators):
        return []
    found = [re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", one) for one in declarators]
    return [one.group(1) for one in found if one]


def declares_method(statement):
    """Whether a statement of a class declares a function that has a body somewhere."""
    plain = re.sub(r"^template\s*", "", stripped(statement, _ANGLES))
    if re.match(r"(?:using|friend|typedef|enum|class|struct|union)\b", plain):
        return False
    bare = without_arguments(stripped(plain, _CURLY))
    if re.search(r"=\s*(?:default|delete)$", bare):
        return False
    return re.search(r"[\w\]]\s*\(\)", re.sub(r"\boperator\s*\S+?(?=\()", "op", bare).split("=")[0]) is not None


def declaration_of(statement):
    """Kind and name of what a statement of a namespace declares; None where it is none."""
    plain = stripped(statement, _ANGLES)
    plain = re.sub(r"^template\s*", "", plain)
    alias = re.match(r"using (\w+)\s*=", plain)
    if alias:
        return "type", alias.group(1)
    if _NO_DECLARATION.match(plain):
        return None
    bare = without_arguments(plain)
    before = re.split(r"[={]", bare, maxsplit=1)[0]
    if "operator" in before:
        return None
    if "(" in before:
        name = function_name(before)
        return ("function", name) if name and "::" not in name else None
    found = re.search(r"(\w+)(?:\[[^\]]*\])*\s*$", before)
    return ("value", found.group(1)) if found and " " in before else None
