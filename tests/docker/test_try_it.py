"""What docs/try-it.md says to somebody with Docker, command by command: the tutorial, the audit, and the end."""

from pathlib import Path

from cdc.sandbox.demo import Programs
from cdc.sandbox.servers import ProfileFiles
from tests.checks.document_commands import ROOT, Block
from tests.docker.conftest import Shell
from tests.docker.engine import BLOCKS, CONTAINERS, PROJECT, docker
from tests.harness.programs import records, run_well
from tests.harness.wait import until

UP, WRITE, DOWN, INSTALL, REMOVE = BLOCKS
PROFILES = ProfileFiles.below(ROOT)
RECORDS = 9  # of the tutorial
SPOT = "Spot\tJane\tdog\tm\t2010-11-02\t2020-06-10"


def do(shell: Shell, block: Block) -> None:
    for command in block.commands:
        done = shell(command)
        assert done.returncode == 0, f"{block}: {command}\n{done.stdout}{done.stderr}"


def catch_up() -> None:
    """Each program to the end of what the one before it wrote."""
    for program, profile in (
        ("cdc-producer", PROFILES.producer),
        ("cdc-consumer", PROFILES.consumer),
        ("cdc-producer", PROFILES.follower),
    ):
        run_well(program, profile, "--until-current")


def mounted() -> list[str]:
    """The volumes of the project's containers."""
    containers = docker("ps", "--quiet", "--filter", f"name={PROJECT}-").split()
    return docker("inspect", "--format", "{{range .Mounts}}{{.Name}} {{end}}", *containers).split()


def test_the_tutorial_through_the_containers(shell: Shell, tmp_path: Path) -> None:
    write, read = WRITE.commands
    do(shell, UP)
    programs = Programs(tmp_path, PROFILES)
    try:
        programs.start()
        done = shell(write)
        assert done.returncode == 0, done.stderr
        until(lambda: programs.check() or SPOT in shell(read).stdout, what="the follower has the tutorial's last row")
        programs.stop()
        catch_up()
        status, said = programs.audit(tmp_path / "report")
    finally:
        programs.kill()
    assert (status, said.splitlines()[0]) == (0, f"no drift at sequence {RECORDS - 1}"), said
    assert all(name.startswith(f"{PROJECT}_") for name in mounted()), "a volume that no down removes"
    do(shell, DOWN)
    assert docker("ps", "--all", "--quiet", "--filter", f"name={PROJECT}-") == ""
    do(shell, UP)
    assert SPOT in shell(read).stdout
    catch_up()
    assert len(records(PROFILES.producer)) == RECORDS


def test_two_servers_without_the_compose_file(shell: Shell, home: Path) -> None:
    assert shell(f"{DOWN.commands[0]} --volumes").returncode == 0
    do(shell, INSTALL)
    names = docker("ps", "--format", "{{.Names}}").split()
    assert {"mysql-leader", "mysql-follower"} <= set(names) & set(CONTAINERS)
    do(shell, REMOVE)
    assert [list((home / name).iterdir()) for name in ("mysql-leader", "mysql-follower")] == [[], []]
