"""The rules of CONTRIBUTING.md that a program can check, over the whole tree. Standard library only."""

import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 120

# Imports point one way. What a folder may include, itself aside.
MAY_INCLUDE = {
    "server/limiter": (),
    "server/store": ("server/limiter",),
    "server/engine": ("server/store", "server/limiter"),
    "server/drift": ("server/store", "server/limiter"),
    "server/config": ("server/engine", "server/store", "server/limiter"),
    "server/telemetry": ("server/config", "server/drift", "server/engine", "server/store", "server/limiter"),
    "server/service": ("server/engine", "server/config", "server/drift", "server/telemetry", "server/store",
                       "server/limiter"),
    "client": ("server/config", "server/engine", "server/limiter"),
}
# The core knows nothing of protocols, logs or metrics; the limiter nothing of threads or files either.
CORE = ("server/limiter", "server/store", "server/engine", "server/drift")
NOT_IN_CORE = re.compile(r"^(grpc|google/protobuf|ebbgate/v1|spdlog|prometheus|httplib|yaml-cpp|CLI)")
NOT_IN_LIMITER = {"thread", "mutex", "condition_variable", "future", "iostream", "fstream", "filesystem", "random"}

# Each invariant has tests that carry its name. Those of a cluster and of restarts come with them.
INVARIANTS = ("Envelope", "Exact", "FreeRefusal", "AllOrNothing", "Never", "HonestWait", "OneClock", "ForgetOnlyFull",
              "Calendar", "SettledChange", "Counted", "OverloadIsNotDenial", "DistinctKeys", "Bounded")

# Written apart, so that this file does not hold them.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK")) + r")\b")


def tree():
    """Paths of all files of the project, relative to its top."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in (".git", "build", ".cache", "__pycache__"))
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as source:
        return source.read()


FILES = list(tree())
CPP = [path for path in FILES if path.endswith((".cc", ".h"))]
HEADERS = [path for path in CPP if path.endswith(".h")]
SCRIPTS = [path for path in FILES if path.endswith((".sh", ".py")) or path == ".ci/run"]
TEXTS = [path for path in FILES
         if path.endswith((".cc", ".h", ".sh", ".py", ".md", ".proto", ".yaml", ".cmake", ".txt"))
         or os.path.basename(path) in ("Dockerfile", "run", ".clang-tidy", ".clang-format")]


_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'',
                       re.DOTALL)


def blank(match):
    """A space, but where a digit separator was taken for a character, the same number of lines."""
    return " " + "\n" * match.group(0).count("\n")


def code_only(text):
    """The text without comments, literals and preprocessor lines, with its line breaks kept."""
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text)
    text = _NOT_CODE.sub(blank, text)
    return re.sub(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", blank, text, flags=re.MULTILINE)


_NO_FUNCTION = re.compile(r"^\s*(?:inline\s+)?(?:namespace|class|struct|union|enum|extern|"
                          r"template\s*<[^{]*>\s*(?:class|struct))\b")


def opens_function(header):
    """Whether a brace after these words, at namespace or class scope, opens a function's body."""
    return "(" in header and not _NO_FUNCTION.match(header) and "=" not in header.split("(")[0]


def functions(text):
    """(first line, number of lines, header) of each function that has a body."""
    depth_of_function, start, stack, header_from = None, None, [], 0
    code = code_only(text)
    for at, symbol in enumerate(code):
        if symbol == "{":
            header = code[header_from:at]
            if depth_of_function is None and opens_function(header):
                depth_of_function = len(stack)
                start = header_from + len(header) - len(header.lstrip())
                name = " ".join(header.split())
            stack.append(symbol)
            header_from = at + 1
        elif symbol == "}":
            if stack:
                stack.pop()
            if depth_of_function is not None and len(stack) == depth_of_function:
                first = code.count("\n", 0, start) + 1
                last = code.count("\n", 0, at) + 1
                yield first, last - first + 1, name
                depth_of_function = None
            header_from = at + 1
        elif symbol == ";":
            header_from = at + 1


def includes(path):
    return re.findall(r'^#include ([<"])([^>"]+)[>"]', read(path), flags=re.MULTILINE)


def folder_of(path):
    return next((folder for folder in MAY_INCLUDE if path.startswith(folder + "/")), None)


