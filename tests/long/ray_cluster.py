"""A Ray cluster for tests: a head and nodes, on addresses in a network namespace."""
import os
import secrets
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAD = "10.99.0.1"
PORT = 6379
ADDRESS = f"{HEAD}:{PORT}"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def enter_namespace():
    """Restarts the script in a network namespace that ends with it."""
    try:
        import ray  # noqa: F401
    except ImportError:
        skip(f"Python's package ray is not installed for {sys.executable}")
    if os.environ.get("MSC_RAY_TEST") == "inside":
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # Adds an address. With only the loopback address, host names are not resolved, and Slurm needs that.
        subprocess.run(["ip", "addr", "add", f"{HEAD}/24", "dev", "lo"], check=True)
        return
    # Root stays root: in a user namespace, Slurm, which other tests start here, may not drop groups.
    unshare = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "--mount"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        skip("no network namespace is allowed")
    os.environ["MSC_RAY_TEST"] = "inside"
    os.execvp("unshare", [*unshare, "--kill-child", "--fork", sys.executable, *sys.argv])


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def is_marked(pid, mark):
    """True if the process was started for this node. Processes that change their title lose the mark."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"MSC_RAY_NODE={mark}\0".encode() in file.read()
    except OSError:
        return False


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[1])
    except OSError:
        return 0


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(pid):
    parents = {p: parent_of(p) for p in processes()}
    found = [pid]
    for p in found:
        found += [child for child, parent in parents.items() if parent == p]
    return found


def send(pids, what):
    for pid in pids:
        try:
            os.kill(pid, what)
        except OSError:
            pass


class Cluster:
    """A head without processors, and nodes 2, 3, ... with `cpus` processors each."""

    def __init__(self, folder, nodes, cpus=1, hidden=None):
        self.folder, self.cpus, self.hidden = folder, cpus, hidden
        os.environ.update(
            RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0",
            RAY_health_check_period_ms="1000", RAY_health_check_timeout_ms="1000",
            RAY_health_check_failure_threshold="3", PYTHONPATH=os.path.join(ROOT, "python"),
            PYTHONDONTWRITEBYTECODE="1", PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
        self.wait(self.ray("--head", "--node-ip-address", HEAD, "--port", str(PORT), "--num-cpus", "0",
                           "--temp-dir", folder, "--include-dashboard", "false"))
        # One after the other: nodes that start at once disturb each other on one machine.
        for i in nodes:
            self.wait(self.start_node(i))

    def ray(self, *words, before=(), node=1, **environment):
        command = [*before, sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats",
                   "--object-store-memory", "100000000", *words]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True,
                                env=dict(os.environ, MSC_RAY_NODE=self.mark(node), **environment))

    def wait(self, process):
        text = process.communicate(timeout=120)[0]
        if process.returncode != 0:
            sys.exit(f"{' '.join(process.args)}: {text}")

    def address(self, word, i):
        subprocess.run(["ip", "addr", word, f"10.99.0.{i}/24", "dev", "lo"], check=True)

    def start_node(self, i, gpus=()):
        """Starts a node and returns its process, to be waited for. The node cannot see the hidden
        folder. `gpus` are the UUIDs that Ray assigns.
        """
        ip = f"10.99.0.{i}"
        shown = subprocess.run(["ip", "addr", "show", "dev", "lo"], capture_output=True, text=True).stdout
        if f" {ip}/" not in shown:
            self.address("add", i)
        hide = ()
        if self.hidden:
            hide = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none "{self.hidden}" && exec "$@"', "sh")
        cpus, words, environment = self.cpus, [], {}
        if gpus:
            cpus, words = len(gpus), ["--num-gpus", str(len(gpus))]
            environment = {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}
        return self.ray("--address", ADDRESS, "--node-ip-address", ip, "--num-cpus", str(cpus), *words, before=hide,
                        node=i, **environment)

    def mark(self, i):
        """A mark that differs from those of other clusters on this machine."""
        return f"{self.folder}:{i}"

    def raylet(self, i):
        return [p for p in processes() if "/raylet " in (line := command_line(p)) and self.folder + "/" in line and
                f"--node_ip_address=10.99.0.{i} " in line + " "]

    def of_node(self, i):
        marked = [p for p in processes() if is_marked(p, self.mark(i))]
        return marked + [p for raylet in self.raylet(i) for p in descendants(raylet) if p not in marked]

    def kill_node(self, i):
        """Kills all processes of a node at once, its workers included."""
        send(self.of_node(i), signal.SIGKILL)

    def close(self):
        for i in range(1, 10):
            self.kill_node(i)


def wait_until(happens, seconds):
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
