"""Finds places in C++ sources where something small can be wrong, and rewrites them so that it is
wrong in the run that asks for it.

    a();                  { if (!mutant_is(17)) a(); }
    if (a && b)           if (mutant_turns(18, a && b))
    n + 1                 n + mutant_moves(19, 1, +1)

It reads tokens, not the language: what does not compile then is found by the compiler, and left out.
Only bodies of functions are looked at. Left alone are `must()`, logs and texts, functions that
return an error or a text, `constexpr`, labels and template arguments. Lines keep their numbers.
"""

import hashlib
import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<skip> //[^\n]* | /\*.*?\*/ | ^[ \t]*\#[^\n]* | \s+ )
  | (?P<text> R"\((?:.|\n)*?\)" | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
  | (?P<number> \b\d[\w']* )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<mark> ::|->|\+\+|--|<<=|>>=|<=>|&&|\|\||[-+*/%&|^<>=!]=|<<|[^\s\w] )
""", re.VERBOSE | re.MULTILINE | re.DOTALL)

CLOSERS = {"(": ")", "[": "]", "{": "}"}
#  What stands before the brace of a body.
BODY_BEGINS = {")", "]", "const", "override", "noexcept", "mutable", "else", "do", "try"}
ASSIGNS = {"=", "+=", "-=", "|=", "&=", "++", "--", ".", "->", "(", "["}
NO_STATEMENT = {"using", "static_assert", "constexpr", "static", "struct", "class", "enum", "case",
                "default", "delete", "throw", "must", "log", "goto", "typedef"}
TEXTS = {"format", "must", "log", "note", "describe"}
LOOSE = {"&&", "||", "?", ":", ",", ";", "=", "return", "+=", "-=", "|=", "&=", "<<"}


@dataclass(frozen=True)
class Site:
    path: str
    kind: str   # "omit", "turn", "move"
    text: str   # as the source has it, in one line
    count: int  # so many like it are before it in its file
    first: int
    last: int   # after its last character
    line: int
    last_line: int
    whole: str  # the line that it begins in

    def draw(self, seed):
        """Where it comes in the draw: other changes of the sources do not move it."""
        words = "\0".join([str(seed), self.path, self.kind, self.text, str(self.count)])
        return hashlib.sha256(words.encode()).hexdigest()

    def step(self):
        """By how much a constant is moved."""
        even = int(self.draw("step")[:8], 16) % 2 == 0
        return 1 if even or re.match(r"0\D*$", self.text) else -1

    def wrap(self, number):
        if self.kind == "omit":
            return f"{{ if (!mutant_is({number})) ", " }"
        if self.kind == "turn":
            return f"mutant_turns({number}, ", ")"
        return f"mutant_moves({number}, ", f", {self.step()})"


@dataclass
class Token:
    text: str
    first: int
    last: int
    kind: str
    partner: int = -1


def tokens_of(source):
    tokens, open_ones = [], []
    for match in TOKEN.finditer(source):
        if match.lastgroup == "skip":
            continue
        token = Token(match[0], match.start(), match.end(), match.lastgroup)
        if token.kind == "mark" and token.text in CLOSERS:
            open_ones.append(len(tokens))
        elif token.kind == "mark" and token.text in CLOSERS.values():
            token.partner = open_ones.pop()
            tokens[token.partner].partner = len(tokens)
        tokens.append(token)
    return tokens


class Reader:
    """Collects the sites of one file."""

    def __init__(self, path, source):
        self.path, self.source = path, source
        self.tokens = tokens_of(source)
        self.found = []  # kind, first token, after the last token

    def sites(self):
        self.declarations(0, len(self.tokens))
        counts, sites = {}, []
        for kind, first, last in sorted(self.found, key=lambda each: each[1:]):
            begin, end = self.tokens[first].first, self.tokens[last - 1].last
            text = " ".join(self.source[begin:end].split())
            count = counts[kind, text] = counts.get((kind, text), -1) + 1
            line = self.source.count("\n", 0, begin) + 1
            last_line = line + self.source.count("\n", begin, end)
            whole = self.source.splitlines()[line - 1].strip()
            sites.append(Site(self.path, kind, text, count, begin, end, line, last_line, whole))
        return sites

    def text(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def is_body(self, brace):
        before = self.text(brace - 1)
        if before in BODY_BEGINS:
            return True
        index = brace - 1  # a result's type after an arrow
        while self.tokens[index].kind == "name" or self.text(index) in {"::", "<", ">", "*", "&"}:
            index -= 1
        return self.text(index) == "->"

    def declarations(self, index, end):
        """What is in a namespace or a class."""
        begin = index
        while index < end:
            text = self.text(index)
            if text in (";", "}") or (text == ":" and self.text(index - 1) in {"public", "private"}):
                begin = index + 1
            elif text == "{":
                head = {self.text(each) for each in range(begin, index)}
                if head & {"namespace", "class", "struct", "union"} and ")" not in head:
                    self.declarations(index + 1, self.tokens[index].partner)
                elif self.is_function(begin, index):
                    self.function(begin, index)
                elif self.text(index - 1) not in {"}", ")"} or ";" in head:
                    index = self.tokens[index].partner  # a value: what it belongs to goes on
                    index += 1
                    continue
                index = self.tokens[index].partner
                begin = index + 1
            elif text in CLOSERS:
                index = self.tokens[index].partner
            index += 1

    def is_function(self, begin, brace):
        has_list = any(self.text(each) == "(" for each in range(begin, brace))
        return has_list and (self.is_body(brace) or self.text(brace - 1) == "}")

    def function(self, begin, brace):
        head = []
        for each in range(begin, brace):
            if self.text(each) == "(":
                break
            head.append(self.text(each))
        if {"constexpr", "consteval"} & set(head):
            return
        name = head[-1] if head else ""
        if head[:1] == ["Error"] or head[:3] == ["std", "::", "string"] or name == "describe":
            return
        gives_bool = "bool" in head and name != "bool"
        self.block(brace, gives_bool)

    def block(self, brace, gives_bool):
        index, end = brace + 1, self.tokens[brace].partner
        while index < end:
            index = self.statement(index, gives_bool, False)

    def skip_to(self, index, stop):
        while self.text(index) != stop:
            if self.text(index) in CLOSERS:
                index = self.tokens[index].partner
            index += 1
        return index

    def statement(self, index, gives_bool, in_if):
        """One statement; returns what comes after it."""
        text = self.text(index)
        if text == "{":
            self.block(index, gives_bool)
            return self.tokens[index].partner + 1
        if text in ("case", "default"):
            return self.skip_to(index, ":") + 1
        if text in ("if", "while", "for", "switch"):
            return self.controlled(index, gives_bool)
        if text == "do":
            index = self.statement(index + 1, gives_bool, False)
            self.condition(index + 1)
            return self.tokens[index + 1].partner + 2
        if text == "else":
            return self.statement(index + 1, gives_bool, False)
        end = self.skip_to(index, ";") + 1
        if text == "return":
            if gives_bool and end - index > 2 and self.text(index + 1) != "{":
                self.found.append(("turn", index + 1, end - 1))
            if in_if and self.text(end) != "else":
                self.found.append(("omit", index, end))
        elif text in ("break", "continue"):
            if in_if and self.text(end) != "else":
                self.found.append(("omit", index, end))
        elif text in NO_STATEMENT:
            if text != "static" and text not in TEXTS:
                self.expression(index, end)
            return end
        elif self.is_expression(index):
            self.found.append(("omit", index, end))
        elif self.text(index) == "const" and self.text(index + 1) == "bool":
            self.found.append(("turn", self.skip_to(index, "=") + 1, end - 1))
        self.expression(index, end)
        return end

    def controlled(self, index, gives_bool):
        word, opening = self.text(index), index + 1
        if self.text(opening) == "constexpr":
            opening += 1
        if word in ("if", "while") and opening == index + 1:
            self.condition(opening)
        elif word != "switch" or opening == index + 1:
            self.expression(opening, self.tokens[opening].partner)
        if word == "for":
            inner = self.skip_within(opening, ";")
            if inner and self.text(inner + 1) != ";":
                behind = self.skip_to(inner + 1, ";")
                self.found.append(("turn", inner + 1, behind))
        after = self.statement(self.tokens[opening].partner + 1, gives_bool, word == "if")
        if word == "if" and self.text(after) == "else":
            return self.statement(after + 1, gives_bool, self.text(after + 1) == "if")
        return after

    def skip_within(self, opening, stop):
        index = opening + 1
        while index < self.tokens[opening].partner:
            if self.text(index) == stop:
                return index
            index = (self.tokens[index].partner if self.text(index) in CLOSERS else index) + 1
        return None

    def condition(self, opening):
        closing = self.tokens[opening].partner
        begin = self.skip_within(opening, ";")
        begin = begin + 1 if begin else opening + 1
        declares = self.text(begin) in ("const", "auto") or (
            self.tokens[begin].kind == "name" and not self.is_expression(begin) and
            self.tokens[begin + 1].kind == "name")
        if not declares:
            self.found.append(("turn", begin, closing))
        self.expression(opening + 1, closing)

    def is_expression(self, index):
        """Whether a statement is no declaration."""
        while self.text(index) in ("++", "--", "*", "(", "!"):
            if self.text(index) == "(":
                return True
            index += 1
        while self.tokens[index].kind == "name":
            index += 1
            if self.text(index) == "<" and self.tokens[index].first == self.tokens[index - 1].last:
                index = next(each for each in range(index, len(self.tokens))
                             if self.text(each) == ">") + 1
            if self.text(index) == "::":
                index += 1
                continue
            break
        return self.text(index) in ASSIGNS or self.text(index) == "?"

    def expression(self, index, end):
        """Constants, parts of conditions, and lambdas in it."""
        while index < end:
            token = self.tokens[index]
            if token.text in TEXTS and self.text(index + 1) in ("(", "<"):
                index = self.tokens[self.skip_to_list(index)].partner
            elif token.text == "{" and self.is_body(index):
                self.block(index, self.text(index - 1) == "bool")
                index = token.partner
            elif token.text == "<" and token.first == self.tokens[index - 1].last:
                while self.text(index) not in (">", ";", "("):
                    index += 1
                continue
            elif token.kind == "number" and re.fullmatch(r"[\d']+[uUlL]*", token.text):
                self.found.append(("move", index, index + 1))
            elif token.text in ("&&", "||") and self.source[token.first - 1].isspace():
                self.operand(index, +1)
                self.operand(index, -1)
            elif token.text == "?":
                self.operand(index, -1, {"&&", "||"})
            index += 1

    def skip_to_list(self, index):
        while self.text(index) != "(":
            index += 1
        return index

    def operand(self, mark, way, beyond=frozenset()):
        """What stands on one side of it."""
        index = mark + way
        while True:
            text = self.text(index)
            if text in LOOSE - beyond or text in "{[(" and way < 0 or text in ")]}" and way > 0:
                break
            is_edge = text in (CLOSERS if way > 0 else CLOSERS.values())
            index = (self.tokens[index].partner if is_edge else index) + way
        first, last = (mark + 1, index) if way > 0 else (index + 1, mark)
        site = ("turn", first, last)
        if first < last and site not in self.found:
            self.found.append(site)


def sites_of(path, source):
    return Reader(path, source).sites()


def rewrite(source, sites):
    """`sites`: each with its number."""
    inserts = []
    for order, (number, site) in enumerate(sites):
        before, behind = site.wrap(number)
        inserts.append((site.first, 1, -site.last, order, before))
        inserts.append((site.last, 0, -site.first, -order, behind))
    parts, at = [], 0
    for place, _, _, _, text in sorted(inserts):
        parts += [source[at:place], text]
        at = place
    return "".join(parts) + source[at:]
