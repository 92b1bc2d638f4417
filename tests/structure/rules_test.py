#!/usr/bin/python3
"""Shows that each rule finds what it is there to find: one small tree a sentence."""

import pathlib
import re
import tempfile
import unittest

import house
from check import RULES, check
from exceptions import EXCEPTIONS, Exempt


class Rule(unittest.TestCase):
    """A test says `accepts` or `refuses`: the rules, and a tree as {path: text}."""

    def found(self, rules, files, links=(), exceptions=()):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text + "\n", encoding="utf-8")
            return check(folder, rules.split(), links, exceptions)[0]

    def accepts(self, rules, files, **more):
        self.assertEqual(self.found(rules, files, **more), [])

    def refuses(self, sentence, rules, files, **more):
        found = self.found(rules, files, **more)
        self.assertEqual(len(found), 1, found)
        self.assertIn(sentence, found[0])


class Includes(Rule):
    def test_an_arrow_of_the_house_through_a_front_door_passes(self):
        self.accepts("includes links", {
            "daemon/assembly/a.cpp": '#include "storage/dataset/dataset.h"  // reads; sizes'},
            links=["assembly: dataset formats Threads::Threads"])

    def test_a_room_may_include_its_own_headers(self):
        self.accepts("includes", {
            "storage/dataset/a.cpp": '#include "storage/dataset/lmdb/inner.h"'})

    def test_an_installed_header_is_a_front_door(self):
        self.accepts("includes", {"client/examples/a.c": "#include <batchwright/client.h>"})

    def test_an_example_alone_includes_what_lies_beside_it_by_its_name(self):
        self.accepts("includes", {"client/examples/job/a.cpp": '#include "b.h"',
                                  "client/examples/job/b.h": ""})
        self.refuses('"b.h" is not rooted at the project', "includes", {
            "client/library/a.cpp": '#include "b.h"', "client/library/b.h": ""})

    def test_an_include_against_the_arrows_fails(self):
        self.refuses("dataset must not include planning", "includes", {
            "storage/dataset/a.cpp": '#include "daemon/planning/planning.h"'})

    def test_a_room_below_another_is_a_room_of_its_own(self):
        self.refuses("wire must not include feed", "includes", {
            "daemon/delivery/wire/a.cpp": '#include "daemon/delivery/feed/feed.h"'})

    def test_an_inner_header_of_another_room_fails(self):
        self.refuses("is not a front door of dataset", "includes", {
            "daemon/assembly/a.cpp": '#include "storage/dataset/inner.h"'})

    def test_angle_brackets_hide_nothing(self):
        self.refuses("library must not include dataset", "includes", {
            "client/library/a.cpp": "#  include <storage/dataset/dataset.h>"})

    def test_a_generated_header_outside_of_formats_fails(self):
        self.refuses("generated headers are for formats alone", "includes", {
            "storage/dataset/a.cpp": '#include "batch_generated.h"'})

    def test_an_include_that_is_not_rooted_at_the_project_fails(self):
        self.refuses("is not rooted at the project", "includes", {
            "storage/dataset/a.cpp": '#include "inner.h"'})

    def test_an_include_of_a_macro_fails(self):
        self.refuses("an include that names no header", "includes", {
            "storage/dataset/a.cpp": "#include HEADER"})

    def test_a_second_file_with_an_awkward_library_fails(self):
        self.refuses("lmdb is included by more than one file of dataset", "includes", {
            "storage/dataset/a.cpp": "#include <lmdb.h>",
            "storage/dataset/b.cpp": "#include <lmdb.h>"})

    def test_an_awkward_library_in_another_room_fails(self):
        self.refuses("<lmdb.h> belongs to dataset, not to stats", "includes", {
            "daemon/stats/a.cpp": "#include <lmdb.h>"})

    def test_a_mutex_that_clang_does_not_check_fails(self):
        for name in ("mutex", "recursive_mutex", "condition_variable", "lock_guard"):
            self.refuses(f"daemon/log.cpp: std::{name} is for formats/base/kernel/mutex.h alone",
                         "mutexes", {"daemon/log.cpp": f"std::{name} one; std::{name} other;"})

    def test_the_checked_mutex_its_own_file_tests_and_examples_pass(self):
        self.accepts("mutexes", {
            "daemon/log.cpp": "Mutex mutex; std::condition_variable_any any;  // no std::mutex",
            "formats/base/kernel/mutex.h": "std::mutex mutex_;",
            "tests/stats/a.cpp": "std::mutex mutex;",
            "client/examples/edge/recorder.h": "std::mutex mutex_;"})

    def test_a_link_against_the_arrows_fails(self):
        self.refuses("library must not link dataset", "links", {},
                     links=["formats: ", "batchwright_client: formats dataset"])


