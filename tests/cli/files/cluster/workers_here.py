"""Stands in for the bridge to Ray: its workers are processes on this machine.

A case makes a package/mscgym_ray/__main__.py with its own subclass of Bridge, to add faults.
"""
import json
import subprocess
import sys
import threading


class Bridge:
    def __init__(self):
        self.lock = threading.Lock()
        self.workers = {}
        self.n_refused = 0

    def say(self, **event):
        with self.lock:
            print(json.dumps(event), flush=True)

    def carry(self, number, process):
        for line in process.stdout:
            self.say(line={"w": number, "line": line.rstrip("\n")})
        self.say(down={"w": number, "why": "it ended"})

    def start(self, number, argv):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.workers[number] = process = subprocess.Popen(argv, **pipes)
        self.say(up={"w": number, "node": sys.argv[1]})
        threading.Thread(target=self.carry, args=(number, process), daemon=True).start()

    def send(self, number, line):
        self.workers[number].stdin.write(line + "\n")

    def run(self):
        for text in sys.stdin:
            request = json.loads(text)
            if "start" in request:
                for number in range(request["start"]["max"] or 2):
                    self.start(number, request["start"]["argv"])
            elif "send" in request:
                self.send(request["send"]["w"], request["send"]["line"])
            elif "drop" in request:
                self.workers[request["drop"]["w"]].kill()
                self.n_refused += request["drop"]["for_good"]
                if self.n_refused == len(self.workers):
                    self.say(error="no worker is left")
        for worker in self.workers.values():
            worker.kill()
