"""A folder in the form of /proc, for tests of what looks at other processes."""

from pathlib import Path


def write_stat(processes: Path, pid: int, name: str, state: str = "S", *, parent: int = 1, threads: int = 1) -> None:
    """Create a process's `stat` file with all 52 fields of proc(5); those that no test needs are 0."""
    fields = ["0"] * 49
    fields[0], fields[16] = str(parent), str(threads)
    (processes / str(pid)).mkdir(parents=True, exist_ok=True)
    (processes / str(pid) / "stat").write_text(f"{pid} ({name}) {state} {' '.join(fields)}\n")