class Names(Rule):
    HOUSE = {
        "storage/dataset/dataset.h": '#include "storage/dataset/reader.h"',
        "storage/dataset/reader.h": "namespace batchwright { class Reader { int fd_; };\n"
                                    "Reader open_reader(int fd); constexpr int kPages = 1; }",
        "daemon/assembly/assembly.h": '#include "storage/dataset/dataset.h"',
    }

    def uses(self, code, path="daemon/delivery/a.cpp"):
        return {**self.HOUSE, path: '#include "daemon/assembly/assembly.h"\n' + code}

    def test_a_name_of_a_room_that_is_seen_passes(self):
        self.accepts("names", self.uses("Reader r = open_reader(kPages);", "daemon/assembly/a.cpp"))

    def test_a_type_behind_another_rooms_door_fails(self):
        self.refuses("Reader is dataset's, which delivery does not see", "names",
                     self.uses("void f(const Reader& r);"))

    def test_a_function_behind_another_rooms_door_fails(self):
        self.refuses("open_reader is dataset's", "names",
                     self.uses("int f() { return open_reader(1); }"))

    def test_a_constant_behind_another_rooms_door_fails(self):
        self.refuses("kPages is dataset's", "names",
                     self.uses("int f() { return batchwright::kPages; }"))

    def test_comments_and_texts_use_no_name(self):
        self.accepts("names", self.uses('const char* f() { return "Reader"; }  // Reader'))

    def test_a_member_and_a_name_of_another_namespace_are_not_the_rooms(self):
        self.accepts("names", self.uses("int f(X& x) { return x.open_reader(1) + std::kPages; }"))

    def test_a_name_that_the_room_declares_itself_is_its_own(self):
        self.accepts("names", self.uses("struct Reader {}; int open_reader(int); Reader f();"))

    def test_a_forward_declaration_makes_no_name_the_rooms_own(self):
        self.refuses("Reader is dataset's", "names", self.uses("class Reader; void f(Reader* r);"))

    def test_an_arrow_that_nothing_uses_fails(self):
        used = {f"{room.folder}/a.cpp": "\n".join(
            f'#include "{house.BY_NAME[target].doors[0]}"' for target in room.sees)
            for room in house.ROOMS}
        used.update((door, "") for room in house.ROOMS for door in room.doors)
        self.accepts("arrows", used)
        used["daemon/http/a.cpp"] = '#include "formats/formats.h"\n#include "formats/base/base.h"'
        self.refuses("http uses nothing of stats", "arrows", used)

    def test_a_front_door_that_is_not_there_fails(self):
        self.assertIn("house.py: daemon/http/http.h, a door of http, is not there",
                      self.found("arrows", {}))


