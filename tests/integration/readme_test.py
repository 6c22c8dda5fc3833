"""The README stays true: its commands work, and the fields, settings and series it names exist.

A block opened by ```sh is run line by line in one shell, against a server with the example limits; a line must end
with 0, unless its comment says another exit code. A block opened by ```sh build installs or builds: of those only the
scripts are looked for.
"""

import os
import re
import subprocess
import tempfile
import unittest

import support

with open(os.path.join(support.ROOT, "README.md"), encoding="utf-8") as _readme:
    README = _readme.read()
EXAMPLE = os.path.join(support.ROOT, "deploy", "examples", "limits.yaml")


def blocks(kind):
    return re.findall(rf"^```{re.escape(kind)}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


class Readme(support.TestCase):
    def run_block(self, block, server, env):
        """(line, exit code, what it printed) of each line."""
        folder = tempfile.mkdtemp(dir=self.directory)
        lines = [line for line in block.splitlines() if line.strip()]
        script = "".join(f"{{ {line}\n}} >{folder}/{number}.out 2>&1; echo $? >{folder}/{number}.code\n"
                         for number, line in enumerate(lines))
        # The addresses of this server instead of the usual ones; the programs as built here.
        script = script.replace("127.0.0.1:7371", server.ops_address).replace("build/release/bin/", "")
        subprocess.run(["bash", "-c", script], cwd=support.ROOT, env=env, timeout=support.DEADLINE_S, check=True)
        for number, line in enumerate(lines):
            texts = []
            for name in (f"{number}.out", f"{number}.code"):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
            yield line, int(texts[1]), texts[0]

    def start_example(self):
        with open(EXAMPLE, encoding="utf-8") as example:
            return self.start(example.read())

    def test_every_command_works(self):
        server = self.start_example()
        env = support.environment({"EBBGATE_SERVER": server.call_address, "EBBGATE_ADMIN": server.admin_address,
                                   "PATH": support.BIN + os.pathsep + os.environ["PATH"]})
        ran = [done for block in blocks("sh") for done in self.run_block(block, server, env)]
        self.assertGreater(len(ran), 25)
        for line, code, printed in ran:
            expected = re.search(r"# exit code (\d+)", line)
            with self.subTest(line):
                self.assertEqual(code, int(expected.group(1)) if expected else 0, printed)
                if not re.match(r"\w+=", line):
                    self.assertTrue(printed.strip(), "it prints something")
        self.assert_alive(server)

    def test_what_builds_is_there(self):
        for script in re.findall(r"^(\w+/[\w-]+\.sh)", "\n".join(blocks("sh build")), flags=re.MULTILINE):
            self.assertTrue(os.access(os.path.join(support.ROOT, script), os.X_OK), script)

    def test_the_limits_shown_are_valid(self):
        shown = blocks("yaml")
        self.assertTrue(shown)
        for number, text in enumerate(shown):
            path = os.path.join(self.directory, f"{number}.yaml")
            support.write_file(path, text)
            done = subprocess.run([support.EBBGATE, "lint", path], capture_output=True, text=True,
                                  timeout=support.DEADLINE_S, check=False, env=support.environment())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_series_named_exists(self):
        server = self.start_example()
        series = server.get("/metrics").body
        for name in sorted(set(re.findall(r"\bebbgate_[a-z_]+", README))):
            self.assertIn(f"# TYPE {name} ", series)

    def test_every_flag_named_exists(self):
        server = self.start_example()
        helped = subprocess.run([support.EBBGATED, "--help"], capture_output=True, text=True,
                                timeout=support.DEADLINE_S, check=False, env=support.environment()).stdout
        commands = ("check", "reserve", "settle", "cancel", "health", "inspect", "reset", "limits", "reload", "drift",
                    "report", "lint", "replay", "load")
        for command in commands:
            helped += server.cli(command, "--help").stdout
        helped += server.cli("--help").stdout
        # Those of other programs stand in blocks that build; one of a script does not.
        ours = README
        for block in blocks("sh build"):
            ours = ours.replace(block, "")
        for flag in sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", ours)) - {"--build-only"}):
            self.assertTrue(re.search(rf"(?<![\w-]){flag}(?![\w-])", helped), f"no program knows {flag}")

    def test_every_command_of_the_command_line_is_told(self):
        told = re.findall(r"^\s{2}([a-z]+)\s{2,}\S", subprocess.run(
            [support.EBBGATE, "--help"], capture_output=True, text=True, timeout=support.DEADLINE_S, check=False,
            env=support.environment()).stdout.split("ubcommands:")[-1], flags=re.MULTILINE)
        self.assertIn("check", told)
        for command in told:
            self.assertIn(f"`ebbgate {command}", README)


if __name__ == "__main__":
    unittest.main(verbosity=2)
