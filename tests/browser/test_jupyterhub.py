"""A class on a real JupyterHub, from the first release of a lecture to its feedback, with the documented commands."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import Machine, NoMachine
from nbgrader.utils import notebook_hash
from playwright.sync_api import Browser, Locator, Page

from autograder import project
from autograder.grading import source
from autograder.records.exchange import SECRET

NAME = "00_napkin_math"
LECTURE = source.read(project.SOLUTIONS / f"{NAME}.py")
FIRST = LECTURE.exercises[0]
PROXY = "5.3.0"  # configurable-http-proxy, which docs/instructors.md installs
WAIT = 120_000  # ms
COMMENT = "Twice as many, I'd say."
PAGE = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## On a JupyterHub") : PAGE.index("### Kubernetes\n")]

pytestmark = [pytest.mark.xdist_group("hub"), pytest.mark.timeout(600)]


def documented(number: int) -> list[list[str]]:
    """The commands of a block of the page, with this lecture and this installation for those that it names."""
    block = SECTION.split("```sh\n")[number + 1].partition("```")[0]
    lines = [line.replace("01_tensors", NAME).replace("/opt/course-env", sys.prefix) for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


def proxy() -> Path:
    """The folder of JupyterHub's proxy, installed once with npm and kept in the build folder; skips without it."""
    kept = project.BUILD / "caches" / f"configurable-http-proxy-{PROXY}"
    programs = kept / "node_modules" / ".bin"
    if not (programs / "configurable-http-proxy").exists():
        if (npm := shutil.which("npm")) is None:
            pytest.skip("npm is not installed, and JupyterHub's proxy comes from there: `apt install npm`")
        command = [npm, "install", "--prefix", str(kept), "--no-audit", "--no-fund", "--silent"]
        ran = subprocess.run([*command, f"configurable-http-proxy@{PROXY}"], capture_output=True, text=True)
        if ran.returncode:
            shutil.rmtree(kept, ignore_errors=True)
            pytest.skip(f"npm could not install JupyterHub's proxy: {(ran.stderr or ran.stdout).strip()[-300:]}")
    return programs


def free_ports(count: int) -> list[int]:
    """Ports below those that systems give to whoever asks for any, so that none is taken before the hub does."""
    found: list[int] = []
    for port in random.sample(range(20_000, 30_000), 200):
        with socket.socket() as probe:
            if len(found) < count and probe.connect_ex(("127.0.0.1", port)) != 0:
                found.append(port)
    return found


class Hub:
    """The machine, the class on it, and its hub."""

    def __init__(self, place: Path) -> None:
        pytest.importorskip("jupyterhub", reason="jupyterhub is not installed: `python3 bootstrap.py --extra test`")
        programs = proxy()
        solutions = place / "solutions"  # one lecture: drawing the cases of all takes a minute
        shutil.copytree(project.EXERCISES / NAME, solutions / "exercises" / NAME)
        for path in (LECTURE.path, project.ITEMS):
            shutil.copy(path, solutions)
        try:
            self.machine = Machine(place, {project.SOLUTIONS: solutions})
        except NoMachine as error:
            pytest.skip(str(error))
        self.machine.add("grader", "ada", "bob", "ines", "tess")
        sandbox = self.machine.run("grader", "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true")
        if sandbox.returncode:
            pytest.skip(f"no sandbox for users of this machine: {sandbox.stderr.strip()[-200:]}")
        self.folder = self.machine.srv / "cs336"
        self.do("root", "chown", "-R", "grader:", str(project.SOLUTIONS))
        self.do("root", "chmod", "700", str(project.SOLUTIONS))
        folder, init, self.make, service = documented(1)
        self.do("root", *folder)
        self.do("root", *init)
        assert service[0] == "systemctl"  # which a container doesn't have
        (self.folder / "roster.csv").write_text("id,first_name,last_name\nada,Ada,Example\nbob,,\n", encoding="utf-8")
        self.problems = self.machine.run("root", *self.make).stdout
        self.do("root", "chmod", "700", "/home/ada", "/home/bob", "/home/grader")
        self.do("root", *self.make)
        port, inner, api = free_ports(3)
        self.url = f"http://127.0.0.1:{port}"
        with (self.machine.srv / "hub" / "jupyterhub_config.py").open("a", encoding="utf-8") as config:
            config.write(f"c.JupyterHub.bind_url, c.JupyterHub.hub_port = {self.url!r}, {inner}\n")
            config.write(f"c.ConfigurableHTTPProxy.api_url = 'http://127.0.0.1:{api}'\n")
            config.write("c.Spawner.args = ['--LabApp.expose_app_in_browser=True']\n")
            config.write("c.JupyterHub.cleanup_servers, c.LocalProcessSpawner.interrupt_timeout = True, 1\n")
        self.log = place / "hub.log"
        start = ["env", f"PATH={sys.prefix}/bin:{programs}:{os.environ['PATH']}", "jupyterhub"]
        command = self.machine.command("root", *start, "-f", "/srv/hub/jupyterhub_config.py", cwd="/srv/hub/private")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        for _ in range(300):
            assert self.process.poll() is None, self.log.read_text()
            try:
                urllib.request.urlopen(f"{self.url}/hub/login").close()
                return
            except (urllib.error.URLError, ConnectionError):  # nobody there, or only the proxy
                time.sleep(0.2)
        self.stop()
        raise AssertionError(f"JupyterHub did not start in a minute:\n{self.log.read_text()}")

    def do(self, user: str, *command: str, cwd: str = "/") -> str:
        """Run a command that has to work, outside of the hub."""
        ran = self.machine.run(user, *command, cwd=cwd)
        assert ran.returncode == 0, f"{shlex.join(command)}:\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def refused(self, user: str, *command: str) -> str:
        """Run a command that must not work; what it says."""
        ran = self.machine.run(user, *command)
        assert ran.returncode != 0, f"{user}, {shlex.join(command)}:\n{ran.stdout}"
        return ran.stdout + ran.stderr

    def enter(self, browser: Browser, user: str) -> Page:
        """Log in; the page has not arrived at a server yet."""
        page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        page.set_default_timeout(WAIT)
        page.goto(f"{self.url}/hub/login")
        page.locator("input[name=username]").fill(user)
        page.locator("input[name=password]").fill(user)
        page.locator("#login_submit").click(no_wait_after=True)
        return page

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=90)


