"""The most memory of the GPU that was in use while something ran, by nvidia-smi twice a second."""
import shutil
import subprocess
import tempfile


class PeakMemory:
    """`with PeakMemory() as memory: ...`, then `memory.mib`: None where nvidia-smi is not there or says nothing."""

    def __enter__(self):
        self.mib = None
        self._lines = tempfile.TemporaryFile("w+")
        self._process = None
        program = shutil.which("nvidia-smi")
        if program is not None:
            self._process = subprocess.Popen(
                [program, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0", "-lms", "500"],
                stdin=subprocess.DEVNULL, stdout=self._lines, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._lines.seek(0)
        self.mib = max((int(line) for line in self._lines if line.strip().isdigit()), default=None)
        self._lines.close()
