"""The shipped train.sbatch and train.py without Slurm: script_test.py BIN

srun and scontrol are scripts: the former runs the step's command as its only task, the latter writes
down what it was asked for.
"""
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "systemd" / "deploy" / "slurm"
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
FIRST_EPHEMERAL = 32768  # Linux's net.ipv4.ip_local_port_range begins here
SCONTROL = """#!/bin/sh
if [ "$1" = show ]; then echo 127.0.0.1; else echo "$@" >>asked; fi
"""


class Script(unittest.TestCase):
    """train.sbatch in a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bw-script."))
        self.addCleanup(shutil.rmtree, self.folder)
        for file in ("train.sbatch", "train.py", "train.toml"):
            shutil.copy(SHIPPED / file, self.folder)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.tool("scontrol", SCONTROL)

    def tool(self, name, text):
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def environment(self, **more):
        return {**os.environ, "PATH": f"{self.tools}:{BIN}:{os.environ['PATH']}",
                "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1", **more}

    def run_script(self, *words, **environment):
        """The script's exit code, and whether it had the job requeued."""
        asked = self.folder / "asked"
        asked.unlink(missing_ok=True)
        code = subprocess.run(["bash", self.folder / "train.sbatch", *words], cwd=self.folder,
                              env=self.environment(**environment), check=False,
                              timeout=120).returncode
        number = self.environment(**environment)["SLURM_JOB_ID"]
        return code, asked.exists() and asked.read_text() == f"requeue {number}\n"

    def start(self, exit_code, restarts, retries=3):
        """A start of job 1 whose step ends with this code."""
        self.tool("srun", f"#!/bin/sh\nexit {exit_code}\n")
        return self.run_script(SLURM_RESTART_COUNT=str(restarts), RETRIES=str(retries))

    def test_the_ranks_meet_below_the_ports_that_the_kernel_gives_away(self):
        self.tool("srun", '#!/bin/sh\necho "$MASTER_PORT" >port\n')

        def port_of(number):
            self.run_script(SLURM_JOB_ID=str(number))
            return int((self.folder / "port").read_text())
        for number in (1, 12_767, 12_768, 20_000, 22_767, 22_768, 59_999, 67_108_863):
            self.assertIn(port_of(number), range(10_000, FIRST_EPHEMERAL), number)
        near = [port_of(number) for number in (5, 6, 20_005, 20_006, 22_772)]
        self.assertEqual(len(set(near)), len(near), "jobs that are near each other have one port")

    def test_a_step_that_ended_in_order_is_requeued_however_often_its_time_was_over(self):
        for restarts in range(6):
            self.assertEqual(self.start(0, restarts, retries=0), (0, True))

    def test_failures_in_a_row_are_counted_and_the_times_that_were_over_are_not(self):
        for restarts in range(4):
            self.assertEqual(self.start(0, restarts), (0, True))
        for restarts in range(4, 7):
            self.assertEqual(self.start(1, restarts), (1, True))
        self.assertEqual(self.start(0, 7), (0, True))
        for restarts in range(8, 11):
            self.assertEqual(self.start(138, restarts), (138, True))
        self.assertEqual(self.start(1, 11), (1, False))

    def test_a_new_job_in_the_same_folder_begins_without_failures(self):
        self.assertEqual(self.start(1, 0, retries=0), (1, False))
        self.assertEqual(self.start(1, 0, retries=1), (1, True))
        self.assertEqual(self.start(1, 1, retries=1), (1, False))

    def test_a_signal_that_comes_again_until_the_end_leaves_the_exit_code_alone(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("no torch here (tests/install-packages torch)")
        self.prepare_training()
        script = subprocess.Popen(
            ["bash", self.folder / "train.sbatch", "--epochs", "1000", "--log", "log"],
            cwd=self.folder, env=self.environment(SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="1"))
        self.addCleanup(script.kill)
        log = self.folder / "log" / "1.0.0"
        self.wait(lambda: log.exists() and log.read_text().count("\n") > 5, script)
        trainer = int((self.folder / "trainer").read_text())
        signals = 0
        while script.poll() is None and signals < 600_000:
            try:
                os.kill(trainer, signal.SIGUSR1)
            except ProcessLookupError:
                break
            signals += 1
            time.sleep(0.0001)
        self.assertGreater(signals, 1)
        self.assertEqual(script.wait(timeout=60), 0)
        self.assertEqual((self.folder / "asked").read_text(), "requeue 1\n")
        self.assertTrue((self.folder / "run" / "state.pt").exists())

    def test_a_dataset_of_root_is_served_to_the_job_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("another user takes root here")
        self.prepare_training()
        for each in [self.folder, *self.folder.rglob("*")]:
            each.chmod(0o755 if each.is_dir() else 0o644)
        sockets = self.folder / "sockets"  # not in /tmp, which may be closed to others here
        sockets.mkdir()
        os.chown(sockets, 65534, 65534)
        environment = self.environment(XDG_RUNTIME_DIR=str(sockets))
        del environment["SLURM_JOB_ID"]
        run = ["batchwright", "run", "--config", self.folder / "train.toml", "--"]
        tail = ["sh", "-c", 'batchwright tail --feed train --epochs 1 --endpoint "$BATCHWRIGHT_ENDPOINT"']
        said = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *run, *tail],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=90)
        self.assertEqual(said.returncode, 0, said.stdout)

    def prepare_training(self):
        """A dataset of four ranks' steps, the shipped configuration over it, and a step of one task."""
        import numpy
        import batchwright
        fields = {"features": batchwright.FieldSpec("float32", shape=(8,)),
                  "label": batchwright.FieldSpec("uint8", kind="scalar", categories=("a", "b"))}
        with batchwright.DatasetWriter(self.folder / "data", fields) as writer:
            for number in range(400):
                writer.add(f"s{number}", label=number % 2,
                           features=numpy.full((5 + number % 20, 8), number % 2, "float32"))
        config = self.folder / "train.toml"
        text = config.read_text()
        self.assertIn('"/data/train"', text)
        config.write_text(text.replace('"/data/train"', f'"{self.folder}/data"')
                          .replace('"1GiB"', '"32MiB"').replace("size = 64", "size = 4"))
        self.tool("srun", '#!/bin/sh\nshift\nexec "$@"\n')
        self.tool("python3", '#!/bin/sh\necho $$ >trainer\nexec /usr/bin/python3 "$@"\n')

    def wait(self, condition, process):
        end = time.monotonic() + 90
        while not condition():
            self.assertIsNone(process.poll(), "the job ended too early")
            self.assertLess(time.monotonic(), end, "waited too long")
            time.sleep(0.01)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "client" / "examples"))
    import built
    built.use(BIN)
    unittest.main()
