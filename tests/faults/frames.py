"""Whose code made a call: the frames that fail_nth.c recorded, and the debugging information of ours."""
import re
import subprocess
from typing import Dict, List, NamedTuple, Tuple

# They call for somebody else: allocators, containers, streams, starts of threads.
PASSED = re.compile(r"(libfail_nth|libc|libstdc\+\+|libgcc_s|libm|libpthread|ld-linux[^/]*)\.so[^/]*$")
STANDARD_HEADER = re.compile(r"/usr/(include/(x86_64-linux-gnu/)?c\+\+|lib/gcc)/")
HEADER = re.compile(r"/usr/include/(?:x86_64-linux-gnu/)?(\w+)")


class Caller(NamedTuple):
    owner: str  # "ours", a library such as "libzmq", or the folder of its headers
    where: str  # function and place, where they are known


class Frames:
    """Of one program. `root` is the folder of its sources."""

    def __init__(self, program, root):
        self.program, self.root = str(program.resolve()), str(root) + "/"
        # (function, file:line) at an offset of the program, inlined ones first.
        self.known: Dict[str, List[Tuple[str, str]]] = {}

    def caller(self, frames) -> Caller:
        """The innermost that does not call for somebody else. `frames`: OBJECT+OFFSET, as recorded."""
        self._resolve(frames)
        for frame in frames:
            module, _, offset = frame.rpartition("+")
            if PASSED.search(module):
                continue
            if module != self.program:
                return Caller(re.split(r"[-.]", module.rpartition("/")[2])[0], "")
            for function, place in self.known[offset]:
                if STANDARD_HEADER.match(place):
                    continue
                header = HEADER.match(place)
                where = f"{function} ({place.replace(self.root, '')})"
                if self._is_ours(function, place):
                    return Caller("ours", where)
                if "cudart" in function:
                    return Caller("CUDA runtime", "")
                return Caller(header[1] if header else "linked statically", where)
        return Caller("", "")

    def functions(self, frames) -> List[str]:
        """Of our sources, the innermost first."""
        self._resolve(frames)
        offsets = (frame.rpartition("+") for frame in frames)
        return [function for module, _, offset in offsets if module == self.program
                for function, place in self.known[offset] if self._is_ours(function, place)]

    def _is_ours(self, function, place):
        """Without debugging information the name is all there is."""
        return place.startswith(self.root) or (place.startswith("??") and "batchwright::" in function)

    def _resolve(self, frames):
        """All at once: a start of addr2line takes longer than its answers."""
        unknown = {offset for module, _, offset in (frame.rpartition("+") for frame in frames)
                   if module == self.program and offset not in self.known}
        if not unknown:
            return
        said = subprocess.run(["addr2line", "-a", "-f", "-i", "-C", "-e", self.program, *unknown],
                              check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        found: Dict[str, List[Tuple[str, str]]] = {}
        function = None
        for line in said:
            if line.startswith("0x"):
                told = found.setdefault(hex(int(line, 16)), [])
            elif function is None:
                function = line.replace("(anonymous namespace)::", "").partition("(")[0]
            else:
                told.append((function, line))
                function = None
        self.known.update(found)
