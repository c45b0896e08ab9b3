"""Small ONNX models for long tests: makes them, compresses them with mscgym, runs them in onnxruntime.

    checks = Checks(sys.argv[1])
    path = make("m.onnx", [node("Relu", ["x"], ["y"])], {"x": ["n", 4]}, {"y": ["n", 4]}, {})
    code, text = checks.mscgym("graph", path, "--sites")
    checks.expect("it has sites", "activation" in text, text)
    sys.exit(checks.finish())

The working folder is a temporary one. Exits with 77 (skipped) if packages are missing.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

node = helper.make_node


class Checks:
    """Runs mscgym, and counts failed and passed checks."""

    def __init__(self, mscgym):
        self.mscgym_path = os.path.abspath(mscgym)
        self.failed = self.passed = 0
        os.chdir(tempfile.mkdtemp(prefix="small_onnx_"))
        # Puts this Python into the PATH, so that mscgym finds onnxruntime.
        self.environment = dict(
            os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])

    def mscgym(self, *arguments):
        result = subprocess.run([self.mscgym_path, *map(str, arguments)], capture_output=True,
                                text=True, errors="replace", env=self.environment, check=False)
        return result.returncode, result.stdout + result.stderr

    def expect(self, what, holds, found=""):
        self.passed += bool(holds)
        self.failed += not holds
        if not holds:
            print(f"FAILED {what}: {str(found).strip()[:400]}")
        return holds

    def finish(self):
        print(f"{self.passed} checks passed, {self.failed} failed")
        return 1 if self.failed else 0

    def run(self, path, feed, *more):
        """Outputs by name, as mscgym computes them, or the text of an error."""
        arguments = ["run", path, "--output", "out.npz", "--repeat", "0", "--threads", "1", "--quiet",
                     *more]
        for name, value in feed.items():
            numpy.save(f"feed_{name}.npy", value)
            arguments += ["--input", f"{name}=feed_{name}.npy"]
        code, text = self.mscgym(*arguments)
        return dict(numpy.load("out.npz")) if code == 0 else text


def value_info(name, shape, dtype=onnx.TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def make(path, nodes, inputs, outputs, initializers, opset=17, ir_version=8, changes=None):
    """Saves a model. `inputs` and `outputs` are shapes by name, or ValueInfoProtos."""
    def infos(shapes):
        return [s if isinstance(s, onnx.ValueInfoProto) else value_info(n, s)
                for n, s in shapes.items()]
    tensors = [v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(numpy.asarray(v), k)
               for k, v in initializers.items()]
    graph = helper.make_graph(nodes, "small", infos(inputs), infos(outputs), tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir_version
    if changes:
        changes(model)
    onnx.save(model, path)
    return path


def run_onnxruntime(path, feed, optimised=False):
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed)))


def is_close(found, expected, tolerance=1e-4):
    if not isinstance(found, dict):
        return False
    return all(name in found and found[name].shape == value.shape and
               numpy.allclose(found[name], value, rtol=tolerance, atol=tolerance, equal_nan=True)
               for name, value in expected.items())