def arrive(page: Page, server: str) -> None:
    """Wait for JupyterLab; whoever enters somebody else's server is asked once."""
    allow = page.get_by_role("button", name="Authorize")
    lab = page.locator("#jp-main-dock-panel")
    allow.or_(lab).first.wait_for()
    if allow.is_visible():
        allow.click()
    page.wait_for_url(f"**/user/{server}/lab**")
    page.wait_for_function("window.jupyterapp?.restored !== undefined")
    page.evaluate("jupyterapp.restored")


class Terminal:
    """A terminal in the class's server, into which an instructor types."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        page.evaluate("void jupyterapp.commands.execute('terminal:create-new')")
        self.screen = page.locator(".jp-Terminal")
        self.screen.locator(".xterm-helper-textarea").wait_for(state="attached")
        page.wait_for_timeout(1000)  # until the shell has printed its prompt, which can't be asked for

    def type(self, *command: str) -> str:
        """Type a command that has to work; what it prints."""
        said, code = self.folder / ".said", self.folder / ".code"
        code.unlink(missing_ok=True)
        self.screen.locator(".xterm-screen").click()
        self.page.keyboard.insert_text(f"{shlex.join(command)} > .said 2>&1; echo $? > .new; mv .new .code")
        self.page.keyboard.press("Enter")
        for _ in range(1200):
            if code.exists():
                assert code.read_text() == "0\n", f"{shlex.join(command)}:\n{said.read_text()}"
                return said.read_text()
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{shlex.join(command)} did not end:\n{said.read_text() if said.exists() else ''}")


class Student:
    """A student at the list of assignments."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.locator(".lm-MenuBar-itemLabel").get_by_text("Nbgrader").click()
        page.locator(".lm-Menu-itemLabel").get_by_text("Assignment List").click()

    def list(self, which: str) -> Locator:
        return self.page.locator(f"#{which}_assignments_list")

    def refresh(self) -> None:
        with self.page.expect_response(lambda answer: "/assignments?" in answer.url):
            self.page.locator("#refresh_assignments_list").click()

    def press(self, which: str, button: str) -> None:
        self.list(which).get_by_role("button", name=button, exact=True).click()

    def fetch(self) -> None:
        self.list("released").get_by_text(NAME).first.wait_for()
        self.press("released", "Fetch")
        self.list("fetched").get_by_text(NAME).first.wait_for()

    def submit(self) -> None:
        self.page.locator(".lm-TabBar-tabLabel").get_by_text("Assignments").click()
        self.press("fetched", "Submit")
        self.list("submitted").get_by_text(NAME).first.wait_for()

    def write(self, answer: str) -> Locator:
        """Open the notebook, answer the first exercise, run it and its check, and save; the check's output."""
        page = self.page
        page.evaluate(
            "async path => void await jupyterapp.commands.execute('docmanager:open', {path})", f"{NAME}/{NAME}.ipynb"
        )
        page.locator(".jp-StatusBar-Widget, #jp-bottom-panel").get_by_text("| Idle").wait_for()
        page.locator(".jp-CodeCell", has_text=f"def {FIRST.name}").first.locator(".cm-content").click()
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(answer)
        page.evaluate("jupyterapp.commands.execute('notebook:run-all-above')")  # with the imports, which are folded
        page.keyboard.press("Shift+Enter")
        page.keyboard.press("Shift+Enter")
        check = page.locator(".jp-CodeCell", has_text=f'check("{FIRST.name}")').first.locator(".jp-OutputArea")
        check.get_by_text(f"{FIRST.name}:").first.wait_for()
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        return check

    def feedback(self) -> str:
        """Fetch the feedback, open it as the list and the file browser offer it, and read the page."""
        self.page.locator(".lm-TabBar-tabLabel").get_by_text("Assignments").click()
        self.press("submitted", "Fetch Feedback")
        self.list("submitted").get_by_text("(view feedback)").last.click()
        self.page.locator(".jp-DirListing-item", has_text=f"{NAME}.html").dblclick()
        shown = self.page.frame_locator(".jp-HTMLViewer iframe").locator("body")
        shown.get_by_text("points").first.wait_for()
        return shown.inner_text()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(tmp_path_factory.mktemp("machine"))
    yield hub
    hub.stop()


