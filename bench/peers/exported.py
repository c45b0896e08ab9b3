"""onnxruntime on the files that `mscgym export` writes for the trials: one session per trial.

The files are written and read into memory beforehand. The time counts what a loop over the same
trials cannot avoid: creating a session, running it, computing the loss. Losses must agree with
those of the record.
"""
import os

import numpy
import onnxruntime

import model as models


class ExportedSession:
    def __init__(self, base, plans, threads):
        self.base, self.threads, self.files = base, threads, {}
        self.ids = {tuple(t["choices"]): t["id"] for t in plans.evaluated()}

    def prepare(self, trials):
        for choices in map(tuple, trials):
            if choices not in self.files:
                path = os.path.join(self.base.folder, "exported", f"{self.ids[choices]}.onnx")
                with open(path, "rb") as file:
                    self.files[choices] = file.read()

    def evaluate(self, choices):
        session = onnxruntime.InferenceSession(self.files[tuple(choices)],
                                               models.session_options(self.threads))
        feed = session.get_inputs()[0]
        names = [o.name for o in session.get_outputs() if o.type == "tensor(float)"]
        results = []
        for values in (f[self.base.feed] for f in self.base.feeds):
            # A model for one image takes images one by one.
            n = feed.shape[0] if isinstance(feed.shape[0], int) else len(values)
            parts = [session.run(names, {feed.name: values[i:i + n]})
                     for i in range(0, len(values), n)]
            results.append([numpy.concatenate(part) for part in zip(*parts)])
        return self.base.loss(results)