class Sizes(Rule):
    def test_a_file_of_400_lines_passes_and_one_more_fails(self):
        self.accepts("files", {"formats/a.h": "\n" * 399})
        self.refuses("formats/a.h: 401 lines, at most 400", "files", {"formats/a.h": "\n" * 400})

    def test_a_folder_of_25_source_files_passes_and_one_more_fails(self):
        files = {f"tests/python/a{number}.py": "" for number in range(25)}
        self.accepts("folders", {
            **files, "tests/python/README.md": "", "tests/python/sub/b.py": ""})
        self.refuses("tests/python: 26 source files", "folders", {**files, "tests/python/b.js": ""})

    def test_a_todo_needs_an_issue(self):
        self.accepts("todos", {"formats/a.h": "// TODO(15): later"})
        self.refuses("a TODO without an issue number", "todos", {"formats/a.h": "// TODO: later"})

    def test_a_function_of_70_lines_passes_and_one_more_fails(self):
        code = "Foo::Foo(int a) noexcept : a_{a}, b_(a) {%s}\nint Foo::g() const { return 1; }"
        self.accepts("functions", {"formats/a.cpp": code % ("\n" * 70)})
        self.refuses("formats/a.cpp:1: Foo::Foo has 71 lines", "functions",
                     {"formats/a.cpp": code % ("\n" * 71)})

    def test_a_method_within_its_class_counts(self):
        self.refuses("formats/a.h:2: f has 71 lines", "functions", {
            "formats/a.h": "class A {\n public: void f(int x = (1)) const {" + "\n" * 71 + "} };"})

    def test_a_test_is_named_by_its_sentence(self):
        self.refuses("formats: a sentence has 71 lines", "functions", {
            "tests/a_test.cpp": 'TEST_CASE("formats: a sentence") {' + "\n" * 71 + "}"})

    def test_a_table_of_values_is_no_function(self):
        self.accepts("functions", {"formats/a.cpp": "const int kTable[] = {" + "\n" * 99 + "};"})

    def test_a_function_of_python_counts(self):
        self.refuses("client/a.py:1: f has 71 lines", "functions", {
            "client/a.py": "def f():\n" + "    f()\n" * 71})

    def test_a_class_of_15_members_passes_and_one_more_fails(self):
        members = "static int s_; using T_ = int; int t() const;\n" + "".join(
            f"std::map<int, F<int(int)>> m{n}_{{1, 2}}; int f{n}() {{ return 1; }}\n"
            for n in range(14))
        self.accepts("members", {"formats/a.h": f"class A {{ {members} private: int a_ = 1; }};"})
        self.refuses("formats/a.h:1: A has 16 data members", "members", {
            "formats/a.h": f"class A {{ {members} private: int a_ = 1, b_; }};"})

    def test_a_member_that_a_mutex_guards_counts(self):
        members = "".join(f"int m{n}_ GUARDED_BY(mutex_) = {n};" for n in range(15))
        self.refuses("formats/a.h:1: A has 16 data members", "members", {
            "formats/a.h": f"class A {{ Mutex mutex_; {members} }};"})

    def test_a_struct_of_values_may_have_more(self):
        members = "".join(f"int m{n};" for n in range(16))
        self.accepts("members", {"formats/a.h": f"struct A {{ {members} }};"})


    def test_a_class_of_40_methods_passes_and_one_more_fails(self):
        methods = "A(); ~A() = default; A(const A&) = delete; using T = int(*)(); friend int f();\n" + "".join(
            f"int m{n}(F<int()> f = {{}}) const;\n" if n % 2 else f"int m{n}() {{ return n_(); }}\n"
            for n in range(39))
        self.accepts("methods", {"formats/a.h": f"class A {{ {methods} int a_ = f(); }};"})
        self.refuses("formats/a.h:1: A has 41 methods, at most 40", "methods", {
            "formats/a.h": f"class A {{ {methods} bool operator==(const A&) const; }};"})

    def test_a_small_header_needs_a_second_user(self):
        files = {"formats/small.h": "int f();\n", "formats/small.cpp": '#include "formats/small.h"\n',
                 "formats/a.cpp": '#include "formats/small.h"\n'}
        self.refuses("formats/small.h has 4 lines and serves formats/a.cpp alone", "small", files)
        self.accepts("small", {**files, "tests/a_test.cpp": '#include "formats/small.h"\n'})
        self.accepts("small", {**files, "formats/small.cpp": "\n" * 40})

    def test_a_class_that_only_forwards_fails(self):
        body = "int a() { return it_->a(); } void b(int c) { it_->b(c, 1); } %s private: It* it_;"
        self.refuses("A only forwards to it_", "forwarders", {
            "formats/a.h": "class A { " + body % "" + " };"})
        self.accepts("forwarders", {
            "formats/a.h": "class A { " + body % "int c() { return it_->a() + 1; }" + " };"})


class Upward(Rule):
    def test_a_header_that_leads_back_into_the_folder_fails(self):
        files = {"daemon/http/in/a.h": '#include "daemon/http/top.h"\n',
                 "daemon/http/in/b.h": "", "daemon/http/top.h": '#include "daemon/http/mid.h"\n',
                 "daemon/http/mid.h": '#include "daemon/http/in/b.h"\n'}
        self.refuses("daemon/http/in/a.h includes daemon/http/top.h, which leads back to "
                     "daemon/http/in/b.h", "upward", files)
        self.accepts("upward", {**files, "daemon/http/mid.h": ""})
        self.accepts("upward", {**files, "daemon/http/in/a.h": "",
                                "daemon/http/in/a.cpp": '#include "daemon/http/top.h"\n'})