def give(page: Page, url: str) -> None:
    """Give bob half a point for the first exercise in Formgrader, with a comment."""
    page.goto(f"{url}/user/grader/formgrader/gradebook/{NAME}/{NAME}")
    page.get_by_text("Submission #1", exact=True).wait_for()
    page.get_by_text("Show All Names").click()
    page.get_by_role("link", name="bob", exact=True).click()
    score = page.locator(f"input.score[id='test_{FIRST.name}']")
    score.and_(page.locator("[placeholder='0']")).wait_for()  # what the tests gave
    score.fill("0.5")
    with page.expect_response(lambda answer: "/api/grade/" in answer.url and answer.request.method == "PUT"):
        score.press("Tab")
    comment = page.locator(f"textarea[id='{FIRST.name}-comment']")
    comment.fill(COMMENT)
    with page.expect_response(lambda answer: "/api/comment/" in answer.url and answer.request.method == "PUT"):
        comment.press("Tab")


def test_a_lecture_from_its_release_to_its_feedback(hub: Hub, browser: Browser) -> None:
    # Before anybody is let in, the command finds what Debian's useradd leaves open.
    for found in ("ada can open /home/bob:", "ada can open /home/grader:", "bob can open /home/ada:", "3 problems"):
        assert found in hub.problems
    ines, tess, ada, bob = pages = [hub.enter(browser, name) for name in ("ines", "tess", "ada", "bob")]
    for page, server in zip(pages, ("grader", "grader", "ada", "bob"), strict=True):
        arrive(page, server)
    instructor = Terminal(ines, hub.folder)
    for command in documented(2):
        instructor.type(*command)

    one, other = Student(ada), Student(bob)
    for student, answer in ((one, FIRST.solution), (other, f"def {FIRST.name}(*given):\n    return 0.0")):
        student.refresh()
        student.fetch()
        right = student is one
        assert ("✗" not in student.write(answer).inner_text()) is right
        student.submit()
    keeps_to_themselves(hub, ada, "ada", "bob")
    keeps_to_themselves(hub, bob, "bob", "ada")

    collect, grade, *returning = documented(3)
    assert "2 new" in instructor.type(*collect)
    instructor.type(*grade)
    give(tess, hub.url)
    for command in returning:
        instructor.type(*command)
    theirs, others = one.feedback(), other.feedback()
    assert COMMENT in others and "A person gave these points; the tests gave 0." in others
    assert COMMENT not in theirs and "ada" in theirs and "bob" not in theirs and "ada" not in others
    pages_are_their_students_alone(hub, ada, "ada", "bob")
    pages_are_their_students_alone(hub, bob, "bob", "ada")

    nbgraders_own_commands_work(hub, instructor)
    an_update_replaces_nobodys_work(hub, instructor, one)
    for page in pages:
        page.context.close()


def keeps_to_themselves(hub: Hub, page: Page, me: str, other: str) -> None:
    """What one student can't do to another, or to the class: through the hub, or as a user of the machine."""
    inbound = Path("/srv/nbgrader/exchange/cs336/inbound")
    [handed_in] = (hub.machine.srv / inbound.relative_to("/srv")).glob(f"{other}+*")
    for path in (inbound, f"/home/{other}", "/srv/cs336", project.SOLUTIONS, "/srv/hub/private", "/home/grader"):
        assert "Permission denied" in hub.refused(me, "ls", str(path))
    for path in (f"/home/{other}/{NAME}/{NAME}.ipynb", f"/srv/cs336/hidden/{FIRST.name}.check", "/etc/shadow"):
        assert "Permission denied" in hub.refused(me, "cat", path)
    assert "No such file" in hub.refused(me, "bash", "-c", f"cat {inbound}/{other}+*/*")  # the shell finds no name
    assert len(handed_in.name.rpartition("+")[2]) == 12  # 72 random bits
    hub.refused(me, "mv", "/srv/nbgrader/exchange/cs336", "/srv/nbgrader/exchange/mine")
    hub.refused(me, "mkdir", "/srv/nbgrader/exchange/cs336/outbound/99_forged")
    theirs = (f"user/{other}/lab", f"user/{other}/api/contents")
    for path in (*theirs, "user/grader/lab", "hub/spawn/grader", "hub/api/users"):
        answer = page.request.get(f"{hub.url}/{path}")
        assert answer.status in (403, 404), (path, answer.status)
    assert hub.machine.run(me, "id", "-un").stdout == f"{me}\n"