class Style(unittest.TestCase):
    def report(self, faults):
        if faults:
            self.fail("\n" + "\n".join(faults))

    def test_the_tree_is_found(self):
        self.assertGreater(len(CPP), 30)
        self.assertIn("server/limiter/bounds.h", HEADERS)

    def test_files_can_be_read_in_one_go(self):
        self.report([f"{path}: {lines} lines, {MAX_FILE_LINES} at most" for path in CPP + SCRIPTS
                     if (lines := read(path).count("\n")) >= MAX_FILE_LINES])

    def test_functions_can_be_seen_whole(self):
        self.report([f"{path}:{line}: {length} lines, under {MAX_FUNCTION_LINES} wanted: {name[:80]}"
                     for path in CPP for line, length, name in functions(read(path)) if length >= MAX_FUNCTION_LINES])

    def test_the_measure_of_functions_works(self):
        body = "  work();\n" * 80
        found = list(functions(f"namespace a {{\nclass B {{\n  int F() {{\n{body}  }}\n"
                               "  int G() { return 1'000; }\n};\n}\n"
                               f'// brace {{\nvoid H(const char* s = "{{") {{\n{body}}}\n'))
        self.assertEqual([(line, length) for line, length, _ in found], [(3, 82), (85, 1), (89, 82)])

    def test_include_guards_are_named_after_their_path(self):
        faults = []
        for path in HEADERS:
            guard = "EBBGATE_" + re.sub(r"[/.]", "_", path).upper() + "_"
            text = read(path)
            if f"#ifndef {guard}\n#define {guard}\n" not in text or not text.endswith(f"#endif  // {guard}\n"):
                faults.append(f"{path}: wants the include guard {guard}")
        self.report(faults)

    def test_headers_open_with_what_they_are_for(self):
        self.report([path for path in HEADERS if not read(path).startswith("// ")])

    def test_nothing_is_marked_as_unfinished(self):
        self.report([f"{path}:{number}: {line.strip()}" for path in TEXTS
                     for number, line in enumerate(read(path).splitlines(), 1) if UNFINISHED.search(line)])

    def test_lines_fit_and_end_plainly(self):
        faults = []
        for path in CPP + SCRIPTS:
            text = read(path)
            if not text.endswith("\n") or text.endswith("\n\n"):
                faults.append(f"{path}: ends with one line break")
            for number, line in enumerate(text.splitlines(), 1):
                # In tests, clang-format leaves long literals as they are.
                too_long = len(line) > MAX_COLUMNS and not (path in CPP and path.startswith("tests/"))
                if too_long or line != line.rstrip() or "\t" in line:
                    faults.append(f"{path}:{number}: over {MAX_COLUMNS} columns, a tab, or blanks at the end")
        self.report(faults)

    def test_imports_point_one_way(self):
        faults = []
        for path in CPP:
            folder = folder_of(path)
            for kind, name in includes(path) if folder else []:
                target = folder_of(name) if kind == '"' else None
                if target not in (None, folder, *MAY_INCLUDE[folder]):
                    faults.append(f"{path}: {folder} must not include {name}")
                if folder in CORE and NOT_IN_CORE.match(name):
                    faults.append(f"{path}: the core must not include {name}")
                if folder == "server/limiter" and name in NOT_IN_LIMITER:
                    faults.append(f"{path}: the limiter must not include <{name}>")
        self.report(faults)

    def test_includes_are_written_from_the_top(self):
        self.report([f'{path}: "{name}"' for path in CPP for kind, name in includes(path)
                     if kind == '"' and os.path.exists(os.path.join(ROOT, os.path.dirname(path), name))])

    def test_string_views_are_abseils(self):
        self.report([path for path in CPP if re.search(r"\bstd::(?:w|u8)?string_view\b", code_only(read(path)))])

    def test_each_invariant_has_tests_that_carry_its_name(self):
        definition = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)"
                                r"\(\s*(\w+),\s*(\w+)", flags=re.MULTILINE)
        in_python = re.compile(r"^class (\w+)\(.*\bTestCase\):|^    def (test_\w+)", flags=re.MULTILINE)
        carried = []
        for path in CPP + SCRIPTS:
            if path.startswith("tests/") and path != "tests/style/style_test.py":
                pattern = definition if path in CPP else in_python
                carried += [".".join(found) for found in pattern.findall(read(path))]
        self.report([f"no test is named after {invariant}" for invariant in INVARIANTS
                     if not any(invariant.lower() in name.lower().replace("_", "") for name in carried)])

    def test_every_test_program_and_file_is_registered(self):
        """A test that no CMakeLists.txt names never runs."""
        faults = []
        for path in FILES:
            folder, name = os.path.split(path)
            if not path.startswith("tests/") or not name.endswith(("_test.cc", "_test.py", "_fuzzer.cc")):
                continue
            registered = read(os.path.join(folder, "CMakeLists.txt")) if f"{folder}/CMakeLists.txt" in FILES else ""
            if name not in registered and re.sub(r"(_fuzzer\.cc|\.py)$", "", name) not in registered:
                faults.append(f"{path} is not in {folder}/CMakeLists.txt")
        self.report(faults)

    def test_scripts_parse(self):
        for path in SCRIPTS:
            with self.subTest(path):
                if path.endswith(".py"):
                    compile(read(path), path, "exec")
                    continue
                file = os.path.join(ROOT, path)
                self.assertTrue(os.access(file, os.X_OK) or "# Sourced by" in read(path), "no run bit")
                done = subprocess.run(["bash", "-n", file], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_links_between_documents_lead_somewhere(self):
        faults = []
        for path in FILES:
            if path.endswith(".md"):
                for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", read(path)):
                    if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)):
                        faults.append(f"{path}: {target}")
        self.report(faults)


if __name__ == "__main__":
    unittest.main(verbosity=2)