class Circles(Rule):
    def package(self, **modules):
        return {f"client/python/batchwright/{name}.py": text for name, text in modules.items()}

    def test_imports_in_one_direction_pass(self):
        self.accepts("circles", self.package(
            __init__="from .a import A", a="from . import b", b="import os"))

    def test_two_modules_that_import_each_other_fail(self):
        self.refuses("a -> b -> a", "circles", self.package(
            a="from .b import B", b="from . import a"))

    def test_an_import_within_a_function_counts(self):
        self.refuses("a -> b -> c -> a", "circles", self.package(
            a="from .b import B", b="from .c import C", c="def f():\n    from .a import A"))

    def test_an_import_for_type_checkers_counts(self):
        self.refuses("a -> b -> a", "circles", self.package(
            a="from .b import B", b="if TYPE_CHECKING:\n    from .a import A"))

    def test_a_sub_package_is_followed(self):
        self.refuses("a -> sub.b -> a", "circles", {
            **self.package(a="from .sub.b import B"),
            "client/python/batchwright/sub/__init__.py": "",
            "client/python/batchwright/sub/b.py": "from ..a import A"})


class Documents(Rule):
    def table(self):
        return "\n".join(f"| `{room.folder}` | it | {' '.join(f'`{one}`' for one in room.sees)} |"
                         for room in house.ROOMS)

    def test_a_file_that_is_named_must_exist(self):
        self.accepts("references", {"formats/README.md": "[a](a.h) `formats/a.h` `formats/NAME.h`",
                                    "formats/a.h": ""})
        self.refuses("README.md names formats/b.h", "references", {
            "README.md": "see `formats/b.h`", "formats/a.h": ""})
        self.refuses("README.md names b.h", "references", {
            "README.md": "see `b.h` and `a.h`", "formats/a.h": ""})

    def test_examples_that_are_no_python_fail(self):
        self.accepts("examples", {"a/README.md": "```python\nx = 1\n```\n```c\nint x;\n```"})
        self.refuses("a/README.md: an example in Python: ", "examples", {
            "a/README.md": "```python\nfeed.epoch(0):\n    x = 1\n```"})

    def test_each_room_has_a_readme(self):
        readmes = {f"{room.folder}/README.md": "" for room in house.ROOMS}
        self.accepts("readmes", readmes)
        readmes.pop("daemon/http/README.md")
        self.refuses("daemon/http has no README.md", "readmes", readmes)

    def test_the_table_of_contributing_is_the_houses(self):
        self.accepts("contributing", {"CONTRIBUTING.md": self.table()})
        self.refuses("CONTRIBUTING.md: daemon/http may use", "contributing", {
            "CONTRIBUTING.md": self.table().replace("http` | it | `base` `formats`", "http` | it | `base`")})
        self.refuses("common is no room", "contributing", {
            "CONTRIBUTING.md": self.table() + "\n| `common` | it | nothing |"})


class Exceptions(Rule):
    LONG = {"formats/a.h": "\n" * 400}

    def test_an_exception_allows_its_breach(self):
        self.accepts("files", self.LONG,
                     exceptions=[Exempt("files", "formats/a.h", "a reason", 401)])

    def test_an_exception_has_a_limit_of_its_own(self):
        self.refuses("401 lines", "files", self.LONG,
                     exceptions=[Exempt("files", "formats/a.h", "a reason", 400)])

    def test_an_exception_that_is_no_longer_needed_fails(self):
        self.refuses("formats/a.h keeps to the rule 'files': the exception can go", "files",
                     {"formats/a.h": ""},
                     exceptions=[Exempt("files", "formats/a.h", "a reason", 401)])

    def test_each_exception_names_a_rule_and_has_a_reason(self):
        for one in EXCEPTIONS:
            self.assertIn(one.rule, RULES)
            self.assertTrue(one.reason)

    def test_each_rule_belongs_to_a_test(self):
        tests = (pathlib.Path(__file__).parent / "CMakeLists.txt").read_text(encoding="utf-8")
        used = re.findall(r'^test_structure\("[^"]*" (.*)\)$', tests, re.MULTILINE)
        self.assertEqual(sorted(" ".join(used).split()), sorted([*RULES, "links"]))


if __name__ == "__main__":
    unittest.main()