def pages_are_their_students_alone(hub: Hub, page: Page, me: str, other: str) -> None:
    """In the exchange's folder of returned pages, which has everybody's code, a student finds their own page only."""
    folder = Path("/srv/nbgrader/exchange/cs336/feedback")
    returned = hub.machine.srv / folder.relative_to("/srv")
    for command in ("ls", "find"):
        assert "Permission denied" in hub.refused(me, command, str(folder))
    assert "No such file" in hub.refused(me, "bash", "-c", f"cat {folder}/*.html")  # the shell finds no name
    # Each page's name is a hash of its submission's secret, so only those who know the secret can ask for the page.
    submissions = {who: secret_of(hub, who) for who in (me, other)}
    hashes = {who: notebook_hash(secret=each.read_text(), notebook_id=NAME) for who, each in submissions.items()}
    names = {who: f"{each}.html" for who, each in hashes.items()}
    assert {path.name for path in returned.iterdir()} == set(names.values()) and names[me] != names[other]
    mine = hub.do(me, "cat", str(folder / names[me]))
    assert me in mine and other not in mine
    # A student doesn't get the other's secret, nor the page that the other has fetched.
    assert all(path.read_text() != submissions[other].read_text() for path in (hub.machine.home / me).rglob(SECRET))
    for path in (f"/home/{other}/{submissions[other].relative_to(hub.machine.home / other)}", f"/home/{other}/{NAME}"):
        assert "Permission denied" in hub.refused(me, "ls", path)
    assert page.request.get(f"{hub.url}/user/{other}/files/{NAME}/feedback").status in (403, 404)


def secret_of(hub: Hub, who: str) -> Path:
    """The secret of a student's only submission, which nbgrader keeps in the student's home."""
    [found] = (hub.machine.home / who).rglob(SECRET)
    return found


def nbgraders_own_commands_work(hub: Hub, instructor: Terminal) -> None:
    """They find what ours have made, and leave it as it is."""
    page = hub.folder / "feedback" / "bob" / NAME / f"{NAME}.html"
    ours = page.read_bytes()
    for command in ("list --inbound", f"collect {NAME} --update", f"generate_feedback {NAME}", "export"):
        said = instructor.type("nbgrader", *command.split())
        assert "bob" in said or command == "export", said
    assert page.read_bytes() == ours
    assert f"{NAME}," in (hub.folder / "grades.csv").read_text(encoding="utf-8")


def an_update_replaces_nobodys_work(hub: Hub, instructor: Terminal, ada: Student) -> None:
    """A lecture is released again, and ada fetches again in every way that there is."""
    work = hub.machine.home / "ada" / NAME / f"{NAME}.ipynb"
    before = work.read_bytes()
    assert FIRST.name.encode() in before
    path = project.SOLUTIONS
    changed = hub.machine.command("root", "sed", "-i", "s/^# 00 /# New: 00 /", f"{path}/{NAME}.py", cwd="/")
    subprocess.run(changed, check=True)
    for command in documented(4):
        instructor.type(*command)
    settings = ["env", "JUPYTER_CONFIG_PATH=/srv/hub/students", "nbgrader", "fetch_assignment", NAME]
    assert "already have a copy" in hub.refused("ada", *settings)
    hub.do("ada", *settings, "--replace", cwd="/home/ada")
    assert work.read_bytes() == before
    ada.page.locator(".lm-TabBar-tabLabel").get_by_text("Assignments").click()
    ada.refresh()
    assert ada.list("released").get_by_text(NAME).count() == 0
    # The file browser still shows the folder with the feedback; if that goes away, a dialog lies over the page.
    ada.page.evaluate("jupyterapp.commands.execute('filebrowser:go-to-path', {path: '/'})")
    hub.do("ada", "mv", f"/home/ada/{NAME}", f"/home/ada/{NAME}-mine")
    ada.refresh()
    ada.fetch()
    assert b"# New: " in work.read_bytes() and (work.parents[1] / f"{NAME}-mine" / work.name).read_bytes() == before
