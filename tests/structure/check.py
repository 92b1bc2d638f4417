#!/usr/bin/python3
"""Checks the house: check.py ROOT [--links FILE] RULE...

It fails on each breach of the rules that exceptions.py does not list, and on each exception that is
needed no longer. The links are lines "target: link link ...".
"""

import argparse
import pathlib
import sys

import circles
import documents
import layering
import names
import sizes
from exceptions import EXCEPTIONS
from tree import Tree

RULES = {
    "includes": layering.check_includes,
    "arrows": names.check_arrows,
    "upward": layering.check_upward,
    "contributing": documents.check_contributing,
    "mutexes": layering.check_mutexes,
    "names": names.check_names,
    "files": sizes.check_files,
    "todos": sizes.check_todos,
    "folders": sizes.check_folders,
    "functions": sizes.check_functions,
    "members": sizes.check_members,
    "methods": sizes.check_methods,
    "small": sizes.check_small_files,
    "forwarders": sizes.check_forwarders,
    "circles": circles.check_circles,
    "readmes": documents.check_readmes,
    "references": documents.check_references,
    "examples": documents.check_examples,
}


def judge(breaches, rules, exceptions):
    """The sentences of breaches that no exception allows, and of exceptions without a breach."""
    allowed = {(one.rule, one.what): one for one in exceptions if one.rule in rules}
    needed, sentences = set(), []
    for breach in breaches:
        key = (breach.rule, breach.what)
        needed.add(key)
        if key not in allowed or breach.figure > allowed[key].most:
            sentences.append(breach.text)
    return sentences + [f"exceptions.py: {one.what} keeps to the rule '{one.rule}': the exception "
                        "can go" for key, one in allowed.items() if key not in needed]


def check(root, rules, links=(), exceptions=EXCEPTIONS):
    """The sentences of all that is wrong in the tree at `root`."""
    tree = Tree(root)
    breaches = [breach for rule in rules if rule != "links" for breach in RULES[rule](tree)]
    if "links" in rules:
        breaches += layering.check_links(links)
    return judge(breaches, rules, exceptions), len(tree.files)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("rules", nargs="+", choices=[*RULES, "links"])
    parser.add_argument("--links", type=pathlib.Path)
    given = parser.parse_args()
    links = given.links.read_text().splitlines() if given.links else ()
    wrong, count = check(given.root, given.rules, links)
    print("\n".join(wrong) or f"{count} files keep to the rules: {' '.join(given.rules)}")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
